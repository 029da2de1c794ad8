//! Strings from and to JSON.

use super::find::special;
use super::scan::Text;

impl Text<'_> {
    /// Appends the unescaped text; invalid UTF-8 and lone surrogates become U+FFFD.
    #[inline]
    pub(crate) fn push_to(self, out: &mut String) {
        if self.is_escaped() {
            push_escaped(self.raw, out);
        } else {
            push_lossy(self.raw, out);
        }
    }
}

/// Appends bytes as text; invalid UTF-8 becomes U+FFFD.
#[inline]
pub(crate) fn push_lossy(bytes: &[u8], out: &mut String) {
    match std::str::from_utf8(bytes) {
        Ok(text) => out.push_str(text),
        Err(_) => out.push_str(&String::from_utf8_lossy(bytes)),
    }
}

fn push_escaped(raw: &[u8], out: &mut String) {
    out.reserve(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        push_lossy(&rest[..at], out);
        // The scanner let only whole escapes pass, so that the fallbacks below are never taken.
        let escape = rest.get(at + 1).copied().unwrap_or(b'\\');
        let mut used = at + 2;
        out.push(match escape {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                used = at + 6;
                let first = code_unit(rest, at + 2);
                match first {
                    0xD800..=0xDBFF => match low_surrogate(rest, used) {
                        Some(low) => {
                            used += 6;
                            let code = 0x1_0000 + ((first - 0xD800) << 10) + (low - 0xDC00);
                            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
                        }
                        None => char::REPLACEMENT_CHARACTER,
                    },
                    code => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
                }
            }
            other => char::from(other),
        });
        rest = rest.get(used..).unwrap_or_default();
    }
    push_lossy(rest, out);
}

fn code_unit(bytes: &[u8], at: usize) -> u32 {
    let digits = bytes.get(at..at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0xFFFD)
}

fn low_surrogate(bytes: &[u8], at: usize) -> Option<u32> {
    if bytes.get(at..at + 2)? != b"\\u" {
        return None;
    }
    Some(code_unit(bytes, at + 2)).filter(|unit| (0xDC00..0xE000).contains(unit))
}

/// Appends `text` as a JSON string, quotes included; only what must be escaped is.
pub(crate) fn push_string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    push_unquoted(text, out);
    out.push(b'"');
}

/// Appends `text` as the inside of a JSON string.
pub(crate) fn push_unquoted(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let bytes = text.as_bytes();
    let mut start = 0;
    loop {
        let at = special(bytes, start);
        out.extend_from_slice(&bytes[start..at]);
        let Some(&byte) = bytes.get(at) else { return };
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            _ => 0,
        };
        if short == 0 {
            let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&digits);
        } else {
            out.extend_from_slice(&[b'\\', short]);
        }
        start = at + 1;
    }
}

/// Appends a JSON text without the white space between its tokens.
pub(crate) fn push_compact(json: &str, out: &mut Vec<u8>) {
    let bytes = json.as_bytes();
    out.reserve(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b' ' | b'\n' | b'\t' | b'\r' => {
                at += 1;
                continue;
            }
            b'"' => {
                at += 1;
                loop {
                    at = special(bytes, at);
                    match bytes.get(at) {
                        Some(b'\\') => at = (at + 2).min(bytes.len()),
                        Some(b'"') | None => break,
                        Some(_) => at += 1,
                    }
                }
                at = (at + 1).min(bytes.len());
            }
            _ => {
                while bytes.get(at).is_some_and(|byte| !matches!(byte, b'"' | b' ' | b'\n' | b'\t' | b'\r')) {
                    at += 1;
                }
            }
        }
        out.extend_from_slice(&bytes[start..at]);
    }
}
