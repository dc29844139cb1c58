//! What the tests of modules share: a node that exists in memory, a directory of modules, a host.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "this is test code: a surprise is a failure"
)]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aether_domain::text::sha256;
use aether_module_host::action::{Action, Outcome, Permit};
use aether_module_host::compiler::{CompileError, Compiler, InProcess};
use aether_module_host::limits::ADD_BUDGET;
use aether_module_host::pod::Pod;
use aether_module_host::ports::{
    ConflistFile, ConflistView, ModuleEvent, NodeView, Ports, Upstream, UpstreamsSummary,
};
use aether_module_host::status::Status;
use aether_module_host::{Builtin, Config, Host, Rescanned};
use tempfile::TempDir;

include!(concat!(env!("OUT_DIR"), "/guests.rs"));

/// How long a test waits for something that takes milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The built-in modules.
pub fn builtins() -> Vec<Builtin> {
    let builtin = |module: &aether_builtin_modules::Module| Builtin {
        name: module.name,
        manifest: module.manifest,
        digest: module.digest,
        artefact: module.artefact,
    };
    aether_builtin_modules::MODULES.iter().map(builtin).collect()
}

/// A node in memory: what modules see, and what was done to it.
#[derive(Default)]
pub struct FakeNode {
    state: Mutex<FakeState>,
    changed: Condvar,
}

/// The node's state.
#[derive(Default)]
pub struct FakeState {
    /// The CNI configuration.
    pub conflist: Arc<ConflistView>,
    /// Taints and readiness.
    pub node: NodeView,
    /// Upstreams.
    pub upstreams: UpstreamsSummary,
    /// What was performed, in order.
    pub performed: Vec<Action>,
    /// What was raised, in order.
    pub events: Vec<ModuleEvent>,
    /// How often a behaviour has come, gone or changed its state.
    pub changes: usize,
    /// Why no action succeeds; each counts as performed all the same.
    pub failing: Option<String>,
    /// Called before an action is performed, with the node unlocked.
    pub before: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl FakeNode {
    /// The state, to look at or to change.
    pub fn state(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something is so.
    pub fn wait(&self, what: &str, so: impl Fn(&FakeState) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.state();
        while !so(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what}: not so after {PATIENCE:?}; performed {:?}", state.performed);
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Puts a list there, and says in which state the chain is.
    pub fn put_list(&self, name: &str, text: &str, chain: &str, wanted: &str) {
        let file = ConflistFile {
            name: name.to_owned(),
            digest: sha256(text.as_bytes()),
            bytes: text.as_bytes().into(),
            uid: 0,
            modified: 0,
        };
        self.state().conflist = Arc::new(ConflistView {
            state: chain.to_owned(),
            file: Some(name.to_owned()),
            files: vec![file],
            wanted: Some(wanted.as_bytes().to_vec()),
            ..ConflistView::default()
        });
    }
}

impl Ports for FakeNode {
    fn conflist(&self) -> Arc<ConflistView> {
        self.state().conflist.clone()
    }

    fn node(&self) -> NodeView {
        self.state().node.clone()
    }

    fn upstreams(&self) -> UpstreamsSummary {
        self.state().upstreams
    }

    fn upstreams_page(&self, _: Option<&str>, _: usize) -> Vec<Upstream> {
        Vec::new()
    }

    fn perform(&self, action: &Action, permit: &Permit) -> Outcome {
        let before = self.state().before.clone();
        if let Some(before) = before {
            before();
        }
        if !permit.stands() {
            return Outcome::Dropped("the agent no longer owns the node".to_owned());
        }
        let failing = self.state().failing.clone();
        if let Some(why) = failing {
            self.state().performed.push(action.clone());
            self.changed.notify_all();
            return Outcome::Failed(why);
        }
        if let Action::ReplaceList { name, bytes, .. } = action {
            let wanted = self.state().conflist.wanted.clone().unwrap_or_default();
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.put_list(name, &text, "chained", &String::from_utf8_lossy(&wanted));
        }
        if let Action::RemoveTaint { key, effect } = action {
            self.state().node.taints.retain(|taint| (&taint.key, taint.effect) != (key, *effect));
        }
        self.state().performed.push(action.clone());
        self.changed.notify_all();
        Outcome::Done(String::new())
    }

    fn event(&self, event: ModuleEvent) {
        self.state().events.push(event);
        self.changed.notify_all();
    }

    fn behaviours_changed(&self) {
        self.state().changes += 1;
        self.changed.notify_all();
    }
}

/// A compiler that compiles each component once in a process: most tests load the same few.
#[derive(Debug)]
struct Once;

impl Compiler for Once {
    fn compile(&self, wasm: &[u8]) -> Result<Vec<u8>, CompileError> {
        static DONE: Mutex<BTreeMap<String, Vec<u8>>> = Mutex::new(BTreeMap::new());
        let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
        let digest = sha256(wasm);
        if let Some(artefact) = done.get(&digest) {
            return Ok(artefact.clone());
        }
        let artefact = InProcess.compile(wasm)?;
        done.insert(digest, artefact.clone());
        Ok(artefact)
    }
}

/// A host with its directories, which go with it.
pub struct Bench {
    /// The node.
    pub node: Arc<FakeNode>,
    /// The host.
    pub host: Host,
    directory: TempDir,
}

impl Bench {
    /// A host without built-in modules.
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// A host with these built-in modules.
    pub fn with(builtins: &[Builtin]) -> Self {
        Self::of(builtins, ADD_BUDGET)
    }

    /// A host whose policies may take all the time that their own limits leave them: for what is not about time.
    pub fn patient() -> Self {
        Self::of(&[], PATIENCE)
    }

    /// A host whose policies have so much time together at one ADD.
    pub fn within(budget: Duration) -> Self {
        Self::of(&[], budget)
    }

    fn of(builtins: &[Builtin], budget: Duration) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("modules")).unwrap();
        Self::at(directory, builtins, budget)
    }

    /// A host whose operator's modules are compiled by this.
    pub fn compiled_by(compiler: Arc<dyn Compiler>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("modules")).unwrap();
        Self::whole(directory, &[], PATIENCE, compiler)
    }

