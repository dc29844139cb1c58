//! The documents that leave on standard output.

use serde::Serialize;

use crate::failure::Failure;
use crate::version;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorReply<'a> {
    cni_version: &'a str,
    code: u32,
    msg: &'a str,
    details: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionReply<'a> {
    cni_version: &'a str,
    supported_versions: &'a [&'a str],
}

/// The error document of `failure`, in the call's version.
pub fn error(cni_version: &str, failure: &Failure) -> String {
    encode(&ErrorReply { cni_version, code: failure.code, msg: &failure.message, details: &failure.details })
}

/// The answer to VERSION.
pub fn versions(cni_version: &str) -> String {
    encode(&VersionReply { cni_version, supported_versions: &version::SUPPORTED })
}

fn encode(reply: &impl Serialize) -> String {
    // Strings and numbers always encode; a document is owed all the same.
    serde_json::to_string(reply).unwrap_or_else(|_| {
        r#"{"cniVersion":"1.1.0","code":103,"msg":"internal error","details":"a reply could not be encoded"}"#.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k02_an_error_is_one_document_whatever_its_text_holds() {
        let failure = Failure::new(7, "a \"quoted\"\nmessage", "\u{0}\u{1b}[31m é");
        let reply = error("0.3.1", &failure);
        let value: serde_json::Value = serde_json::from_str(&reply).unwrap();
        assert_eq!(value["cniVersion"], "0.3.1");
        assert_eq!(value["code"], 7);
        assert_eq!(value["msg"], failure.message);
        assert_eq!(value["details"], failure.details);
        assert!(!reply.contains('\n'));
    }
}
