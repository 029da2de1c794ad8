//! Files behind URLs.

use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, ETAG, HeaderMap, IF_MATCH, LAST_MODIFIED, RANGE,
};
use reqwest::{Method, Response, StatusCode};
use url::Url;

use crate::error::Problem;
use crate::events::Events;
use crate::http::{
    Body, Failure, Http, MOST_HOPS, content_range, header, host_of, is_page, own_time, redirect_target,
    retrying, server_time, transient_answer,
};
use crate::manifest::MOST_BYTES;
use crate::names;
use crate::protocol::{Entry, Found, Node, Protocol, Range, Target};
use crate::reference::WebReference;

/// A URL that can be asked.
pub(crate) struct Web<'a> {
    pub(crate) http: &'a Http,
    pub(crate) reference: &'a WebReference,
    pub(crate) events: &'a Events,
}

/// What the headers of an answer say about the file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Facts {
    size: Option<u64>,
    etag: Option<String>,
    modified: Option<String>,
    /// It is compressed for the transfer only.
    coded: bool,
}

impl Facts {
    fn of(headers: &HeaderMap, size: Option<u64>, url: &Url) -> Result<Facts, Problem> {
        let text = |name: &str| header(headers, name).filter(|text| !text.is_empty()).map(str::to_owned);
        // Neither tells one version from another.
        let etag = text(ETAG.as_str()).filter(|etag| !matches!(opaque(etag), "*" | "\"\""));
        let coded = is_coded(headers, url)?;
        Ok(Facts { size: size.filter(|_| !coded), etag, modified: text(LAST_MODIFIED.as_str()), coded })
    }

    fn has_nothing(&self) -> bool {
        self.size.is_none() && self.etag.is_none() && self.modified.is_none()
    }
}

/// Whether a body must be decoded while it is written. A `.gz` file is stored as it is sent.
fn is_coded(headers: &HeaderMap, url: &Url) -> Result<bool, Problem> {
    let ends_gz = url.path().to_ascii_lowercase().strip_suffix(".gz").is_some();
    match header(headers, CONTENT_ENCODING.as_str()).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "identity" => Ok(false),
        "gzip" | "x-gzip" => Ok(!ends_gz),
        other => Err(Problem::Unexpected {
            what: format!("with the content encoding \"{}\", which nobody asked for", other.escape_debug()),
            fix: "Serve the file as it is, or compressed with gzip".into(),
        }),
    }
}

fn length(headers: &HeaderMap) -> Option<u64> {
    header(headers, CONTENT_LENGTH.as_str())?.parse().ok()
}

fn is_strong(etag: &str) -> bool {
    !etag.starts_with("W/")
}

