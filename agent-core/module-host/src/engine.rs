//! One configuration of wasmtime for whoever compiles and whoever runs: artefacts are refused where they differ.

use wasmtime::{Config, Engine};

use crate::ticker::Ticker;

/// Names everything that decides whether an artefact fits: wasmtime's version and a number raised with each change of
/// [`config`]. Part of the cache's key; that it is true is checked by wasmtime when it loads one.
pub const FLAGS: &str = "wasmtime-48.0.8-1";

/// The most that a memory may reserve of the address space: small, so that many instances fit under a limit of it.
const RESERVATION: u64 = 64 << 20;
/// The guard behind a memory.
const GUARD: u64 = 64 << 10;
/// What a guest's stack may take.
const STACK: usize = 512 << 10;

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// wasmtime refuses the configuration on this machine.
    #[error("cannot set up the WebAssembly engine on this machine")]
    Config(#[source] Cause),
    /// The deadline's thread cannot be started.
    #[error("cannot start the thread that enforces modules' deadlines")]
    Thread(#[source] std::io::Error),
}

/// An error of wasmtime, with its whole chain as its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Cause(pub(crate) String);

impl Cause {
    pub(crate) fn new(error: &wasmtime::Error) -> Self {
        Self(format!("{error:#}"))
    }
}

/// The engine and its clock.
#[derive(Debug)]
pub struct Runtime {
    pub(crate) engine: Engine,
    pub(crate) ticker: Ticker,
}

impl Runtime {
    /// Starts one.
    pub fn new() -> Result<Self, EngineError> {
        let engine = Engine::new(&config()).map_err(|error| EngineError::Config(Cause::new(&error)))?;
        let ticker = Ticker::start(&engine).map_err(EngineError::Thread)?;
        Ok(Self { engine, ticker })
    }
}

/// The configuration, without a target: for this machine.
pub(crate) fn config() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .consume_fuel(false)
        .concurrency_support(false)
        .wasm_component_model(true)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .wasm_relaxed_simd(false)
        .max_wasm_stack(STACK)
        .memory_reservation(RESERVATION)
        .memory_guard_size(GUARD)
        .memory_reservation_for_growth(1 << 20);
    config
}

/// Compiling, for programs that are not the agent.
#[cfg(feature = "compile")]
pub mod compile {
    use super::{Cause, Config, Engine, config};

    /// Compiles a component for the processor's baseline, so that the artefact runs on other machines of the kind.
    pub fn component(wasm: &[u8], target: &str) -> Result<Vec<u8>, Cause> {
        let mut config: Config = config();
        let engine = config.target(target).and_then(|config| Engine::new(config));
        engine.and_then(|engine| engine.precompile_component(wasm)).map_err(|error| Cause::new(&error))
    }

    /// The target of this program.
    pub const HERE: &str = env!("AETHER_TARGET");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that stayed behind would have each agent compile anew what the other keeps in its place, at every roll.
    #[test]
    fn m09_the_name_of_the_engine_has_the_version_that_is_built_in() {
        let lock = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
        let lock: toml::Table = std::fs::read_to_string(lock).unwrap().parse().unwrap();
        let packages = lock["package"].as_array().unwrap();
        let versions: Vec<&str> = packages
            .iter()
            .filter(|package| package["name"].as_str() == Some("wasmtime"))
            .map(|package| package["version"].as_str().unwrap())
            .collect();
        let [version] = versions.as_slice() else { panic!("one wasmtime is built in: {versions:?}") };
        assert!(FLAGS.starts_with(&format!("wasmtime-{version}-")), "{FLAGS} is not of {version}");
    }
}
