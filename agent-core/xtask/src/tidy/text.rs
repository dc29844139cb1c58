//! What the text of a source file may not hold.

use super::Breaches;
use crate::source::Source;

/// The hard bound for a file, in lines without its tests.
const LINES_MAX: usize = 600;

/// One forbidden call in product code: the text, who may use it (a path prefix), and what to use in its place.
const FORBIDDEN: [(&str, &[&str], &str); 10] = [
    (
        "std::fs::write",
        &["agent-core/xtask", "modules/builtin/build.rs", "modules/guest-build"],
        "write through aether-durable",
    ),
    (
        "fs::write(",
        &["agent-core/xtask", "modules/builtin/build.rs", "modules/guest-build"],
        "write through aether-durable",
    ),
    ("File::create", &["agent-core/xtask", "modules/guest-build"], "write through aether-durable"),
    ("OpenOptions::new", &["agent-core/durable"], "write through aether-durable"),
    ("tokio::spawn", &[], "spawn on an owned JoinSet or TaskTracker"),
    ("unbounded_channel", &[], "bound it: a full channel is an answer"),
    ("env::set_var", &[], "configuration is a value"),
    ("thread::sleep", &["cni-install/src", "agent-core/list-keeper/src"], "wait for a condition"),
    ("process::exit", &["cni-plugin/src/shell/panics.rs"], "return an ExitCode from main"),
    ("lazy_static", &[], "no global state"),
];

/// Where `unsafe` may stand.
const UNSAFE: [&str; 3] =
    ["agent-core/durable/src/sys", "agent-core/netns/src/sys", "agent-core/module-host/src/sys"];

/// The comment that explains a sleep in a test.
const PAUSE: &str = "// pause:";

/// Checks every file.
pub(super) fn check(sources: &[Source]) -> Breaches {
    sources.iter().flat_map(file).collect()
}

fn file(source: &Source) -> Breaches {
    let mut breaches = Breaches::new();
    let path = source.path.display().to_string();
    // This table names what it forbids.
    if path.ends_with("xtask/src/tidy/text.rs") {
        return breaches;
    }
    let lines = source.product().lines().count();
    if !source.is_test() && lines > LINES_MAX {
        breaches
            .push(format!("{path}: {lines} lines without tests, at most {LINES_MAX}: split it by the idea"));
    }
    let scanned = if source.is_test() { source.text.as_str() } else { source.product() };
    let mut previous = "";
    for (number, line) in scanned.lines().enumerate() {
        // The pause of a poll, or a kill at a random moment: said so beside it.
        let explained = line.contains(PAUSE) || previous.contains(PAUSE);
        previous = line;
        let code = line.split("//").next().unwrap_or(line);
        let at = format!("{path}:{}", number + 1);
        if source.is_test() {
            if (code.contains("thread::sleep(") || code.contains("time::sleep(")) && !explained {
                let instead = "wait for a condition with a deadline, or say `// pause: why`";
                breaches.push(format!("{at}: a sleep in a test: {instead}"));
            }
            if code.contains("#[ignore") {
                breaches.push(format!("{at}: an ignored test is no test"));
            }
            continue;
        }
        for (call, allowed, instead) in FORBIDDEN {
            if code.contains(call) && !allowed.iter().any(|prefix| path.starts_with(prefix)) {
                breaches.push(format!("{at}: {call}: {instead}"));
            }
        }
        if code.contains("unsafe ") && !UNSAFE.iter().any(|prefix| path.starts_with(prefix)) {
            breaches.push(format!("{at}: unsafe outside a `sys` module"));
        }
        for marker in ["todo!(", "unimplemented!(", "FIXME", "XXX:"] {
            if line.contains(marker) {
                breaches.push(format!("{at}: {marker} left behind"));
            }
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(path: &str, text: &str) -> usize {
        file(&Source { path: path.into(), text: text.to_owned() }).len()
    }

    #[test]
    fn a_write_outside_durable_is_a_breach_and_a_test_may_write() {
        assert!(breaches("agent-core/x/src/lib.rs", "std::fs::write(a, b);\n") > 0);
        assert_eq!(breaches("agent-core/x/tests/a.rs", "std::fs::write(a, b);\n"), 0);
        assert_eq!(
            breaches(
                "agent-core/x/src/lib.rs",
                "// std::fs::write\n\n#[cfg(test)]\nmod tests { fs::write(); }\n"
            ),
            0
        );
        assert_eq!(breaches("agent-core/x/tests/a.rs", "std::thread::sleep(x);\n"), 1);
        assert_eq!(breaches("agent-core/x/tests/a.rs", "// pause: of the poll\nstd::thread::sleep(x);\n"), 0);
    }

    #[test]
    fn a_file_has_a_hard_bound() {
        assert_eq!(breaches("agent-core/x/src/lib.rs", &"x\n".repeat(601)), 1);
        assert_eq!(breaches("agent-core/x/src/lib.rs", &"x\n".repeat(600)), 0);
    }
}
