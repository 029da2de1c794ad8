//! Secrets travel in types that do not print them.

use std::fmt;

use url::Url;

use crate::known_key::{holds_known_key, is_known_key};
use crate::parameter::{is_secret_bare, is_secret_value};

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
        redact_text(&self.typed)
    }
}

impl fmt::Display for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact_text(self.url.as_str()))
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

/// `text` with the credentials of every URL in it hidden: user info, and the values of signing parameters.
pub fn redact_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        // What ends a clause is no part of the URL before it.
        let url = after[..url_end(after)].trim_end_matches([':', ',', ';', '.', '!', ')', ']', '}']);
        // An authority ends at the first of `/?#`.
        let (url, tail) = after.split_at(url.len());
        let authority_end = url.find(['/', '?', '#']).unwrap_or(url.len());
        let (authority, path) = url.split_at(authority_end);
        match authority.rfind('@') {
            Some(at) => {
                out.push_str(REDACTED);
                out.push_str(&authority[at..]);
            }
            None => out.push_str(authority),
        }
        redact_query(path, &mut out);
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// As [`redact_text`], with these secrets hidden too wherever they stand, and every word that begins like a key of a
/// well-known service: for text of which nobody knows what it holds.
pub fn redact_known(text: &str, secrets: &[String]) -> String {
    let mut secrets: Vec<&str> = secrets.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    // One that contains another goes first.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let mut text = redact_text(text);
    for secret in secrets {
        text = text.replace(secret, REDACTED);
        // As `Debug` writes it.
        text = text.replace(&*secret.escape_debug().to_string(), REDACTED);
    }
    let mut out = String::with_capacity(text.len());
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    for piece in text.split_inclusive(|c| !is_part(c)) {
        let word = piece.trim_end_matches(|c| !is_part(c));
        if is_known_key(word) {
            out.push_str(REDACTED);
            out.push_str(&piece[word.len()..]);
        } else {
            out.push_str(piece);
        }
    }
    out
}

/// `path`, such as `/v1/chat?key=abc`, with the values of signing parameters of its query hidden.
pub fn redact_path(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    redact_query(path, &mut out);
    out
}

/// Whether what follows `://` in a text is a URL with a credential in it: user info, or a parameter that signs it or
/// carries a key.
pub fn is_url_with_secret(after_scheme: &str) -> bool {
    let url = &after_scheme[..url_end(after_scheme)];
    let (authority, path) = url.split_at(url.find(['/', '?', '#']).unwrap_or(url.len()));
    let query = path.split_once('?').map_or("", |(_, query)| query);
    let query = query.split_once('#').map_or(query, |(query, _)| query);
    // In JSON the ampersand may be written as its code.
    let query = query.replace("\\u0026", "&");
    let signed = |pair: &str| match pair.split_once('=') {
        Some((name, value)) => !value.is_empty() && is_secret_value(name, value),
        // Words without a name are many: only one that looks like a key is taken for a credential.
        None => is_known_key(pair) || is_random_word(pair),
    };
    authority.contains('@') || query.split('&').any(signed)
}

/// Where a URL ends: at white space or a quote. What was hidden before is a part of it.
fn url_end(text: &str) -> usize {
    let mut at = 0;
    while let Some(found) = text[at..].find(|c: char| c.is_whitespace() || "\"'<>`".contains(c)) {
        at += found;
        if !text[at..].starts_with(REDACTED) {
            return at;
        }
        at += REDACTED.len();
    }
    text.len()
}

fn redact_query(path: &str, out: &mut String) {
    // No server is ever sent a fragment: what stands there is not needed to know what was asked for.
    let (path, fragment) = path.split_once('#').map_or((path, None), |(path, rest)| (path, Some(rest)));
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    for (index, segment) in path.split('/').enumerate() {
        if index > 0 {
            out.push('/');
        }
        out.push_str(if holds_known_key(segment) { REDACTED } else { segment });
    }
    if let Some(query) = query {
        out.push('?');
        redact_pairs(query, out);
    }
    if fragment.is_some_and(|fragment| !fragment.is_empty()) {
        out.push('#');
        out.push_str(REDACTED);
    }
}

