//! The compiler as the agent runs it: a child with limits.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "this is test code: a surprise is a failure"
)]

use std::path::PathBuf;
use std::time::Duration;

use aether_module_host::compiler::{ChildCompiler, CompileError, CompileLimits, Compiler as _};

fn child(limits: CompileLimits) -> ChildCompiler {
    ChildCompiler { program: env!("CARGO_BIN_EXE_aether-modc").into(), limits }
}

/// A component that holds an empty core module: the smallest that there is.
fn small() -> Vec<u8> {
    component(b"\0asm\x01\0\0\0")
}

fn component(core: &[u8]) -> Vec<u8> {
    let encoder = wit_component::ComponentEncoder::default().validate(false);
    encoder.module(core).and_then(|mut encoder| encoder.encode()).unwrap()
}

/// A core module of one function of `length` additions, which takes the compiler time and memory.
fn large(length: usize) -> Vec<u8> {
    let leb = |mut value: usize| {
        let mut bytes = Vec::new();
        loop {
            let low = u8::try_from(value & 0x7f).unwrap();
            value >>= 7;
            bytes.push(if value == 0 { low } else { low | 0x80 });
            if value == 0 {
                return bytes;
            }
        }
    };
    let section = |id: u8, content: &[u8]| [&[id][..], &leb(content.len()), content].concat();
    let step: &[u8] = &[0x20, 0x00, 0x20, 0x00, 0x6c, 0x20, 0x00, 0x6a, 0x21, 0x00];
    let body = [&[0x00][..], &step.repeat(length), &[0x20, 0x00, 0x0b]].concat();
    let code = [&[0x01][..], &leb(body.len()), &body].concat();
    [
        &b"\0asm\x01\0\0\0"[..],
        &section(1, &[0x01, 0x60, 0x01, 0x7f, 0x01, 0x7f]),
        &section(3, &[0x01, 0x00]),
        &section(10, &code),
    ]
    .concat()
}

#[test]
fn m09_a_component_is_compiled_in_a_child() {
    let artefact = child(CompileLimits::default()).compile(&small()).unwrap();
    assert!(artefact.starts_with(b"\x7fELF"), "an artefact of wasmtime is an ELF image");
}

#[test]
fn m04_m09_what_is_no_component_is_refused_in_words() {
    for bytes in [&b""[..], b"text", b"\0asm\x01\0\0\0", b"\0asm\x0d\0\x01\0\x63"] {
        let error = child(CompileLimits::default()).compile(bytes).unwrap_err();
        let CompileError::Refused { said } = &error else { panic!("{error:?}") };
        assert!(said.contains("the component is not valid"), "{said}");
    }
}

#[test]
fn m09_memory_and_processor_time_are_limited_and_the_limits_are_named() {
    let wasm = component(&large(700_000));
    let tight = CompileLimits { memory: 96 << 20, ..CompileLimits::default() };
    let error = child(tight).compile(&wasm).unwrap_err();
    assert!(matches!(error, CompileError::Limits { .. }), "{error:?}");
    assert!(error.to_string().contains("memory 100663296 bytes"), "{error}");
    let slow = CompileLimits { cpu: Duration::from_secs(1), ..CompileLimits::default() };
    let error = child(slow).compile(&wasm).unwrap_err();
    assert!(matches!(error, CompileError::Limits { .. }), "{error:?}");
}

#[test]
fn m09_a_compiler_that_does_not_end_is_ended() {
    let hangs = ChildCompiler {
        program: sleeper(),
        limits: CompileLimits { wall: Duration::from_millis(200), ..CompileLimits::default() },
    };
    let began = std::time::Instant::now();
    let error = hangs.compile(&small()).unwrap_err();
    assert!(matches!(error, CompileError::Limits { .. }), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn m09_a_missing_compiler_is_named() {
    let missing =
        ChildCompiler { program: "/nonexistent/aether-modc".into(), limits: CompileLimits::default() };
    let error = missing.compile(&small()).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/aether-modc") && error.contains("install"), "{error}");
}

/// A program that ignores its arguments and never ends by itself. Another process writes it: a child of this one, which has
/// many threads, could have it open for writing still when it is run ("text file busy").
fn sleeper() -> PathBuf {
    use std::io::Write as _;
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("sleeper");
    let mut install = std::process::Command::new("install");
    let install = install.args(["-m", "755", "/dev/stdin"]).arg(&path).stdin(std::process::Stdio::piped());
    let mut install = install.spawn().unwrap();
    install.stdin.take().unwrap().write_all(b"#!/bin/sh\nexec tail -f /dev/null\n").unwrap();
    assert!(install.wait().unwrap().success());
    path
}
