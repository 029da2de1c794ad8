//! What an answer with the bytes of a file means, from a Hub or the storage behind it.

use reqwest::header::CONTENT_LENGTH;
use reqwest::{Response, StatusCode};
use url::Url;

use crate::error::Problem;
use crate::http::{Body, Failure, content_range, header, host_of, is_page};
use crate::protocol::{Entry, Range};

/// The bytes of an answer that is the file, or the part of it that was asked for.
pub(super) fn answer_body(response: Response, file: &Entry, range: Range) -> Result<Body, Failure> {
    let status = response.status();
    let headers = response.headers();
    match status {
        StatusCode::OK => {
            let total = header(headers, CONTENT_LENGTH.as_str()).and_then(|text| text.parse().ok());
            Ok(Body::new(response, 0, total))
        }
        StatusCode::PARTIAL_CONTENT => match content_range(headers) {
            Some((start, total)) if start == range.start => Ok(Body::new(response, start, total)),
            _ => Err(Failure::transient(Problem::CutShort {
                file: file.path.clone(),
                what: "another range came than the one asked for".into(),
            })),
        },
        StatusCode::RANGE_NOT_SATISFIABLE => Err(no_such_range(file)),
        status => Err(unexpected(status, file).into()),
    }
}

fn unexpected(status: StatusCode, file: &Entry) -> Problem {
    Problem::Unexpected {
        what: format!("{} to GET {}", status.as_u16(), file.path),
        fix: "Run again; if it stays so, ask the publisher".into(),
    }
}

/// A part was asked for that the file does not have.
pub(super) fn no_such_range(file: &Entry) -> Failure {
    Failure::NoSuchRange(unexpected(StatusCode::RANGE_NOT_SATISFIABLE, file))
}

/// Whether the storage sends the file, and not a page or so many other bytes. What a file is was fixed before, so that
/// it is no new version.
pub(super) fn is_the_file(response: &Response, url: &Url, file: &Entry) -> Result<(), Failure> {
    let Some(size) = file.size else { return Ok(()) };
    let headers = response.headers();
    let total = match response.status() {
        StatusCode::PARTIAL_CONTENT => content_range(headers).and_then(|(_, total)| total),
        _ => header(headers, CONTENT_LENGTH.as_str()).and_then(|text| text.parse().ok()),
    };
    let sent = match (total, is_page(headers)) {
        (Some(total), _) if total == size => return Ok(()),
        (None, false) => return Ok(()),
        (Some(total), false) => format!("{total} bytes"),
        (Some(total), true) => format!("{total} bytes (an HTML page)"),
        (None, true) => "an HTML page".to_owned(),
    };
    Err(Failure::transient(Problem::NotTheFile { host: host_of(url), sent, size, file: file.path.clone() }))
}
