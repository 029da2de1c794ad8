//! Secrets of this run, hidden wherever a text of foreign origin is kept or shown.

use std::borrow::Cow;

use aiperf_config::{
    REDACTED, RunConfig, Target, is_secret_header, is_secret_pair, is_url_with_secret, redact_text,
    secrets_of_extras, secrets_of_path, secrets_of_url,
};
use aiperf_types::Body;
use memchr::memmem::{self, Finder};

/// Shorter secrets are not searched for in free text: they would hide ordinary words.
const SHORTEST: usize = 5;

/// Replaces the secrets of a run in texts that came from elsewhere (answers, error messages), where a server may
/// have echoed them, and the credentials of any URL.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    secrets: Vec<Finder<'static>>,
    /// A path in a cache that nobody typed, and the name that stands for it.
    brought: Option<(Box<str>, Box<str>)>,
}

impl Redactor {
    /// Knows the API key, the values of credential headers, credentials among the extra body keys, the user info of the
    /// target, and where data from elsewhere were brought to.
    pub fn new(config: &RunConfig) -> Redactor {
        let mut secrets: Vec<String> = Vec::new();
        if let Some(key) = &config.endpoint.api_key {
            secrets.push(key.expose().to_owned());
        }
        for header in &config.endpoint.headers {
            let value = header.value.expose();
            if is_secret_pair(&header.name, value) {
                secrets.push(value.to_owned());
                // "Bearer x": the scheme is no secret, and the token may be echoed alone.
                secrets.extend(value.split_once(' ').map(|(_, token)| token.to_owned()));
            }
        }
        secrets.extend(secrets_of_extras(&config.endpoint.extra_inputs));
        if let Some(path) = &config.endpoint.custom_path {
            secrets.extend(secrets_of_path(path));
        }
        if let Target::Server(url) = &config.endpoint.target {
            secrets.extend(secrets_of_url(url.expose()));
        }
        let brought = config.brought().map(|(path, name)| (path.to_string_lossy().into(), name.into()));
        Redactor { brought, ..Redactor::of(secrets) }
    }

    /// Knows exactly these secrets.
    pub fn of(secrets: impl IntoIterator<Item = String>) -> Redactor {
        let mut secrets: Vec<String> =
            secrets.into_iter().filter(|secret| secret.len() >= SHORTEST).collect();
        // A secret that contains another one goes first, or its rest would stay behind.
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        let secrets = secrets.iter().map(|secret| Finder::new(secret).into_owned()).collect();
        Redactor { secrets, brought: None }
    }

    /// `text` without secrets; borrowed when there was none.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        // URLs first: a secret cut out of one would hide its end.
        let mut text = if text.contains("://") { Cow::Owned(redact_text(text)) } else { Cow::Borrowed(text) };
        for secret in &self.secrets {
            if secret.find(text.as_bytes()).is_some() {
                // Invariant: the needle was made from a `str`.
                if let Ok(needle) = std::str::from_utf8(secret.needle()) {
                    text = Cow::Owned(text.replace(needle, REDACTED));
                }
            }
        }
        if let Some((path, name)) = &self.brought
            && text.contains(&**path)
        {
            text = Cow::Owned(text.replace(&**path, name));
        }
        text
    }

    /// The value of header `name`, hidden when the name is that of a credential.
    pub fn header<'t>(&self, name: &str, value: &'t str) -> Cow<'t, str> {
        if is_secret_header(name) { Cow::Borrowed(REDACTED) } else { self.text(value) }
    }
}

/// Whether a body holds a URL with a credential in it, such as that of a presigned image: files with bodies as they
/// were sent hold it, too.
pub fn holds_signed_url(body: &Body) -> bool {
    /// Longer ones are looked at no further.
    const LONGEST: usize = 8192;
    body.segments().iter().any(|segment| {
        memmem::find_iter(segment, b"://").any(|at| {
            let after = &segment[at + 3..];
            is_url_with_secret(&String::from_utf8_lossy(&after[..after.len().min(LONGEST)]))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_echoed_by_a_server_are_hidden() {
        let redactor =
            Redactor::of(["sk-canary-1".to_owned(), "Bearer sk-canary-1".to_owned(), "abc".to_owned()]);
        assert_eq!(redactor.text("key sk-canary-1 is wrong"), "key <redacted> is wrong");
        assert_eq!(redactor.text("got 'Bearer sk-canary-1'"), "got '<redacted>'");
        assert_eq!(redactor.text("see http://u:p@h/"), "see http://<redacted>@h/");
        assert!(matches!(redactor.text("an abc of plain text"), Cow::Borrowed(_)));
        assert_eq!(redactor.header("Authorization", "anything"), "<redacted>");
        assert_eq!(redactor.header("Server", "uvicorn"), "uvicorn");
    }

    #[test]
    fn presigned_urls_in_bodies_are_found() {
        let body = |text: &str| Body::single(text.as_bytes().to_vec());
        let image = |url: &str| body(&format!("{{\"image_url\":{{\"url\":\"{url}\"}},\"a\":\"x@y?sig=z\"}}"));
        assert!(holds_signed_url(&image("https://b.s3.amazonaws.com/a.png?X-Amz-Date=1&X-Amz-Signature=ab")));
        assert!(holds_signed_url(&image("https://me:pw@h/a.png")));
        assert!(!holds_signed_url(&image("https://h/a.png?page=2")));
        assert!(!holds_signed_url(&image("data:image/png;base64,AAAA")));
        assert!(!holds_signed_url(&body("https://")));
    }
}
