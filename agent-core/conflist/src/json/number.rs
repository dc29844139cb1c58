//! Numbers as Go reads them into a float64.
//!
//! Go rounds right, but for numbers that nobody writes on purpose: it drops the digits of an exponent behind the fifth,
//! and where its quick way does not reach it keeps 800 digits and takes the point to stand right behind the last one
//! kept. Which of two hostile spellings is out of range follows from that, and so does whether a list is taken.

/// Go stops reading an exponent's digits once it has reached this.
const EXPONENT_STOP: i64 = 10_000;
/// How many digits Go's slow way keeps.
const DIGITS_KEPT: usize = 800;
/// How many digits Go's quick way looks at.
const DIGITS_QUICK: i64 = 19;
/// For which powers of ten Go's quick way has a table.
const QUICK: std::ops::RangeInclusive<i64> = -348..=347;

/// The value of a number literal that the scanner took; `None` where Go answers that it is out of range.
pub(super) fn parse(literal: &[u8]) -> Option<f64> {
    let literal = std::str::from_utf8(literal).ok()?;
    let (mantissa, exponent) =
        literal.split_once(['e', 'E']).map_or((literal, 0), |(m, e)| (m, read_exponent(e)));
    let value: f64 = if mantissa.len() <= DIGITS_KEPT {
        format!("{mantissa}e{exponent}").parse().ok()?
    } else {
        parse_long(mantissa, exponent)?
    };
    value.is_finite().then_some(value)
}

fn read_exponent(text: &str) -> i64 {
    let mut read = 0;
    for digit in text.bytes().filter(u8::is_ascii_digit) {
        if read < EXPONENT_STOP {
            read = read * 10 + i64::from(digit - b'0');
        }
    }
    if text.starts_with('-') { -read } else { read }
}

fn parse_long(mantissa: &str, exponent: i64) -> Option<f64> {
    let unsigned = mantissa.trim_start_matches('-');
    let sign = if mantissa.len() > unsigned.len() { "-" } else { "" };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let whole = whole.trim_start_matches('0');
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let zeros_behind_point = fraction.len() - fraction.trim_start_matches('0').len();
    let point = |whole: usize| -> Option<i64> {
        if whole > 0 {
            i64::try_from(whole).ok()
        } else {
            i64::try_from(zeros_behind_point).ok().map(|zeros| -zeros)
        }
    };
    let power = point(whole.len())? - i64::try_from(digits.len()).ok()?.min(DIGITS_QUICK) + exponent;
    let right: f64 = format!("{mantissa}e{exponent}").parse().ok()?;
    // Within its table the quick way gives up only where it overflows, or where it cannot decide how to round: then Go's
    // value is off by powers of ten, which no verdict depends on.
    if digits.len() <= DIGITS_KEPT || (QUICK.contains(&power) && right.is_finite()) {
        return Some(right);
    }
    let kept = digits.get(..DIGITS_KEPT)?;
    format!("{sign}0.{kept}e{}", point(whole.len().min(DIGITS_KEPT))? + exponent).parse().ok()
}
