//! Numbers of a JSON text that was already validated.

/// The value of a JSON number that is a whole number ≥ 0, whichever way it is written (`12`, `12.0`, `1.2e1`).
pub(crate) fn unsigned(raw: &[u8]) -> Option<u64> {
    if raw.len() < 20 && raw.iter().all(u8::is_ascii_digit) && !raw.is_empty() {
        return Some(raw.iter().fold(0u64, |value, digit| value * 10 + u64::from(digit - b'0')));
    }
    let value = float(raw)?;
    // 2^53: above it a float no longer says which whole number was meant.
    (value >= 0.0 && value.fract() == 0.0 && value <= 9_007_199_254_740_992.0).then_some(value as u64)
}

/// The value of a JSON number written as an integer.
pub(crate) fn integer(raw: &[u8]) -> Option<i64> {
    std::str::from_utf8(raw).ok()?.parse().ok()
}

/// The value of a JSON number.
pub(crate) fn float(raw: &[u8]) -> Option<f64> {
    let first = *raw.first()?;
    if first != b'-' && !first.is_ascii_digit() {
        return None;
    }
    std::str::from_utf8(raw).ok()?.parse().ok().filter(|value: &f64| value.is_finite())
}