    fn at(directory: TempDir, builtins: &[Builtin], budget: Duration) -> Self {
        Self::whole(directory, builtins, budget, Arc::new(Once))
    }

    fn whole(
        directory: TempDir,
        builtins: &[Builtin],
        budget: Duration,
        compiler: Arc<dyn Compiler>,
    ) -> Self {
        let node = Arc::new(FakeNode::default());
        let config = Config {
            node: "node-1".to_owned(),
            agent_version: "0.1.0".to_owned(),
            directory: Some(directory.path().join("modules")),
            cache: directory.path().join("cache"),
            exempt: ["kube-system".to_owned()].into(),
            budget,
        };
        let host = Host::new(config, builtins, node.clone(), compiler).unwrap();
        Self { node, host, directory }
    }

    /// The next agent on the same node, with the directories as they are.
    #[must_use]
    pub fn restarted(self) -> Self {
        drop(self.host);
        Self::at(self.directory, &[], PATIENCE)
    }

    /// The directory of modules.
    pub fn modules(&self) -> PathBuf {
        self.directory.path().join("modules")
    }

    /// The folder of compiled modules.
    pub fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    /// Puts a module there, in the flat layout.
    pub fn put(&self, name: &str, manifest: &str, component: &[u8]) {
        write(&self.modules().join(format!("{name}.toml")), manifest.as_bytes());
        write(&self.modules().join(format!("{name}.wasm")), component);
    }

    /// Puts a module there and loads it; what came of it.
    pub fn load(&self, name: &str, manifest: &str, component: &[u8]) -> Result<(), String> {
        self.put(name, manifest, component);
        of(&self.host.rescan(), name)
    }

    /// The module's status.
    pub fn status(&self, name: &str) -> Status {
        let all = self.host.status();
        all.iter()
            .find(|status| status.name.as_str() == name)
            .unwrap_or_else(|| panic!("no {name} in {all:?}"))
            .clone()
    }

    /// Waits until the module's status is so.
    pub fn wait(&self, name: &str, what: &str, so: impl Fn(&Status) -> bool) -> Status {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = self.status(name);
            if so(&status) {
                return status;
            }
            assert!(Instant::now() < deadline, "{name}: {what}: not so after {PATIENCE:?}: {status:?}");
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }
}

impl Default for Bench {
    fn default() -> Self {
        Self::new()
    }
}

/// What a look at the directory did about a module.
pub fn of(rescanned: &Rescanned, name: &str) -> Result<(), String> {
    let change = rescanned.changes.iter().find(|(changed, _)| changed.as_str() == name);
    change.unwrap_or_else(|| panic!("nothing was done about {name}: {rescanned:?}")).1.clone().map(drop)
}

/// Writes a file as an operator does: root's, and nobody else can write it.
pub fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
}

/// A pod of this name, whose uid is its name too.
pub fn pod(name: &str) -> Pod {
    Pod {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: name.to_owned(),
        service_account: None,
        labels: None,
        annotations: Vec::new(),
        host_ports: Vec::new(),
        addresses: vec!["10.244.1.2/24".to_owned()],
        sandbox_id: "0123".to_owned(),
        ifname: "eth0".to_owned(),
        netns: "/var/run/netns/x".to_owned(),
        network: "cbr0".to_owned(),
        extra: Vec::new(),
    }
}
