//! Columns for eyes.

use std::fmt::Write as _;

/// Rows below a heading, each column as wide as its widest cell.
pub(crate) fn columns<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> String {
    let heading: [String; N] = heading.map(str::to_owned);
    let rows: Vec<[String; N]> =
        std::iter::once(&heading).chain(rows).map(|row| row.each_ref().map(|cell| printable(cell))).collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Text from a pod must not steer the terminal: control characters are shown, not sent.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    if out.is_empty() { "-".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_empty_cells_are_visible() {
        let rows = [["a".to_owned(), String::new()], ["long".to_owned(), "x".to_owned()]];
        assert_eq!(columns(["ONE", "TWO"], &rows), "ONE   TWO\na     -\nlong  x\n");
    }

    #[test]
    fn o04_a_pods_text_cannot_steer_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\n"), "a\\u{1b}[31mb\\n");
    }
}
