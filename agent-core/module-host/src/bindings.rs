//! What `bindgen!` makes of `wit/`: one world that holds every import and export, of which a module uses some.
#![allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated")]

wasmtime::component::bindgen!({
    path: [
        "../../wit/base",
        "../../wit/conflist",
        "../../wit/node",
        "../../wit/upstreams",
        "../../wit/behaviour",
        "../../wit/policy",
    ],
    inline: "
        package aether:host@0.1.0;
        world all {
            include aether:behaviour/behaviour@0.1.0;
            include aether:policy/pod-policy@0.1.0;
        }
    ",
    world: "aether:host/all",
});
