//! The host of behaviour modules: WebAssembly components that decide, while the host acts (M01-M13).
//!
//! ```text
//!  module.toml + module.wasm ─ files, layout, manifest ─> version (digest, cache, compiler, preflight, link)
//!                                                            │ trial
//!                   ┌────────────────────────────────────────┴───────────────┐
//!           slot: a behaviour, its machine and thread              policy: asked at ADD, fresh instance
//!                   │ staged actions, checked again                          │ votes
//!               Ports::perform                                            verdict::merge
//! ```
//!
//! What decides is pure and has its own file: [`lifecycle`], [`verdict`], [`strikes`], [`layout`], [`manifest`],
//! [`grant`], [`action`], `splice`, `reload`. What calls a guest is [`Host`]'s business; the agent implements
//! [`ports::Ports`] and drives [`Host::rescan`], [`Host::take_over`] and [`Host::notify`].

pub mod action;
mod bindings;
pub mod cache;
mod capability;
pub mod compiler;
mod deadline;
pub mod engine;
pub mod failure;
mod files;
mod glob;
pub mod grant;
mod host;
mod instance;
pub mod layout;
pub mod lifecycle;
pub mod limits;
pub mod manifest;
pub mod pod;
mod policy;
pub mod ports;
mod prepared;
pub mod private;
mod rate;
mod reload;
mod series;
mod slot;
mod splice;
mod state;
pub mod status;
pub mod strikes;
mod sys;
mod ticker;
pub mod verdict;
mod version;
pub mod world;

pub use glob::Glob;
pub use host::{Config, Evaluated, Host, HostError, Looked, Rescanned, What};
pub use policy::{NOT_GRANTED, UNAVAILABLE};
pub use series::Series;
pub use splice::SpliceError;
pub use version::Builtin;
