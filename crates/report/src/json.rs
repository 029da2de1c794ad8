//! Pieces of JSON straight into a byte buffer: what runs once per record builds no tree and formats nothing.

/// For each byte: 0 when it stands for itself in a JSON string, `u` for `\u00XX`, else the letter after the
/// backslash.
const ESCAPES: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = b'u';
        byte += 1;
    }
    table[0x08] = b'b';
    table[0x09] = b't';
    table[0x0a] = b'n';
    table[0x0c] = b'f';
    table[0x0d] = b'r';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table
};

/// Appends `text` as a JSON string, quotes included. Everything but quotes, backslashes and control characters
/// is copied as it is (UTF-8).
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut copied = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        let escape = ESCAPES[byte as usize];
        if escape == 0 {
            continue;
        }
        out.extend_from_slice(&bytes[copied..index]);
        copied = index + 1;
        if escape == b'u' {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[(byte >> 4) as usize]);
            out.push(HEX[(byte & 15) as usize]);
        } else {
            out.extend_from_slice(&[b'\\', escape]);
        }
    }
    out.extend_from_slice(&bytes[copied..]);
    out.push(b'"');
}

/// Appends an unsigned integer.
#[inline]
pub(crate) fn unsigned(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a signed integer.
#[inline]
pub(crate) fn signed(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends the shortest decimal that reads back as `value`; whole numbers keep their `.0`. Infinity, which JSON
/// cannot say as a number, becomes the string `"inf"`. Never called with NaN: an unknown number is left out.
#[inline]
pub(crate) fn float(out: &mut Vec<u8>, value: f64) {
    if value.is_sign_positive() && value < 1e9 {
        // Most figures are whole nanoseconds shown in ms. A decimal of at most 15 digits that is nearest to the
        // value is also the shortest one, so no search is needed (a third of the time of the general case).
        let millionths = (value * 1e6 + 0.5) as u64;
        if (millionths as f64 / 1e6).to_bits() == value.to_bits() {
            return fixed(out, millionths);
        }
    }
    if value.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else {
        out.extend_from_slice(if value < 0.0 { b"\"-inf\"" } else { b"\"inf\"" });
    }
}

/// Appends a number of millionths below 10^15 as a decimal without trailing zeros, but at least one decimal.
fn fixed(out: &mut Vec<u8>, millionths: u64) {
    const PAIRS: [[u8; 2]; 100] = {
        let mut pairs = [[0; 2]; 100];
        let mut number = 0;
        while number < 100 {
            pairs[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
            number += 1;
        }
        pairs
    };
    // Nine digits, a point, six digits.
    let mut text = [b'0'; 16];
    let (whole, fraction) = ((millionths / 1_000_000) as u32, (millionths % 1_000_000) as u32);
    text[9] = b'.';
    text[10..12].copy_from_slice(&PAIRS[(fraction / 10_000) as usize]);
    text[12..14].copy_from_slice(&PAIRS[(fraction / 100 % 100) as usize]);
    text[14..16].copy_from_slice(&PAIRS[(fraction % 100) as usize]);
    let mut end = text.len();
    while end > 11 && text[end - 1] == b'0' {
        end -= 1;
    }
    let mut start = 9;
    let mut rest = whole;
    while rest >= 10 {
        start -= 2;
        text[start..start + 2].copy_from_slice(&PAIRS[(rest % 100) as usize]);
        rest /= 100;
    }
    if rest > 0 || start == 9 {
        start -= 1;
        text[start] = b'0' + rest as u8;
    }
    out.extend_from_slice(&text[start..end]);
}

/// Appends `"name":` after a comma, unless the object has only just been opened.
#[inline]
pub(crate) fn key(out: &mut Vec<u8>, name: &str) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn strings_are_escaped_as_serde_json_does(text in "\\PC*|[\\x00-\\x7f]*|.*") {
            prop_assert_eq!(written(|out| string(out, &text)), serde_json::to_string(&text).unwrap());
        }

        #[test]
        fn floats_read_back_as_the_same_number(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
            let text = written(|out| float(out, value));
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits());
            prop_assert!(serde_json::from_str::<serde_json::Value>(&text).unwrap().is_f64());
        }
    }

    proptest! {
        #[test]
        fn whole_nanoseconds_in_ms_are_written_as_the_shortest_decimal(
            ns in prop_oneof![0..1_000u64, 1_000..1_000_000_000_000_000u64, (0..1_000_000_000u64).prop_map(|ms| ms * 1_000_000)],
            off in -2i64..3,
        ) {
            // Neighbours of the nearest double must not be taken for it.
            let value = f64::from_bits((ns as f64 / 1e6).to_bits().saturating_add_signed(off));
            let text = written(|out| float(out, value));
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits());
            if value >= 1e-3 || value == 0.0 {
                prop_assert_eq!(text, zmij::Buffer::new().format(value).to_owned());
            }
        }
    }

    #[test]
    fn whole_numbers_of_float_metrics_keep_their_fraction() {
        assert_eq!(written(|out| float(out, 12.0)), "12.0");
        assert_eq!(written(|out| float(out, 0.0)), "0.0");
        assert_eq!(written(|out| float(out, 10.199_335_999_999_999)), "10.199335999999999");
        assert_eq!(written(|out| float(out, f64::INFINITY)), "\"inf\"");
    }
}
