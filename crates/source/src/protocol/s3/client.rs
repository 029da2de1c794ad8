//! Signed requests, sent to the region that a bucket turns out to be in.

use std::sync::{Mutex, PoisonError};

use reqsign_aws_v4::RequestSigner;
use reqsign_core::SignRequest as _;
use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue, RANGE};
use reqwest::{Method, Response, StatusCode};

use super::answers::{Object, Refusal};
use super::credentials::{Credentials, Known, Who};
use super::place::{Place, is_region};
use super::profiles::Profiles;
use super::xml::{Listed, Page};
use crate::digest::{Checksum, Promise, hex};
use crate::error::Problem;
use crate::http::{Body, Failure, Http, content_range, header, is_page};
use crate::protocol::Entry;
use crate::settings::{Patience, Settings};

/// Asks for the checksum that is kept beside an object: nobody sends it unasked.
const CHECKSUM: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-amz-checksum-mode"), HeaderValue::from_static("ENABLED"));

/// A page of a listing: a thousand keys of a kilobyte, each byte encoded.
const MOST_PAGE: usize = 8 << 20;

/// A client of one store.
#[derive(Debug)]
pub(crate) struct Client {
    http: Http,
    place: Place,
    credentials: Credentials,
    /// Where the bucket is.
    region: Mutex<String>,
}

/// One request.
struct Ask<'a> {
    method: Method,
    bucket: &'a str,
    key: Option<&'a str>,
    query: &'a [(&'a str, &'a str)],
    /// Not signed: what proxies change, too.
    headers: &'a [(HeaderName, String)],
}

/// A request that was answered.
type Answer<T> = Result<T, Refusal>;

impl Client {
    pub(crate) fn new(settings: &Settings) -> Result<Client, Problem> {
        let profiles = Profiles::of(settings);
        let place = Place::of(settings, &profiles)?;
        let http = Http::new(settings.patience.clone(), settings.patience.idle).named_by(
            place.endpoint(),
            "AWS_ENDPOINT_URL_S3 (or AWS_ENDPOINT_URL, or the profile's endpoint_url)",
        );
        let credentials = Credentials::new(settings, profiles, &place.region, http.client()?.clone());
        let region = Mutex::new(place.region.clone());
        Ok(Client { http, place, credentials, region })
    }

    pub(crate) fn patience(&self) -> &Patience {
        self.http.patience()
    }

