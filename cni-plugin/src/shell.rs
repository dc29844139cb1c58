//! The thin shell: reads the process's inputs, asks the agent, writes what is owed.

mod agent;
mod del;
mod log;
mod output;
mod panics;
mod run;
mod stdin;
mod tombstone;
mod transport;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use crate::environment::Environment;
use crate::failure::{Failure, code};
use crate::{reply, version};

pub use output::Output;
pub use panics::install as answer_panics;

/// The whole program.
pub fn main() -> ExitCode {
    // First of all: what happens after this moment is later than this call (K07).
    let start = run::Start::now();
    let output = Arc::new(Output::default());
    panics::install(&output);
    let environment = Environment::read(|name| std::env::var_os(name));
    let ended = match environment.command() {
        Ok(Some(command)) => run::run(start, command, &environment, &output),
        Ok(None) => {
            explain();
            let details = "CNI_COMMAND not set: a container runtime sets it";
            Err((
                version::NEWEST,
                Failure::new(code::INVALID_ENVIRONMENT, "invalid environment variables", details),
            ))
        }
        Err(failure) => {
            log::line(&format!(
                "aether-cni: outcome=error-{} reason={:?}",
                failure.code,
                failure.to_string()
            ));
            Err((version::NEWEST, failure))
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err((version, failure)) => {
            // With nobody left to read it, the exit code says the same.
            let _ = output.print(&reply::error(version, &failure));
            ExitCode::FAILURE
        }
    }
}

/// For whoever runs this by hand.
fn explain() {
    let text = format!(
        "aether-cni {} is a CNI plugin: a container runtime runs it for each pod, with CNI_* variables and a network\n\
         configuration on standard input. It is installed into a node's CNI list by aether-cni-install; look at a node with\n\
         `aetherctl pods` and `aetherctl chain`. To see that it works:\n\
         \n\
         \x20   echo '{{\"cniVersion\":\"1.0.0\"}}' | CNI_COMMAND=VERSION aether-cni\n\
         \n\
         CNI versions: {}\n",
        env!("CARGO_PKG_VERSION"),
        version::SUPPORTED.join(", ")
    );
    // A closed standard error is no reason to fail otherwise.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
