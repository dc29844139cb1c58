//! What wit-bindgen makes of the contract, in the same way for policies and behaviours.

/// A module `bindings` of a world, from these packages of `wit/`.
macro_rules! bindings {
    (world: $world:literal, packages: [$($package:literal),*], here: $here:literal, export: $export:literal) => {
        #[doc(hidden)]
        #[allow(
            missing_docs,
            unreachable_pub,
            unsafe_code,
            clippy::all,
            clippy::pedantic,
            clippy::restriction,
            reason = "generated"
        )]
        pub mod bindings {
            wit_bindgen::generate!({
                path: [$($package),*],
                world: $world,
                generate_all,
                additional_derives: [PartialEq],
                pub_export_macro: true,
                export_macro_name: $export,
                default_bindings_module: $here,
            });
        }
    };
}

pub(crate) use bindings;
