//! Pod policies.

use serde::de::DeserializeOwned;

crate::bindings::bindings! {
    world: "aether:policy/pod-policy",
    packages: ["../../wit/base", "../../wit/policy"],
    here: "aether_module::policy::bindings",
    export: "__export_pod_policy"
}

pub use bindings::aether::base::types::Fault;
pub use bindings::exports::aether::policy::pods::{Change, Denial, HostPort, Pod, Verdict};

/// A policy that is asked about each pod at CNI ADD. Nothing is kept from one pod to the next.
pub trait PodPolicy: Sized + 'static {
    /// What `[settings]` of `module.toml` holds. Deny unknown fields, so that a misspelt key is said and not ignored.
    type Settings: DeserializeOwned;

    /// Takes the settings; the error is shown to the operator, and the module is not loaded.
    fn new(settings: Self::Settings) -> Result<Self, String>;

    /// Says what is to be done about a pod. A fault says that it cannot tell: `on-failure` of `module.toml` answers in
    /// its place.
    fn evaluate(&self, pod: &Pod) -> Result<Verdict, Fault>;
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
            use $crate::policy::bindings::aether::base::types::Context;
            use $crate::policy::{Fault, Pod, Verdict};

            thread_local!(static POLICY: ::std::cell::OnceCell<$policy> = const { ::std::cell::OnceCell::new() });

            struct Glue;

            impl $crate::policy::bindings::exports::aether::policy::pods::Guest for Glue {
                fn init(_: Context, settings: String) -> Result<(), Fault> {
                    let policy = $crate::glue::begin(&settings).and_then(<$policy>::new).map_err(Fault::Config)?;
                    POLICY.with(|cell| cell.set(policy).map_err(|_| Fault::Config("init was called twice".into())))
                }

                fn evaluate(pod: Pod) -> Result<Verdict, Fault> {
                    POLICY.with(|cell| match cell.get() {
                        Some(policy) => policy.evaluate(&pod),
                        None => Err(Fault::Config("init was not called".into())),
                    })
                }
            }

            $crate::policy::bindings::__export_pod_policy!(Glue with_types_in $crate::policy::bindings);
        }
    };
}
