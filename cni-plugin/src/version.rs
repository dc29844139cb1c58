//! The versions of the CNI specification that we know (K01).

use crate::failure::{Failure, code};

/// Every version, oldest first.
pub const SUPPORTED: [&str; 7] = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];
/// The newest, which an error carries when the configuration's own cannot be used.
pub const NEWEST: &str = "1.1.0";
/// What a list without `cniVersion` means.
pub const IMPLIED: &str = "0.1.0";

/// The supported version that `declared` means; none and "" mean [`IMPLIED`].
pub fn resolve(declared: Option<&str>) -> Option<&'static str> {
    let wanted = declared.filter(|version| !version.is_empty()).unwrap_or(IMPLIED);
    SUPPORTED.into_iter().find(|known| *known == wanted)
}

/// The error for a version that we do not know.
pub fn incompatible(declared: &str) -> Failure {
    let shown: String = declared.chars().take(64).collect();
    Failure::new(
        code::INCOMPATIBLE_VERSION,
        "incompatible CNI version",
        format!(
            "the list says cniVersion {shown:?} and aether-cni supports {}: write one of these in the list, or install a newer aether-cni",
            SUPPORTED.join(", ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k01_a_list_without_a_version_means_the_oldest() {
        assert_eq!(resolve(None), Some("0.1.0"));
        assert_eq!(resolve(Some("")), Some("0.1.0"));
        assert_eq!(resolve(Some("0.3.1")), Some("0.3.1"));
        for unknown in ["1.2.0", "9.9.9", "0.3", "v1.0.0", "1.0.0 "] {
            assert_eq!(resolve(Some(unknown)), None, "{unknown}");
        }
    }

    #[test]
    fn k01_an_unknown_version_is_told_the_supported_ones() {
        let failure = incompatible("9.9.9");
        assert_eq!(failure.code, 1);
        for version in SUPPORTED {
            assert!(failure.details.contains(version), "{failure}");
        }
    }
}
