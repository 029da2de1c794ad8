//! Secrets travel in types that do not print them.

use std::fmt;

use url::Url;

use crate::known_key::is_known_key;
use crate::redact::redact_reference;

/// What stands where a secret was.
pub const REDACTED: &str = "<redacted>";

/// A secret text: an API key or the value of a credential header. Neither `Debug` nor `Display` shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Wraps `text`.
    pub fn new(text: impl Into<Box<str>>) -> Secret {
        Secret(text.into())
    }

    /// The secret itself; only for the bytes that go to the server.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// A URL that prints with its credentials hidden: user info and signing parameters become `<redacted>`.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretUrl {
    url: Url,
    /// As typed, for exports that show the reference as given.
    typed: Box<str>,
}

impl SecretUrl {
    /// Wraps a parsed URL and the text it was parsed from.
    pub fn new(url: Url, typed: impl Into<Box<str>>) -> SecretUrl {
        SecretUrl { url, typed: typed.into() }
    }

    /// The URL itself, credentials included; only for what goes to the server.
    pub fn expose(&self) -> &Url {
        &self.url
    }

    /// The text as typed, credentials hidden.
    pub fn typed(&self) -> String {
        const HTTP: &str = "http://";
        if self.typed.contains("://") {
            return redact_reference(&self.typed);
        }
        // The address of a server may be typed without a scheme.
        let whole = redact_reference(&format!("{HTTP}{}", self.typed));
        whole.strip_prefix(HTTP).unwrap_or(&whole).to_owned()
    }
}

impl fmt::Display for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact_reference(self.url.as_str()))
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whether a header of this name may carry a credential. Rather one too many: a name that only looks like one loses
/// its value in the files, a credential in them is out.
pub fn is_secret_header(name: &str) -> bool {
    // The key by which a router chooses the server; the correlation id, where this program sends it.
    const NO_CREDENTIAL: &str = "routing-key";
    let lower = name.to_ascii_lowercase();
    is_secret_name(&lower) || (lower.contains("key") && !lower.contains(NO_CREDENTIAL))
}

/// The same of any name, such as one in a body: there a `key` is mostly no credential.
pub(crate) fn is_secret_name(name: &str) -> bool {
    const PARTS: [&str; 15] = [
        "auth",
        "token",
        "secret",
        "password",
        "passwd",
        "passphrase",
        "api-key",
        "apikey",
        "subscription-key",
        "credential",
        "signature",
        "session",
        "cookie",
        "jwt",
        "bearer",
    ];
    let name = name.to_ascii_lowercase();
    PARTS.iter().any(|part| name.contains(part))
}

/// Whether a header carries a credential, by its name or by what its value looks like: under a name that says nothing
/// there may be a key all the same.
pub fn is_secret_pair(name: &str, value: &str) -> bool {
    is_secret_header(name) || looks_like_credential(value)
}

/// An authentication scheme with what follows it, a key of a known kind, or a long word of letters and digits that is
/// no UUID.
pub(crate) fn looks_like_credential(value: &str) -> bool {
    const SCHEMES: [&str; 7] =
        ["bearer", "basic", "token", "apikey", "digest", "negotiate", "aws4-hmac-sha256"];
    let value = value.trim();
    if let Some((scheme, rest)) = value.split_once(' ')
        && !rest.trim().is_empty()
        && SCHEMES.iter().any(|name| scheme.eq_ignore_ascii_case(name))
    {
        return true;
    }
    if is_known_key(value) {
        return true;
    }
    let is_word = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-.".contains(&byte));
    is_word && ((value.len() >= 32 && is_mixed(value) && !is_uuid(value)) || is_random_word(value))
}

/// Whether a text has 20 letters and digits in a row, of both kinds: names of people's own have not.
pub fn is_random_word(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|run| run.len() >= 20 && is_mixed(run))
}

pub(crate) fn is_mixed(text: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| text.as_bytes().iter().any(kind);
    has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
}

fn is_uuid(value: &str) -> bool {
    let lengths = value.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && value.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_print() {
        let secret = Secret::new("sk-123");
        assert_eq!(format!("{secret} {secret:?}"), "<redacted> <redacted>");
        let url = SecretUrl::new(Url::parse("https://u:p@h/x?sig=abc").unwrap(), "https://u:p@h/x?sig=abc");
        assert_eq!(format!("{url}"), "https://<redacted>@h/x?sig=<redacted>");
        assert_eq!(format!("{url:?}"), "https://<redacted>@h/x?sig=<redacted>");
        assert_eq!(url.typed(), "https://<redacted>@h/x?sig=<redacted>");
        let url =
            SecretUrl::new(Url::parse("http://token@h:80/it's?sig=abc").unwrap(), "token@h:80/it's?sig=abc");
        assert_eq!(format!("{url}"), "http://<redacted>@h/it's?sig=<redacted>");
        assert_eq!(url.typed(), "<redacted>@h:80/it's?sig=<redacted>");
    }

    #[test]
    fn credential_headers_are_known_in_any_case() {
        for name in [
            "Authorization",
            "Proxy-Authorization",
            "X-Auth",
            "X-Auth-Token",
            "X-API-Key",
            "api-key",
            "X-ApiKey",
            "X-Key",
            "X-Functions-Key",
            "X-KeyVault",
            "Ocp-Apim-Subscription-Key",
            "X-Amz-Security-Token",
            "X-Passwd",
            "X-Signature",
            "Cookie",
            "Set-Cookie",
            "Session",
            "X-Session-Affinity",
            "X-Session-ID",
            "X-Dynamo-Session-ID",
        ] {
            assert!(is_secret_header(name), "{name}");
        }
        for name in ["Content-Type", "Accept", "User-Agent", "X-Request-ID", "X-SMG-Routing-Key", "X-Tenant"]
        {
            assert!(!is_secret_header(name), "{name}");
        }
    }

    #[test]
    fn credentials_under_names_that_say_nothing_are_known_by_their_look() {
        for value in [
            "Bearer abc",
            "basic dTpw",
            "sk-canary-0000aaaa",
            "nvapi-canary-0000",
            "eyJhbGciOiJIUzI1NiJ9.e30.c2ln",
            "AKIAIOSFODNN7EXAMPLE",
            "0123456789abcdef0123456789abcdef",
            " d0Ft9kQ2mXv7pLr4tYb8nZc1sHj6wGe5 ",
            "x-9f86d081884c7d659a2f",
        ] {
            assert!(is_secret_pair("X-Tenant", value), "{value}");
        }
        for value in [
            "",
            "team-a",
            "Bearer",
            "a note of many words, with 1 number, that goes on for a while",
            "application/json; charset=utf-8",
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
            "sk-8",
            "a-rather-long-name-of-a-deployment-without-digits",
            "2026-11-29T23:28:04Z",
            "20261129232804000000",
            "Qwen2.5-0.5B-Instruct",
        ] {
            assert!(!is_secret_pair("X-Tenant", value), "{value}");
        }
    }
}
