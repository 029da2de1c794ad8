//! The bytes of an answer, as they come.

use bytes::Bytes;
use reqwest::Response;

use super::{Failure, cause, host_of};
use crate::error::Problem;

/// A body that is being read.
#[derive(Debug)]
pub(crate) struct Body {
    response: Response,
    /// Where in the file its first byte lies.
    pub(crate) start: u64,
    /// Bytes of the whole file, when the server says so.
    pub(crate) total: Option<u64>,
}

impl Body {
    /// The body of an answer that starts at byte `start` of a file of `total` bytes.
    pub(crate) fn new(response: Response, start: u64, total: Option<u64>) -> Body {
        Body { response, start, total }
    }

    /// The next bytes; `None` at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        let host = host_of(self.response.url());
        self.response.chunk().await.map_err(|error| {
            Failure::transient(Problem::CutShort {
                file: format!("the answer of {host}"),
                what: cause(&error),
            })
        })
    }

    /// The body as text of at most `most` bytes; `None` when it is longer.
    pub(crate) async fn small(mut self, most: usize) -> Result<Option<Vec<u8>>, Failure> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if bytes.len() + chunk.len() > most {
                return Ok(None);
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(Some(bytes))
    }
}
