//! The scanner: one pass, an explicit stack.

use super::{Kind, MAX_DEPTH, Slot, SyntaxError};

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Nothing,
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    slots: Vec<Slot>,
    /// The containers that are open, outermost first, as indices of `slots`.
    open: Vec<usize>,
    depth: usize,
    last_comma: Option<usize>,
}

pub(super) fn scan(bytes: &[u8]) -> Result<(Vec<Slot>, usize), SyntaxError> {
    let scanner = Scanner { bytes, at: 0, slots: Vec::new(), open: Vec::new(), depth: 0, last_comma: None };
    scanner.run()
}

impl Scanner<'_> {
    fn run(mut self) -> Result<(Vec<Slot>, usize), SyntaxError> {
        if self.bytes.starts_with(BOM) {
            return Err(error(0, "it begins with a byte order mark, which JSON does not allow"));
        }
        let mut expect = Expect::Value;
        loop {
            self.skip_space();
            let Some(byte) = self.peek() else { break };
            expect = self.step(expect, byte)?;
        }
        if expect == Expect::Nothing { Ok((self.slots, self.depth)) } else { Err(self.early_end()) }
    }

    fn step(&mut self, expect: Expect, byte: u8) -> Result<Expect, SyntaxError> {
        match (expect, byte) {
            (Expect::ValueOrEnd, b']') | (Expect::KeyOrEnd, b'}') => Ok(self.close()),
            (Expect::CommaOrEnd, b']' | b'}') if self.closing() == Some(byte) => Ok(self.close()),
            (Expect::CommaOrEnd, b',') => {
                self.last_comma = Some(self.at);
                self.at += 1;
                Ok(if self.closing() == Some(b'}') { Expect::Key } else { Expect::Value })
            }
            (Expect::Colon, b':') => {
                self.at += 1;
                Ok(Expect::Value)
            }
            (Expect::Key | Expect::KeyOrEnd, b'"') => {
                self.string()?;
                Ok(Expect::Colon)
            }
            (Expect::Value | Expect::ValueOrEnd, _) => self.value(byte, expect),
            _ => Err(self.unexpected(expect, byte)),
        }
    }

    fn value(&mut self, byte: u8, expect: Expect) -> Result<Expect, SyntaxError> {
        match byte {
            b'{' => return self.open(Kind::Object, Expect::KeyOrEnd),
            b'[' => return self.open(Kind::Array, Expect::ValueOrEnd),
            b'"' => self.string()?,
            b'-' | b'0'..=b'9' => self.number()?,
            b't' => self.literal(b"true", Kind::Bool(true))?,
            b'f' => self.literal(b"false", Kind::Bool(false))?,
            b'n' => self.literal(b"null", Kind::Null)?,
            _ => return Err(self.unexpected(expect, byte)),
        }
        Ok(self.after_value())
    }

    fn open(&mut self, kind: Kind, expect: Expect) -> Result<Expect, SyntaxError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(error(self.at, &format!("it is nested deeper than {MAX_DEPTH} levels")));
        }
        self.open.push(self.slots.len());
        self.depth = self.depth.max(self.open.len());
        self.slots.push(Slot { kind, start: self.at, end: self.at, after: 0 });
        self.at += 1;
        Ok(expect)
    }

    fn close(&mut self) -> Expect {
        self.at += 1;
        let after = self.slots.len();
        if let Some(slot) = self.open.pop().and_then(|index| self.slots.get_mut(index)) {
            slot.end = self.at;
            slot.after = after;
        }
        self.after_value()
    }

    /// The byte that closes the innermost open container.
    fn closing(&self) -> Option<u8> {
        let slot = self.open.last().and_then(|index| self.slots.get(*index))?;
        Some(if slot.kind == Kind::Object { b'}' } else { b']' })
    }

    fn after_value(&self) -> Expect {
        if self.open.is_empty() { Expect::Nothing } else { Expect::CommaOrEnd }
    }

    fn leaf(&mut self, kind: Kind, start: usize) {
        let after = self.slots.len() + 1;
        self.slots.push(Slot { kind, start, end: self.at, after });
    }

    fn literal(&mut self, word: &[u8], kind: Kind) -> Result<(), SyntaxError> {
        let start = self.at;
        for expected in word {
            match self.peek() {
                Some(byte) if byte == *expected => self.at += 1,
                Some(_) => {
                    let word = String::from_utf8_lossy(word);
                    return Err(error(self.at, &format!("{} is not {word}", self.shown())));
                }
                None => return Err(self.early_end()),
            }
        }
        self.leaf(kind, start);
        Ok(())
    }

    fn string(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.early_end_in("a string")),
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                Some(0..=0x1F) => {
                    let reason = format!("{} stands unescaped in a string", self.shown());
                    return Err(error(self.at, &reason));
                }
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        self.leaf(Kind::String, start);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), SyntaxError> {
        self.at += 1;
        match self.peek() {
            None => return Err(self.early_end_in("a string")),
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    match self.peek() {
                        None => return Err(self.early_end_in("a string")),
                        Some(byte) if byte.is_ascii_hexdigit() => self.at += 1,
                        Some(_) => {
                            let reason = format!("{} stands in a \\u escape", self.shown());
                            return Err(error(self.at, &reason));
                        }
                    }
                }
            }
            Some(_) => {
                let reason = format!("{} follows a backslash in a string", self.shown());
                return Err(error(self.at, &reason));
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        self.eat(|byte| byte == b'-');
        if !self.eat(|byte| byte == b'0') {
            self.digits()?;
        }
        if self.eat(|byte| byte == b'.') {
            self.digits()?;
        }
        if self.eat(|byte| matches!(byte, b'e' | b'E')) {
            self.eat(|byte| matches!(byte, b'+' | b'-'));
            self.digits()?;
        }
        self.leaf(Kind::Number, start);
        Ok(())
    }

    fn digits(&mut self) -> Result<(), SyntaxError> {
        match self.peek() {
            None => Err(self.early_end_in("a number")),
            Some(byte) if !byte.is_ascii_digit() => {
                Err(error(self.at, &format!("{} stands in a number where a digit is needed", self.shown())))
            }
            Some(_) => {
                while self.eat(|byte| byte.is_ascii_digit()) {}
                Ok(())
            }
        }
    }

    fn eat(&mut self, wanted: impl Fn(u8) -> bool) -> bool {
        let found = self.peek().is_some_and(wanted);
        self.at += usize::from(found);
        found
    }

    fn skip_space(&mut self) {
        while self.eat(is_space) {}
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The character under the scanner, for a message.
    fn shown(&self) -> String {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let head = rest.get(..4.min(rest.len())).unwrap_or_default();
        match head.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next()) {
            Some(found) => format!("{found:?}"),
            None => format!("the byte 0x{:02X}", rest.first().copied().unwrap_or_default()),
        }
    }

    fn unexpected(&self, expect: Expect, byte: u8) -> SyntaxError {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.starts_with(b"//") || rest.starts_with(b"/*") || byte == b'#' {
            return error(self.at, "a comment, which JSON does not allow");
        }
        let expected = match expect {
            Expect::Nothing => {
                return error(self.at, &format!("{} follows the end of the value", self.shown()));
            }
            Expect::Value | Expect::Key if matches!(byte, b']' | b'}') && self.comma_is_last() => {
                let comma = self.last_comma.unwrap_or(self.at);
                return error(comma, &format!("a comma before {}, which JSON does not allow", self.shown()));
            }
            Expect::Value => "a value",
            Expect::ValueOrEnd => "a value or ']'",
            Expect::Key => "a key in double quotes",
            Expect::KeyOrEnd => "a key in double quotes or '}'",
            Expect::Colon => "':'",
            Expect::CommaOrEnd if self.closing() == Some(b'}') => "',' or '}'",
            Expect::CommaOrEnd => "',' or ']'",
        };
        error(self.at, &format!("{} stands where {expected} is expected", self.shown()))
    }

    /// Whether nothing but white space stands between the last comma and here.
    fn comma_is_last(&self) -> bool {
        self.last_comma
            .and_then(|comma| self.bytes.get(comma + 1..self.at))
            .is_some_and(|gap| gap.iter().all(|byte| is_space(*byte)))
    }

    fn early_end(&self) -> SyntaxError {
        let inside = match self.closing() {
            _ if self.bytes.iter().all(|byte| is_space(*byte)) => return error(self.at, "it is empty"),
            Some(b'}') => "an object",
            Some(_) => "an array",
            None => "a value",
        };
        self.early_end_in(inside)
    }

    fn early_end_in(&self, inside: &str) -> SyntaxError {
        error(self.bytes.len(), &format!("it ends inside {inside}"))
    }
}

fn error(offset: usize, reason: &str) -> SyntaxError {
    SyntaxError { offset, reason: reason.to_owned() }
}

pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
