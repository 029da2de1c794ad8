//! Credentials inside a URL.

use url::Url;

use crate::parameter::is_secret_value;
use crate::secret::Secret;

/// The user info of a URL as the value of a basic `Authorization` header.
pub fn basic_credential(url: &Url) -> Option<Secret> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut pair = percent_decode(url.username());
    pair.push(b':');
    pair.extend(percent_decode(url.password().unwrap_or_default()));
    Some(Secret::new(format!("Basic {}", base64(&pair))))
}

/// Every spelling in which a server may echo a secret of this URL: the password, or the name where it stands alone,
/// the basic credential made of them, and the values of signing parameters.
pub fn secrets_of_url(url: &Url) -> Vec<String> {
    let mut secrets = Vec::new();
    let mut add = |encoded: &str| {
        secrets.push(encoded.to_owned());
        secrets.push(String::from_utf8_lossy(&percent_decode(encoded)).into_owned());
    };
    add(url.password().unwrap_or_else(|| url.username()));
    for pair in url.query().unwrap_or_default().split('&') {
        if let Some((name, value)) = pair.split_once('=')
            && is_secret_value(name, value)
        {
            add(value);
        }
    }
    if let Some(credential) = basic_credential(url) {
        let credential = credential.expose();
        secrets.push(credential.to_owned());
        secrets.extend(credential.split_once(' ').map(|(_, token)| token.to_owned()));
    }
    secrets.retain(|secret| !secret.is_empty());
    secrets
}

/// The same of a path with a query, such as `/v1/chat?key=abc`.
pub fn secrets_of_path(path: &str) -> Vec<String> {
    Url::parse(&format!("http://host{path}")).map_or_else(|_| Vec::new(), |url| secrets_of_url(&url))
}

pub(crate) fn percent_decode(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digit = |offset: usize| bytes.get(at + offset).and_then(|&byte| char::from(byte).to_digit(16));
        if let (b'%', Some(high), Some(low)) = (bytes[at], digit(1), digit(2)) {
            decoded.push((high * 16 + low) as u8);
            at += 3;
        } else {
            decoded.push(bytes[at]);
            at += 1;
        }
    }
    decoded
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let shown = digit <= chunk.len();
            text.push(if shown { DIGITS[(word >> (18 - 6 * digit) & 63) as usize] as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_path_are_secrets() {
        assert_eq!(secrets_of_path("/v1/x?key=a%2Fb&v=2"), ["a%2Fb", "a/b"]);
        assert!(secrets_of_path("/v1/x").is_empty());
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn base64_of_every_remainder() {
        assert_eq!(base64(b""), "");
        assert_eq!(base64(b"f"), "Zg==");
        assert_eq!(base64(b"fo"), "Zm8=");
        assert_eq!(base64(b"foo"), "Zm9v");
        assert_eq!(base64(b"user:p\xff\xfe"), "dXNlcjpw//4=");
    }

    #[test]
    fn user_info_is_decoded() {
        assert_eq!(percent_decode("a%40b+c"), b"a@b+c");
        assert_eq!(percent_decode("p&q=%"), b"p&q=%");
        assert_eq!(percent_decode("%4"), b"%4");
        assert_eq!(percent_decode(""), b"");
        let credential = |text: &str| basic_credential(&url(text)).map(|secret| secret.expose().to_owned());
        // user:p&q
        assert_eq!(credential("http://user:p&q@h/").as_deref(), Some("Basic dXNlcjpwJnE="));
        assert_eq!(credential("http://user@h/").as_deref(), Some("Basic dXNlcjo="));
        assert_eq!(credential("http://h/"), None);
    }

    #[test]
    fn every_spelling_of_a_secret_is_known() {
        let secrets = secrets_of_url(&url("http://me:pa%40ss@h/v1?x=1&Sig=a%2Fb"));
        for secret in ["pa%40ss", "pa@ss", "a%2Fb", "a/b", "Basic bWU6cGFAc3M=", "bWU6cGFAc3M="] {
            assert!(secrets.iter().any(|found| found == secret), "{secret}: {secrets:?}");
        }
        assert!(secrets_of_url(&url("http://token@h/")).contains(&"token".to_owned()));
        assert!(!secrets_of_url(&url("http://me:pw@h/")).contains(&"me".to_owned()));
        assert!(secrets_of_url(&url("http://h/?x=1")).is_empty());
    }
}
