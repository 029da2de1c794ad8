//! Parameters of a query that sign a URL or carry a key.

use crate::known_key::is_known_key;
use crate::secret::is_random_word;

/// Names of parameters that are secret as a whole, in lower case.
const NAMES: [&str; 14] = [
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
];

/// Words that make a secret of any name they are a part of, as in `auth_key` and `X-Session-Id`.
const WORDS: [&str; 25] = [
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
];

/// What such words end in.
const ENDINGS: [&str; 9] = [
    "token",
    "secret",
    "signature",
    "apikey",
    "accesskey",
    "secretkey",
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

/// Whether a parameter carries a credential: by its name, or by what its value looks like under a name that says nothing.
pub(crate) fn is_secret_value(name: &str, value: &str) -> bool {
    is_secret_parameter(name)
        || is_known_key(value)
        || (is_random_word(value) && !HARMLESS.contains(&decoded(name).as_str()))
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
        for (name, value) in
            [("x", "d0Ft9kQ2mXv7pLr4tYb8nZc1"), ("user", "sk-0123456789ab"), ("id", "hf_abcdefghijkl")]
        {
            assert!(is_secret_value(name, value), "{name}");
        }
        for (name, value) in [
            ("versionId", "3HL4kqtJlcpXroDTDmJ3rmSpXd3dIbrHY"),
            ("revision", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"),
            ("X-Amz-Date", "20261129T233000Z"),
            ("page", "2"),
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