impl Web<'_> {
    fn url(&self) -> &Url {
        self.reference.url.expose()
    }

    fn name(&self) -> String {
        let last = self.url().path_segments().and_then(|mut segments| segments.next_back());
        names::local(last.unwrap_or_default())
    }

    /// Sends a request, follows its redirects, and returns the last answer, whatever its status.
    async fn ask(
        &self,
        method: Method,
        url: &Url,
        headers: &[(reqwest::header::HeaderName, String)],
    ) -> Result<Response, Failure> {
        let mut url = url.clone();
        for _ in 0..=MOST_HOPS {
            let mut request =
                self.http.client()?.request(method.clone(), url.clone()).header(ACCEPT_ENCODING, "identity");
            for (name, value) in headers {
                request = request.header(name, value);
            }
            let response = self.http.send(request, self.http.patience().headers).await?;
            if !response.status().is_redirection() || response.status() == StatusCode::NOT_MODIFIED {
                return Ok(response);
            }
            url = redirect_target(&url, response.headers())?;
        }
        Err(Problem::EndlessRedirect(host_of(&url)).into())
    }

    /// Size and validators, by HEAD where that is allowed, else by the first byte.
    async fn facts(&self) -> Result<Facts, Failure> {
        let signed = aiperf_config::signature(self.url()).is_some();
        if !signed {
            let response = self.ask(Method::HEAD, self.url(), &[]).await?;
            let status = response.status();
            if status.is_success() {
                let facts = Facts::of(response.headers(), length(response.headers()), self.url())?;
                if !facts.has_nothing() {
                    return Ok(facts);
                }
            } else if !matches!(status.as_u16(), 400 | 403 | 405 | 501) {
                return Err(self.refused(response, &self.reference.url.typed()).await);
            }
        }
        let response = self.ask(Method::GET, self.url(), &[(RANGE, "bytes=0-0".into())]).await?;
        let headers = response.headers();
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                let total = content_range(headers).and_then(|(_, total)| total);
                Ok(Facts::of(headers, total, self.url())?)
            }
            StatusCode::RANGE_NOT_SATISFIABLE if header(headers, "content-range") == Some("bytes */0") => {
                Ok(Facts { size: Some(0), ..Facts::default() })
            }
            status if status.is_success() => Ok(Facts::of(headers, length(headers), self.url())?),
            _ => Err(self.refused(response, &self.reference.url.typed()).await),
        }
    }

    /// What an answer means that brings no data.
    async fn refused(&self, response: Response, about: &str) -> Failure {
        let status = response.status();
        let what = format!("a question about {about}");
        if let Some(failure) = transient_answer(status, response.headers(), &what) {
            return failure;
        }
        let (own, other) = (host_of(self.url()), host_of(response.url()));
        let host = if other == own { own } else { format!("{other}, where {own} leads,") };
        // By its own clock, where it tells: that of this machine may be wrong.
        let now = server_time(response.headers()).unwrap_or_else(own_time);
        let text = Body::new(response, 0, None).small(1 << 16).await.ok().flatten().unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let signature = aiperf_config::signature(self.url());
        let problem = match status.as_u16() {
            404 | 410 => Problem::NotFound {
                what: format!("the file at {host}"),
                fix: "Check the spelling of the URL".into(),
            },
            400 | 401 | 403 if signature.is_some() => {
                let expires = signature.and_then(|signature| signature.expires);
                let says = ["Request has expired", "AuthenticationFailed", "ExpiredToken"];
                if expires.is_some_and(|end| end < now) || says.iter().any(|phrase| text.contains(phrase)) {
                    let utc = |end: u64| aiperf_clock::format_utc(end.saturating_mul(1_000_000_000));
                    Problem::Expired { expired: expires.map(|end| format!("{} UTC", utc(end))) }
                } else {
                    Problem::Denied {
                        what: format!("{host} answered {} to the presigned URL", status.as_u16()),
                        fix: "Generate a new URL that may be read with GET".into(),
                    }
                }
            }
            401 | 403 => Problem::Denied {
                what: format!("{host} answered {} without credentials", status.as_u16()),
                fix: match self.url().domain() {
                    Some(name) if name.ends_with(".amazonaws.com") => {
                        "Use a presigned URL, or read it with credentials as s3://<bucket>/<key>".into()
                    }
                    _ => "Use a public URL, or one that is signed in its query".into(),
                },
            },
            other => Problem::Unexpected { what: format!("{other} to {what}"), fix: "Check the URL".into() },
        };
        Failure::Final(problem)
    }

    /// The sidecar; what cannot be one counts as none.
    async fn sidecar(&self) -> Result<Option<(String, Vec<u8>)>, Problem> {
        let Some(url) = self.reference.sidecar() else { return Ok(None) };
        let place = url.path_segments().and_then(|mut segments| segments.next_back().map(names::local));
        let place = place.unwrap_or_else(|| "aiperf.json".into());
        retrying(self.http.patience(), async || {
            let response = self.ask(Method::GET, &url, &[]).await?;
            let status = response.status();
            match status.as_u16() {
                404 | 410 => Ok(None),
                401 | 403 => {
                    self.events
                        .info(format!("{place} may not be read ({}): taken as absent", status.as_u16()));
                    Ok(None)
                }
                200 if is_page(response.headers()) => Ok(None),
                200 => {
                    let coded = is_coded(response.headers(), &url)?;
                    let body = Body::new(response, 0, None);
                    let body = if coded { body.decoded() } else { body };
                    let bytes = body.small(MOST_BYTES).await?;
                    Ok(Some((place.clone(), bytes.unwrap_or_else(|| vec![b' '; MOST_BYTES + 1]))))
                }
                _ => Err(self.refused(response, &format!("the sidecar {place}")).await),
            }
        })
        .await
    }

    /// Whether an answer is of the version that was pinned. One that is compressed for the transfer only has the same
    /// tag in a weak form, and another length.
    fn check_pin(&self, answer: &Answered<'_>, file: &Entry) -> Result<(), Problem> {
        let Answered { headers, size, coded } = *answer;
        let same = match (&file.etag, &file.modified) {
            (Some(pinned), _) => {
                let found = header(headers, ETAG.as_str());
                found == Some(pinned) || (coded != file.coded && found.map(opaque) == Some(opaque(pinned)))
            }
            (None, Some(modified)) => header(headers, LAST_MODIFIED.as_str()) == Some(modified),
            (None, None) => true,
        };
        let same_size = match (size, file.size) {
            (Some(found), Some(pinned)) => found == pinned,
            _ => true,
        };
        if same && same_size { Ok(()) } else { Err(Problem::Changed(self.reference.url.typed())) }
    }
}

