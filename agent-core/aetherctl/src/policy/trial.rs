//! `aetherctl policy test`: the component under its own manifest, in the agent's own host of modules.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aether_module_host::action::{Action, Outcome, Permit};
use aether_module_host::compiler::{ChildCompiler, CompileLimits};
use aether_module_host::manifest::Name;
use aether_module_host::pod::{HostPort, Pod};
use aether_module_host::ports::{ConflistView, ModuleEvent, NodeView, Ports, Upstream, UpstreamsSummary};
use aether_module_host::verdict::{By, Verdict};
use aether_module_host::{Config, Host};
use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::build;
use crate::table::{columns, printable};

/// How long a policy may take here: a workstation is no node, and its own limits hold all the same.
const BUDGET: Duration = Duration::from_secs(10);

/// What came of all scenarios.
#[derive(Debug, Serialize)]
pub(crate) struct Trial {
    scenarios: Vec<Done>,
}

/// What came of one.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Done {
    name: String,
    expected: String,
    decided: String,
    said: String,
    is_as_expected: bool,
}

/// One `scenarios/*.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    expect: String,
    #[serde(default)]
    message: String,
    pod: ScenarioPod,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct ScenarioPod {
    namespace: String,
    name: String,
    uid: String,
    annotations: BTreeMap<String, String>,
    host_ports: Vec<ScenarioPort>,
    addresses: Vec<String>,
    network: String,
}

