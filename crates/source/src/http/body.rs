//! The bytes of an answer, as they come.

use std::io::Write as _;

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use reqwest::Response;

use super::{Failure, cause, host_of};
use crate::digest::Promise;
use crate::error::Problem;

/// Compressed bytes that are decoded at once: what comes of them is at most some 4 MiB.
const BITE: usize = 4096;

/// A body that is being read.
#[derive(Debug)]
pub(crate) struct Body {
    response: Response,
    /// Decodes what comes, where that is only compressed for the transfer.
    decoder: Option<MultiGzDecoder<Vec<u8>>>,
    /// Came, and is not decoded yet.
    pending: Bytes,
    /// Where in the file its first byte lies.
    pub(crate) start: u64,
    /// Bytes of the whole file, when the server says so.
    pub(crate) total: Option<u64>,
    /// It is decoded as it comes: lengths that the source told are not those of the file.
    pub(crate) coded: bool,
    /// What its source says of the bytes of the whole file.
    pub(crate) promise: Option<Promise>,
}

impl Body {
    /// The body of an answer that starts at byte `start` of a file of `total` bytes.
    pub(crate) fn new(response: Response, start: u64, total: Option<u64>) -> Body {
        Body { response, decoder: None, pending: Bytes::new(), start, total, coded: false, promise: None }
    }

    /// The same, of which its source says this.
    pub(crate) fn promised(self, promise: Option<Promise>) -> Body {
        Body { promise, ..self }
    }

    /// The same, decoded by gzip: of a length that nobody knows.
    pub(crate) fn decoded(self) -> Body {
        Body { decoder: Some(MultiGzDecoder::new(Vec::new())), coded: true, total: None, ..self }
    }

    /// The next bytes; `None` at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            if self.pending.is_empty() {
                let Some(bytes) = self.received().await? else { return self.finish() };
                self.pending = bytes;
            }
            let Some(decoder) = &mut self.decoder else {
                return Ok(Some(std::mem::take(&mut self.pending)));
            };
            let bite = self.pending.split_to(BITE.min(self.pending.len()));
            if let Err(error) = decoder.write_all(&bite) {
                return Err(self.cut(error.to_string()));
            }
            let bytes = std::mem::take(decoder.get_mut());
            if !bytes.is_empty() {
                return Ok(Some(bytes.into()));
            }
        }
    }

    async fn received(&mut self) -> Result<Option<Bytes>, Failure> {
        match self.response.chunk().await {
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(self.cut(cause(&error))),
        }
    }

    /// What the decoder still holds.
    fn finish(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(mut decoder) = self.decoder.take() else { return Ok(None) };
        match decoder.try_finish() {
            Ok(()) => {
                let bytes = std::mem::take(decoder.get_mut());
                Ok((!bytes.is_empty()).then(|| bytes.into()))
            }
            Err(error) => Err(self.cut(error.to_string())),
        }
    }

    fn cut(&self, what: String) -> Failure {
        let host = host_of(self.response.url());
        Failure::transient(Problem::CutShort { file: format!("the answer of {host}"), what })
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
