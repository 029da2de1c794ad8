//! Numbers as people read them.

/// Two decimals, rounded half to even on the exact binary value; `inf` for infinity.
pub(crate) fn two_decimals(value: f64) -> String {
    if value.is_infinite() {
        if value < 0.0 { "-inf".into() } else { "inf".into() }
    } else {
        format!("{value:.2}")
    }
}

/// Two decimals and a comma between thousands: `1,234.50`.
pub(crate) fn with_thousands(value: f64) -> String {
    group(&two_decimals(value))
}

/// A count with a comma between thousands: `15,000`.
pub(crate) fn count(value: u64) -> String {
    group(&value.to_string())
}

fn group(plain: &str) -> String {
    let (sign, digits) = plain.strip_prefix('-').map_or(("", plain), |rest| ("-", rest));
    let whole = digits.find('.').unwrap_or(digits.len());
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return plain.to_owned();
    }
    let mut out = String::with_capacity(plain.len() + whole / 3);
    out.push_str(sign);
    for (index, digit) in digits[..whole].char_indices() {
        if index > 0 && (whole - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out.push_str(&digits[whole..]);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Two decimals by exact arithmetic on mantissa and exponent, for values below 2^60.
    fn exactly(value: f64) -> String {
        let bits = value.to_bits();
        let raw = (bits >> 52 & 0x7ff) as i32;
        let mantissa = u128::from(bits & ((1 << 52) - 1) | if raw == 0 { 0 } else { 1 << 52 });
        let exponent = raw.max(1) - 1075;
        let hundredths = if exponent >= 0 {
            (mantissa << exponent) * 100
        } else if exponent < -120 {
            0
        } else {
            let scaled = mantissa * 100;
            let shift = -exponent as u32;
            let whole = scaled >> shift;
            let rest = scaled & ((1u128 << shift) - 1);
            let half = 1u128 << (shift - 1);
            whole + u128::from(rest > half || (rest == half && whole & 1 == 1))
        };
        let sign = if value.is_sign_negative() { "-" } else { "" };
        format!("{sign}{}.{:02}", hundredths / 100, hundredths % 100)
    }

    proptest! {
        #[test]
        fn two_decimals_round_half_to_even_on_the_exact_value(value in prop_oneof![
            -1e6..1e6f64,
            -1e15..1e15f64,
            -1e-2..1e-2f64,
            // Exact ties: multiples of 1/8 and 1/1024.
            any::<i32>().prop_map(|n| f64::from(n) / 8.0),
            any::<i32>().prop_map(|n| f64::from(n) / 1024.0),
            Just(1.795_976_358_370_461_4e18),
        ]) {
            prop_assume!(value.abs() < 2f64.powi(61));
            prop_assert_eq!(two_decimals(value), exactly(value));
        }

        #[test]
        fn commas_change_nothing_else(value in -1e15..1e15f64) {
            let grouped = with_thousands(value);
            prop_assert_eq!(grouped.replace(',', ""), two_decimals(value));
            let whole = grouped.trim_start_matches('-').split('.').next().unwrap().to_owned();
            prop_assert!(whole.split(',').skip(1).all(|part| part.len() == 3));
            prop_assert!((1..=3).contains(&whole.split(',').next().unwrap().len()));
        }
    }

    #[test]
    fn cells_as_they_are_read() {
        assert_eq!(with_thousands(1_234.5), "1,234.50");
        assert_eq!(with_thousands(-0.125), "-0.12");
        assert_eq!(with_thousands(0.375), "0.38");
        assert_eq!(with_thousands(999.995), "1,000.00");
        assert_eq!(with_thousands(f64::INFINITY), "inf");
        assert_eq!(count(15_000), "15,000");
        assert_eq!(count(0), "0");
    }
}
