//! The plugin's binary, and what is remembered.

use std::path::Path;

use aether_domain::chain::Healthy;
use aether_domain::paths;
use aether_domain::text::error_chain;
use aether_durable::atomic::{self, Replaced};

use super::{Keeper, Outcome, Step, gone};
use crate::memory::{self, Recalled};
use crate::plugin::{self, Plugin};

impl Keeper {
    pub(super) fn try_restore(&self, source: &Path, still: &impl Fn() -> bool) -> Step<Outcome> {
        let session = self.begin(still)?;
        let path = self.places.bin_dir.join(paths::PLUGIN);
        let shown = path.display();
        let Some(wanted) = &session.wanted.plugin_sha256 else {
            return Err(Outcome::Refused(format!(
                "which binary is wanted at {shown} is unknown; run the installer again"
            )));
        };
        let failed = |error: plugin::BinaryError| Outcome::Failed(error_chain(&error));
        match plugin::compare(&path, wanted).map_err(failed)? {
            Plugin::Identical => return Ok(Outcome::Done(format!("{shown} is the wanted one"))),
            Plugin::NoDirectory => {
                let why = format!(
                    "{} does not exist: mount the node's directory of plugins",
                    self.places.bin_dir.display()
                );
                return Err(Outcome::Failed(why));
            }
            Plugin::Missing | Plugin::Different => {}
        }
        let source_file = plugin::source(source).map_err(failed)?;
        if source_file.sha256 != *wanted {
            return Err(Outcome::Refused(format!(
                "{} has SHA-256 {}, and the one wanted at {shown} has {wanted}: this agent's image is of another release; \
                 run the installer of this release, or let the other release's agent put its own back",
                source.display(),
                source_file.sha256
            )));
        }
        match plugin::install(&path, &source_file, still).map_err(failed)? {
            Replaced::Yes => Ok(Outcome::Done(format!("put {shown} back (SHA-256 {wanted})"))),
            Replaced::No => Err(gone()),
        }
    }

    pub(super) fn try_remember(&self, healthy: &Healthy, still: &impl Fn() -> bool) -> Step<Outcome> {
        let same =
            |recalled: &Recalled| matches!(recalled, Recalled::Known(known) if known.says_the_same(healthy));
        let already = || Outcome::Done("it is written down already".to_owned());
        if same(&self.recall()) {
            return Ok(already());
        }
        let _session = self.begin(still)?;
        let failed = |error: atomic::WriteError| Outcome::Failed(error_chain(&error));
        match self.recall() {
            recalled if same(&recalled) => return Ok(already()),
            Recalled::Newer => {
                let why = format!("a newer release wrote {}, which is left alone", paths::CHAIN);
                return Err(Outcome::Refused(why));
            }
            Recalled::Damaged(_) => {
                memory::quarantine(&self.places.state_dir).map_err(failed)?;
            }
            Recalled::Known(_) | Recalled::Nothing => {}
        }
        memory::write(&self.places.state_dir, healthy).map_err(failed)?;
        Ok(Outcome::Done("written down".to_owned()))
    }
}
