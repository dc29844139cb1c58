use super::*;
use proptest::prelude::*;

fn environment(command: Command) -> Environment {
    Environment {
        command: Some(command.name().into()),
        container: Some("abc".into()),
        interface: Some("eth0".into()),
        netns: Some("/run/netns/x".into()),
        args: Some("IgnoreUnknown=1;K8S_POD_NAMESPACE=prod;K8S_POD_NAME=web-0".into()),
    }
}

fn input(text: &str) -> Input {
    Input { bytes: text.as_bytes().to_vec(), problem: None }
}

fn read<'a>(
    command: Command,
    environment: &Environment,
    input: &'a Input,
) -> Result<Invocation<'a>, Failure> {
    Invocation::read(command, environment, input).map_err(|(_, failure)| failure)
}

fn add_with<R>(text: &str, args: &str, look: impl FnOnce(&str, Route, &AddRequest) -> R) -> R {
    let environment = Environment { args: Some(args.into()), ..environment(Command::Add) };
    let input = input(text);
    match read(Command::Add, &environment, &input).unwrap().action {
        Action::Add { prev, route, request } => look(prev, route, &request),
        other => panic!("{other:?}"),
    }
}

#[test]
fn k03_an_add_keeps_the_bytes_of_the_result_and_tells_of_the_pod() {
    let text =
        r#"{"cniVersion":"0.3.1","name":"cbr0","prevResult": {"ips":[{"address":"10.1.0.2/24"}],"n":1.50} }"#;
    add_with(text, "K8S_POD_NAMESPACE=prod;K8S_POD_NAME=web-0;K8S_POD_UID=u", |prev, route, request| {
        assert_eq!(prev, r#"{"ips":[{"address":"10.1.0.2/24"}],"n":1.50}"#);
        assert_eq!(route, Route::Agent);
        assert_eq!(request.network, "cbr0");
        assert_eq!(
            request.attachment,
            Some(Attachment { container_id: "abc".into(), interface: "eth0".into() })
        );
        assert_eq!(request.netns, Some(at("/run/netns/x".into())));
        assert_eq!(request.managed(), Managed::Yes);
        let pod = request.pod.as_ref().unwrap();
        assert_eq!((pod.namespace.as_str(), pod.name.as_str(), pod.uid.as_str()), ("prod", "web-0", "u"));
        assert_eq!(pod.addresses, ["10.1.0.2/24"]);
    });
}

#[test]
fn k03_an_add_without_a_result_is_code_7() {
    for prev in
        ["", r#","prevResult":null"#, r#","prevResult":[]"#, r#","prevResult":"x""#, r#","prevResult":7"#]
    {
        let input = input(&format!(r#"{{"name":"n"{prev}}}"#));
        let failure = read(Command::Add, &environment(Command::Add), &input).unwrap_err();
        assert_eq!(failure.code, 7, "{prev}");
        assert!(failure.details.contains("prevResult"), "{failure}");
    }
}

#[test]
fn k06_ignored_namespaces_need_no_agent_and_an_opted_out_pod_does() {
    let text = r#"{"name":"n","prevResult":{},"releaseNamespace":"aether","ignoredNamespaces":["quiet"],
        "runtimeConfig":{"io.kubernetes.cri.pod-annotations":{"aether.io/managed":"false"}}}"#;
    for (namespace, route) in [
        ("kube-system", Route::IgnoredNamespace),
        ("aether", Route::IgnoredNamespace),
        ("quiet", Route::IgnoredNamespace),
        ("prod", Route::Agent),
        ("", Route::Agent),
        ("Kube-System", Route::Agent),
    ] {
        add_with(text, &format!("K8S_POD_NAMESPACE={namespace}"), |_, found, request| {
            assert_eq!(found, route, "{namespace:?}");
            assert_eq!(request.managed(), Managed::OptedOut);
        });
    }
}

#[test]
fn k06_an_opt_in_entry_manages_only_pods_that_ask_for_it() {
    for (annotations, expected) in [
        ("{}", Managed::OptedOut),
        (r#"{"aether.io/managed":"true"}"#, Managed::Yes),
        (r#"{"aether.io/managed":"false"}"#, Managed::OptedOut),
    ] {
        let text = format!(
            r#"{{"name":"n","prevResult":{{}},"managed":"opt-in","runtimeConfig":{{"io.kubernetes.cri.pod-annotations":{annotations}}}}}"#
        );
        add_with(&text, "", |_, _, request| assert_eq!(request.managed(), expected, "{annotations}"));
    }
}

#[test]
fn k06_a_caller_that_names_no_namespace_has_a_managed_pod() {
    add_with(
        r#"{"name":"n","prevResult":{},"releaseNamespace":""}"#,
        "IgnoreUnknown=1;K8S_POD_NAME=e1",
        |_, route, it| {
            assert_eq!((route, it.managed()), (Route::Agent, Managed::Yes));
        },
    );
}

#[test]
fn k06_once_uninstalled_nothing_of_the_entry_matters() {
    let text = r#"{"name":"n","prevResult":{},"agentSocket":7,"managed":[]}"#;
    for command in [Command::Add, Command::Check] {
        let input = input(text);
        let invocation =
            read(command, &environment(command), &input).unwrap().resolve(Marker::Stands).unwrap();
        assert!(matches!(
            invocation.action,
            Action::Add { route: Route::Uninstalled, .. } | Action::Check { route: Route::Uninstalled, .. }
        ));
        let failure =
            read(command, &environment(command), &input).unwrap().resolve(Marker::Absent).unwrap_err();
        assert_eq!(failure.code, 7);
        assert!(failure.details.contains("agentSocket"), "{failure}");
    }
}

#[test]
fn k07_a_del_makes_do_with_whatever_it_is_given() {
    let text = r#"{"name":7,"cniVersion":"9.9.9","agentSocket":{},"stateDir":"/x","prevResult":[]}"#;
    for (bytes, state_dir, network) in [
        (text, "/x", None),
        ("", "/var/lib/aether", None),
        ("{", "/var/lib/aether", None),
        (r#"{"name":"cbr0"}"#, "/var/lib/aether", Some("cbr0")),
    ] {
        let environment = Environment { netns: None, args: None, ..environment(Command::Del) };
        let input = Input { bytes: bytes.into(), problem: Some(crate::config::Incomplete::TooLarge) };
        let invocation = read(Command::Del, &environment, &input).unwrap().resolve(Marker::Absent).unwrap();
        assert_eq!(invocation.entry.state_dir.to_str(), Some(state_dir));
        assert_eq!(invocation.entry.socket.to_str(), Some("/run/aether/cni.sock"));
        let Action::Del { key, network: found, .. } = invocation.action else { panic!("no DEL") };
        assert_eq!(key.to_string(), "abc/eth0");
        assert_eq!(found.as_ref().map(NetworkName::as_str), network);
    }
}

#[test]
fn k11_a_gc_knows_both_names_of_the_list_and_the_difference_between_none_and_empty() {
    let a = r#"[{"containerID":"a","ifname":"eth0"}]"#;
    let b = r#"[{"containerID":"b","ifname":"eth0","more":1}]"#;
    for (keys, expected) in [
        (String::new(), Some(None)),
        (r#","cni.dev/valid-attachments":null"#.into(), Some(None)),
        (r#","cni.dev/valid-attachments":[]"#.into(), Some(Some(vec![]))),
        (r#","cni.dev/attachments":[]"#.into(), Some(Some(vec![]))),
        (format!(r#","cni.dev/valid-attachments":{a}"#), Some(Some(vec!["a"]))),
        (format!(r#","cni.dev/attachments":{a}"#), Some(Some(vec!["a"]))),
        (format!(r#","cni.dev/attachments":{a},"cni.dev/valid-attachments":{a}"#), Some(Some(vec!["a"]))),
        (
            format!(r#","cni.dev/attachments":{a},"cni.dev/valid-attachments":{b}"#),
            Some(Some(vec!["a", "b"])),
        ),
        (r#","cni.dev/attachments":{}"#.into(), None),
        (r#","cni.dev/attachments":[{"containerID":"a"}]"#.into(), None),
        (r#","cni.dev/valid-attachments":[],"cni.dev/attachments":"x""#.into(), None),
    ] {
        let input = input(&format!(r#"{{"name":"n"{keys}}}"#));
        let found = match read(Command::Gc, &Environment::default(), &input) {
            Ok(Invocation { action: Action::Gc(request), .. }) => Some(request.map(|request| {
                assert_eq!(request.network, "n");
                request.valid.into_iter().map(|it| it.container_id).collect::<Vec<_>>()
            })),
            Ok(other) => panic!("{other:?}"),
            Err(failure) => {
                assert_eq!(failure.code, 7);
                None
            }
        };
        assert_eq!(
            found,
            expected.map(|list| list.map(|ids| ids.into_iter().map(str::to_owned).collect())),
            "{keys}"
        );
    }
}

#[test]
fn k08_what_concerns_a_network_must_name_it() {
    for command in [Command::Add, Command::Check, Command::Gc] {
        for name in ["", r#""name":"","#, r#""name":null,"#, r#""name":7,"#] {
            let input = input(&format!(r#"{{{name}"prevResult":{{}}}}"#));
            let failure = read(command, &environment(command), &input).unwrap_err();
            assert_eq!(failure.code, 7, "{command:?} {name}");
        }
    }
}

proptest! {
    #[test]
    fn k02_no_input_is_fatal(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        json in r#"\{("(name|prevResult|cniVersion|managed|runtimeConfig|cni\.dev/attachments)":(\{\}|\[\]|7|"x"|null),?){0,4}\}"#,
        value in ".{0,20}",
    ) {
        for bytes in [bytes, json.into_bytes()] {
            let input = Input { bytes, problem: None };
            for command in Command::ALL {
                for environment in [environment(command), Environment {
                    container: Some(value.clone().into()),
                    interface: Some(value.clone().into()),
                    args: Some(value.clone().into()),
                    ..environment(command)
                }] {
                    for marker in [Marker::Stands, Marker::Absent] {
                        let _ = read(command, &environment, &input).and_then(|invocation| invocation.resolve(marker));
                    }
                }
            }
        }
    }
}
