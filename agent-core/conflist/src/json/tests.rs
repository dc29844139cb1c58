use proptest::prelude::*;

use super::*;

fn reason(text: &[u8]) -> (usize, String) {
    let error = Document::parse(text).expect_err("it should be refused");
    (error.offset, error.reason)
}

fn canonical(text: &[u8]) -> String {
    let document = Document::parse(text).expect("it should be taken");
    String::from_utf8(document.canonical(document.root())).expect("it is UTF-8")
}

#[test]
fn i07_refusals_name_the_byte_and_the_reason() {
    for (text, offset, part) in [
        (&b""[..], 0, "empty"),
        (b" \n\t", 3, "empty"),
        (b"\xEF\xBB\xBF{}", 0, "byte order mark"),
        (b"{\"a\":1,}", 6, "a comma before '}'"),
        (b"[1,\n ]", 2, "a comma before ']'"),
        (b"{} x", 3, "follows the end"),
        (b"{}{}", 2, "follows the end"),
        (b"// c\n{}", 0, "a comment"),
        (b"{/* c */}", 1, "a comment"),
        (b"# c\n{}", 0, "a comment"),
        (b"{\"a\"", 4, "ends inside an object"),
        (b"{\"a", 3, "ends inside a string"),
        (b"[1", 2, "ends inside an array"),
        (b"{'a':1}", 1, "a key in double quotes"),
        (b"{\"a\" 1}", 5, "':'"),
        (b"[1}", 2, "',' or ']'"),
        (b"{\"a\":1]", 6, "',' or '}'"),
        (b"[01]", 2, "',' or ']'"),
        (b"[-]", 2, "a digit"),
        (b"[1.]", 3, "a digit"),
        (b"[1e+]", 4, "a digit"),
        (b"[tru]", 4, "not true"),
        (b"nul", 3, "ends inside"),
        (b"[\"\x01\"]", 2, "unescaped"),
        (b"[\"\\x\"]", 3, "backslash"),
        (b"[\"\\u12g4\"]", 6, "\\u escape"),
        (b"[\xFF]", 1, "0xFF"),
        (b"[\xC3\xA9]", 1, "'\u{e9}'"),
        (b"\0", 0, "stands where a value"),
    ] {
        let (at, why) = reason(text);
        assert_eq!(at, offset, "{text:?}: {why}");
        assert!(why.contains(part), "{text:?}: {why}");
    }
}

#[test]
fn i07_what_go_takes_and_stricter_readers_do_not_is_taken() {
    assert_eq!(canonical(b"[\"\xFF\xFE\"]"), "[\"\u{fffd}\u{fffd}\"]");
    // A character cut short is one replacement a byte, as in Go.
    assert_eq!(canonical(b"[\"\xE2\x82\"]"), "[\"\u{fffd}\u{fffd}\"]");
    assert_eq!(
        canonical(br#"["\ud800","\udc00\ud83d\ude00","\ud800\u0041"]"#),
        "[\"\u{fffd}\",\"\u{fffd}\u{1f600}\",\"\u{fffd}A\"]"
    );
    assert_eq!(canonical(br#"{"a":1,"a":{"b":2},"\u0061":3}"#), r#"{"a":3e0}"#);
    assert_eq!(canonical(br#"{"z":1.0,"a":[1e3,-0,0.1]}"#), r#"{"a":[1e3,0e0,1e-1],"z":1e0}"#);
    assert_eq!(canonical(b"\"\\/\\b\\n\x7F\""), "\"/\\u0008\\u000a\x7F\"");
}

#[test]
fn i07_nesting_ends_where_go_ends_it_and_the_stack_holds() {
    let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
    let document = Document::parse(&nested(MAX_DEPTH)).expect("the deepest legal nesting");
    assert_eq!(document.depth(), MAX_DEPTH);
    assert_eq!(document.canonical(document.root()).len(), 2 * MAX_DEPTH);
    let (offset, why) = reason(&nested(MAX_DEPTH + 1));
    assert_eq!(offset, MAX_DEPTH);
    assert!(why.contains("nested deeper than 10000"), "{why}");
    assert!(Document::parse(&vec![b'['; 1_000_000]).is_err());
}

#[test]
fn i07_numbers_out_of_range_are_found_as_go_finds_them() {
    let out = |text: &[u8]| {
        let document = Document::parse(text).expect("it is JSON");
        document.number_out_of_range(document.root()).is_some()
    };
    assert!(out(b"[1,{\"a\":1e309}]"));
    assert!(out(b"[-1e999999999999999999999]"));
    assert!(!out(b"[1e308,1e-999,0e999999,17976931348623157e292]"));
}

proptest! {
    /// serde_json is stricter: what it takes, we take, with the same value.
    #[test]
    fn i07_what_serde_json_takes_has_the_same_value(text in "[\\[\\]{}:,\"a0-9eE.\\\\untrlsf -]{0,24}") {
        if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
            let document = Document::parse(text.as_bytes());
            prop_assert!(document.is_ok(), "{text:?}: {document:?}");
            prop_assert_eq!(canonical(text.as_bytes()), canonical(value.to_string().as_bytes()));
        }
    }

    #[test]
    fn i07_any_bytes_are_scanned_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(document) = Document::parse(&bytes) {
            let canonical = document.canonical(document.root());
            let again = Document::parse(&canonical).expect("canonical is JSON");
            prop_assert_eq!(again.canonical(again.root()), canonical);
        }
    }
}
