//! Istio's node agent on a node, as its container has it: a root of its own in which the node's directories are mounted.

use std::time::Duration;

use aether_domain::paths::CNI_CONF_DIR;
use aether_harness::lists::FLANNEL_FILE;
use aether_harness::{Node, Process, tools, wait};
use anyhow::{Context as _, Result, ensure};

/// Its plugin, whose entry it keeps in the list.
pub const PLUGIN: &str = "istio-cni";
/// Within which it has put its entry into the list for the first time.
const LIMIT: Duration = Duration::from_secs(60);
/// Where its root is, inside the node.
const ROOT: &str = "/mnt/node/istio";
/// Lays out what it finds in its container. The tools are those of `cargo xtask tools --peers`.
const LAYOUT: &str = r#"set -eu
root=$1 net_d=$2
mkdir -p "$root/opt/cni/bin" "$root/host/opt/cni/bin" "$root/host/etc/cni/net.d" "$root/proc" "$root/tmp" \
  "$root/etc" "$root/var/run/secrets/kubernetes.io/serviceaccount" "$root/var/run/istio-cni"
cp /mnt/tools/istio/istio-cni "$root/opt/cni/bin/"
cp /mnt/tools/istio/install-cni "$root/"
printf token >"$root/var/run/secrets/kubernetes.io/serviceaccount/token"
mount --bind "$net_d" "$root/host/etc/cni/net.d"
mount --bind /proc "$root/proc"
"#;

/// Starts it, and waits until its entry is in the list and its plugin where the runtime finds it.
pub async fn start(node: &Node) -> Result<Process> {
    for program in ["install-cni", PLUGIN] {
        let built = tools::built().join("istio").join(program);
        ensure!(
            built.is_file(),
            "{} is not there; build it with: cargo xtask tools --peers",
            built.display()
        );
    }
    node.run(&["sh", "-c", LAYOUT, "layout", ROOT, CNI_CONF_DIR]).context("lay out Istio's root")?;
    // It never reaches an API server: for the list it does not need one.
    let agent = node.spawn(
        "istio",
        "env",
        &[
            "KUBERNETES_SERVICE_HOST=127.0.0.1",
            "KUBERNETES_SERVICE_PORT=1",
            "KUBERNETES_NODE_NAME=node",
            "chroot",
            ROOT,
            "/install-cni",
            "--mounted-cni-net-dir",
            "/host/etc/cni/net.d",
            "--repair-enabled=false",
            "--skip-tls-verify",
            "--monitoring-port",
            "15914",
            "--ctrlz_port",
            "15915",
        ],
    )?;
    let list = node.path(CNI_CONF_DIR).join(FLANNEL_FILE);
    wait::until("Istio's entry in the list", LIMIT, async || {
        let text = std::fs::read_to_string(&list)?;
        ensure!(text.contains(PLUGIN), "{text}");
        Ok(())
    })
    .await
    .with_context(|| agent.log())?;
    Ok(agent)
}
