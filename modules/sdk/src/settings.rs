//! Settings, from the JSON text that the host makes of `[settings]`.

use serde::de::DeserializeOwned;

/// Reads settings; the error says where and what.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Settings {
        #[serde(default)]
        a: u8,
    }

    #[test]
    fn m12_settings_are_read_and_a_wrong_key_is_named() {
        assert_eq!(parse::<Settings>(""), Ok(Settings { a: 0 }));
        assert_eq!(parse::<Settings>("{\"a\":3}"), Ok(Settings { a: 3 }));
        assert!(parse::<Settings>("{\"b\":3}").unwrap_err().contains("unknown field `b`"));
    }
}
