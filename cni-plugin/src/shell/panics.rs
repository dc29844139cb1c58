//! A fault of this program is an answer too (K02).

use std::sync::Arc;

use crate::failure::{Failure, code};
use crate::shell::log;
use crate::shell::output::Output;
use crate::{reply, version};

/// From here on a panic, of any thread, ends the process as an error of its own code. A DEL ends as a success: its
/// failure would keep the addresses and port maps of other plugins for good, and the sweep finds what it left (K07).
pub fn install(output: &Arc<Output>) {
    let output = Arc::clone(output);
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.to_string().replace('\n', " ");
        log::line(&format!("aether-cni: outcome=panic {text}"));
        if output.deleting() {
            exit(0);
        }
        let details = format!("aether-cni {}: {text}; please report this", env!("CARGO_PKG_VERSION"));
        let failure = Failure::new(code::INTERNAL, "internal error", details);
        let _ = output.print(&reply::error(version::NEWEST, &failure));
        exit(1);
    }));
}

#[allow(
    clippy::exit,
    reason = "inside a panic hook there is nowhere to return to, and the tiny build aborts after it"
)]
fn exit(code: i32) -> ! {
    std::process::exit(code)
}
