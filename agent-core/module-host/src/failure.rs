//! Why a call of a module came to nothing, and why a module is not loaded.

use std::path::PathBuf;
use std::time::Duration;

use crate::engine::Cause;
use crate::grant::Capability;
use crate::manifest::ManifestError;
use crate::world::World;

/// A call that came to nothing. What it staged is dropped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The module trapped: a panic, a bad access, an overrun stack.
    #[error("{export} trapped: {}{cause}", .said.as_ref().map(|said| format!("{said}: ")).unwrap_or_default())]
    Trap {
        /// What was called.
        export: &'static str,
        /// The last error that the module logged in that instance: a panic's message, where it has the SDK's hook.
        said: Option<String>,
        /// What the engine says.
        cause: String,
    },
    /// It ran too long: in processor time, or far longer on the wall.
    #[error("{export} used more than {} ms and was stopped: raise limits.{} or make it quicker", .limit.as_millis(), .key)]
    Deadline {
        /// What was called.
        export: &'static str,
        /// How long it may run.
        limit: Duration,
        /// The limit's key.
        key: &'static str,
    },
    /// It asked for more memory than it may have, and gave up.
    #[error("{export} ran out of memory: it asked for {asked}")]
    Memory {
        /// What was called.
        export: &'static str,
        /// For how much, and what the limit is.
        asked: String,
    },
    /// What it handed over, as a result or to an import, was too large to be taken.
    #[error(
        "{export} handed the host more than the {limit} bytes of limits.result at once: raise that, or hand over less"
    )]
    Result {
        /// What was called.
        export: &'static str,
        /// The limit.
        limit: usize,
    },
    /// It says that its settings, or what it saved, are wrong. It is not tried again.
    #[error("{export} says that [settings] is wrong: {text}")]
    Config {
        /// What was called.
        export: &'static str,
        /// What it says.
        text: String,
    },
    /// It says that it cannot do its work now.
    #[error("{export} says: {text}")]
    Transient {
        /// What was called.
        export: &'static str,
        /// What it says.
        text: String,
    },
    /// The policies before it used up the time that an ADD has for all of them.
    #[error("the policies before it took the time that all of them have together at one ADD")]
    Budget,
    /// The time that an ADD has for all policies was over while it ran.
    #[error(
        "{export} was stopped when the time that all policies have together at one ADD was over: make it quicker, or give the agent a higher --policy-budget-ms"
    )]
    OutOfTime {
        /// What was called.
        export: &'static str,
    },
    /// It failed on this pod before, and is not run for it again.
    #[error("it failed on this pod {strikes} times and is not run for it again")]
    Struck {
        /// How often it failed.
        strikes: u32,
    },
}

impl Failure {
    /// The failure's stable name, for metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Trap { .. } => "trap",
            Self::Deadline { .. } => "deadline",
            Self::Memory { .. } => "memory",
            Self::Result { .. } => "result",
            Self::Config { .. } => "config",
            Self::Transient { .. } => "transient",
            Self::Budget | Self::OutOfTime { .. } => "budget",
            Self::Struck { .. } => "struck",
        }
    }

    /// Whether the call broke off, rather than come back with an answer or not begin.
    pub(crate) fn is_crash(&self) -> bool {
        match self {
            Self::Trap { .. }
            | Self::Deadline { .. }
            | Self::Memory { .. }
            | Self::Result { .. }
            | Self::OutOfTime { .. } => true,
            Self::Config { .. } | Self::Transient { .. } | Self::Budget | Self::Struck { .. } => false,
        }
    }

    /// All names.
    pub const KINDS: [&'static str; 8] =
        ["trap", "deadline", "memory", "result", "config", "transient", "budget", "struck"];
}

/// Why a module is not loaded. Each text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file cannot be read.
    #[error("cannot read the module")]
    Read(#[source] aether_durable::read::ReadError),
    /// A file is not there.
    #[error("{path} is missing: put the component there, or remove its module.toml")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file's manifest is not taken.
    #[error("{path} is not taken")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: ManifestError,
    },
    /// Its name, or where it lies, keeps it from being taken.
    #[error(transparent)]
    Layout(crate::layout::LayoutError),
    /// The manifest is no text.
    #[error("{path} is not UTF-8 text")]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else could change what runs.
    #[error(
        "{path} is not taken: {why}; only files and directories of root that nobody else can write are. Run `chown root:root` and `chmod go-w` on it"
    )]
    Writable {
        /// The file or directory.
        path: PathBuf,
        /// Who could.
        why: String,
    },
    /// It is none.
    #[error("the component is not taken: {what}")]
    NotAComponent {
        /// What it is, and what to do.
        what: String,
    },
    /// The file is larger than allowed.
    #[error(
        "the component is larger than the {limit} bytes of limits.component: raise that, or build a smaller one"
    )]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// It is not the one that was pinned.
    #[error(
        "the component has the digest {found}, where module.toml pins {pinned}: put the right file there, or correct the pin"
    )]
    Digest {
        /// What was found.
        found: String,
        /// What was pinned.
        pinned: String,
    },
    /// The compiler refuses it, or ran into its limits.
    #[error("the component does not compile")]
    Compile(#[source] crate::compiler::CompileError),
    /// The compiled artefact does not fit this engine.
    #[error("the compiled component does not fit this agent's engine: build both from one source")]
    Artefact(#[source] Cause),
    /// It imports what nobody offers.
    #[error("the component imports {import}, which this agent does not offer: {hint}")]
    NotOffered {
        /// The import.
        import: String,
        /// What to do.
        hint: String,
    },
    /// It imports what it was not given.
    #[error(
        "the component imports {import}, which is not granted to it: {}",
        match .capability.how() {
            Some(how) if .capability.fits(*.world) => format!("add {how} to [grant], or build it without"),
            _ => format!("a module of world {} can never have it", .world),
        }
    )]
    NotGranted {
        /// The import.
        import: String,
        /// What it is.
        capability: Capability,
        /// The module's world.
        world: World,
    },
    /// It does not export what its world asks for.
    #[error("the component does not export {wanted}, which a module of world {world} must{hint}")]
    Export {
        /// What is missing.
        wanted: &'static str,
        /// The world.
        world: World,
        /// What it exports in its place.
        hint: String,
    },
    /// Shapes differ, or a function is missing.
    #[error("the component does not fit the contract: it was built for other shapes of the same names")]
    Link(#[source] Cause),
    /// A trial of it failed.
    #[error("a trial of the module failed")]
    Trial(#[source] Failure),
}
