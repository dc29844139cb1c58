use super::*;

fn answer() -> PodsResponse {
    let record = r#"{"format":1,"oldestReader":1,"container":"59e3eeb07bf1b08cac9cf75800f927f3","interface":"eth0",
        "network":"cbr0","managed":"opted-out","pod":{"namespace":"prod","name":"web-0","addresses":["10.244.1.2/24","fd00::2/64"]},
        "addedLater":true}"#;
    PodsResponse {
        records: vec![record.to_owned(), "not JSON".to_owned()],
        role: "owner".to_owned(),
        unusable: vec![aether_api::admin::Unusable {
            file: "/x/y.json".to_owned(),
            reason: "damaged".to_owned(),
        }],
    }
}

fn chain(state: &str) -> ChainResponse {
    ChainResponse {
        state: state.to_owned(),
        file: "10-flannel.conflist".to_owned(),
        plugins: vec!["flannel".to_owned(), "portmap".to_owned()],
        watch_mode: "poll".to_owned(),
        checked_at: 90,
        role: "standby".to_owned(),
        ..ChainResponse::default()
    }
}

#[test]
fn pods_are_a_table_and_unusable_files_are_named_below_it() {
    let text = Pods::from(answer()).table();
    let line = text.lines().find(|line| line.contains("web-0")).unwrap();
    for cell in ["prod", "eth0", "10.244.1.2/24,fd00::2/64", "opted-out", "cbr0", "59e3eeb07bf1b"] {
        assert!(line.contains(cell), "{cell} is not in {line}");
    }
    assert!(text.starts_with("NAMESPACE"), "{text}");
    assert!(text.contains("2 record(s) known to this agent, the node's owner"), "{text}");
    assert!(text.contains("unusable: /x/y.json: damaged"), "{text}");
}

#[test]
fn json_keeps_what_a_newer_agent_added() {
    let value: Value = serde_json::from_str(&json(&Pods::from(answer())).unwrap()).unwrap();
    assert_eq!(value["records"][0]["addedLater"], true);
    assert_eq!(value["records"][1], "not JSON");
    assert_eq!(value["unusable"][0]["file"], "/x/y.json");
    let value: Value = serde_json::from_str(&json(&Chain::from(chain("stripped"))).unwrap()).unwrap();
    assert_eq!(
        (&value["state"], &value["watchMode"], &value["checkedAt"]),
        (&"stripped".into(), &"poll".into(), &90.into())
    );
}

#[test]
fn the_chain_is_told_in_words() {
    let text = Chain::from(chain("stripped")).table(100);
    for part in
        ["state       stripped", "plugins     flannel, portmap", "checked     10 s ago", "install id  -"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}
