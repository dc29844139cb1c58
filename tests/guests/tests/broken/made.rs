//! Components made without a compiler: by the contract's own dummy, and by hand.

use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve};

/// A core module that has every export of a world, each of which traps.
pub(crate) fn dummy_core(package: &str, world: &str) -> Vec<u8> {
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    let mut resolve = Resolve::default();
    let mut packages = Vec::new();
    for name in ["base", "conflist", "node", "upstreams", "behaviour", "policy"] {
        let (id, _) = resolve.push_dir(wit.join(name)).unwrap();
        packages.push((name, id));
    }
    let (_, package) = packages.iter().find(|(name, _)| *name == package).unwrap();
    let world = resolve.select_world(&[*package], Some(world)).unwrap();
    let mut core = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut core, &resolve, world, StringEncoding::UTF8).unwrap();
    core
}

/// A component of a core module.
pub(crate) fn component(core: &[u8]) -> Vec<u8> {
    ComponentEncoder::default().validate(true).module(core).unwrap().encode().unwrap()
}

/// A component from its text.
pub(crate) fn text_component(body: &str) -> Vec<u8> {
    wat::parse_str(format!("(component {body})")).unwrap()
}

/// A policy whose start function does this, with a table `$t`.
pub(crate) fn start(body: &str) -> Vec<u8> {
    let text = wasmprinter::print_bytes(dummy_core("policy", "pod-policy")).unwrap();
    let end = text.rfind(')').unwrap();
    let with = format!("{}\n(table $t 1 funcref)\n(func $begin {body})\n(start $begin)\n)", &text[..end]);
    component(&wat::parse_str(with).unwrap())
}
