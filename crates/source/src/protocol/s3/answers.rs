//! What an answer of S3 means that is not what was asked for.

use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use super::client::told_region;
use super::credentials::Who;
use super::place::is_region;
use super::xml::{self, ErrorBody};
use crate::error::Problem;
use crate::http::{ATTEMPTS, Failure, header, own_time, server_time, transient_answer};

/// An answer that brings no data.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) error: ErrorBody,
    /// Whose request it was.
    pub(crate) who: Who,
}

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object<'a> {
    pub(crate) bucket: &'a str,
    pub(crate) key: &'a str,
    pub(crate) version: Option<&'a str>,
}

impl std::fmt::Display for Object<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.key)
    }
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, headers: HeaderMap, body: &[u8], who: Who) -> Refusal {
        Refusal { error: xml::error(body), status, headers, who }
    }

    /// The object (not its bucket) is not there.
    pub(crate) fn is_absent(&self) -> bool {
        match self.error.code.as_str() {
            "NoSuchKey" | "NoSuchVersion" => true,
            "" => matches!(self.status.as_u16(), 404 | 410),
            _ => false,
        }
    }

    /// The caller may not know.
    pub(crate) fn is_denied(&self) -> bool {
        self.status == StatusCode::FORBIDDEN && matches!(self.error.code.as_str(), "AccessDenied" | "")
    }

    /// The server, or a limit, and not the request is at fault.
    pub(crate) fn is_transient(&self) -> bool {
        self.status == StatusCode::TOO_MANY_REQUESTS
            || self.status.is_server_error()
            || matches!(self.error.code.as_str(), "SlowDown" | "RequestTimeout" | "InternalError")
    }

    /// The object that was pinned is not what it was.
    pub(crate) fn is_change(&self) -> bool {
        self.status == StatusCode::PRECONDITION_FAILED
            || self.is_absent()
            || matches!(self.status.as_u16(), 405 | 416)
    }

    /// What to say.
    pub(crate) fn failure(&self, object: Object<'_>) -> Failure {
        let what = format!("a question about {object}");
        if self.is_transient() {
            return transient_answer(self.status, &self.headers, &what).unwrap_or_else(|| {
                Failure::transient(Problem::Answered {
                    status: self.status.as_u16(),
                    what,
                    attempts: ATTEMPTS,
                })
            });
        }
        Failure::Final(self.problem(object))
    }

    /// The next step after credentials did not do: those that are set up and gave none first.
    pub(crate) fn grant(&self, otherwise: String) -> String {
        self.who.advice.clone().unwrap_or(otherwise)
    }

    fn problem(&self, object: Object<'_>) -> Problem {
        let not_found = |what: String, fix: &str| Problem::NotFound { what, fix: fix.into() };
        let denied = |what: String, fix: &str| Problem::Denied { what, fix: fix.into() };
        let who = &self.who.name;
        let code = self.error.code.as_str();
        let marker = header(&self.headers, "x-amz-delete-marker") == Some("true");
        match (code, self.status.as_u16()) {
            ("NoSuchBucket", _) => not_found(
                format!("the bucket {}", object.bucket),
                "Check its spelling, and AWS_ENDPOINT_URL_S3 where it is not on AWS",
            ),
            ("MethodNotAllowed", _) | ("", 405) => not_found(
                format!(
                    "the content of version \"{}\" of {object}, a delete marker,",
                    object.version.unwrap_or_default()
                ),
                "Name another version, or none",
            ),
            ("NoSuchVersion", _) => not_found(
                format!("the version \"{}\" of {object}", object.version.unwrap_or_default()),
                "Check the versionId, or drop it for the newest version",
            ),
            ("NoSuchKey", _) | ("", 404 | 410) if marker => {
                not_found(format!("{object} (it was deleted)"), "Name an older version with ?versionId=")
            }
            ("NoSuchKey", _) | ("", 404 | 410) => {
                not_found(object.to_string(), "Check the spelling of the key")
            }
            ("InvalidAccessKeyId", _) => denied(
                format!("S3 does not know {who}"),
                "Check AWS_ACCESS_KEY_ID or the profile, and that the endpoint is theirs",
            ),
            ("SignatureDoesNotMatch", _) => denied(
                format!("the signature by {who} is wrong"),
                "Check AWS_SECRET_ACCESS_KEY or the profile's secret key",
            ),
            ("ExpiredToken" | "TokenRefreshRequired" | "InvalidToken", _) => denied(
                format!("the session token of {who} has expired or is not valid"),
                "Sign in again, or renew the credentials",
            ),
            ("RequestTimeTooSkewed" | "RequestExpired", _) => {
                let utc = |seconds: u64| aiperf_clock::format_utc(seconds.saturating_mul(1_000_000_000));
                let told = server_time(&self.headers);
                let times =
                    told.map(|told| format!(": {} UTC here, {} UTC there", utc(own_time()), utc(told)));
                denied(
                    format!(
                        "the clock of this machine and that of S3 are too far apart{}",
                        times.unwrap_or_default()
                    ),
                    "Set the clock of this machine",
                )
            }
            ("InvalidObjectState", _) => denied(
                format!("{object} is archived"),
                "Restore it from its archive first, or ask the publisher to",
            ),
            (_, 401 | 403) => denied(
                format!("{object} was asked for with {who}: denied, or it does not exist"),
                &self.grant(
                    "Grant s3:GetObject (s3:GetObjectVersion for a version) on it; with s3:ListBucket, S3 tells whether \
                     it exists"
                        .into(),
                ),
            ),
            (code, status) => Problem::Unexpected {
                what: format!("{status} {} to a question about {object}", crate::error::printable(code))
                    .replace("  ", " "),
                fix: match told_region(self).filter(|region| is_region(region)) {
                    Some(region) => format!(
                        "The bucket is in {region}: check the endpoint (AWS_ENDPOINT_URL_S3), and set AWS_REGION={region}"
                    ),
                    None => "Check the reference, the endpoint and the region".into(),
                },
            },
        }
    }
}
