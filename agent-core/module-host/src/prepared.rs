//! A component that is linked once and instantiated many times.

use std::sync::Arc;

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, InstancePre, Linker};

use crate::bindings::exports::aether::behaviour::lifecycle;
use crate::bindings::exports::aether::policy::pods;
use crate::capability;
use crate::engine::{Cause, Runtime};
use crate::failure::LoadError;
use crate::grant::{Capability, Grant};
use crate::limits::Limits;
use crate::manifest::Manifest;
use crate::state::State;
use crate::sys::{self, Trusted};
use crate::world::World;

/// The track of every package of the contract: a module built for another one is refused by name.
const TRACK: &str = "0.1.";
/// Shapes, which grant nothing.
const TYPES: &str = "aether:base/types";

/// What is ready to be instantiated.
pub(crate) struct Prepared {
    pub(crate) pre: InstancePre<State>,
    pub(crate) exports: Exports,
    pub(crate) grant: Arc<Grant>,
    pub(crate) limits: Arc<Limits>,
}

/// Where the exports are.
pub(crate) enum Exports {
    Behaviour(lifecycle::GuestIndices),
    Policy(pods::GuestIndices),
}

impl Prepared {
    /// Links a compiled component with what its manifest grants.
    pub(crate) fn new(
        runtime: &Runtime,
        artefact: Trusted<'_>,
        manifest: &Manifest,
    ) -> Result<Self, LoadError> {
        let component = sys::deserialize(&runtime.engine, artefact)
            .map_err(|error| LoadError::Artefact(Cause::new(&error)))?;
        preflight(&component, manifest)?;
        let fit = |error: wasmtime::Error| LoadError::Link(Cause::new(&error));
        let mut linker = Linker::new(&runtime.engine);
        capability::link(&mut linker, &manifest.grant).map_err(fit)?;
        let pre = linker.instantiate_pre(&component).map_err(fit)?;
        let exports = match manifest.world {
            World::PodPolicy => Exports::Policy(pods::GuestIndices::new(&pre).map_err(fit)?),
            World::ConflistReassert | World::TaintGate | World::UpstreamFlush => {
                Exports::Behaviour(lifecycle::GuestIndices::new(&pre).map_err(fit)?)
            }
        };
        Ok(Self {
            pre,
            exports,
            grant: Arc::new(manifest.grant.clone()),
            limits: Arc::new(manifest.limits.clone()),
        })
    }
}

/// Names what is wrong before linking does, in the operator's words.
fn preflight(component: &Component, manifest: &Manifest) -> Result<(), LoadError> {
    let engine = component.engine();
    let component = component.component_type();
    // What it is for comes first: a module of another world imports what this one cannot have, too.
    exported(
        &component.exports(engine).map(|(name, _)| name.to_owned()).collect::<Vec<_>>(),
        manifest.world,
    )?;
    for (import, item) in component.imports(engine) {
        let (interface, version) = import.split_once('@').unwrap_or((import, ""));
        // An interface without functions only carries shapes.
        let shapes = match item.ty {
            ComponentItem::ComponentInstance(instance) => {
                !instance.exports(engine).any(|(_, item)| matches!(item.ty, ComponentItem::ComponentFunc(_)))
            }
            _ => false,
        };
        let known = Capability::ALL.into_iter().find(|capability| capability.interface() == interface);
        let offered = interface == TYPES || known.is_some();
        if !offered {
            return Err(LoadError::NotOffered { import: import.to_owned(), hint: hint(interface) });
        }
        if !version.starts_with(TRACK) {
            let hint = format!("it offers {interface}@{TRACK}0; build the module against that");
            return Err(LoadError::NotOffered { import: import.to_owned(), hint });
        }
        if let Some(capability) = known
            && !shapes
            && !manifest.grant.gives(capability)
        {
            return Err(LoadError::NotGranted {
                import: import.to_owned(),
                capability,
                world: manifest.world,
            });
        }
    }
    Ok(())
}

fn exported(exports: &[String], world: World) -> Result<(), LoadError> {
    let wanted = world.export();
    if exports.iter().any(|export| export.split('@').next() == Some(wanted)) {
        return Ok(());
    }
    let hint = match exports.first() {
        None => "; it exports nothing".to_owned(),
        Some(_) => format!("; it exports {}", exports.join(", ")),
    };
    Err(LoadError::Export { wanted, world, hint })
}

fn hint(interface: &str) -> String {
    if interface.starts_with("wasi:") {
        return "modules have no files, sockets, environment or clock of WASI; in Rust, build for the target \
                wasm32-unknown-unknown"
            .to_owned();
    }
    let offered: Vec<&str> = Capability::ALL.into_iter().map(Capability::interface).collect();
    format!("it offers {}", offered.join(", "))
}
