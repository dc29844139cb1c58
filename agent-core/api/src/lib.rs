//! The protobuf contracts, generated at build time. Clients and servers stand behind the features `client` and
//! `server`, so that the plugin links no server and the agent no client.

/// The plugin's contract with the agent.
#[allow(
    missing_docs,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    reason = "generated from proto/, where the comments stand"
)]
pub mod cni {
    tonic::include_proto!("aether.cni.v1");
}

/// The contract of the admin socket.
#[allow(
    missing_docs,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    reason = "generated from proto/, where the comments stand"
)]
pub mod admin {
    tonic::include_proto!("aether.admin.v1");
}
