//! The one unsafe step: turning compiled bytes back into code.
#![allow(unsafe_code, reason = "wasmtime cannot check native code; who may call this is said below")]

use wasmtime::Engine;
use wasmtime::component::Component;

/// Bytes whose origin is known: embedded at build time, or authenticated by the cache's key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trusted<'a>(&'a [u8]);

impl<'a> Trusted<'a> {
    /// Vouches for the bytes. Only for what this program embeds, and for what [`crate::cache`] has authenticated or has
    /// just received from its own compiler: never for a file that somebody gave.
    pub(crate) fn vouch(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

/// Turns compiled bytes into a component. Bytes of another engine or of other flags are refused.
pub(crate) fn deserialize(engine: &Engine, artefact: Trusted<'_>) -> wasmtime::Result<Component> {
    // SAFETY: the bytes are what an engine of ours serialised, by the contract of `Trusted`.
    unsafe { Component::deserialize(engine, artefact.0) }
}
