//! Texts and URLs with the credentials in them hidden.

use crate::known_key::{holds_known_key, is_known_key};
use crate::parameter::{self, is_secret_bare, is_secret_value};
use crate::secret::REDACTED;

/// `text` with the credentials of every URL in it hidden: user info, and the values of signing parameters.
pub fn redact_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        // What ends a clause is no part of the URL before it.
        let url = after[..url_end(after)].trim_end_matches([':', ',', ';', '.', '!', ')', ']', '}']);
        let (url, tail) = after.split_at(url.len());
        redact_url(url, &mut out);
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// Text that is one reference and nothing else, such as an argument, with its credentials hidden. Blanks, quotes and
/// other signs that would end a URL within a text are a part of it, and so is what stands where a scheme is mistyped.
pub fn redact_reference(text: &str) -> String {
    let (scheme, rest) = scheme_and_rest(text);
    let mut out = scheme.to_owned();
    let name = scheme.trim_end_matches(SCHEME_ENDS);
    // In names of repositories, keys and files every sign is one of the name.
    let is_literal = ["", "hf", "s3"].iter().any(|literal| name.eq_ignore_ascii_case(literal));
    let authority = authority(rest);
    let user = match authority.rfind('@') {
        // `org/repo@revision` has one too, behind the first slash.
        Some(at) if is_literal && !scheme.is_empty() => Some(at),
        Some(_) if !is_literal => rest.rfind('@'),
        _ if is_torn(authority) || names_another_host(authority, rest) => rest.rfind('@'),
        _ => None,
    };
    if user.is_some() {
        out.push_str(REDACTED);
    }
    let rest = &rest[user.unwrap_or_default()..];
    if is_literal {
        redact_names(rest, &mut out);
    } else {
        redact_query(rest, &mut out);
    }
    out
}

/// Whether a text begins with a scheme, or with one of a reference that is mistyped.
pub fn begins_like_reference(text: &str) -> bool {
    !scheme_and_rest(text).0.is_empty()
}

/// What a scheme ends in, as it should and as it is mistyped.
const SCHEME_ENDS: [char; 5] = [':', ';', '/', '\\', ' '];

/// A reference from its authority on, and what stands before that.
fn scheme_and_rest(text: &str) -> (&str, &str) {
    let letters = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
    let name = text.find(|c| !letters(c)).unwrap_or(text.len());
    let signs = text[name..].find(|c| !SCHEME_ENDS.contains(&c)).unwrap_or(text.len() - name);
    let is_known = ["http", "https", "hf", "s3"].iter().any(|known| text[..name].eq_ignore_ascii_case(known));
    // A folder may have such a name.
    let is_folder = &text[name..name + signs] == "/";
    if text[name..].starts_with("://") || (is_known && signs > 0 && !is_folder) {
        text.split_at(name + signs)
    } else {
        ("", text)
    }
}

/// Whether the user info of what follows `://` in a URL holds a sign that ends the authority, so that a part of a password
/// would be taken for the host or for the path: `user:pass/word@host`.
pub fn has_torn_user_info(after_scheme: &str) -> bool {
    let authority = authority(after_scheme);
    let behind = &after_scheme[authority.len()..];
    behind.contains('@')
        && (authority.contains('@') || is_torn(authority) || names_another_host(authority, after_scheme))
}

/// What stands before the path, the query and the fragment.
fn authority(after_scheme: &str) -> &str {
    &after_scheme[..after_scheme.find(['/', '\\', '?', '#']).unwrap_or(after_scheme.len())]
}

/// Whether a host and its port follow an `@` although a host and a port stand at the front already: one of them is a
/// user and the begin of a password.
fn names_another_host(authority: &str, rest: &str) -> bool {
    let has_port = |host: &str| {
        let port = host.rsplit_once(':').filter(|(name, _)| !name.is_empty()).map_or("", |(_, port)| port);
        !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    };
    let behind = &rest[authority.len()..];
    let other = behind.rfind('@').map_or("", |at| self::authority(&behind[at + 1..]));
    !authority.starts_with('[') && has_port(authority) && has_port(other)
}

