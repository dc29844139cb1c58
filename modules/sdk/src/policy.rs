//! Pod policies.

use serde::de::DeserializeOwned;

#[doc(hidden)]
pub mod bindings {
    #![allow(
        missing_docs,
        unreachable_pub,
        unsafe_code,
        clippy::all,
        clippy::pedantic,
        clippy::restriction,
        reason = "generated"
    )]
    wit_bindgen::generate!({
        path: ["../../wit/base", "../../wit/policy"],
        world: "aether:policy/pod-policy",
        generate_all,
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "__export_pod_policy",
        default_bindings_module: "aether_module::policy::bindings",
    });
}

pub use bindings::exports::aether::policy::pods::{Change, Denial, HostPort, Pod, Verdict};

/// A policy that is asked about each pod at CNI ADD. Nothing is kept from one pod to the next.
pub trait PodPolicy: Sized + 'static {
    /// What `[settings]` of `module.toml` holds. Deny unknown fields, so that a misspelt key is said and not ignored.
    type Settings: DeserializeOwned;

    /// Takes the settings; the error is shown to the operator, and the module is not loaded.
    fn new(settings: Self::Settings) -> Result<Self, String>;

    /// Says what is to be done about a pod.
    fn evaluate(&self, pod: &Pod) -> Verdict;
}

/// The value of a pod's annotation.
pub fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.annotations.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

/// A pod with nothing but these names, for tests.
pub fn pod(namespace: &str, name: &str) -> Pod {
    Pod {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: "00000000-0000-0000-0000-000000000001".to_owned(),
        service_account: None,
        labels: None,
        annotations: Vec::new(),
        host_ports: Vec::new(),
        addresses: vec!["10.244.0.2/24".to_owned()],
        sandbox_id: "0123456789abcdef".to_owned(),
        ifname: "eth0".to_owned(),
        netns: "/var/run/netns/test".to_owned(),
        network: "cbr0".to_owned(),
        extra: Vec::new(),
    }
}

/// Makes a component of a [`PodPolicy`].
#[macro_export]
macro_rules! export_pod_policy {
    ($policy:ty) => {
        #[cfg(target_family = "wasm")]
        mod __aether_pod_policy {
            use super::*;
            use $crate::PodPolicy as _;
            use $crate::policy::bindings::aether::base::types::{Context, Fault};

            thread_local!(static POLICY: ::std::cell::OnceCell<$policy> = const { ::std::cell::OnceCell::new() });

            struct Glue;

            impl $crate::policy::bindings::exports::aether::policy::pods::Guest for Glue {
                fn init(_: Context, settings: String) -> Result<(), Fault> {
                    $crate::glue::hook();
                    let policy = $crate::glue::parse(&settings).and_then(<$policy>::new).map_err(Fault::Config)?;
                    POLICY.with(|cell| cell.set(policy).map_err(|_| Fault::Config("init was called twice".into())))
                }

                fn evaluate(pod: $crate::policy::Pod) -> $crate::policy::Verdict {
                    POLICY.with(|cell| match cell.get() {
                        Some(policy) => policy.evaluate(&pod),
                        None => $crate::policy::Verdict::Abstain,
                    })
                }
            }

            $crate::policy::bindings::__export_pod_policy!(Glue with_types_in $crate::policy::bindings);
        }
    };
}
