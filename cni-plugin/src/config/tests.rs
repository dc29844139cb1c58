use super::*;

fn input(text: &str) -> Input {
    Input { bytes: text.as_bytes().to_vec(), problem: None }
}

fn entry(text: &str) -> (Entry, Vec<&'static str>) {
    let input = input(text);
    let (entry, problems) = Entry::read(&Document::parse(&input).unwrap());
    (entry, problems.into_iter().map(|problem| problem.key).collect())
}

#[test]
fn k02_what_is_no_json_object_is_code_6() {
    for bad in
        ["", " \n\t", "{", "[]", "null", "7", "{} {}", "\u{feff}{}", "{\"a\":}", "not json", "{\"a\":1,}"]
    {
        assert_eq!(Document::parse(&input(bad)).unwrap_err().code, 6, "{bad:?}");
    }
    let bytes = b"{\"name\":\"\xff\"}".to_vec();
    assert_eq!(Document::parse(&Input { bytes, problem: None }).unwrap_err().code, 6);
}

#[test]
fn k02_an_input_that_did_not_end_is_no_configuration_even_if_it_parses() {
    for (problem, expected) in [
        (Incomplete::TooLarge, 6),
        (Incomplete::TimedOut(limits::STDIN_WAIT), 6),
        (Incomplete::Failed("bad file descriptor".into()), 5),
    ] {
        let input = Input { bytes: b"{}".to_vec(), problem: Some(problem) };
        assert_eq!(Document::parse(&input).unwrap_err().code, expected);
    }
}

#[test]
fn k03_a_raw_value_keeps_its_bytes_and_the_last_of_two_keys_counts() {
    let text = r#"{"prevResult": 1, "prevResult" : {"b":1.50,"a":12345678901234567890,"a":"\u003c" , "é":[]} ,"x":null}"#;
    let input = input(text);
    let document = Document::parse(&input).unwrap();
    let raw = document.raw("prevResult").unwrap().get();
    assert_eq!(raw, r#"{"b":1.50,"a":12345678901234567890,"a":"\u003c" , "é":[]}"#);
    assert!(document.raw("x").is_none());
}

#[test]
fn k03_depth_is_no_obstacle() {
    let deep = format!("{}{}", "[".repeat(2000), "]".repeat(2000));
    let input = input(&format!(r#"{{"deep":{deep},"prevResult":{{"x":{deep}}}}}"#));
    let document = Document::parse(&input).unwrap();
    assert_eq!(document.raw("deep").unwrap().get(), deep);
}

#[test]
fn k01_the_version_is_resolved() {
    for (text, expected) in [
        ("{}", Ok("0.1.0")),
        (r#"{"cniVersion":""}"#, Ok("0.1.0")),
        (r#"{"cniVersion":null}"#, Ok("0.1.0")),
        (r#"{"cniVersion":"0.3.1"}"#, Ok("0.3.1")),
        (r#"{"cniVersion":"1.2.0"}"#, Err(1)),
        (r#"{"cniVersion":1}"#, Err(7)),
    ] {
        let input = input(text);
        let version = Document::parse(&input).unwrap().version().map_err(|failure| failure.code);
        assert_eq!(version, expected, "{text}");
    }
}

#[test]
fn k06_an_entry_without_our_keys_is_the_default() {
    assert_eq!(entry("{}"), (Entry::default(), vec![]));
    assert_eq!(entry(r#"{"agentSocket":null,"managed":null,"unknown":[1]}"#), (Entry::default(), vec![]));
}

#[test]
fn k04_the_deadline_is_never_above_its_maximum() {
    for (text, expected) in
        [("0", 0.0), ("0.25", 0.25), ("5", 5.0), ("30", 30.0), ("31", 30.0), ("1e300", 30.0)]
    {
        let (entry, problems) = entry(&format!(r#"{{"addDeadlineSeconds":{text}}}"#));
        assert_eq!((entry.add_deadline, problems), (Duration::from_secs_f64(expected), vec![]), "{text}");
    }
}

#[test]
fn k06_every_wrong_key_is_named_and_keeps_its_default() {
    let text = r#"{"agentSocket":"relative","stateDir":7,"addDeadlineSeconds":-1,"ignoredNamespaces":["a",1],
        "releaseNamespace":{},"managed":"sometimes","logLevel":3}"#;
    let (read, problems) = entry(text);
    assert_eq!(read, Entry::default());
    assert_eq!(
        problems,
        [
            "agentSocket",
            "stateDir",
            "addDeadlineSeconds",
            "ignoredNamespaces",
            "releaseNamespace",
            "managed",
            "logLevel"
        ]
    );
    let (read, problems) = entry(&format!(r#"{{"agentSocket":"/{}"}}"#, "x".repeat(107)));
    assert_eq!((read, problems), (Entry::default(), vec!["agentSocket"]));
}

#[test]
fn k06_namespaces_are_gathered() {
    let (read, problems) =
        entry(r#"{"ignoredNamespaces":["a","b"],"releaseNamespace":"aether","managed":"opt-in"}"#);
    assert_eq!(problems, Vec::<&str>::new());
    assert_eq!(read.ignored, ["kube-system", "a", "b", "aether"]);
    assert_eq!(read.mode, Mode::OptIn);
    let (read, _) = entry(r#"{"releaseNamespace":""}"#);
    assert_eq!(read.ignored, ["kube-system"]);
}
