//! A store that speaks like S3: path-style addresses, no versions, any signature.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use ring::digest::{SHA256, digest};

use crate::http::{Answer, Request, Server};

type Fault = Box<dyn FnMut(&Request) -> Option<Answer> + Send>;

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Arc<[u8]>>,
    fault: Option<Fault>,
    page: usize,
}

/// A store of one bucket, gone with this value.
pub struct StubStore {
    server: Server,
    state: Arc<Mutex<State>>,
}

impl StubStore {
    /// With these objects in the bucket `traces`; a listing has pages of two.
    pub fn start(objects: &[(&str, &[u8])]) -> StubStore {
        let objects = objects.iter().map(|(key, bytes)| ((*key).to_owned(), Arc::from(*bytes))).collect();
        let state = Arc::new(Mutex::new(State { objects, fault: None, page: 2 }));
        let its_state = Arc::clone(&state);
        let server = Server::start(move |request| {
            let mut state = its_state.lock().unwrap_or_else(PoisonError::into_inner);
            let faulty = state.fault.as_mut().and_then(|fault| fault(request));
            faulty.unwrap_or_else(|| state.answer(request))
        });
        StubStore { server, state }
    }

    /// Its URL.
    pub fn endpoint(&self) -> String {
        self.server.url()
    }

    /// Answers some requests in the place of the store.
    pub fn fault(&self, fault: impl FnMut(&Request) -> Option<Answer> + Send + 'static) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).fault = Some(Box::new(fault));
    }

    /// Puts an object.
    pub fn put(&self, key: &str, bytes: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.objects.insert(key.to_owned(), Arc::from(bytes));
    }

    /// What it was asked.
    pub fn log(&self) -> Vec<Request> {
        self.server.log()
    }

    /// Forgets what it was asked.
    pub fn clear_log(&self) {
        self.server.clear_log();
    }
}

/// The tag of an object.
pub fn etag(bytes: &[u8]) -> String {
    let sha256 = digest(&SHA256, bytes);
    let hex = sha256.as_ref()[..16].iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    format!("\"{hex}\"")
}

/// An error of S3.
pub fn error(status: u16, code: &str) -> Answer {
    let body = format!("<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>m</Message></Error>");
    Answer::status(status).with("Content-Type", "application/xml").body(body.into_bytes())
}

impl State {
    fn answer(&self, request: &Request) -> Answer {
        let Some(rest) = request.path().strip_prefix("/traces/") else { return error(404, "NoSuchBucket") };
        let key = decoded(rest);
        if key.is_empty() {
            return if request.target.contains("list-type=2") {
                self.page(request)
            } else {
                Answer::status(200).with("x-amz-bucket-region", "us-east-1")
            };
        }
        let Some(bytes) = self.objects.get(&key) else { return error(404, "NoSuchKey") };
        let etag = etag(bytes);
        if request.header("if-match").is_some_and(|wanted| wanted != etag) {
            return error(412, "PreconditionFailed");
        }
        Answer::file(request, bytes).with("ETag", etag)
    }

    fn page(&self, request: &Request) -> Answer {
        let query = request.target.split_once('?').map_or("", |(_, query)| query);
        let get = |name: &str| {
            query.split('&').find_map(|pair| Some(decoded(pair.strip_prefix(name)?.strip_prefix('=')?)))
        };
        let prefix = get("prefix").unwrap_or_default();
        let after = get("continuation-token").unwrap_or_default();
        let mut below = self
            .objects
            .iter()
            .filter(|(key, _)| key.starts_with(&prefix) && (after.is_empty() || **key > after));
        let mut text =
            String::from("<?xml version=\"1.0\"?>\n<ListBucketResult><EncodingType>url</EncodingType>");
        let mut last = "";
        for (key, bytes) in below.by_ref().take(self.page) {
            let _ = write!(
                text,
                "<Contents><Key>{}</Key><ETag>{}</ETag><Size>{}</Size></Contents>",
                utf8_percent_encode(key, NON_ALPHANUMERIC),
                etag(bytes).replace('"', "&quot;"),
                bytes.len()
            );
            last = key;
        }
        if below.next().is_some() {
            let _ = write!(
                text,
                "<IsTruncated>true</IsTruncated><NextContinuationToken>{}</NextContinuationToken>",
                last.replace('&', "&amp;")
            );
        } else {
            text.push_str("<IsTruncated>false</IsTruncated>");
        }
        text.push_str("</ListBucketResult>");
        Answer::status(200).with("Content-Type", "application/xml").body(text.into_bytes())
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

impl std::fmt::Debug for StubStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StubStore({})", self.server.url())
    }
}
