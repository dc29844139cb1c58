//! A unified diff of a list, byte for byte, so that `patch` takes it.

use std::io::Write as _;
use std::path::Path;

use similar::TextDiff;

/// Prints the diff on standard output.
pub fn print(path: &Path, old: &[u8], new: &[u8]) {
    let _ = std::io::stdout().lock().write_all(&unified(path, old, new));
}

/// The diff.
pub fn unified(path: &Path, old: &[u8], new: &[u8]) -> Vec<u8> {
    let shown = path.display().to_string();
    let mut text = Vec::new();
    let diff = TextDiff::from_lines(old, new);
    let mut unified = diff.unified_diff();
    for (nth, hunk) in unified.context_radius(3).iter_hunks().enumerate() {
        if nth == 0 {
            text.extend_from_slice(format!("--- {shown}\n+++ {shown}\n").as_bytes());
        }
        // Writing into memory does not fail. (The whole diff's `to_writer` would not keep bytes that are not UTF-8.)
        let _ = hunk.to_writer(&mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i11_the_diff_keeps_bytes_that_are_not_utf_8_and_says_where_no_newline_is() {
        let diff = unified(Path::new("/d/x.conflist"), b"{\n\xff\n}", b"{\n\xff,\n}");
        let expected = b"--- /d/x.conflist\n+++ /d/x.conflist\n@@ -1,3 +1,3 @@\n {\n-\xff\n+\xff,\n }\n\\ No newline at end of file\n";
        assert_eq!(String::from_utf8_lossy(&diff), String::from_utf8_lossy(expected));
        assert_eq!(diff, expected);
    }
}
