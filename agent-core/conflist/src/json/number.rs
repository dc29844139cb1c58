//! Numbers as Go reads them into a float64.

/// Go stops reading an exponent's digits once it has reached this: all that follow are dropped.
const EXPONENT_STOP: u32 = 10_000;

/// The value of a number literal that the scanner took; `None` where Go answers that it is out of range.
pub(super) fn parse(literal: &[u8]) -> Option<f64> {
    let literal = std::str::from_utf8(literal).ok()?;
    let value: f64 = match literal.split_once(['e', 'E']) {
        None => literal.parse().ok()?,
        Some((mantissa, exponent)) => {
            let sign = if exponent.starts_with('-') { "-" } else { "" };
            let mut read = 0_u32;
            for digit in exponent.bytes().filter(u8::is_ascii_digit) {
                if read < EXPONENT_STOP {
                    read = read * 10 + u32::from(digit - b'0');
                }
            }
            format!("{mantissa}e{sign}{read}").parse().ok()?
        }
    };
    value.is_finite().then_some(value)
}