    fn region(&self) -> String {
        self.region.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is known of an object.
    pub(crate) async fn head(&self, object: Object<'_>) -> Result<Answer<Entry>, Failure> {
        let query: Vec<_> = object.version.iter().map(|version| ("versionId", *version)).collect();
        let ask = |method, headers| Ask {
            method,
            bucket: object.bucket,
            key: Some(object.key),
            query: &query,
            headers,
        };
        let refusal = match self.send(&ask(Method::HEAD, &[])).await? {
            Ok(response) => return Ok(Ok(entry(object, &response))),
            Err(refusal) => refusal,
        };
        if refusal.is_transient() {
            return Ok(Err(refusal));
        }
        // An answer to HEAD has no body, and so no reason: one byte is asked for to hear it.
        let first = [(RANGE, "bytes=0-0".to_owned())];
        match self.send(&ask(Method::GET, &first)).await? {
            Ok(response) => Ok(Ok(entry(object, &response))),
            Err(refusal) if refusal.status == StatusCode::RANGE_NOT_SATISFIABLE => {
                Ok(Ok(Entry { path: object.key.to_owned(), size: Some(0), ..Entry::default() }))
            }
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// The bytes of an object.
    pub(crate) async fn get(
        &self,
        object: Object<'_>,
        headers: &[(HeaderName, String)],
    ) -> Result<Answer<Response>, Failure> {
        let query: Vec<_> = object.version.iter().map(|version| ("versionId", *version)).collect();
        let ask =
            Ask { method: Method::GET, bucket: object.bucket, key: Some(object.key), query: &query, headers };
        self.send(&ask).await
    }

    /// A page of the objects below a prefix, and the token of the next.
    pub(crate) async fn page(
        &self,
        bucket: &str,
        prefix: &str,
        token: Option<&str>,
        most: Option<&str>,
    ) -> Result<Answer<(Vec<Listed>, Option<String>)>, Failure> {
        let mut query = vec![("encoding-type", "url"), ("list-type", "2"), ("prefix", prefix)];
        query.extend(token.map(|token| ("continuation-token", token)));
        query.extend(most.map(|most| ("max-keys", most)));
        let ask = Ask { method: Method::GET, bucket, key: None, query: &query, headers: &[] };
        let response = match self.send(&ask).await? {
            Ok(response) => response,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let not_a_page = || Problem::Unexpected {
            what: format!("no listing of the bucket {bucket}"),
            fix: "Check AWS_ENDPOINT_URL_S3, and whether a proxy answers in the place of S3".into(),
        };
        let bytes = Body::new(response, 0, None).small(MOST_PAGE).await?.ok_or_else(not_a_page)?;
        let page = Page::read(&bytes).ok_or_else(not_a_page)?;
        if most.is_none() && page.is_cut() {
            return Err(not_a_page().into());
        }
        Ok(Ok(page.take().ok_or_else(not_a_page)?))
    }

    /// Sends a request; once more when the bucket turns out to be in another region.
    async fn send(&self, ask: &Ask<'_>) -> Result<Answer<Response>, Failure> {
        let region = self.region();
        let refusal = match self.send_to(ask, &region).await? {
            Ok(response) => return Ok(Ok(response)),
            Err(refusal) => refusal,
        };
        let elsewhere = matches!(refusal.status.as_u16(), 301 | 302 | 307 | 308)
            || (refusal.status == StatusCode::BAD_REQUEST
                && matches!(refusal.error.code.as_str(), "" | "AuthorizationHeaderMalformed"));
        if !elsewhere {
            return Ok(Err(refusal));
        }
        let told = if let Some(told) = told_region(&refusal) {
            Some(told)
        } else {
            // An answer to HEAD has no body either, but the bucket itself names its region in a header.
            let bucket =
                Ask { method: Method::HEAD, key: None, query: &[], headers: &[], bucket: ask.bucket };
            match self.send_to(&bucket, &region).await? {
                Ok(response) => header(response.headers(), "x-amz-bucket-region").map(str::to_owned),
                Err(refusal) => told_region(&refusal),
            }
        };
        match told.filter(|told| is_region(told) && *told != region) {
            Some(told) => {
                self.region.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&told);
                self.send_to(ask, &told).await
            }
            None => Ok(Err(refusal)),
        }
    }

    async fn send_to(&self, ask: &Ask<'_>, region: &str) -> Result<Answer<Response>, Failure> {
        let url = self.place.url(region, ask.bucket, ask.key, ask.query)?;
        let known = self.credentials.now().await;
        let mut request =
            self.http.client()?.request(ask.method.clone(), url.clone()).header(ACCEPT_ENCODING, "identity");
        let of_object: HeaderMap = ask.key.map(|_| CHECKSUM).into_iter().collect();
        request = request.headers(match &known {
            Some(known) => self.signed(&ask.method, &url, of_object, region, known).await?,
            None => of_object,
        });
        for (name, value) in ask.headers {
            request = request.header(name, value);
        }
        let response = self.http.send(request, self.patience().headers).await?;
        if response.status().is_success() {
            // Some stores call everything but objects that, too; a listing that is none is told by its reader.
            return match ask.key {
                Some(key) if is_page_of_no_store(response.headers()) => Err(a_page(ask.bucket, key).into()),
                _ => Ok(Ok(response)),
            };
        }
        let (status, headers) = (response.status(), response.headers().clone());
        let body = Body::new(response, 0, None).small(1 << 16).await.ok().flatten().unwrap_or_default();
        let who =
            known.map_or_else(|| self.credentials.nobody(), |known| Who { name: known.kind, advice: None });
        Ok(Err(Refusal::new(status, headers, &body, who)))
    }

    /// Headers with their signature.
    async fn signed(
        &self,
        method: &Method,
        url: &url::Url,
        headers: HeaderMap,
        region: &str,
        known: &Known,
    ) -> Result<HeaderMap, Problem> {
        let failed = || Problem::Denied {
            what: format!("the request cannot be signed with {}", known.kind),
            fix: "Check that the credentials have not expired and are written as they were given".into(),
        };
        let request = http::Request::builder().method(method.clone()).uri(url.as_str()).body(());
        let (mut parts, ()) = request.map_err(|_| failed())?.into_parts();
        parts.headers = headers;
        RequestSigner::new("s3", region)
            .sign_request(self.credentials.context(), &mut parts, Some(&known.credential), None)
            .await
            .map_err(|_| failed())?;
        Ok(parts.headers)
    }
}

/// Whether an answer is a page for people, and of no store: each of those names its request.
fn is_page_of_no_store(headers: &HeaderMap) -> bool {
    let of_store = headers.keys().any(|name| name.as_str().starts_with("x-amz"));
    !of_store && is_page(headers)
}

fn a_page(bucket: &str, key: &str) -> Problem {
    Problem::Unexpected {
        what: format!("with an HTML page to a question about s3://{bucket}/{key}"),
        fix: "Check AWS_ENDPOINT_URL_S3 (or AWS_ENDPOINT_URL, or the profile's endpoint_url): the console of a store has \
              another port than its API; and whether a proxy answers in the place of the store"
            .into(),
    }
}

/// Where the bucket is, as an answer tells it.
pub(super) fn told_region(refusal: &Refusal) -> Option<String> {
    let told = header(&refusal.headers, "x-amz-bucket-region").unwrap_or(&refusal.error.region);
    (!told.is_empty()).then(|| told.to_owned())
}

/// What the headers of an answer say about its object.
pub(super) fn entry(object: Object<'_>, response: &Response) -> Entry {
    let headers = response.headers();
    let text = |name: &str| header(headers, name).filter(|text| !text.is_empty()).map(str::to_owned);
    let size = match response.status() {
        StatusCode::PARTIAL_CONTENT => content_range(headers).and_then(|(_, total)| total),
        _ => header(headers, "content-length").and_then(|text| text.parse().ok()),
    };
    Entry {
        path: object.key.to_owned(),
        size,
        etag: text("etag"),
        version_id: text("x-amz-version-id").filter(|version| version != "null"),
        promise: (response.status() == StatusCode::OK).then(|| checksum(headers)).flatten(),
        ..Entry::default()
    }
}

/// Whether a tag is that of an upload in parts: it ends in their number.
fn is_of_parts(etag: &str) -> bool {
    etag.trim_matches('"')
        .rsplit_once('-')
        .is_some_and(|(_, parts)| !parts.is_empty() && parts.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The digest of a whole object, where the store sends one; that of an upload in parts is one of digests.
fn checksum(headers: &HeaderMap) -> Option<Promise> {
    use base64::Engine as _;

    let of_parts = header(headers, "etag").is_some_and(is_of_parts);
    match header(headers, "x-amz-checksum-type") {
        Some("FULL_OBJECT") => {}
        Some(_) => return None,
        // Who does not tell may mean either, where there are parts.
        None if of_parts => return None,
        None => {}
    }
    // One of parts ends in their number, and is no base64.
    let sum = |name: &str, length: usize| {
        let text = header(headers, &format!("x-amz-checksum-{name}"))?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
        (bytes.len() == length).then(|| hex(&bytes))
    };
    sum("sha256", 32).map(Promise::Sha256).or_else(|| {
        Checksum::ALL
            .into_iter()
            .find_map(|kind| Some(Promise::Stored(kind, sum(kind.name(), kind.length())?)))
    })
}
