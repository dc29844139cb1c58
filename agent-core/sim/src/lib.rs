//! A node in one thread: agents that run the takeover machine of `aether-domain`, a runtime that adds and deletes pods
//! through the plugin's rules (K04, K05, K07, K16), a kernel with locks, sockets and processes, a disk that keeps only what
//! was synced, and somebody who kills, stops and disturbs at every step. One seed determines all of it.
//!
//! [`run`] plays one seed and returns what was violated. The decisions are the product's own ([`aether_domain::takeover`],
//! [`aether_domain::pods`]); what stands here is the outside: the agent's shell (`world/agent.rs`, `world/effects.rs`,
//! `world/store.rs`), the plugin and the runtime (`world/plugin.rs`, `world/runtime.rs`), the trouble (`world/chaos.rs`) and
//! the judge (`world/judge.rs`).

mod fault;
mod kernel;
mod rng;
mod world;

pub use fault::Fault;
pub use world::{Figures, Violation};

/// Plays one seed.
pub fn run(seed: u64, fault: Option<Fault>) -> Result<Figures, Violation> {
    world::World::new(seed, fault, world::Trace::Off).play()
}

/// Plays one seed again and returns what happened, line by line, with what was violated.
pub fn trace(seed: u64, fault: Option<Fault>) -> (Vec<String>, Result<Figures, Violation>) {
    let mut world = world::World::new(seed, fault, world::Trace::On);
    let result = world.play();
    (world.take_lines(), result)
}
