//! `aether-modc`: a component on standard input, native code for this machine's kind on standard output.
//!
//! It compiles what strangers wrote, so it first gives up what it does not need: memory and processor time beyond its
//! limits, new files, capabilities.

mod confine;

use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

use aether_module_host::engine::compile;
use clap::Parser;

/// The limits of one run.
#[derive(Debug, Parser)]
#[command(
    name = "aether-modc",
    version,
    about = "Compiles the component on standard input to standard output"
)]
struct Args {
    /// Address space, in bytes.
    #[arg(long, default_value_t = 2 << 30)]
    memory: u64,
    /// Processor time, in seconds.
    #[arg(long, default_value_t = 120)]
    cpu_seconds: u64,
    /// The largest component, in bytes.
    #[arg(long, default_value_t = 4 << 20)]
    input_max: u64,
    /// The target's triple; this machine's where it is not given.
    #[arg(long, default_value = compile::HERE)]
    target: String,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot confine the compiler")]
    Confine(#[source] confine::ConfineError),
    #[error("cannot read the component from standard input")]
    Read(#[source] io::Error),
    #[error("the component is larger than {max} bytes: raise limits.component, or build a smaller one")]
    TooLarge { max: u64 },
    #[error("the component is not valid")]
    Compile(#[source] aether_module_host::engine::Cause),
    #[error("cannot write the artefact to standard output")]
    Write(#[source] io::Error),
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut text = error.to_string();
            let mut cause = std::error::Error::source(&error);
            while let Some(next) = cause {
                text.push_str(": ");
                text.push_str(&next.to_string());
                cause = next.source();
            }
            // Nobody is left to tell where this fails.
            let _ = writeln!(io::stderr(), "{text}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Error> {
    confine::confine(args.memory, args.cpu_seconds).map_err(Error::Confine)?;
    let mut wasm = Vec::new();
    io::stdin().take(args.input_max.saturating_add(1)).read_to_end(&mut wasm).map_err(Error::Read)?;
    if u64::try_from(wasm.len()).unwrap_or(u64::MAX) > args.input_max {
        return Err(Error::TooLarge { max: args.input_max });
    }
    let artefact = compile::component(&wasm, &args.target).map_err(Error::Compile)?;
    let mut out = io::stdout().lock();
    out.write_all(&artefact).and_then(|()| out.flush()).map_err(Error::Write)
}
