//! Keys of well-known services, by their shape.

use base64::Engine as _;

use crate::secret::is_mixed;

/// How keys of a service look.
struct Shape {
    prefix: &'static str,
    /// Characters after the prefix that a key found in the middle of a text has at least.
    least: usize,
    /// Letters and digits among them that follow each other without a `-`, `_` or `.`: words joined by those are no key.
    run: usize,
}

const fn shape(prefix: &'static str, least: usize, run: usize) -> Shape {
    Shape { prefix, least, run }
}

const SHAPES: [Shape; 24] = [
    shape("sk-", 20, 16),
    shape("sk_", 20, 20),
    shape("pk_", 20, 20),
    shape("rk_", 20, 20),
    shape("hf_", 20, 20),
    shape("nvapi-", 20, 16),
    shape("ghp_", 20, 20),
    shape("gho_", 20, 20),
    shape("ghs_", 20, 20),
    shape("ghu_", 20, 20),
    shape("ghr_", 20, 20),
    shape("github_pat_", 22, 16),
    shape("glpat-", 16, 8),
    shape("xoxb-", 16, 8),
    shape("xoxp-", 16, 8),
    shape("xoxa-", 16, 8),
    shape("xoxs-", 16, 8),
    shape("xapp-", 16, 8),
    shape("AKIA", 16, 16),
    shape("ASIA", 16, 16),
    shape("AIza", 30, 10),
    shape("ya29.", 20, 10),
    shape(JWT, 20, 8),
    shape(PRIVATE_KEY, 8, 0),
];

/// A JSON object in base64, as the first part of a JSON web token is.
const JWT: &str = "eyJ";
const PRIVATE_KEY: &str = "-----BEGIN";
/// What a `Bearer` has behind it.
const BEARER: &str = "bearer ";
const LEAST_BEARER: usize = 20;
/// What a name and a password in base64 have before them.
const BASIC: &str = "basic ";

/// Whether a text begins as the keys of a well-known service do, and is long enough to be one.
pub fn is_known_key(text: &str) -> bool {
    SHAPES.iter().any(|shape| text.starts_with(shape.prefix) && text.len() >= shape.prefix.len() + 8)
}

/// Whether a key of a well-known service stands anywhere in a text, or a bearer token: as a word of its own and as long
/// as such keys are, so that ordinary words are none. The text may be JSON.
pub fn holds_known_key(text: &str) -> bool {
    let bytes = text.as_bytes();
    let starts_word = |at: usize| match at.checked_sub(1).map(|before| bytes[before]) {
        None => true,
        // The letter of an escape in JSON, such as `\n`.
        Some(b'n' | b'r' | b't' | b'b' | b'f') => at >= 2 && bytes[at - 2] == b'\\',
        Some(before) => !before.is_ascii_alphanumeric() && before != b'_',
    };
    (0..bytes.len()).any(|at| {
        // The letters that a shape, or a bearer token, begins with.
        b"-AaBbeghnprsxy".contains(&bytes[at]) && starts_word(at) && is_key_at(&bytes[at..])
    })
}

fn is_key_at(bytes: &[u8]) -> bool {
    if bytes.get(..BEARER.len()).is_some_and(|start| start.eq_ignore_ascii_case(BEARER.as_bytes())) {
        let token = word(&bytes[BEARER.len()..], b"-_.~+/=");
        return token.len() >= LEAST_BEARER && (is_mixed(token) || longest_run(token) >= LEAST_BEARER);
    }
    if bytes.get(..BASIC.len()).is_some_and(|start| start.eq_ignore_ascii_case(BASIC.as_bytes())) {
        let token = word(&bytes[BASIC.len()..], b"+/=");
        let pair = base64::engine::general_purpose::STANDARD.decode(token).unwrap_or_default();
        return pair.len() > 2 && pair.contains(&b':') && pair.iter().all(u8::is_ascii_graphic);
    }
    SHAPES.iter().any(|shape| {
        let Some(rest) = bytes.strip_prefix(shape.prefix.as_bytes()) else { return false };
        match shape.prefix {
            PRIVATE_KEY => {
                let line = &rest[..rest.len().min(64)];
                line.windows(16).any(|part| part == b"PRIVATE KEY-----")
            }
            JWT => {
                let parts = word(rest, b"-_.").split('.').filter(|part| part.len() >= 2).count();
                parts >= 3 && is_long_enough(word(rest, b"-_."), shape)
            }
            _ => is_long_enough(word(rest, b"-_"), shape),
        }
    })
}

fn is_long_enough(word: &str, shape: &Shape) -> bool {
    word.len() >= shape.least && longest_run(word) >= shape.run
}

/// The letters, digits and `others` that a text begins with.
fn word<'a>(bytes: &'a [u8], others: &[u8]) -> &'a str {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || others.contains(byte);
    let length = bytes.iter().position(|byte| !is_part(byte)).unwrap_or(bytes.len());
    // Nothing but ASCII.
    std::str::from_utf8(&bytes[..length]).unwrap_or_default()
}

fn longest_run(word: &str) -> usize {
    word.split(|c: char| !c.is_ascii_alphanumeric()).map(str::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made here, so that nobody's scanner takes this file for a leak.
    fn key(prefix: &str, length: usize) -> String {
        format!("{prefix}{}", "aB3dE6gH9jK2".chars().cycle().take(length).collect::<String>())
    }

    #[test]
    fn keys_of_known_services_are_found_in_any_text() {
        let keys = [
            key("sk-", 48),
            key("sk-proj-", 40),
            key("sk-ant-api03-", 40),
            key("ghp_", 36),
            key("github_pat_", 60),
            key("hf_", 34),
            key("nvapi-", 40),
            key("glpat-", 20),
            key("AKIA", 16),
            key("AIza", 35),
            key("xoxb-1234567890-", 24),
            key("Bearer ", 30),
            key("authorization: bearer ", 30),
            format!("{}.{}.{}", key("eyJ", 17), key("eyJ", 20), key("", 43)),
            "-----BEGIN RSA PRIVATE KEY-----".to_owned(),
            "Authorization: Basic dXNlcjpwdw==".to_owned(),
            "-----BEGIN PRIVATE KEY-----\\nMII".to_owned(),
        ];
        for key in keys {
            for text in [
                key.clone(),
                format!("my key is {key}, keep it"),
                format!(r#"{{"text":"a\n{key}"}}"#),
                format!("k={key}&x"),
            ] {
                assert!(holds_known_key(&text), "{text}");
            }
        }
    }

    #[test]
    fn ordinary_words_are_no_keys() {
        for text in [
            "the task-oriented-dialogue-and-its-evaluation, sk-learn, sk-8, risk-averse",
            "sk-learn-contributed-extensions-for-all-of-us",
            "pk_user_account_identifier_1 sk_test hf_hub_download hf_transfer ghp_ AKIA AIza",
            "the bearer of this letter, Bearer token, bearer responsibilities-are-many",
            "-----BEGIN CERTIFICATE----- and -----BEGIN PUBLIC KEY-----",
            "eyJhbGciOiJIUzI1NiJ9 alone, eyJ.a.b",
            "half_abcdefghijklmnopqrstuvwxyz ünïcödé",
            "xoxb-short",
            "basic training, Basic dXNlcnB3, Basic authentication",
            "",
        ] {
            assert!(!holds_known_key(text), "{text}");
        }
        assert!(!holds_known_key(&format!("desk-{}", key("", 40))), "whole words");
        assert!(!holds_known_key(&key("xhf_", 40)), "whole words");
    }
}
