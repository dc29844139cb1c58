//! The same verdict as libcni on everything: which file, whether it is taken, and what it means (I04, I07).
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers stop the test")]

use aether_conflist::json::MAX_DEPTH;
use aether_conflist::libcni::Version;
use aether_test_libcni::case::{Case, Item};
use aether_test_libcni::generate::{self, Random};
use aether_test_libcni::{fixtures, judge::Judge};

/// Asks both judges about every case and fails with the first that is seen differently. Gives the number of cases
/// that each version takes.
fn agree(cases: &[Case]) -> [usize; 2] {
    let mut taken = [0, 0];
    for (judge, taken) in Judge::both().unwrap().iter().zip(&mut taken) {
        for (case, theirs) in cases.iter().zip(judge.ask(cases).unwrap()) {
            let ours = case.ours(judge.version());
            *taken += usize::from(ours.outcome.is_ok());
            if let Some(difference) = ours.differs_from(&theirs) {
                panic!("{}: {difference}\n{}", judge.version(), show(case));
            }
        }
    }
    taken
}

fn show(case: &Case) -> String {
    let items = case.items.iter().map(|(name, item)| match item {
        Item::File(bytes) => {
            format!("{name}:\n{}\n", String::from_utf8_lossy(bytes.get(..4000).unwrap_or(bytes)))
        }
        other => format!("{name}: {other:?}\n"),
    });
    items.collect()
}

fn rounds() -> (u64, usize) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let rounds = number("AETHER_ROUNDS").unwrap_or(6000);
    (number("AETHER_SEED").unwrap_or(1), usize::try_from(rounds).unwrap())
}

#[test]
fn i07_the_judges_are_the_versions_they_are_called() {
    let linked = Judge::both().unwrap().map(|judge| judge.linked().unwrap());
    assert!(
        linked[0].contains("cni\":\"v1.1.2\"") && linked[0].contains("go-cni\":\"v1.1.6\""),
        "{}",
        linked[0]
    );
    assert!(
        linked[1].contains("cni\":\"v1.3.1\"") && linked[1].contains("go-cni\":\"v1.1.14\""),
        "{}",
        linked[1]
    );
    let source = |name: &str| {
        let tools = fixtures::dir().join("../../tools").join(name).join("main.go");
        std::fs::read_to_string(tools).unwrap()
    };
    assert_eq!(
        source("libcni-1.1.2"),
        source("libcni-1.3.1"),
        "the two programs differ in their modules only"
    );
}

#[test]
fn i07_every_fixture_is_seen_as_libcni_sees_it() {
    let all = fixtures::all().unwrap();
    assert!(all.len() > 60, "only {} fixtures", all.len());
    let cases: Vec<Case> = all.iter().map(|fixture| fixture.case().unwrap()).collect();
    agree(&cases);
    let folders: Vec<Case> = all.iter().map(|fixture| fixture.folder().unwrap()).collect();
    agree(&folders);
    for (fixture, case) in all.iter().zip(&cases) {
        let list = case.list().unwrap();
        let verdict = match &list {
            Ok(list) if list.is_loopback_only() => "loopback".to_owned(),
            Ok(list) if list.kind() == aether_conflist::load::Kind::Single => "single".to_owned(),
            Ok(list) if list.entries().iter().all(aether_conflist::load::Entry::is_ours) => {
                "only ours".to_owned()
            }
            Ok(_) => "valid".to_owned(),
            Err(refusal) => match refusal.by {
                aether_conflist::load::By::Both => "refused by both".to_owned(),
                aether_conflist::load::By::Libcni1_1 => "refused by libcni 1.1".to_owned(),
                aether_conflist::load::By::Libcni1_3 => "refused by libcni 1.3".to_owned(),
                aether_conflist::load::By::Us => "cannot be judged".to_owned(),
            },
        };
        assert_eq!(
            verdict,
            fixture.verdict,
            "{}: {:?}",
            fixture.file,
            list.err().map(|refusal| refusal.to_string())
        );
        if let Some(reason) = &fixture.reason {
            let text = list.expect_err("a reason is given").to_string();
            assert!(text.contains(reason), "{}: {text}", fixture.file);
        }
    }
}

fn plugin(entry: &str) -> Vec<u8> {
    format!("{{\"name\":\"n\",\"plugins\":[{entry}]}}").into_bytes()
}

fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

