use super::*;
use proptest::prelude::*;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn of(args: &str, runtime: &str, prev: &str) -> Pod {
    let (runtime, prev) = (raw(runtime), raw(prev));
    read(args, Some(&runtime), Some(&prev), "eth0")
}

#[test]
fn k12_arguments_are_read_leniently() {
    let pod =
        of(";;IgnoreUnknown=1;K8S_POD_NAME=a=b;x;=y;K8S_POD_NAMESPACE=prod;K8S_POD_UID=;Z=;", "{}", "{}");
    assert_eq!((pod.namespace.as_str(), pod.name.as_str(), pod.uid.as_str()), ("prod", "a=b", ""));
    assert_eq!(of("K8S_POD_NAME=a;K8S_POD_NAME=b", "{}", "{}").name, "b");
}

#[test]
fn k03_addresses_of_every_version_of_a_result() {
    for (prev, expected) in [
        (
            r#"{"ips":[{"version":"4","interface":1,"address":"10.1.0.2/24"}],"interfaces":[{"name":"cni0"},{"name":"eth0","sandbox":"/x"}]}"#,
            vec!["10.1.0.2/24"],
        ),
        (
            r#"{"ips":[{"interface":0,"address":"10.1.0.1/24"},{"interface":1,"address":"fd00::2/64"}],"interfaces":[{"name":"cni0"},{"name":"eth0"}]}"#,
            vec!["fd00::2/64"],
        ),
        (
            r#"{"ips":[{"address":"10.1.0.2/24"},{"address":"fd00::2/64","interface":9}]}"#,
            vec!["10.1.0.2/24", "fd00::2/64"],
        ),
        (
            r#"{"ip4":{"ip":"10.1.0.3/24","gateway":"10.1.0.1"},"ip6":{"ip":"fd00::3/64"},"dns":{}}"#,
            vec!["10.1.0.3/24", "fd00::3/64"],
        ),
        (
            r#"{"ips":[{"address":7},{"address":"nonsense"},3,null,{"address":"10.1.0.4"}],"interfaces":"x","ip4":[]}"#,
            vec!["10.1.0.4"],
        ),
        (r#"{"ips":[],"ips":[{"address":"10.1.0.5/16"}]}"#, vec!["10.1.0.5/16"]),
        ("[]", vec![]),
        ("{}", vec![]),
    ] {
        assert_eq!(of("", "{}", prev).addresses, expected, "{prev}");
    }
}

#[test]
fn k03_host_ports_come_with_capitals_or_without() {
    let containerd =
        r#"{"portMappings":[{"HostPort":30080,"ContainerPort":8080,"Protocol":"TCP","HostIP":"1.2.3.4"}]}"#;
    let podman = r#"{"portMappings":[{"hostPort":53,"containerPort":53,"protocol":"udp"},{"hostPort":80,"containerPort":81}]}"#;
    let port = |host_port, container_port, protocol: &str, host_ip: &str| HostPort {
        host_port,
        container_port,
        protocol: protocol.into(),
        host_ip: host_ip.into(),
    };
    assert_eq!(of("", containerd, "{}").host_ports, [port(30080, 8080, "tcp", "1.2.3.4")]);
    assert_eq!(of("", podman, "{}").host_ports, [port(53, 53, "udp", ""), port(80, 81, "tcp", "")]);
    for nonsense in [
        r#"{"portMappings":{}}"#,
        r#"{"portMappings":[1,null,{"HostPort":0,"ContainerPort":1},{"HostPort":70000,"ContainerPort":1},{"HostPort":-1}]}"#,
    ] {
        assert_eq!(of("", nonsense, "{}").host_ports, []);
    }
}

#[test]
fn k06_annotations_come_from_the_runtime() {
    let pod =
        of("", r#"{"io.kubernetes.cri.pod-annotations":{"aether.io/managed":"false","n":1,"o":null}}"#, "{}");
    assert_eq!(pod.annotations, HashMap::from([("aether.io/managed".into(), "false".into())]));
}

proptest! {
    #[test]
    fn k12_no_argument_is_fatal(args in ".{0,80}") {
        read(&args, None, None, "eth0");
    }
}
