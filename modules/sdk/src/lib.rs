//! What a module of Aether is written with.
//!
//! A pod policy is a type with settings and one function; see [`PodPolicy`]. A behaviour looks after something on the
//! node; see [`Behaviour`]. Both are plain Rust: their decisions run and are tested natively, and only the macro at the
//! end ([`export_pod_policy!`], [`export_behaviour!`]) makes a component of them on `wasm32-unknown-unknown`.
//!
//! ```
//! use aether_module::policy::{Denial, Fault, Pod, Verdict};
//! use aether_module::PodPolicy;
//!
//! #[derive(serde::Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct Settings {
//!     annotation: String,
//! }
//!
//! struct Require(Settings);
//!
//! impl PodPolicy for Require {
//!     type Settings = Settings;
//!
//!     fn new(settings: Settings) -> Result<Self, String> {
//!         Ok(Self(settings))
//!     }
//!
//!     fn evaluate(&self, pod: &Pod) -> Result<Verdict, Fault> {
//!         if aether_module::policy::annotation(pod, &self.0.annotation).is_some() {
//!             return Ok(Verdict::Admit);
//!         }
//!         Ok(Verdict::Deny(Denial {
//!             code: "annotation-missing".into(),
//!             message: format!("the annotation {} is missing", self.0.annotation),
//!             retry: false,
//!         }))
//!     }
//! }
//!
//! aether_module::export_pod_policy!(Require);
//! ```

pub mod behaviour;
mod bindings;
pub mod log;
pub mod policy;
mod settings;

pub use behaviour::Behaviour;
pub use policy::PodPolicy;

#[doc(hidden)]
pub mod glue {
    //! What the macros expand to; no interface.
    /// What each `init` begins with. A panic's message and place go to the host's log from here on: the host itself sees
    /// only a trap.
    pub fn begin<T: serde::de::DeserializeOwned>(settings: &str) -> Result<T, String> {
        std::panic::set_hook(Box::new(|info| crate::log::error(&info.to_string(), &[])));
        crate::settings::parse(settings)
    }
}
