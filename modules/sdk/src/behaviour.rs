//! Behaviours: modules that look after something on the node.

use serde::de::DeserializeOwned;

crate::bindings::bindings! {
    world: "aether:behaviour/behaviour",
    packages: [
        "../../wit/base",
        "../../wit/conflist",
        "../../wit/node",
        "../../wit/upstreams",
        "../../wit/behaviour"
    ],
    here: "aether_module::behaviour::bindings",
    export: "__export_behaviour"
}

pub use bindings::aether::base::types::{Fault, Refusal, Tri};
pub use bindings::aether::base::{clock, events, metrics};
pub use bindings::aether::{conflist, node, upstreams};
pub use bindings::exports::aether::behaviour::lifecycle::{Event, Plan};

/// A module that is told what changed, looks, and stages actions.
pub trait Behaviour: Sized + 'static {
    /// What `[settings]` of `module.toml` holds. Deny unknown fields, so that a misspelt key is said and not ignored.
    type Settings: DeserializeOwned;

    /// Takes the settings, and what the previous instance saved. On standbys too.
    fn new(settings: Self::Settings, saved: Option<Vec<u8>>) -> Result<Self, Fault>;

    /// Looks and acts: at the takeover (without events), when something happened, and when the time asked for has come.
    fn run(&mut self, events: &[Event]) -> Result<Plan, Fault>;

    /// The agent owns the node no longer.
    fn disable(&mut self) {}

    /// What the next instance is to know, of at most 64 KiB.
    fn save(&self) -> Option<Vec<u8>> {
        None
    }
}

/// Call again within this many milliseconds; all is well.
pub fn again(milliseconds: u32) -> Plan {
    Plan { wake: Some(milliseconds), note: String::new() }
}

/// Call again within this many milliseconds; the note says what is not well.
pub fn again_since(milliseconds: u32, note: impl Into<String>) -> Plan {
    Plan { wake: Some(milliseconds), note: note.into() }
}

/// A refusal in words.
pub fn refused(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NotGranted(what) => format!("not granted: {what}"),
        Refusal::Standby => "the agent does not own the node".to_owned(),
        Refusal::OverQuota => "too many actions in one call".to_owned(),
        Refusal::Invalid(why) | Refusal::Unavailable(why) => why.clone(),
    }
}

/// Makes a component of a [`Behaviour`].
#[macro_export]
macro_rules! export_behaviour {
    ($behaviour:ty) => {
        #[cfg(target_family = "wasm")]
        mod __aether_behaviour {
            use super::*;
            use $crate::Behaviour as _;
            use $crate::behaviour::bindings::aether::base::types::Context;
            use $crate::behaviour::{Event, Fault, Plan};

            thread_local!(static SELF: ::std::cell::RefCell<Option<$behaviour>> = const { ::std::cell::RefCell::new(None) });

            struct Glue;

            fn with<R>(work: impl FnOnce(&mut $behaviour) -> Result<R, Fault>) -> Result<R, Fault> {
                SELF.with_borrow_mut(|this| match this {
                    Some(this) => work(this),
                    None => Err(Fault::Config("init was not called".into())),
                })
            }

            impl $crate::behaviour::bindings::exports::aether::behaviour::lifecycle::Guest for Glue {
                fn init(_: Context, settings: String, saved: Option<Vec<u8>>) -> Result<(), Fault> {
                    let settings = $crate::glue::begin(&settings).map_err(Fault::Config)?;
                    let this = <$behaviour>::new(settings, saved)?;
                    SELF.set(Some(this));
                    Ok(())
                }

                fn enable(_: u64) -> Result<Plan, Fault> {
                    with(|this| this.run(&[]))
                }

                fn disable() {
                    // Before init there is nothing to disable.
                    let _ = with(|this| {
                        this.disable();
                        Ok(())
                    });
                }

                fn run(events: Vec<Event>) -> Result<Plan, Fault> {
                    with(|this| this.run(&events))
                }

                fn save() -> Option<Vec<u8>> {
                    with(|this| Ok(this.save())).ok().flatten()
                }
            }

            $crate::behaviour::bindings::__export_behaviour!(Glue with_types_in $crate::behaviour::bindings);
        }
    };
}
