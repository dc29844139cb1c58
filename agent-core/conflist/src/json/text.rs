//! Strings as Go reads them.

/// The text of a string literal, quotes included, that the scanner took. A byte that is no UTF-8 becomes one U+FFFD,
/// as does a lone surrogate: keys are compared after that, so the count matters.
pub(super) fn unquote(literal: &[u8]) -> String {
    let inner = literal.get(1..literal.len().saturating_sub(1)).unwrap_or_default();
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(backslash) = rest.iter().position(|byte| *byte == b'\\') {
        let (plain, escape) = rest.split_at(backslash);
        push_bytes(&mut text, plain);
        rest = push_escape(&mut text, escape);
    }
    push_bytes(&mut text, rest);
    text
}

fn push_bytes(text: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
}

/// Appends what the escape at the start of `bytes` stands for, and gives what follows it.
fn push_escape<'a>(text: &mut String, bytes: &'a [u8]) -> &'a [u8] {
    let short = match bytes.get(1) {
        Some(b'u') => return push_unicode(text, bytes),
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(other) => char::from(*other),
        None => return &[],
    };
    text.push(short);
    bytes.get(2..).unwrap_or_default()
}

fn push_unicode<'a>(text: &mut String, bytes: &'a [u8]) -> &'a [u8] {
    let rest = bytes.get(6..).unwrap_or_default();
    let Some(unit) = hex_unit(bytes) else { return rest };
    if let Some(plain) = char::from_u32(unit) {
        text.push(plain);
        return rest;
    }
    // A surrogate: with the other half behind it a character, alone a replacement, and what follows is read anew.
    let pair = hex_unit(rest).and_then(|low| {
        let high = (0xD800..0xDC00).contains(&unit).then(|| unit - 0xD800)?;
        let low = (0xDC00..0xE000).contains(&low).then(|| low - 0xDC00)?;
        char::from_u32(0x1_0000 + (high << 10) + low)
    });
    text.push(pair.unwrap_or(char::REPLACEMENT_CHARACTER));
    if pair.is_some() { rest.get(6..).unwrap_or_default() } else { rest }
}

/// The unit of the `\uXXXX` that `bytes` begin with.
fn hex_unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.get(..6)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