/// What an answer with data says about them.
#[derive(Clone, Copy)]
struct Answered<'a> {
    headers: &'a HeaderMap,
    /// Bytes of the whole file.
    size: Option<u64>,
    /// Compressed for the transfer.
    coded: bool,
}

/// A tag without what says how it may be compared.
fn opaque(etag: &str) -> &str {
    etag.strip_prefix("W/").unwrap_or(etag)
}

impl Protocol for Web<'_> {
    async fn look_up(&self) -> Result<Found, Problem> {
        if aiperf_config::was_printed(self.url()) {
            return Err(Problem::Denied {
                what: "a credential in the URL is <redacted>, it was printed once".into(),
                fix: "Give the whole URL, or generate a new one".into(),
            });
        }
        let facts = retrying(self.http.patience(), async || self.facts().await).await?;
        let entry = Entry {
            path: self.name(),
            size: facts.size,
            etag: facts.etag,
            modified: facts.modified,
            coded: facts.coded,
            ..Entry::default()
        };
        if version_of(&entry).is_none() {
            self.events.warn(format!(
                "{} has no ETag, and no Last-Modified with a length: it is downloaded again on every run",
                self.reference.url.typed()
            ));
        }
        let declaration = self.sidecar().await?;
        Ok(Found { commit: None, node: Node::File(entry), declaration, declared_by: None })
    }

    async fn node(&self, _: &Found, _: &str) -> Result<Option<Node>, Problem> {
        Ok(None)
    }

    async fn list(&self, _: &Found, _: &str) -> Result<Vec<Entry>, Problem> {
        Ok(Vec::new())
    }

    async fn prove(&self, _: &Found, file: Entry) -> Result<Entry, Problem> {
        Ok(file)
    }

    async fn open(&self, _: &Found, file: &Entry, range: Range) -> Result<Body, Failure> {
        let condition = file.etag.as_ref().filter(|etag| is_strong(etag));
        let condition = condition.map(|etag| (IF_MATCH, etag.clone()));
        // What is decoded on its way has no places.
        let places = range.header().filter(|_| !file.coded).map(|range| (RANGE, range));
        let headers: Vec<_> = condition.clone().into_iter().chain(places).collect();
        let mut response = self.ask(Method::GET, self.url(), &headers).await?;
        if response.status() == StatusCode::PARTIAL_CONTENT && is_coded(response.headers(), self.url())? {
            let whole: Vec<_> = condition.into_iter().collect();
            response = self.ask(Method::GET, self.url(), &whole).await?;
        }
        let found = response.headers();
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                let Some((start, total)) = content_range(found).filter(|(start, _)| *start == range.start)
                else {
                    return Err(Failure::transient(Problem::CutShort {
                        file: file.path.clone(),
                        what: "another range came than the one asked for".into(),
                    }));
                };
                self.check_pin(&Answered { headers: found, size: total, coded: false }, file)?;
                Ok(Body::new(response, start, total))
            }
            StatusCode::OK => {
                let coded = is_coded(found, self.url())?;
                let size = length(found).filter(|_| !coded);
                self.check_pin(&Answered { headers: found, size, coded }, file)?;
                let body = Body::new(response, 0, size);
                Ok(if coded { body.decoded() } else { body })
            }
            StatusCode::PRECONDITION_FAILED => Err(Problem::Changed(self.reference.url.typed()).into()),
            StatusCode::RANGE_NOT_SATISFIABLE => {
                Err(Failure::NoSuchRange(Problem::Changed(self.reference.url.typed())))
            }
            _ => Err(self.refused(response, &self.reference.url.typed()).await),
        }
    }

    fn folder(&self) -> String {
        String::new()
    }

    fn title(&self, _: &str) -> String {
        self.reference.url.typed()
    }

    fn reference_to(&self, _: &str) -> String {
        self.reference.url.typed()
    }

    fn version(&self, _: &Found, target: &Target<'_>) -> (Option<String>, String) {
        (target.files.first().and_then(version_of), self.reference.url.typed())
    }
}

fn version_of(file: &Entry) -> Option<String> {
    match (&file.etag, &file.modified, file.size) {
        (Some(etag), ..) => Some(format!("etag:{etag}")),
        (None, Some(modified), Some(size)) => Some(format!("modified:{modified};length:{size}")),
        _ => None,
    }
}
