//! What the node's state is compared with: the pods that live.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use aether_domain::paths;

use crate::node::Node;
use crate::wait;

/// Within which what is on the way must have arrived: an owner applies tombstones within a second.
const LIMIT: Duration = Duration::from_secs(30);
/// Where we write, and so may leave a temporary file when we are killed: one at most.
const WRITTEN: [&str; 7] = [
    paths::RUN_DIR,
    paths::STATE_DIR,
    "/var/lib/aether/pods",
    "/var/lib/aether/deletes",
    "/var/lib/aether/modules-cache",
    paths::CNI_CONF_DIR,
    paths::CNI_BIN_DIR,
];

/// What is wrong with a node's state; nothing, if all is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Pods that live, and whose ADD was acknowledged, without a record.
    pub lost: Vec<String>,
    /// Records without a living pod.
    pub ghosts: Vec<String>,
    /// Files that are not whole: set aside by an agent, or not readable.
    pub torn: Vec<String>,
    /// Directories with more than one temporary file of ours.
    pub stray: Vec<String>,
    /// Tombstones that nobody applied.
    pub tombstones: Vec<String>,
}

impl Findings {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        *self == Self::default()
    }

    /// Adds another look's findings.
    pub fn add(&mut self, other: Self) {
        self.lost.extend(other.lost);
        self.ghosts.extend(other.ghosts);
        self.torn.extend(other.torn);
        self.stray.extend(other.stray);
        self.tombstones.extend(other.tombstones);
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} lost, {} ghost, {} torn, {} directories with stray temporary files, {} tombstones left",
            self.lost.len(),
            self.ghosts.len(),
            self.torn.len(),
            self.stray.len(),
            self.tombstones.len()
        )?;
        for (what, names) in [
            ("lost", &self.lost),
            ("ghost", &self.ghosts),
            ("torn", &self.torn),
            ("stray", &self.stray),
            ("tombstone", &self.tombstones),
        ] {
            for name in names {
                write!(f, "\n  {what}: {name}")?;
            }
        }
        Ok(())
    }
}

impl Node {
    /// Compares the state with the container ids of the pods that live, at this moment.
    pub fn audit(&self, living: &BTreeSet<String>) -> anyhow::Result<Findings> {
        let mut findings = Findings { tombstones: self.tombstones()?, ..Findings::default() };
        match self.records() {
            Ok(records) => {
                let recorded: BTreeSet<_> = records.into_keys().collect();
                findings.lost = living.difference(&recorded).cloned().collect();
                findings.ghosts = recorded.difference(living).cloned().collect();
            }
            Err(error) => findings.torn.push(format!("{error:#}")),
        }
        let pods = format!("{}/{}", paths::STATE_DIR, paths::PODS);
        findings.torn.extend(self.files(&pods)?.into_iter().filter(|name| name.contains(".corrupt-")));
        for directory in WRITTEN {
            let strays = self.temporary_files(directory)?;
            if strays.len() > 1 {
                findings.stray.push(format!("{directory}: {}", strays.join(", ")));
            }
        }
        Ok(findings)
    }

    /// The same once it is clean; what is wrong still when time is up.
    pub async fn audit_settled(&self, living: &BTreeSet<String>) -> anyhow::Result<Findings> {
        let clean = wait::until("a clean state", LIMIT, async || {
            let findings = self.audit(living)?;
            anyhow::ensure!(findings.is_clean(), "{findings}");
            Ok(findings)
        });
        if let Ok(findings) = clean.await { Ok(findings) } else { self.audit(living) }
    }

    /// The temporary files of ours in a directory of the node.
    pub fn temporary_files(&self, inside: &str) -> anyhow::Result<Vec<String>> {
        let mut names = self.all_files(inside)?;
        names.retain(|name| name.starts_with(paths::TEMP_PREFIX));
        Ok(names)
    }
}