fn redact_pairs(query: &str, out: &mut String) {
    for (index, pair) in query.split('&').enumerate() {
        if index > 0 {
            out.push('&');
        }
        match pair.split_once('=') {
            Some((name, value)) if is_secret_value(name, value) => {
                out.push_str(name);
                out.push('=');
                out.push_str(REDACTED);
            }
            None if is_secret_bare(pair) => out.push_str(REDACTED),
            _ => out.push_str(pair),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_already_stays_as_it_is() {
        for text in [
            "see https://user:key@host/a?X-Amz-Signature=s&X-Amz-Credential=c&page=2#frag, and http://h/?api_key=k",
            "<https://h/x?sig=s>",
            "a <redacted> b https://h/?token=<redacted><redacted>",
        ] {
            let once = redact_text(text);
            assert!(!once.contains("=s") && !once.contains("=c") && !once.contains("=k"), "{once}");
            assert_eq!(redact_text(&once), once);
        }
        assert_eq!(redact_text("https://h/?sig=<redacted>&x=1"), "https://h/?sig=<redacted>&x=1");
    }

    #[test]
    fn secrets_do_not_print() {
        let secret = Secret::new("sk-123");
        assert_eq!(format!("{secret} {secret:?}"), "<redacted> <redacted>");
        let url = SecretUrl::new(Url::parse("https://u:p@h/x?sig=abc").unwrap(), "https://u:p@h/x?sig=abc");
        assert_eq!(format!("{url}"), "https://<redacted>@h/x?sig=<redacted>");
        assert_eq!(format!("{url:?}"), "https://<redacted>@h/x?sig=<redacted>");
        assert_eq!(url.typed(), "https://<redacted>@h/x?sig=<redacted>");
    }

    #[test]
    fn urls_inside_text_are_redacted_and_the_rest_is_kept() {
        let text = "cannot read 'https://b.s3.amazonaws.com/t.jsonl?X-Amz-Signature=ab%2Fc&x=1#key' (http://me:pw@h:1/)";
        assert_eq!(
            redact_text(text),
            "cannot read 'https://b.s3.amazonaws.com/t.jsonl?X-Amz-Signature=<redacted>&x=1#<redacted>' (http://<redacted>@h:1/)"
        );
        assert_eq!(redact_text("nothing here: a@b?token=x"), "nothing here: a@b?token=x");
    }

    #[test]
    fn what_ends_a_clause_stays_behind_a_url() {
        for (text, shown) in [
            ("Cannot use http://h/x?token=abc: the file", "Cannot use http://h/x?token=<redacted>: the file"),
            ("Cannot use http://h/x?token=<redacted>: it", "Cannot use http://h/x?token=<redacted>: it"),
            ("(see http://h/x?token=abc). It", "(see http://h/x?token=<redacted>). It"),
            ("at http://h/x#part, and", "at http://h/x#<redacted>, and"),
            ("http://[::1]:8000/", "http://[::1]:8000/"),
            ("http://[::1]", "http://[::1]"),
        ] {
            assert_eq!(redact_text(text), shown);
        }
    }

    #[test]
    fn credentials_are_hidden_wherever_they_stand_in_a_url() {
        for name in
            ["hdnea", "auth", "tok", "jwt", "code", "passwd", "pwd", "session", "bearer", "cred", "sas"]
        {
            let url = format!("https://h/a/x.jsonl?{name}=canary&page=2");
            assert_eq!(redact_text(&url), format!("https://h/a/x.jsonl?{name}=<redacted>&page=2"));
        }
        let key = format!("hf_{}", "aB3dE6gH9jK2".repeat(3));
        for (url, shown) in [
            (format!("https://h/{key}/x.jsonl?v=2"), "https://h/<redacted>/x.jsonl?v=2"),
            (format!("https://h/x.jsonl?x={key}"), "https://h/x.jsonl?x=<redacted>"),
            (format!("https://h/x.jsonl?{key}"), "https://h/x.jsonl?<redacted>"),
            ("https://h/x.jsonl?canary".to_owned(), "https://h/x.jsonl?<redacted>"),
            ("https://h/hf_transfer_data/x?download".to_owned(), "https://h/hf_transfer_data/x?download"),
            ("Is it https://h/x?".to_owned(), "Is it https://h/x?"),
        ] {
            assert_eq!(redact_text(&url), shown);
            assert_eq!(redact_text(shown), shown);
        }
        let kept = "https://h/x?versionId=3HL4kqtJlcpXroDTDmJ3rmSpXd3dIbrHY&Expires=1795995000&X-Amz-Date=20261129T233000Z\
                    &X-Amz-Expires=60&se=2026-11-29T23:30:00Z&sv=2021-08-06&download=true&revision=9f86d081884c7d659a2f";
        assert_eq!(redact_text(kept), kept);
    }

    #[test]
    fn urls_with_a_credential_are_told_from_those_without() {
        for url in [
            "me:pw@h/x",
            "token@h",
            "b.s3.amazonaws.com/a.png?X-Amz-Algorithm=A&X-Amz-Signature=ab",
            "b.s3.amazonaws.com/a.png?X-Amz-Algorithm=A\\u0026X-Amz-Signature=ab\", \"b\"",
            "h?sig=a#b",
        ] {
            assert!(is_url_with_secret(url), "{url}");
        }
        for url in ["h/@me", "h/x?page=2", "h/x?sig=", "h/x#sig=a", "h\" me@you?sig=a", "", "h/x?q=a@b"] {
            assert!(!is_url_with_secret(url), "{url}");
        }
    }

    #[test]
    fn queries_of_paths_are_redacted() {
        assert_eq!(redact_path("/v1/x?user=sk-0123456789ab&a=b"), "/v1/x?user=<redacted>&a=b");
        assert_eq!(redact_path("/v1/x?key=abc&version=2"), "/v1/x?key=<redacted>&version=2");
        assert_eq!(redact_path("/v1/x"), "/v1/x");
    }

    #[test]
    fn known_secrets_and_words_that_look_like_keys_are_hidden_anywhere() {
        let secrets = ["canary".to_owned(), "canary\nlong".to_owned(), String::new()];
        let text = "Settings { token: \"canary\\nlong\", other: \"xcanaryx\" } hf_abcdefghijkl, (AKIAIOSFODNN7EXAMPLE) \
                    https://h/x?sig=abc half_abcdefghijkl";
        assert_eq!(
            redact_known(text, &secrets),
            "Settings { token: \"<redacted>\", other: \"x<redacted>x\" } <redacted>, (<redacted>) \
             https://h/x?sig=<redacted> half_abcdefghijkl"
        );
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
