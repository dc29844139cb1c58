use super::*;

fn name(text: &str) -> Name {
    Name::try_from(text.to_owned()).unwrap()
}

fn error(place: &str, text: &str) -> String {
    let error = Manifest::parse(&name(place), text).unwrap_err();
    match std::error::Error::source(&error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[test]
fn m01_a_small_manifest_takes_the_defaults() {
    let manifest = Manifest::parse(&name("team"), "world = \"pod-policy\"").unwrap();
    assert_eq!(manifest.mode, Mode::Enforce);
    assert_eq!(manifest.on_failure, FailurePolicy::Deny);
    assert_eq!(manifest.instances, Instances::PerCall);
    assert_eq!(manifest.settings, "{}");
    assert_eq!(manifest.limits, Limits::default());
}

#[test]
fn m01_every_key_is_read() {
    let text = r#"
name = "team"
world = "pod-policy"
version = "1.2.0"
sha256 = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
order = 20
mode = "audit"
on-failure = "last-good"
instances = "warm"
grant = { change = ["label"] }
limits = { memory = "8Mi" }
[settings]
require = ["team"]
"#;
    let manifest = Manifest::parse(&name("team"), text).unwrap();
    assert_eq!((manifest.version.as_str(), manifest.order), ("1.2.0", 20));
    assert_eq!((manifest.mode, manifest.on_failure), (Mode::Audit, FailurePolicy::LastGood));
    assert_eq!(manifest.instances, Instances::Warm);
    assert_eq!(manifest.limits.memory, 8 << 20);
    assert_eq!(manifest.settings, r#"{"require":["team"]}"#);
}

#[test]
fn m01_unknown_keys_wrong_types_and_contradictions_are_named() {
    let policy = "world = \"pod-policy\"\n";
    for (place, text, words) in [
        ("a", "", "missing field `world`"),
        (
            "a",
            "world = \"policy\"",
            "unknown variant `policy`, expected one of `pod-policy`, `conflist-reassert`",
        ),
        (
            "a",
            "world = \"pod-policy\"\nonfailure = \"deny\"",
            "unknown field `onfailure`, expected one of `name`",
        ),
        ("a", "world = \"pod-policy\"\norder = \"first\"", "invalid type: string \"first\", expected i64"),
        ("a", "world = \"pod-policy\"\nmode = true", "line 2, column 8"),
        (
            "a",
            "world = \"pod-policy\"\non-failure = \"open\"",
            "expected one of `deny`, `allow`, `last-good`",
        ),
        ("a", "world = \"pod-policy\"\nname = \"b\"", "make them equal"),
        ("a", "world = \"pod-policy\"\nname = \"B!\"", "is no module name"),
        ("a", "world = \"pod-policy\"\nsha256 = \"abc\"", "is no digest"),
        ("a", "world = \"pod-policy\"\nlimits = { memory = \"1Gi\" }", "is no number of bytes"),
        ("a", "world = \"pod-policy\"\nlimits = { call-ms = 60000 }", "at most 1000"),
        (
            "a",
            "world = \"pod-policy\"\ngrant = { node = { view = true } }",
            "can never be granted aether:node/view",
        ),
        ("a", "world = \"taint-gate\"\non-failure = \"allow\"", "only pod policies have it"),
        ("taint-gate", policy, "replaces the built-in one"),
        ("a", "world = [", "module.toml is not valid"),
    ] {
        let error = error(place, text);
        assert!(error.contains(words), "{text}\n  gave {error}");
    }
}
