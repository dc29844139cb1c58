//! Execs of a CNI plugin, as libcni does them.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aether_domain::paths;
use anyhow::{Context as _, Result, ensure};

use crate::local::Local;

/// How long it took until the plugin had ended, and well.
pub fn timed(plugin: &Path, command: &str, agent: &Local, id: &str) -> Result<Duration> {
    let begin = Instant::now();
    let output = call(plugin, command, agent, id)?.wait_with_output()?;
    let took = begin.elapsed();
    ensure!(
        output.status.success() && !output.stdout.is_empty(),
        "{} {command} ended with {}: {}",
        plugin.display(),
        output.status,
        String::from_utf8_lossy(&output.stdout)
    );
    Ok(took)
}

/// One exec, standard input written and closed.
pub fn call(plugin: &Path, command: &str, agent: &Local, id: &str) -> Result<Child> {
    let config = serde_json::json!({
        "cniVersion": "1.0.0", "name": "cbr0", "type": "aether-cni",
        "agentSocket": agent.path("run").join(paths::CNI_SOCKET), "stateDir": agent.path("state"),
        "prevResult": {
            "cniVersion": "1.0.0",
            "interfaces": [{"name": "eth0", "sandbox": "/proc/self/ns/net"}],
            "ips": [{"address": "10.244.1.2/24", "gateway": "10.244.1.1", "interface": 0}],
        },
    });
    let mut exec = Command::new(plugin);
    exec.arg0(plugin)
        .env_clear()
        .env("CNI_COMMAND", command)
        .env("CNI_CONTAINERID", id)
        .env("CNI_IFNAME", "eth0")
        .env("CNI_NETNS", "/proc/self/ns/net")
        .env("CNI_PATH", paths::CNI_BIN_DIR)
        .env("CNI_ARGS", format!("K8S_POD_NAMESPACE=bench;K8S_POD_NAME={id}"));
    exec.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = exec.spawn().with_context(|| format!("run {}", plugin.display()))?;
    let mut stdin = child.stdin.take().context("the child's standard input")?;
    stdin.write_all(config.to_string().as_bytes())?;
    Ok(child)
}
