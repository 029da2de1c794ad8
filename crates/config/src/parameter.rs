//! Parameters of a query that sign a URL or carry a key.

use crate::credential::percent_decode;
use crate::known_key::is_known_key;
use crate::secret::is_random_word;

/// Names of parameters that are secret as a whole, in lower case.
const NAMES: [&str; 21] = [
    "x-amz-signature",
    "x-amz-credential",
    "x-amz-security-token",
    "x-goog-signature",
    "x-goog-credential",
    "awsaccesskeyid",
    "googleaccessid",
    "key-pair-id",
    "policy",
    "api_key",
    "api-key",
    "key",
    "code",
    "sid",
    "sign",
    "pin",
    "otp",
    "ak",
    "sk",
    "q-ak",
    "tempauth",
];

/// Words that make a secret of any name they are a part of, as in `auth_key` and `X-Session-Id`.
const WORDS: [&str; 31] = [
    "auth",
    "oauth",
    "tok",
    "jwt",
    "pwd",
    "pass",
    "passwd",
    "password",
    "passphrase",
    "cred",
    "creds",
    "credential",
    "credentials",
    "bearer",
    "session",
    "sessionid",
    "jsessionid",
    "phpsessid",
    "sas",
    "sig",
    "hmac",
    "hdnea",
    "hdnts",
    "hdntl",
    "hdnt",
    "gda",
    "ticket",
    "tk",
    "verify",
    "rlkey",
    "passcode",
];

/// What such words end in.
const ENDINGS: [&str; 14] = [
    "token",
    "secret",
    "signature",
    "apikey",
    "accesskey",
    "accesskeyid",
    "accesscode",
    "secretkey",
    "sharekey",
    "resourcekey",
    "publickey",
    "authkey",
    "subscriptionkey",
    "functionskey",
];

/// Names whose values look like keys and are versions, digests and dates: who reads a result needs them.
const HARMLESS: [&str; 24] = [
    "versionid",
    "version",
    "revision",
    "rev",
    "ref",
    "commit",
    "sha",
    "sha1",
    "sha256",
    "md5",
    "hash",
    "checksum",
    "etag",
    "digest",
    "generation",
    "snapshot",
    "id",
    "expires",
    "x-amz-date",
    "x-amz-expires",
    "x-amz-signedheaders",
    "se",
    "sv",
    "download",
];

/// Parameters that are nothing but a name.
const SWITCHES: [&str; 12] = [
    "acl",
    "download",
    "dl",
    "export",
    "files",
    "inline",
    "list",
    "raw",
    "uploads",
    "versioning",
    "versions",
    "view",
];

/// Whether the value of a parameter of this name is secret whatever it is.
pub(crate) fn is_secret_parameter(name: &str) -> bool {
    let name = decoded(name);
    let joined: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let is_secret = |word: &str| WORDS.contains(&word) || ENDINGS.iter().any(|end| word.ends_with(end));
    NAMES.contains(&name.as_str())
        || name.starts_with("authoriz")
        || is_secret(&joined)
        || name.split(|c: char| !c.is_ascii_alphanumeric()).any(is_secret)
}

/// URLs within values of URLs that are looked into.
pub(crate) const DEEPEST: u32 = 6;

/// Whether a parameter carries a credential: by its name, or by what its value looks like under a name that says
/// nothing, or in a query or URL within its value.
pub(crate) fn is_secret_value(name: &str, value: &str) -> bool {
    is_secret_within(name, value, DEEPEST)
}

fn is_secret_within(name: &str, value: &str, depth: u32) -> bool {
    is_secret_parameter(name)
        || is_signature_under(&decoded(name), value)
        || is_known_key(value)
        || (is_random_word(value) && !HARMLESS.contains(&decoded(name).as_str()))
        || (depth > 0 && holds_secret(value, depth - 1))
}

/// Names that some servers sign URLs with, and others do not: told apart by the form of the value.
fn is_signature_under(name: &str, value: &str) -> bool {
    match name {
        // A checksum is written in hexadecimal digits, the signature of a secure link in base64.
        "md5" => value.len() != 32 || !value.bytes().all(|byte| byte.is_ascii_hexdigit()),
        // The start of a permission is a date.
        "st" => {
            let year = value.bytes().take_while(u8::is_ascii_digit).count();
            !value.is_empty() && (year != 4 || value.as_bytes().get(4) != Some(&b'-'))
        }
        _ => false,
    }
}

