//! What several policies come to (M07): deny beats ignore beats admit, and where all abstain the pod is admitted.

use crate::manifest::{Mode, Name};

/// One policy's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Not its pod.
    Abstain,
    /// Let it start.
    Admit,
    /// Let it start, with these changes of its record.
    AdmitWith(Vec<Change>),
    /// Let it start and leave it alone.
    Ignore {
        /// Why.
        reason: String,
    },
    /// Do not let it start.
    Deny(Denial),
}

impl Verdict {
    /// The verdict's stable name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Abstain => "abstain",
            Self::Admit => "admit",
            Self::AdmitWith(_) => "admit-with",
            Self::Ignore { .. } => "ignore",
            Self::Deny(_) => "deny",
        }
    }
}

/// A change of a pod's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// `label`.
    pub kind: String,
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// Why a pod may not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// One word.
    pub code: String,
    /// For the pod's owner.
    pub message: String,
    /// Whether trying again may help.
    pub retry: Retry,
}

/// Whether the runtime is told to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It may help.
    Later,
    /// It does not.
    No,
}

/// Who gave a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The policy itself.
    Module,
    /// Its failure policy, since it could not answer.
    FailurePolicy,
}

/// One policy's answer, and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vote {
    /// The policy.
    pub module: Name,
    /// Whether it counts.
    pub mode: Mode,
    /// Who gave it.
    pub by: By,
    /// The answer.
    pub verdict: Verdict,
}

/// What the votes come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The pod starts, with these changes of its record, in order.
    Admit {
        /// The changes.
        changes: Vec<Change>,
    },
    /// The pod starts and is left alone.
    Ignore {
        /// The policy that said so.
        module: Name,
        /// Why.
        reason: String,
    },
    /// The pod does not start.
    Deny {
        /// The policy that said so.
        module: Name,
        /// Why.
        denial: Denial,
    },
}

/// Merges votes given in the policies' order; among equals the first one is named. Votes of audited policies do not
/// count (M06).
pub fn merge(votes: &[Vote]) -> Decision {
    let counting = || votes.iter().filter(|vote| vote.mode == Mode::Enforce);
    for vote in counting() {
        if let Verdict::Deny(denial) = &vote.verdict {
            return Decision::Deny { module: vote.module.clone(), denial: denial.clone() };
        }
    }
    for vote in counting() {
        if let Verdict::Ignore { reason } = &vote.verdict {
            return Decision::Ignore { module: vote.module.clone(), reason: reason.clone() };
        }
    }
    let changes = counting().filter_map(|vote| match &vote.verdict {
        Verdict::AdmitWith(changes) => Some(changes.clone()),
        _ => None,
    });
    Decision::Admit { changes: changes.flatten().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn verdict(rank: u8) -> Verdict {
        match rank {
            0 => Verdict::Abstain,
            1 => Verdict::Admit,
            2 => {
                Verdict::AdmitWith(vec![Change { kind: "label".into(), key: "k".into(), value: "v".into() }])
            }
            3 => Verdict::Ignore { reason: "r".into() },
            _ => Verdict::Deny(Denial { code: "c".into(), message: "m".into(), retry: Retry::No }),
        }
    }

    fn votes(ranks: &[(u8, bool)]) -> Vec<Vote> {
        let vote = |(index, (rank, enforce)): (usize, &(u8, bool))| Vote {
            module: Name::try_from(format!("m{index}")).unwrap(),
            mode: if *enforce { Mode::Enforce } else { Mode::Audit },
            by: By::Module,
            verdict: verdict(*rank),
        };
        ranks.iter().enumerate().map(vote).collect()
    }

    proptest! {
        #[test]
        fn m06_m07_deny_beats_ignore_beats_admit_and_audited_policies_do_not_count(
            ranks in prop::collection::vec((0u8..5, any::<bool>()), 0..8)
        ) {
            let highest = ranks.iter().filter(|(_, enforce)| *enforce).map(|(rank, _)| *rank).max().unwrap_or(0);
            match merge(&votes(&ranks)) {
                Decision::Deny { module, .. } => {
                    prop_assert_eq!(highest, 4);
                    let first = ranks.iter().position(|vote| *vote == (4, true)).unwrap();
                    prop_assert_eq!(module.as_str(), format!("m{first}"));
                }
                Decision::Ignore { .. } => prop_assert_eq!(highest, 3),
                Decision::Admit { changes } => {
                    prop_assert!(highest < 3);
                    prop_assert_eq!(changes.len(), ranks.iter().filter(|vote| **vote == (2, true)).count());
                }
            }
        }
    }

    #[test]
    fn m07_where_all_abstain_the_pod_is_admitted() {
        assert_eq!(merge(&[]), Decision::Admit { changes: vec![] });
        assert_eq!(merge(&votes(&[(0, true), (0, true)])), Decision::Admit { changes: vec![] });
    }
}