impl Default for ScenarioPod {
    fn default() -> Self {
        Self {
            namespace: "default".to_owned(),
            name: "pod".to_owned(),
            uid: "00000000-0000-0000-0000-000000000001".to_owned(),
            annotations: BTreeMap::new(),
            host_ports: Vec::new(),
            addresses: vec!["10.244.0.2/24".to_owned()],
            network: "cbr0".to_owned(),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ScenarioPort {
    host_port: u16,
    container_port: u16,
    #[serde(default = "tcp")]
    protocol: String,
    #[serde(default)]
    host_ip: String,
}

fn tcp() -> String {
    "tcp".to_owned()
}

impl From<ScenarioPod> for Pod {
    fn from(pod: ScenarioPod) -> Self {
        let port = |port: ScenarioPort| HostPort {
            host_port: port.host_port,
            container_port: port.container_port,
            protocol: port.protocol,
            host_ip: port.host_ip,
        };
        Self {
            sandbox_id: pod.uid.clone(),
            namespace: pod.namespace,
            name: pod.name,
            uid: pod.uid,
            service_account: None,
            labels: None,
            annotations: pod.annotations.into_iter().collect(),
            host_ports: pod.host_ports.into_iter().map(port).collect(),
            addresses: pod.addresses,
            ifname: "eth0".to_owned(),
            netns: "/var/run/netns/scenario".to_owned(),
            network: pod.network,
            extra: Vec::new(),
        }
    }
}

/// Runs every scenario of a policy's directory.
pub(super) fn run(directory: &Path, compiler: Option<PathBuf>) -> anyhow::Result<Trial> {
    let directory =
        directory.canonicalize().with_context(|| format!("there is no {}", directory.display()))?;
    let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = Name::try_from(name.to_owned()).map_err(anyhow::Error::msg)?;
    let manifest = read(&directory.join("module.toml"))?;
    let component = if let Some(built) = build::of_sources(&directory)? {
        built
    } else {
        let path = directory.join(build::COMPONENT);
        std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?
    };
    let scenarios = scenarios(&directory.join("scenarios"))?;
    let cache = scratch()?;
    let config = Config {
        node: "workstation".to_owned(),
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        directory: None,
        cache: cache.path().to_owned(),
        exempt: [].into(),
        budget: BUDGET,
    };
    let program = compiler.unwrap_or_else(neighbour);
    let compiler = ChildCompiler { program, limits: CompileLimits::default() };
    let host = Host::new(config, &[], Arc::new(Nothing), Arc::new(compiler))?;
    host.offer(&name, &manifest, component)
        .map_err(anyhow::Error::msg)
        .context("an agent would not take the policy")?;
    Ok(Trial {
        scenarios: scenarios.into_iter().map(|(file, scenario)| ask(&host, file, scenario)).collect(),
    })
}

fn ask(host: &Host, name: String, scenario: Scenario) -> Done {
    let evaluated = host.evaluate(&scenario.pod.into());
    let vote = evaluated.votes.into_iter().next();
    let (decided, said) = match vote.map(|vote| (vote.by, vote.verdict)) {
        None => ("nothing".to_owned(), String::new()),
        Some((by, verdict)) => {
            let said = match &verdict {
                Verdict::Deny(denial) => denial.message.clone(),
                Verdict::Ignore { reason } => reason.clone(),
                Verdict::AdmitWith(changes) => {
                    let change = |change: &aether_module_host::verdict::Change| {
                        format!("{} {}={}", change.kind, change.key, change.value)
                    };
                    changes.iter().map(change).collect::<Vec<_>>().join(", ")
                }
                Verdict::Abstain | Verdict::Admit => String::new(),
            };
            let failed = if by == By::FailurePolicy { " (it could not answer)" } else { "" };
            (format!("{}{failed}", verdict.name()), said)
        }
    };
    let is_as_expected = decided == scenario.expect && said.contains(&scenario.message);
    Done { name, expected: scenario.expect, decided, said, is_as_expected }
}

impl Trial {
    /// Whether all came out as they say.
    pub(crate) fn is_as_expected(&self) -> bool {
        self.scenarios.iter().all(|done| done.is_as_expected)
    }

    /// One line a scenario.
    pub(crate) fn table(&self) -> String {
        let row = |done: &Done| {
            let word = if done.is_as_expected { "ok" } else { "NOT AS EXPECTED" };
            [
                done.name.clone(),
                done.expected.clone(),
                done.decided.clone(),
                word.to_owned(),
                printable(&done.said),
            ]
        };
        let rows: Vec<[String; 5]> = self.scenarios.iter().map(row).collect();
        columns(["SCENARIO", "EXPECTED", "DECIDED", "OUTCOME", "SAID"], &rows)
    }
}

fn scenarios(directory: &Path) -> anyhow::Result<Vec<(String, Scenario)>> {
    let entries = std::fs::read_dir(directory).with_context(|| {
        format!("cannot read {}: put one .toml there for each pod to try", directory.display())
    })?;
    let mut scenarios = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let scenario = toml::from_str(&read(&path)?)
            .with_context(|| format!("cannot make sense of {}", path.display()))?;
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        scenarios.push((name.unwrap_or_default(), scenario));
    }
    if scenarios.is_empty() {
        bail!("{} holds no scenario: put one .toml there for each pod to try", directory.display());
    }
    scenarios.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(scenarios)
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn neighbour() -> PathBuf {
    let name = aether_domain::paths::MODULE_COMPILER;
    let beside = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join(name)));
    beside.unwrap_or_else(|| PathBuf::from(name))
}

/// A new directory of this user's alone, which goes with the run: what lies in it is run as this program.
fn scratch() -> anyhow::Result<tempfile::TempDir> {
    let made = tempfile::Builder::new()
        .prefix("aetherctl-policy-")
        .permissions(std::fs::Permissions::from_mode(0o700))
        .tempdir();
    made.with_context(|| {
        format!("cannot make a directory in {}; TMPDIR names another", std::env::temp_dir().display())
    })
}

/// No node: a policy sees the pod and nothing else.
struct Nothing;

impl Ports for Nothing {
    fn conflist(&self) -> Arc<ConflistView> {
        Arc::default()
    }

    fn node(&self) -> NodeView {
        NodeView::default()
    }

    fn upstreams(&self) -> UpstreamsSummary {
        UpstreamsSummary::default()
    }

    fn upstreams_page(&self, _: Option<&str>, _: usize) -> Vec<Upstream> {
        Vec::new()
    }

    fn perform(&self, _: &Action, _: &Permit) -> Outcome {
        Outcome::Dropped("there is no node here".to_owned())
    }

    fn event(&self, _: ModuleEvent) {}

    fn behaviours_changed(&self) {}
}
