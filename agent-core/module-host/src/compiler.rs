//! Compiling an operator's component, in another process: the agent has no compiler, and its memory is not the
//! compiler's (M09).

use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Turns a component into an artefact of this engine.
pub trait Compiler: Send + Sync + 'static {
    /// Compiles. May take long; called on a blocking thread.
    fn compile(&self, wasm: &[u8]) -> Result<Vec<u8>, CompileError>;
}

/// Why a component does not compile.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// There is no compiler.
    #[error("cannot run the compiler {program}: install aether-modc there, or name it")]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It says no.
    #[error("the compiler refuses the component: {said}")]
    Refused {
        /// What it says.
        said: String,
    },
    /// It was ended by one of its limits.
    #[error("the compiler ran into its limits ({limits}), {how}: {said}")]
    Limits {
        /// The limits.
        limits: String,
        /// How it ended.
        how: String,
        /// What it said before.
        said: String,
    },
    /// Its output cannot be read.
    #[error("cannot talk to the compiler")]
    Pipe(#[source] std::io::Error),
}

/// What one run of the compiler may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// Address space, in bytes.
    pub memory: u64,
    /// Processor time.
    pub cpu: Duration,
    /// Time on the wall.
    pub wall: Duration,
    /// The artefact, in bytes.
    pub output: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        // An interpreter in a component of 12 MB takes some 60 s and 400 MB; a policy in Rust 0.2 s.
        Self {
            memory: 2 << 30,
            cpu: Duration::from_secs(120),
            wall: Duration::from_secs(180),
            output: 256 << 20,
        }
    }
}

/// `aether-modc`, run once for each component.
#[derive(Debug, Clone)]
pub struct ChildCompiler {
    /// The program.
    pub program: PathBuf,
    /// What it may use.
    pub limits: CompileLimits,
}

/// The most that is kept of what the compiler says.
const SAID_MAX: u64 = 4096;

impl Compiler for ChildCompiler {
    fn compile(&self, wasm: &[u8]) -> Result<Vec<u8>, CompileError> {
        let limits = self.limits;
        let mut child = Command::new(&self.program)
            .arg("--memory")
            .arg(limits.memory.to_string())
            .arg("--cpu-seconds")
            .arg(limits.cpu.as_secs().to_string())
            .arg("--input-max")
            .arg(wasm.len().to_string())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| CompileError::Start { program: self.program.clone(), source })?;
        let (artefact, said, status) = self.converse(&mut child, wasm)?;
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        self.judge(status, artefact, said)
    }
}

impl ChildCompiler {
    /// Gives the child its input and takes what it says, both at once, until the time is up.
    fn converse(
        &self,
        child: &mut Child,
        wasm: &[u8],
    ) -> Result<(Vec<u8>, Vec<u8>, ExitStatus), CompileError> {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let output = self.limits.output;
        std::thread::scope(|scope| {
            let (done, ended) = mpsc::channel::<()>();
            scope.spawn(move || {
                // A compiler that ends early closes its end: its exit says why.
                let _ = stdin.map(|mut stdin| stdin.write_all(wasm));
            });
            let out = scope.spawn(move || {
                let mut bytes = Vec::new();
                let read = stdout.map_or(Ok(0), |stdout| stdout.take(output).read_to_end(&mut bytes));
                drop(done);
                read.map(|_| bytes)
            });
            let err = scope.spawn(move || {
                let mut bytes = Vec::new();
                // What it says is only a help.
                let _ = stderr.map(|stderr| stderr.take(SAID_MAX).read_to_end(&mut bytes));
                bytes
            });
            if ended.recv_timeout(self.limits.wall) == Err(mpsc::RecvTimeoutError::Timeout) {
                // Its pipes close with it, which ends the threads.
                child.kill().map_err(CompileError::Pipe)?;
            }
            let status = child.wait().map_err(CompileError::Pipe)?;
            let gone = || std::io::Error::other("a reader of its output ended early");
            let artefact = out.join().map_err(|_| CompileError::Pipe(gone()))?.map_err(CompileError::Pipe)?;
            let said = err.join().map_err(|_| CompileError::Pipe(gone()))?;
            Ok((artefact, said, status))
        })
    }

    fn judge(&self, status: ExitStatus, artefact: Vec<u8>, said: String) -> Result<Vec<u8>, CompileError> {
        match (status.code(), status.signal()) {
            (Some(0), _) if !artefact.is_empty() => Ok(artefact),
            (None, Some(signal)) => Err(CompileError::Limits {
                limits: format!(
                    "memory {} bytes, cpu {} s, wall {} s",
                    self.limits.memory,
                    self.limits.cpu.as_secs(),
                    self.limits.wall.as_secs()
                ),
                how: format!("ended by signal {signal}"),
                said,
            }),
            _ => Err(CompileError::Refused { said }),
        }
    }
}

/// Compiles in this process: for programs that are a compiler anyway, and for tests.
#[cfg(feature = "compile")]
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess;

#[cfg(feature = "compile")]
impl Compiler for InProcess {
    fn compile(&self, wasm: &[u8]) -> Result<Vec<u8>, CompileError> {
        use crate::engine::compile;
        compile::component(wasm, compile::HERE)
            .map_err(|cause| CompileError::Refused { said: cause.to_string() })
    }
}