/// Files that people and programs really leave behind, and shapes at the edge of what Go takes.
fn nasty() -> Vec<Vec<u8>> {
    let good = r#"{"cniVersion":"0.3.1","name":"n","plugins":[{"type":"a"},{"type":"b","z":1}]}"#;
    let mut files: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"\n \t".to_vec(),
        b"{".to_vec(),
        b"{}".to_vec(),
        b"null".to_vec(),
        b"[]".to_vec(),
        b"1".to_vec(),
        b"\"x\"".to_vec(),
        b"\0".to_vec(),
        [b"\xEF\xBB\xBF", good.as_bytes()].concat(),
        [b"\xFE\xFF", good.as_bytes()].concat(),
        format!("{good}{good}").into_bytes(),
        format!("{good}\0").into_bytes(),
        format!("{good}\n\n \r\n").into_bytes(),
        format!("\n\t{good}").into_bytes(),
        format!("{good},").into_bytes(),
        format!("// c\n{good}").into_bytes(),
        format!("{good}// c").into_bytes(),
        good.replace(',', ",\r\n").into_bytes(),
        good.replace(',', "\r,").into_bytes(),
        good.replace(",\"name\"", ",/* c */\"name\"").into_bytes(),
        good.replace("}]", "},]").into_bytes(),
        good.replace("1}", "1,}").into_bytes(),
        good.replace("\"plugins\"", "\"Plugins\"").into_bytes(),
        good.replace("\"plugins\"", "\"PLUGINS\"").into_bytes(),
        good.replace("\"plugins\"", "\"plugins\":[],\"plugins\"").into_bytes(),
        good.replace("\"plugins\"", "\"plugins\":[{\"type\":1}],\"plugins\"").into_bytes(),
        good.replace("\"plugins\"", "\"plugins\":[1e999],\"plugins\"").into_bytes(),
        good.replace("}]}", "}],\"plugins\":[]}").into_bytes(),
        good.replace("}]}", "}],\"pl\\u0075gins\":null}").into_bytes(),
        good.replace("\"n\"", "\"n\",\"name\":5").into_bytes(),
        good.replace('"', "'").into_bytes(),
        good.replace("\"n\"", "\"\u{e9}\"").into_bytes(),
        good.replace("\"z\":1", "\"z\":NaN").into_bytes(),
        good.replace("\"z\":1", "\"z\":01").into_bytes(),
        good.replace("\"z\":1", "\"z\":+1").into_bytes(),
        good.replace("\"z\":1", "\"z\":1e400").into_bytes(),
        good.replace("\"z\":1", "\"z\":-0").into_bytes(),
        good.replace("\"z\":1", "\"z\":\"a\tb\"").into_bytes(),
        good.replace("\"z\":1", "\"z\":\"a\u{7f}b\"").into_bytes(),
        good.replace("\"z\":1", "\"z\":\"\\ud800\"").into_bytes(),
        good.replace("\"z\":1", "\"z\":\"\\uD83D\\uDE00\"").into_bytes(),
        good.replace("\"z\":1", "\"z\":\"\\x41\"").into_bytes(),
        good.replace("\"z\":1", "\"\u{fffd}\":1,\"BYTE\":2").replace("BYTE", "\u{1}").into_bytes(),
        [&b"{\"name\":\"n\xFF\",\"plugins\":[{\"type\":\"\xC3\",\"\xFF\":1,\"\xEF\xBF\xBD\":2}]}"[..]]
            .concat(),
        // C15: shapes.
        br#"{"name":"n"}"#.to_vec(),
        br#"{"name":"n","plugins":null}"#.to_vec(),
        br#"{"name":"n","plugins":{}}"#.to_vec(),
        br#"{"name":"n","plugins":[]}"#.to_vec(),
        br#"{"name":"n","plugins":"x"}"#.to_vec(),
        br#"{"plugins":[{"type":"a"}]}"#.to_vec(),
        br#"{"name":null,"plugins":[{"type":"a"}]}"#.to_vec(),
        br#"{"name":"","plugins":[{"type":"a"}]}"#.to_vec(),
        br#"{"name":["n"],"plugins":[{"type":"a"}]}"#.to_vec(),
        br#"[{"name":"n","plugins":[{"type":"a"}]}]"#.to_vec(),
    ];
    for entry in [
        "null",
        "1",
        "\"a\"",
        "[]",
        "{}",
        r#"{"type":null}"#,
        r#"{"type":""}"#,
        r#"{"type":1}"#,
        r#"{"type":["a"]}"#,
        r#"{"Type":"a"}"#,
        r#"{"TYPE":"a","type":null}"#,
        r#"{"type":"","Type":"a"}"#,
        r#"{"Type":"a","type":""}"#,
        r#"{"type":"a","type":"b"}"#,
        r#"{"type":1,"type":"b"}"#,
        r#"{"type":"b","type":1}"#,
        r#"{"Type":1,"type":"b"}"#,
        r#"{"t\u0079pe":"a"}"#,
        r#"{"type":"a","capabilities":{"x":true,"y":null}}"#,
        r#"{"type":"a","capabilities":{"x":"true"}}"#,
        r#"{"type":"a","capabilities":[]}"#,
        r#"{"type":"a","capabilities":null}"#,
        r#"{"type":"a","ipam":[]}"#,
        r#"{"type":"a","ipam":{"type":"x"}}"#,
        r#"{"type":"a","ipam":{"Type":1}}"#,
        r#"{"type":"a","ipam":{"type":1,"type":"x"}}"#,
        r#"{"type":"a","dns":{"nameservers":["x",null],"domain":null}}"#,
        r#"{"type":"a","dns":{"search":[1]}}"#,
        r#"{"type":"a","dns":[]}"#,
        r#"{"type":"a","dns":{"options":"x"}}"#,
        r#"{"type":"a","prevResult":[]}"#,
        r#"{"type":"a","prevResult":{"x":1e999}}"#,
        r#"{"type":"a","PrevResult":null}"#,
        r#"{"type":"a","cniVersion":1}"#,
        r#"{"type":"a","name":{}}"#,
        r#"{"type":"a","cni.dev/valid-attachments":1}"#,
        r#"{"type":"a","cni.dev/valid-attachments":[{"containerID":1}]}"#,
        r#"{"type":"a","cni.dev/attachments":1}"#,
        "{\"type\":\"a\",\"ip\u{e4}m\":1}",
        "{\"type\":\"a\",\"dn\u{17f}\":1}",
        "{\"type\":\"a\",\"\u{212a}\":1}",
        r#"{"type":"aether-cni"}"#,
        r#"{"type":"a"},{"TYPE":"aether-cni"}"#,
        r#"{"type":"a","x":1e-999}"#,
        r#"{"type":"a"}x"#,
        r#"{"type":"a",,}"#,
    ] {
        files.push(plugin(entry));
        files.push(entry.as_bytes().to_vec());
    }
    for versions in [
        "[]",
        "null",
        "{}",
        "[1]",
        r#"["x"]"#,
        r#"["1.0.0","1.1.0","0.4.0"]"#,
        r#"["1.2.0"]"#,
        r#"["9.9.9","1.0"]"#,
        r#"["1.0","1.0.0","1"]"#,
        r#"["1","1.0.0","1.0"]"#,
        r#"[""]"#,
        r#"["1.0.0.0"]"#,
        r#"["-1"]"#,
        r#"["+1.1"]"#,
        r#"["1.1.0","1.01"]"#,
        r#"["0.3.1","0.3.1"]"#,
    ] {
        for version in [
            "",
            r#""cniVersion":"1.0.0","#,
            r#""cniVersion":"","#,
            r#""cniVersion":"2.0.0","#,
            r#""cniVersion":"x","#,
        ] {
            let list =
                format!(r#"{{{version}"cniVersions":{versions},"name":"n","plugins":[{{"type":"a"}}]}}"#);
            files.push(list.into_bytes());
        }
    }
    for key in ["disableCheck", "disableGC", "loadOnlyInlinedPlugins", "cniVersion"] {
        for value in [
            "true",
            "false",
            "null",
            "\"true\"",
            "\"TRUE\"",
            "\"False\"",
            "\"no\"",
            "\"\"",
            "1",
            "[]",
            "\"\u{17f}\"",
        ] {
            files.push(format!(r#"{{"{key}":{value},"name":"n","plugins":[{{"type":"a"}}]}}"#).into_bytes());
            files.push(format!(r#"{{"{key}":{value},"name":"n"}}"#).into_bytes());
        }
    }
    for depth in [200, MAX_DEPTH - 4, MAX_DEPTH - 3, MAX_DEPTH - 2, MAX_DEPTH - 1, MAX_DEPTH] {
        files.push(plugin(&format!(r#"{{"type":"a","x":{}}}"#, nested(depth))));
        files.push(format!(r#"{{"type":"a","x":{}}}"#, nested(depth)).into_bytes());
        files.push(format!(r#"{{"type":"a","x":{},"x":1}}"#, nested(depth)).into_bytes());
        files
            .push(format!(r#"{{"name":"n","x":{},"plugins":[{{"type":"a"}}]}}"#, nested(depth)).into_bytes());
        files.push(nested(depth).into_bytes());
    }
    files.push(nested(MAX_DEPTH + 1).into_bytes());
    files.push("[".repeat(100_000).into_bytes());
    files.push(r#"{"a":"#.repeat(50_000).into_bytes());
    for cut in 0..good.len() {
        files.push(good.bytes().take(cut).collect());
    }
    files
}

/// Go drops the digits of an exponent behind the fifth, and loses count of a mantissa's behind the 800th: its value is
/// wrong then, and so only the verdict is compared.
#[test]
fn i07_endless_numbers_are_taken_and_refused_as_by_libcni() {
    let exponents =
        "e0 e-490 e-491 e-690 e-692 e-800 e-1140 e-1690 e-1692 e-2000 e-12345 e-123456 e309 e1500 e123456";
    let mut cases = Vec::new();
    for zeros in [700, 798, 799, 800, 801, 1000, 2000, 120_000] {
        let zeros = "0".repeat(zeros);
        for exponent in exponents.split(' ') {
            for number in [
                format!("1{zeros}"),
                format!("1{zeros}.5"),
                format!("0.{zeros}1"),
                format!("-7{zeros}3.{zeros}"),
            ] {
                let list = plugin(&format!(r#"{{"type":"a","z":{number}{exponent}}}"#));
                cases.push(Case::of("x.conflist", list));
            }
        }
    }
    for judge in Judge::both().unwrap() {
        let theirs = judge.ask(&cases).unwrap();
        let taken = theirs.iter().filter(|verdict| verdict.outcome.is_ok()).count();
        assert!(taken > 50 && cases.len() - taken > 50, "{taken} of {}", cases.len());
        for (case, theirs) in cases.iter().zip(theirs) {
            let ours = case.ours(judge.version());
            let number = show(case).replace("0000000000", "_");
            assert_eq!(ours.outcome.is_ok(), theirs.outcome.is_ok(), "{}: {number}", judge.version());
        }
    }
}

#[test]
fn i07_nasty_files_are_seen_as_libcni_sees_them() {
    let files = nasty();
    for name in ["10-x.conflist", "10-x.conf", "10-x.json"] {
        let cases: Vec<Case> = files.iter().map(|bytes| Case::of(name, bytes.clone())).collect();
        let taken = agree(&cases);
        assert!(
            taken.iter().all(|taken| *taken > 20 && *taken < cases.len() / 2),
            "{name}: {taken:?} of {}",
            cases.len()
        );
    }
}

#[test]
fn i04_i07_generated_directories_are_seen_as_libcni_sees_them() {
    let (seed, rounds) = rounds();
    let mut random = Random::new(seed);
    let cases: Vec<Case> = (0..rounds).map(|_| generate::case(&mut random)).collect();
    let taken = agree(&cases);
    // Neither all refused nor all taken: both would test nothing.
    assert!(
        taken.iter().all(|taken| *taken > rounds / 10 && *taken < rounds * 9 / 10),
        "{taken:?} of {rounds} are taken"
    );
}

#[test]
fn i07_mutated_fixtures_are_seen_as_libcni_sees_them() {
    let (seed, rounds) = rounds();
    let mut random = Random::new(seed ^ 0xA5A5);
    let all: Vec<_> = fixtures::all()
        .unwrap()
        .iter()
        .map(|fixture| (fixture.file_name().to_owned(), fixture.bytes().unwrap()))
        .collect();
    let cases: Vec<Case> = (0..rounds)
        .map(|_| {
            let (name, bytes) = random.pick(&all).clone();
            Case::of(&name, generate::mutated(&mut random, &bytes))
        })
        .collect();
    let taken = agree(&cases);
    assert!(
        taken.iter().all(|taken| *taken > rounds / 20 && *taken < rounds * 9 / 10),
        "{taken:?} of {rounds} are taken"
    );
}

#[test]
fn i04_the_file_is_the_one_that_the_runtime_loads() {
    let (seed, rounds) = rounds();
    let mut random = Random::new(seed ^ 0x5A5A);
    let mut cases: Vec<Case> = (0..rounds / 4).map(|_| generate::names(&mut random)).collect();
    let good = r#"{"name":"n","plugins":[{"type":"a"}]}"#;
    // B6, and no fallback from a first file that is refused or holds only loopback.
    let several = Case::of("87-podman.conflist", good).with("99-loopback.conf", r#"{"type":"loopback"}"#);
    cases.push(
        several.clone().with("100-crio-bridge.conflist", good).with("11-crio-ipv4-bridge.conflist", good),
    );
    cases.push(several.with("05-broken.conflist", "{"));
    cases.push(Case::of("00-loopback.conf", r#"{"type":"loopback"}"#).with("10-x.conflist", good));
    cases.push(Case::of(".10-flannel.conflist", good).with("10-flannel.conflist", "{}"));
    cases.push(Case::of(".aether-cni-entry", "{}").with("10-x.conflist.bak", "{}"));
    cases.push(Case::default());
    agree(&cases);
}

#[test]
fn i04_drop_ins_are_seen_as_libcni_sees_them() {
    let list = r#"{"name":"n","plugins":[{"type":"a"}]}"#;
    let bare = r#"{"name":"n","cniVersion":"1.0.0"}"#;
    let entry = r#"{"type":"b"}"#;
    let cases = [
        Case::of("x.conflist", list).with("n/20.conf", entry).with("n/10.conf", r#"{"TYPE":"c"}"#),
        Case::of("x.conflist", list)
            .with("n/20.conflist", entry)
            .with("n/10.json", "{")
            .with("n/README", "x"),
        Case::of("x.conflist", list).with("n/20.conf", "{"),
        Case::of("x.conflist", list).with("n/20.conf", r#"{"name":"x"}"#),
        Case::of("x.conflist", list).with("n/20.conf", r#"{"type":"b","x":1e999}"#),
        Case::of("x.conflist", list).with("n/20.conf", r#"{"type":"b","prevResult":{"x":1e999}}"#),
        Case::of("x.conflist", list).with("n/20.conf", r#"{"type":1,"type":"b"}"#),
        Case::of("x.conflist", list).with("n/20.conf", r#"{"type":"","Type":"b"}"#),
        Case::of("x.conflist", list).with("n/sub/20.conf", entry).with_item("n/10.conf", Item::Dir),
        Case::of("x.conflist", list).with_item("n/10.conf", Item::Link("nowhere".to_owned())),
        Case::of("x.conflist", list).with("n", entry),
        Case::of("x.conflist", r#"{"loadOnlyInlinedPlugins":true,"name":"n","plugins":[{"type":"a"}]}"#)
            .with("n/20.conf", "{"),
        Case::of("x.conflist", r#"{"loadOnlyInlinedPlugins":"TRUE","name":"n"}"#).with("n/20.conf", entry),
        Case::of("x.conflist", bare).with("n/20.conf", entry),
        Case::of("x.conflist", bare).with("n/README", entry),
        Case::of("x.conf", r#"{"type":"a","name":"n"}"#).with("n/20.conf", "{"),
        // An empty name makes the directory itself the one for drop-ins, and a name may lead elsewhere.
        Case::of("x.conflist", r#"{"name":"","plugins":[{"type":"a"}]}"#).with("y.conf", entry),
        Case::of("x.conflist", r#"{"name":"a/../b","plugins":[{"type":"a"}]}"#).with("b/y.conf", entry),
        Case::of("x.conflist", r#"{"name":"/b/","plugins":[{"type":"a"}]}"#).with("b/y.conf", entry),
        Case::of("x.conflist", format!(r#"{{"name":"{}","plugins":[{{"type":"a"}}]}}"#, "n".repeat(300))),
        Case::of("x.conflist", r#"{"name":"a\u0000b","plugins":[{"type":"a"}]}"#),
    ];
    agree(&cases);
    let ours = cases[0].ours(Version::V1_3_1).outcome.unwrap();
    let types: Vec<_> = ours.plugins.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(types, ["a", "c", "b"], "libcni 1.3 appends drop-ins in the order of their names");
    assert_eq!(cases[0].ours(Version::V1_1_2).outcome.unwrap().plugins.len(), 1, "libcni 1.1 knows none");
}
