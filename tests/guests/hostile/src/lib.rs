//! A policy that behaves badly: at `init` as its settings ask for, at `evaluate` as the pod's name does.

use std::hint::black_box;

use aether_module::PodPolicy;
use aether_module::policy::bindings::aether::base::clock::monotonic;
use aether_module::policy::{Change, Denial, Fault, Pod, Verdict};
use serde::Deserialize;

/// How long what is `slow` takes, on the host's clock: it comes to an end.
const SLOW_MS: u64 = 3000;

/// What it is told.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// What to do at `init`.
    #[serde(default)]
    pub init: String,
    /// What a good pod is answered: the code of a denial, or nothing to admit.
    #[serde(default)]
    pub deny: String,
}

/// The policy.
#[derive(Debug)]
pub struct Hostile(Settings);

impl PodPolicy for Hostile {
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, String> {
        misbehave(&settings.init);
        Ok(Self(settings))
    }

    fn evaluate(&self, pod: &Pod) -> Result<Verdict, Fault> {
        misbehave(&pod.name);
        Ok(match pod.name.as_str() {
            "fault" => return Err(Fault::Transient("it cannot tell".to_owned())),
            "large" => deny(&"x".repeat(8 << 20)),
            "later" => Verdict::Deny(Denial { retry: true, ..denial("quota") }),
            "long-ish" => deny(&"y".repeat(100_000)),
            "ignore" => Verdict::Ignore("left alone".to_owned()),
            "abstain" => Verdict::Abstain,
            "label" => change("label"),
            "bypass" => change("bypass-port"),
            "log" => {
                for _ in 0..100_000 {
                    aether_module::log::info("again", &[]);
                }
                Verdict::Admit
            }
            _ if self.0.deny.is_empty() => Verdict::Admit,
            _ => deny(&self.0.deny),
        })
    }
}

fn deny(code: &str) -> Verdict {
    Verdict::Deny(denial(code))
}

fn denial(code: &str) -> Denial {
    Denial { code: code.to_owned(), message: "no".to_owned(), retry: false }
}

fn change(kind: &str) -> Verdict {
    Verdict::AdmitWith(vec![Change { kind: kind.to_owned(), key: "k".to_owned(), value: "v".to_owned() }])
}

fn misbehave(how: &str) {
    match how {
        "loop" => loop {
            black_box(());
        },
        "host-loop" => loop {
            aether_module::log::info("again", &[]);
        },
        "memory" => {
            let mut hoard: Vec<Vec<u8>> = Vec::new();
            loop {
                hoard.push(vec![1; 1 << 20]);
                black_box(&hoard);
            }
        }
        "deep" => {
            black_box(deep(10_000_000));
        }
        "deep-bare" => {
            black_box(deep_bare(10_000_000));
        }
        "slow" => {
            let began = monotonic();
            while monotonic().saturating_sub(began) < SLOW_MS {
                black_box(());
            }
        }
        #[allow(clippy::panic, reason = "what this guest is for")]
        "panic" => panic!("a panic with its reason"),
        _ => {}
    }
}

fn deep(left: u64) -> u64 {
    let frame = [left; 64];
    black_box(&frame);
    if left == 0 { 0 } else { deep(left - 1) + frame.iter().sum::<u64>() }
}

/// Nothing of it lies in the guest's memory, and no loop does the same.
#[inline(never)]
fn deep_bare(left: u64) -> u64 {
    if left == 0 { 1 } else { deep_bare(left - 1).rotate_left(1).wrapping_mul(left) }
}

aether_module::export_pod_policy!(Hostile);
