//! The whole way of a pod: installer, plugin, agent, record, and its end.

use aether_domain::managed::Managed;
use aether_domain::record::HostPort;
use aether_harness::cri::{self, Network, Pod, Protocol};
use aether_harness::{Containerd, lists};
use aether_test_cni::Rig;
use anyhow::Context as _;

async fn i01_k03_s01_a_pod_through_flannels_chain_is_recorded_and_forgotten(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (rig, _agent) = Rig::chained(containerd).await?;
    let id = rig.run(&Pod::named("prod", "web-0")).await?;
    let address = rig.cri.status(&id).await?.address().to_owned();
    assert!(address.starts_with("10.244.1."), "{address:?}");
    let record = rig.record(&id)?;
    assert_eq!((record.pod.namespace.as_str(), record.pod.name.as_str()), ("prod", "web-0"));
    assert_eq!(record.pod.addresses, [format!("{address}/24")]);
    rig.consistent().await?;
    rig.end(&id).await?;
    rig.nothing_left().await
}

async fn i09_k08_what_cni_tells_of_a_pod_is_recorded_and_nothing_else(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (rig, _agent) = Rig::chained(containerd).await?;
    let annotations = [("config.aether.io/upstreams", "db.prod"), ("a", "<&>\" é")];
    let pod = Pod {
        uid: "59e3eeb0-7bf1".to_owned(),
        annotations: annotations.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        ports: vec![
            cri::HostPort { host: 30080, container: 8080, protocol: Protocol::Tcp },
            cri::HostPort { host: 30053, container: 53, protocol: Protocol::Udp },
        ],
        ..Pod::named("prod", "web-0")
    };
    let id = rig.run(&pod).await?;
    let record = rig.record(&id)?;
    assert_eq!((record.key.container.as_str(), record.key.interface.as_str()), (id.0.as_str(), "eth0"));
    assert_eq!(record.network.as_str(), "cbr0");
    assert_eq!(record.pod.uid, "59e3eeb0-7bf1");
    let told: Vec<_> = annotations.map(|(key, _)| record.pod.annotations.get(key).cloned()).into();
    assert_eq!(told, annotations.map(|(_, value)| Some(value.to_owned())));
    let port = |host_port, container_port, protocol: &str| HostPort {
        host_port,
        container_port,
        protocol: protocol.to_owned(),
        host_ip: String::new(),
    };
    assert_eq!(record.pod.host_ports, [port(30080, 8080, "tcp"), port(30053, 53, "udp")]);
    let seen = std::fs::metadata(rig.node.path(&record.netns.path)).context("the recorded namespace")?;
    assert_eq!(std::os::unix::fs::MetadataExt::ino(&seen), record.netns.inode);
    assert_eq!(record.managed, Managed::Yes);
    // Exactly the documented keys: labels and the service account are not known and not guessed.
    let json = serde_json::to_value(&record.pod)?;
    let keys: Vec<_> = json.as_object().context("an object")?.keys().cloned().collect();
    assert_eq!(keys, ["addresses", "annotations", "hostPorts", "name", "namespace", "uid"]);
    rig.end(&id).await?;
    rig.nothing_left().await
}

async fn k14_one_request_id_stands_in_the_plugins_log_line_and_in_the_agents(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (rig, agent) = Rig::chained(containerd).await?;
    let id = rig.run(&Pod::named("prod", "web-0")).await?;
    let request = rig.record(&id)?.request_id;
    // The runtime passes the plugin's standard error on to its own.
    let lines = |log: &str| log.lines().filter(|line| line.contains(request.as_str())).count();
    assert!(lines(&rig.node.containerd_log()) > 0, "{}", rig.node.containerd_log());
    assert!(lines(&agent.log()) > 0, "{}", agent.log());
    rig.end(&id).await
}

async fn k06_an_opted_out_pod_is_recorded_as_unmanaged(containerd: Containerd) -> anyhow::Result<()> {
    let (rig, _agent) = Rig::chained(containerd).await?;
    let annotations = [("aether.io/managed".to_owned(), "false".to_owned())].into();
    let id = rig.run(&Pod { annotations, ..Pod::named("prod", "out") }).await?;
    assert_eq!(rig.record(&id)?.managed, Managed::OptedOut);
    rig.end(&id).await?;
    rig.nothing_left().await
}

async fn k06_a_pod_of_the_nodes_network_makes_no_record(containerd: Containerd) -> anyhow::Result<()> {
    let (rig, _agent) = Rig::chained(containerd).await?;
    let id = rig.run(&Pod { network: Network::Host, ..Pod::named("prod", "host") }).await?;
    assert!(rig.node.records()?.is_empty());
    rig.end(&id).await?;
    rig.nothing_left().await
}

async fn k05_the_next_sandbox_of_a_pod_replaces_the_record_and_the_late_del_of_the_old_one_spares_it(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (rig, _agent) = Rig::chained(containerd).await?;
    let pod = Pod::named("prod", "web-0");
    let old = rig.run(&pod).await?;
    let new = rig.run(&Pod { attempt: 1, ..pod }).await?;
    let records: Vec<_> = rig.node.records()?.into_keys().collect();
    assert_eq!(records, std::slice::from_ref(&new.0));
    rig.end(&old).await?;
    assert_eq!(rig.record(&new)?.pod.name, "web-0");
    rig.end(&new).await?;
    rig.nothing_left().await
}

async fn i02_install_and_uninstall_give_flannels_bytes_back(containerd: Containerd) -> anyhow::Result<()> {
    let (rig, _agent) = Rig::chained(containerd).await?;
    let file = rig.node.path(aether_domain::paths::CNI_CONF_DIR).join(lists::FLANNEL_FILE);
    assert_ne!(std::fs::read_to_string(&file)?, lists::FLANNEL);
    rig.node.install(&["uninstall"])?;
    assert_eq!(std::fs::read_to_string(&file)?, lists::FLANNEL);
    rig.node.loaded(&["flannel", "portmap"]).await
}

both!(
    i01_k03_s01_a_pod_through_flannels_chain_is_recorded_and_forgotten,
    i09_k08_what_cni_tells_of_a_pod_is_recorded_and_nothing_else,
    k14_one_request_id_stands_in_the_plugins_log_line_and_in_the_agents,
    k06_an_opted_out_pod_is_recorded_as_unmanaged,
    k06_a_pod_of_the_nodes_network_makes_no_record,
    k05_the_next_sandbox_of_a_pod_replaces_the_record_and_the_late_del_of_the_old_one_spares_it,
    i02_install_and_uninstall_give_flannels_bytes_back,
);
