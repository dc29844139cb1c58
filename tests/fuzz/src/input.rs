//! Bytes as a source of choices.

/// Hands out an input piece by piece.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// The whole input.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next byte, while there is one.
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u8) -> Option<u8> {
        self.byte().map(|byte| byte % end.max(1))
    }

    /// One of these.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        let byte = usize::from(self.byte()?);
        from.get(byte % from.len().max(1)).cloned()
    }
}