/// Whether a value, encoded or not, has a URL or a query with a credential in it.
fn holds_secret(value: &str, depth: u32) -> bool {
    if value.split_once("://").is_some_and(|(_, url)| is_url_with_secret(url, depth)) {
        return true;
    }
    let mut within = value.split(['?', ';', '&', '#']).skip(1);
    if within.any(|pair| pair.split_once('=').is_some_and(|(name, value)| is_signed(name, value, depth))) {
        return true;
    }
    let plain = String::from_utf8_lossy(&percent_decode(value)).into_owned();
    depth > 0 && plain != value && is_secret_within("", &plain, depth - 1)
}

fn is_signed(name: &str, value: &str, depth: u32) -> bool {
    !value.is_empty() && is_secret_within(name, value, depth)
}

/// Whether a URL, from its authority on, has a credential in it.
pub(crate) fn is_url_with_secret(url: &str, depth: u32) -> bool {
    let (authority, path) = url.split_at(url.find(['/', '?', '#']).unwrap_or(url.len()));
    let query = path.split_once('?').map_or("", |(_, query)| query);
    let query = query.split_once('#').map_or(query, |(query, _)| query);
    // In JSON the ampersand may be written as its code.
    let query = query.replace("\\u0026", "&");
    let signed = |pair: &str| match pair.split_once('=') {
        Some((name, value)) => is_signed(name, value, depth),
        // Words without a name are many: only one that looks like a key is taken for a credential.
        None => is_known_key(pair) || is_random_word(pair),
    };
    authority.contains('@') || query.split('&').any(signed)
}

/// Whether a part of a query that has no name may be a credential: any that is neither a number nor a known switch.
pub(crate) fn is_secret_bare(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_alphabetic()) && !SWITCHES.contains(&decoded(text).as_str())
}

/// A name may be percent-encoded: the server decodes it, too.
fn decoded(name: &str) -> String {
    let decoded = url::form_urlencoded::parse(name.as_bytes()).next();
    decoded.map_or_else(|| name.to_ascii_lowercase(), |(name, _)| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_the_names_in_use() {
        for name in [
            "hdnea",
            "auth",
            "tok",
            "jwt",
            "code",
            "passwd",
            "pwd",
            "session",
            "bearer",
            "cred",
            "sas",
            "sig",
            "Signature",
            "token",
            "access_token",
            "accessToken",
            "X-Amz-Security-Token",
            "api_key",
            "apikey",
            "API-Key",
            "key",
            "password",
            "secret",
            "client_secret",
            "auth_token",
            "Authorization",
            "x-session-id",
            "X-Functions-Key",
            "pass%77d",
            "sessionId",
            "hdnts",
            "rlkey",
            "resourcekey",
            "ticket",
            "share_key",
            "tk",
            "verify",
            "q-ak",
            "OSSAccessKeyId",
            "UCloudPublicKey",
            "tempauth",
            "sign",
        ] {
            assert!(is_secret_parameter(name), "{name}");
        }
        for name in [
            "versionId",
            "Expires",
            "X-Amz-Expires",
            "X-Amz-Date",
            "X-Amz-Algorithm",
            "X-Amz-SignedHeaders",
            "se",
            "sv",
            "sp",
            "download",
            "revision",
            "page",
            "author",
            "max_tokens",
            "tokenizer",
            "country_code",
            "passage",
            "Hash-Algorithm",
            "part",
            "x",
            "user",
            "list-type",
            "response-content-type",
            "monkey",
            "",
        ] {
            assert!(!is_secret_parameter(name), "{name}");
        }
    }

    #[test]
    fn credentials_under_other_names_are_known_by_their_look() {
        for (name, value) in [
            ("x", "d0Ft9kQ2mXv7pLr4tYb8nZc1"),
            ("user", "sk-0123456789ab"),
            ("id", "hf_abcdefghijkl"),
            ("md5", "canary_of_a-secure_link"),
            ("st", "canary"),
        ] {
            assert!(is_secret_value(name, value), "{name}");
        }
        for (name, value) in [
            ("versionId", "3HL4kqtJlcpXroDTDmJ3rmSpXd3dIbrHY"),
            ("revision", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"),
            ("X-Amz-Date", "20261129T233000Z"),
            ("page", "2"),
            ("md5", "d41d8cd98f00b204e9800998ecf8427e"),
            ("st", "2026-11-29T23:30:00Z"),
            ("path", "data/2026/a-long-name-of-a-file-0001.jsonl"),
        ] {
            assert!(!is_secret_value(name, value), "{name}");
        }
        for bare in ["abc", "d0Ft9kQ2mXv7", "hf_x"] {
            assert!(is_secret_bare(bare), "{bare}");
        }
        for bare in ["", "download", "raw", "17", ")"] {
            assert!(!is_secret_bare(bare), "{bare}");
        }
    }
}
