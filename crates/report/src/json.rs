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
    if value.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else {
        out.extend_from_slice(if value < 0.0 { b"\"-inf\"" } else { b"\"inf\"" });
    }
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

    #[test]
    fn whole_numbers_of_float_metrics_keep_their_fraction() {
        assert_eq!(written(|out| float(out, 12.0)), "12.0");
        assert_eq!(written(|out| float(out, 0.0)), "0.0");
        assert_eq!(written(|out| float(out, 10.199_335_999_999_999)), "10.199335999999999");
        assert_eq!(written(|out| float(out, f64::INFINITY)), "\"inf\"");
    }
}
