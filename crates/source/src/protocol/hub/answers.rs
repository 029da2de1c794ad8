//! What an answer of the Hub means that is not what was asked for.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use super::client::Repo;
use crate::error::Problem;
use crate::http::{ATTEMPTS, Failure, header, is_page, transient_answer};
use crate::settings::{HUB, HubSettings};

/// What was asked.
pub(super) struct Asked<'a> {
    pub(super) repo: &'a Repo,
    pub(super) revision: &'a str,
    pub(super) path: Option<&'a str>,
    /// The revision was found before: its absence is a change.
    pub(super) pinned: bool,
}

/// The answer of something else than a Hub.
pub(super) fn not_a_hub(endpoint: &str, what: &str) -> Problem {
    Problem::NotAHub {
        endpoint: aiperf_config::redact_text(endpoint),
        what: format!("it answered with {what}"),
    }
}

/// What the answer means.
pub(super) fn classify(
    status: StatusCode,
    headers: &HeaderMap,
    text: &str,
    asked: &Asked<'_>,
    settings: &HubSettings,
) -> Failure {
    const INVALID: &str = "Invalid credentials in Authorization header";
    let code = header(headers, "x-error-code").unwrap_or_default();
    let message = header(headers, "x-error-message").unwrap_or_default();
    let says = |phrase: &str| message.contains(phrase) || text.contains(phrase);
    let repo = asked.repo;
    let (token, endpoint) = (settings.token.is_some(), settings.endpoint.as_str());
    let credentials = if token { "with the Hub token" } else { "without a token" };
    let not_found = || {
        let spelling = if endpoint == HUB { "" } else { ", and HF_ENDPOINT, which names this Hub" };
        let needs = match &settings.token_fault {
            _ if token => "an HF_TOKEN that may read it".to_owned(),
            Some(fault) => format!("a token in HF_TOKEN, and {fault}"),
            None => "a token in HF_TOKEN".to_owned(),
        };
        Problem::NotFound {
            what: format!("{repo}"),
            fix: format!("Check the spelling{spelling}; a private repository needs {needs}"),
        }
    };
    let problem = match (code, status.as_u16()) {
        (_, 401) if says(INVALID) || (token && code.is_empty() && is_about_token(message)) => {
            Problem::Denied {
                what: match message {
                    "" | INVALID => format!("the Hub rejected the token for {repo}"),
                    _ => format!("the Hub rejected the token for {repo}: {}", quoted(message, settings)),
                },
                fix: "Set HF_TOKEN to a valid token, or unset it for a public repository".into(),
            }
        }
        ("GatedRepo", _) => Problem::Gated { what: format!("{repo}"), token },
        ("RepoNotFound", _) | ("", 401) => not_found(),
        ("RevisionNotFound", _) if asked.pinned => Problem::Changed(format!("{repo}")),
        ("RevisionNotFound", _) => Problem::RevisionNotFound(asked.revision.to_owned()),
        ("EntryNotFound", _) => Problem::NotFound {
            what: format!("the path \"{}\" in {repo} at {}", asked.path.unwrap_or_default(), asked.revision),
            fix: "Check the spelling of the path".into(),
        },
        (_, 403) if says("Access to this resource is disabled") => Problem::Denied {
            what: format!("{repo} is disabled"),
            fix: "Ask its owner, or use another dataset".into(),
        },
        (_, 403) => Problem::Denied {
            what: format!("the Hub refused {repo} {credentials}"),
            fix: if token {
                "Give the token of HF_TOKEN permission to read the repository".into()
            } else {
                "Set HF_TOKEN to a token that may read the repository".into()
            },
        },
        (_, 429) => {
            return Failure::Transient {
                problem: Problem::Answered {
                    status: 429,
                    what: format!("a question about {repo}"),
                    attempts: ATTEMPTS,
                },
                wait: rate_limit(headers).or_else(|| match transient_answer(status, headers, "") {
                    Some(Failure::Transient { wait, .. }) => wait,
                    _ => None,
                }),
            };
        }
        // The API answers in JSON, and says what it did not find.
        ("", 404) if is_page(headers) => not_a_hub(endpoint, "an HTML page, with status 404"),
        (_, 404) => not_found(),
        _ => {
            if let Some(failure) = transient_answer(status, headers, &format!("a question about {repo}")) {
                return failure;
            }
            not_a_hub(endpoint, &format!("status {} to a question about {repo}", status.as_u16()))
        }
    };
    Failure::Final(problem)
}

/// Whether a refusal tells of the token that was sent.
fn is_about_token(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["token", "credential", "expired"].iter().any(|word| message.contains(word))
}

/// The beginning of what a server says, without what may be a secret: some repeat the token.
fn quoted(message: &str, settings: &HubSettings) -> String {
    const MOST: usize = 200;
    let token: Vec<String> = settings.token.iter().map(|token| token.expose().to_owned()).collect();
    // Before it is cut: half of a secret is not known as one.
    let text = aiperf_config::redact_known(message, &token);
    text.trim().trim_end_matches('.').chars().take(MOST).collect()
}

/// `RateLimit: "api";r=0;t=55`: nothing is left for so many seconds.
fn rate_limit(headers: &HeaderMap) -> Option<Duration> {
    let mut left = None;
    let mut seconds = None;
    for part in header(headers, "ratelimit")?.split(';') {
        match part.trim().split_once('=') {
            Some(("r", value)) => left = value.parse::<u64>().ok(),
            Some(("t", value)) => seconds = value.parse::<u64>().ok(),
            _ => {}
        }
    }
    (left == Some(0)).then(|| seconds.map(Duration::from_secs)).flatten()
}
