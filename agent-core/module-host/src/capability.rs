//! The host's side of each interface, one file per package. All checks stand here or below, never in what translates
//! between versions of the contract.

mod base;
mod conflist;
mod node;
mod upstreams;

use wasmtime::component::{HasSelf, Linker};

use crate::bindings::aether;
use crate::grant::{Capability, Grant};
use crate::state::State;

/// Links what is granted, and nothing else (M03).
pub(crate) fn link(linker: &mut Linker<State>, grant: &Grant) -> wasmtime::Result<()> {
    type Own = HasSelf<State>;
    for capability in Capability::ALL.into_iter().filter(|capability| grant.gives(*capability)) {
        match capability {
            Capability::Log => aether::base::log::add_to_linker::<_, Own>(linker, |state| state)?,
            Capability::Clock => aether::base::clock::add_to_linker::<_, Own>(linker, |state| state)?,
            Capability::Metrics => aether::base::metrics::add_to_linker::<_, Own>(linker, |state| state)?,
            Capability::Events => aether::base::events::add_to_linker::<_, Own>(linker, |state| state)?,
            Capability::ConflistView => {
                aether::conflist::view::add_to_linker::<_, Own>(linker, |state| state)?;
            }
            Capability::ConflistEdit => {
                aether::conflist::edit::add_to_linker::<_, Own>(linker, |state| state)?;
            }
            Capability::NodeView => aether::node::view::add_to_linker::<_, Own>(linker, |state| state)?,
            Capability::NodeTaint => aether::node::taint::add_to_linker::<_, Own>(linker, |state| state)?,
            Capability::UpstreamsView => {
                aether::upstreams::view::add_to_linker::<_, Own>(linker, |state| state)?;
            }
            Capability::UpstreamsEdit => {
                aether::upstreams::edit::add_to_linker::<_, Own>(linker, |state| state)?;
            }
        }
    }
    Ok(())
}

/// At most `max` bytes of a text, cut at a character.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