fn is_torn(authority: &str) -> bool {
    !authority.starts_with('[')
        && authority
            .split_once(':')
            .is_some_and(|(_, port)| !port.is_empty() && !port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What follows the authority where `#` and bare words are a part of a name.
fn redact_names(path: &str, out: &mut String) {
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    redact_segments(path, out);
    for (index, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
        out.push(if index == 0 { '?' } else { '&' });
        redact_pair(pair, out);
    }
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
    without_words(&text, is_known_key)
}

/// `text` with every word hidden that holds a key of a well-known service: for messages that repeat a name which was typed,
/// and which may be a key by mistake.
pub fn redact_keys(text: &str) -> String {
    without_words(text, holds_known_key)
}

fn without_words(text: &str, is_secret: impl Fn(&str) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    for piece in text.split_inclusive(|c| !is_part(c)) {
        let word = piece.trim_end_matches(|c| !is_part(c));
        if is_secret(word) {
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

/// A URL from its authority on, which ends at the first of `/?#`.
fn redact_url(url: &str, out: &mut String) {
    let (authority, path) = url.split_at(url.find(['/', '?', '#']).unwrap_or(url.len()));
    redact_authority(authority, out);
    redact_query(path, out);
}

fn redact_authority(authority: &str, out: &mut String) {
    match authority.rfind('@') {
        Some(at) => {
            out.push_str(REDACTED);
            out.push_str(&authority[at..]);
        }
        None => out.push_str(authority),
    }
}

/// Whether what follows `://` in a text is a URL with a credential in it: user info, or a parameter that signs it or
/// carries a key.
pub fn is_url_with_secret(after_scheme: &str) -> bool {
    parameter::is_url_with_secret(&after_scheme[..url_end(after_scheme)], parameter::DEEPEST)
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
    redact_segments(path, out);
    if let Some(query) = query {
        out.push('?');
        redact_pairs(query, out);
    }
    if fragment.is_some_and(|fragment| !fragment.is_empty()) {
        out.push('#');
        out.push_str(REDACTED);
    }
}

/// The parts of a path; one may be the authority of a URL within.
fn redact_segments(path: &str, out: &mut String) {
    let (mut above, mut before) = ("", "");
    for (index, segment) in path.split('/').enumerate() {
        if index > 0 {
            out.push('/');
        }
        if above.ends_with(':') && before.is_empty() {
            redact_authority(segment, out);
        } else {
            out.push_str(if holds_known_key(segment) { REDACTED } else { segment });
        }
        (above, before) = (before, segment);
    }
}

fn redact_pairs(query: &str, out: &mut String) {
    for (index, pair) in query.split('&').enumerate() {
        if index > 0 {
            out.push('&');
        }
        if !pair.contains('=') && is_secret_bare(pair) {
            out.push_str(REDACTED);
        } else {
            redact_pair(pair, out);
        }
    }
}

fn redact_pair(pair: &str, out: &mut String) {
    match pair.split_once('=') {
        Some((name, value)) if is_secret_value(name, value) => {
            out.push_str(name);
            out.push('=');
            out.push_str(REDACTED);
        }
        _ => out.push_str(pair),
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
    fn a_key_that_was_typed_as_a_name_is_hidden_wherever_a_message_repeats_it() {
        let key = format!("hf_{}", "aB3dE6gH".repeat(4));
        assert_eq!(
            redact_keys(&format!("datasets/{key}/y at \"{key}\" in datasets--{key}--y was not found")),
            "datasets/<redacted>/y at \"<redacted>\" in <redacted> was not found"
        );
        for text in ["hf_transfer and sk-learn-contrib/hf_tokenizer.json were not found", "", "<redacted>"] {
            assert_eq!(redact_keys(text), text);
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
    fn a_reference_is_hidden_as_a_whole_whatever_signs_it_holds() {
        for sign in [" ", "\t", "\n", "'", "\"", "<", ">", "`", "/", "?", "#", "\\", "@", ":", ",", "  "] {
            for scheme in
                ["http://", "https://", "s3://", "hf://", "HTTP://", "http:///", "ftp://", "http:/\\"]
            {
                let text = format!("{scheme}me:CANARY{sign}CANARY@127.0.0.1:9101/x.jsonl");
                assert_eq!(
                    redact_reference(&text),
                    format!("{scheme}<redacted>@127.0.0.1:9101/x.jsonl"),
                    "{text}"
                );
            }
            let text = format!("https://h/it's a {sign}?part=1&sig=CANARY{sign}CANARY");
            assert!(!redact_reference(&text).contains("CANARY"), "{text}: {}", redact_reference(&text));
        }
        assert_eq!(
            redact_reference("https://h/x?part=1&sig=CAN &page=2"),
            "https://h/x?part=1&sig=<redacted>&page=2"
        );
    }

    #[test]
    fn credentials_behind_a_mistyped_scheme_are_hidden() {
        for (text, shown) in [
            ("https:/me:PW@h/x", "https:/<redacted>@h/x"),
            (
                "https//me:PW@h/x?X-Amz-Signature=s&a=b",
                "https//<redacted>@h/x?X-Amz-Signature=<redacted>&a=b",
            ),
            ("https:me:PW@h/x", "https:<redacted>@h/x"),
            ("http;//me@h/x#PW", "http;//<redacted>@h/x#<redacted>"),
            ("hf:/me:PW@h/x", "hf:/<redacted>@h/x"),
            ("me:PW@h/x", "<redacted>@h/x"),
            ("127.0.0.1/x?X-Amz-Signature=s", "127.0.0.1/x?X-Amz-Signature=<redacted>"),
            ("h:80/x?a=b&sig=s", "h:80/x?a=b&sig=<redacted>"),
            ("http://me:PW@PW/x@127.0.0.1:80/v1", "http://<redacted>@127.0.0.1:80/v1"),
            ("http://me:12/PW@127.0.0.1:80/v1", "http://<redacted>@127.0.0.1:80/v1"),
            ("me:12/PW@127.0.0.1:80", "<redacted>@127.0.0.1:80"),
        ] {
            assert_eq!(redact_reference(text), shown);
        }
    }

    #[test]
    fn what_is_no_credential_stays_in_a_reference() {
        for text in [
            "hf://datasets/org/set@refs%2Fconvert%2Fparquet/a b/c d#e?f",
            "hf://org/set@v1/x@y.jsonl",
            "hf://set@v1",
            "s3://bucket/a@b/c d.jsonl?versionId=3HL4kqtJlcpXroDTDmJ3rmSpXd3dIbrHY",
            "https://h:8000/a@b/c.jsonl?page=2",
            "http://[::1]:80/a@b",
            "data/me@home/x y.jsonl",
            "me@home/x.jsonl",
            "hf/me@home/x.jsonl",
            "C:\\me@home\\x.jsonl",
            "what? a file#1.jsonl",
            "",
        ] {
            let shown = redact_reference(text);
            if text == "hf://set@v1" {
                assert_eq!(shown, "hf://<redacted>@v1", "what may be a password is one");
            } else {
                assert_eq!(shown, text);
            }
        }
    }

    #[test]
    fn signs_that_end_user_info_too_early_are_found() {
        for torn in ["me:a@b/c@h", "me:a/b@h", "me:12/a@h:80/v1", "me:a?b@h", "me:a#@h"] {
            assert!(has_torn_user_info(torn), "{torn}");
        }
        for whole in [
            "h",
            "me:pw@h:80/v1",
            "h:80/@cf/model",
            "h/a@b:1",
            "h:80/org@main/x",
            "[::1]:80/a@h:1",
            "h:80/x?a:1",
        ] {
            assert!(!has_torn_user_info(whole), "{whole}");
        }
    }

    #[test]
    fn credentials_of_a_url_within_a_url_are_hidden() {
        for (url, shown) in [
            ("https://h/x?a=b?sig=CANARY", "https://h/x?a=<redacted>"),
            ("https://h/x?url=http://u:CANARY@h", "https://h/x?url=<redacted>"),
            ("https://h/x?url=http%3A%2F%2Fu%3ACANARY%40h&page=2", "https://h/x?url=<redacted>&page=2"),
            ("https://h/x?u=http%253A%252F%252Fh%252Fx%253Fsig%253DCANARY", "https://h/x?u=<redacted>"),
            ("https://h/x?a=1;token=CANARY", "https://h/x?a=<redacted>"),
            ("https://h/https://u:CANARY@h/x", "https://h/https://<redacted>@h/x"),
            (
                "https://h/x?url=https://example.com/a%20b?page=2",
                "https://h/x?url=https://example.com/a%20b?page=2",
            ),
        ] {
            assert_eq!(redact_text(url), shown);
            assert_eq!(redact_reference(url), shown);
        }
    }

    #[test]
    fn urls_within_urls_have_an_end() {
        let deep = "https://h/?u=".repeat(20_000);
        assert!(redact_text(&deep).starts_with("https://h/?u="));
        assert!(redact_reference(&"%25".repeat(50_000)).len() > 9);
        assert!(redact_reference(&format!("https://h/?u={}", "%25".repeat(50_000))).len() > 9);
    }
}
