//! Secrets of this run, hidden wherever a text of foreign origin is kept or shown.

use std::borrow::Cow;

use aiperf_config::{
    REDACTED, RunConfig, Target, is_secret_header, is_secret_pair, redact_text, secrets_of_path,
    secrets_of_url,
};
use memchr::memmem::Finder;

/// Shorter secrets are not searched for in free text: they would hide ordinary words.
const SHORTEST: usize = 5;

/// Replaces the secrets of a run in texts that came from elsewhere (answers, error messages), where a server may
/// have echoed them, and the credentials of any URL.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    secrets: Vec<Finder<'static>>,
}

impl Redactor {
    /// Knows the API key, the values of credential headers and the user info of the target.
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
        if let Some(path) = &config.endpoint.custom_path {
            secrets.extend(secrets_of_path(path));
        }
        if let Target::Server(url) = &config.endpoint.target {
            secrets.extend(secrets_of_url(url.expose()));
        }
        Redactor::of(secrets)
    }

    /// Knows exactly these secrets.
    pub fn of(secrets: impl IntoIterator<Item = String>) -> Redactor {
        let mut secrets: Vec<String> =
            secrets.into_iter().filter(|secret| secret.len() >= SHORTEST).collect();
        // A secret that contains another one goes first, or its rest would stay behind.
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Redactor { secrets: secrets.iter().map(|secret| Finder::new(secret).into_owned()).collect() }
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
        text
    }

    /// The value of header `name`, hidden when the name is that of a credential.
    pub fn header<'t>(&self, name: &str, value: &'t str) -> Cow<'t, str> {
        if is_secret_header(name) { Cow::Borrowed(REDACTED) } else { self.text(value) }
    }
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
}
