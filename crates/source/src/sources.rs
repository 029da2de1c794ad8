//! The way in: a reference is checked, looked into, and fetched.

use std::future::Future;
use std::sync::OnceLock;

use crate::access::{self, Ask};
use crate::cache::hub::HubCache;
use crate::cache::remote::RemoteCache;
use crate::digest::Promise;
use crate::error::{Problem, SourceError};
use crate::events::{Event, Events, Stop};
use crate::fetch::{Fetch, LocalFile, ReadFiles};
use crate::http::{Http, retrying};
use crate::plan::Plan;
use crate::protocol::hub::Hub;
use crate::protocol::hub::client::{Client, Repo};
use crate::protocol::hub::offline::OfflineHub;
use crate::protocol::local::LocalSource;
use crate::protocol::recalled::OfflineRemote;
use crate::protocol::s3::client::Client as S3Client;
use crate::protocol::s3::{self, S3};
use crate::protocol::web::Web;
use crate::protocol::{Protocol, Range};
use crate::provenance::Provenance;
use crate::reference::Reference;
use crate::settings::Settings;
use crate::store::Store;

/// Reads sources.
#[derive(Debug)]
pub struct Sources {
    pub(crate) settings: Settings,
    pub(crate) events: Events,
    pub(crate) stop: Stop,
    hub: OnceLock<Client>,
    web: OnceLock<Http>,
    s3: OnceLock<S3Client>,
    read: ReadFiles,
}

/// The first bytes of the first file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leading {
    /// As stored.
    pub bytes: Vec<u8>,
    /// Whether that is the whole file.
    pub whole: bool,
}

/// What is known of a file before it is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    /// It is here.
    pub cached: bool,
    /// Its digest, as the cache or the source says.
    pub sha256: Option<String>,
}

/// A source whose files are here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// The files, in the order they are read.
    pub files: Vec<LocalFile>,
    /// Whether they are a folder.
    pub folder: bool,
    /// Which bytes they are.
    pub provenance: Provenance,
}

/// Runs `$work` with the protocol and the cache of a reference.
macro_rules! with_protocol {
    ($self:ident, $reference:expr, |$protocol:ident, $store:ident| $work:expr) => {
        match $reference {
            Reference::Hub(reference) => {
                let repo = Repo::dataset(&reference.org, &reference.repo);
                let cache = HubCache::new(&$self.settings.hub, &repo);
                let $store = &cache;
                if $self.settings.offline {
                    let $protocol = &OfflineHub { cache: &cache, reference, events: &$self.events };
                    $work
                } else {
                    let $protocol = &Hub { client: $self.hub(), cache: &cache, reference, repo: &repo };
                    $work
                }
            }
            Reference::Local(path) => match LocalSource::new(path) {
                Ok(local) => {
                    let ($protocol, $store) = (&local, &local);
                    $work
                }
                Err(problem) => Err(problem),
            },
            Reference::S3(_) | Reference::Web(_) => {
                let cache = $self.remote_cache($reference);
                let $store = &cache;
                match $reference {
                    _ if $self.settings.offline => {
                        match OfflineRemote::new(&cache, $reference, &$self.events) {
                            Ok(recalled) => {
                                let $protocol = &recalled;
                                $work
                            }
                            Err(problem) => Err(problem),
                        }
                    }
                    Reference::Web(reference) => {
                        let $protocol = &Web { http: $self.web(), reference, events: &$self.events };
                        $work
                    }
                    Reference::S3(reference) => match $self.s3() {
                        Ok(client) => {
                            let $protocol = &S3 { client, reference, events: &$self.events };
                            $work
                        }
                        Err(problem) => Err(problem),
                    },
                    // Invariant: the arm around this one takes S3 and the web alone.
                    other => Err(Problem::Empty(other.redacted())),
                }
            }
        }
    };
}

impl Sources {
    /// With these settings; what a person should see goes to `events`, and `stop` ends it.
    pub fn new(mut settings: Settings, events: Events, stop: Stop) -> Sources {
        settings.patience.events = events.clone();
        Sources {
            settings,
            events,
            stop,
            hub: OnceLock::new(),
            web: OnceLock::new(),
            s3: OnceLock::new(),
            read: ReadFiles::default(),
        }
    }

    fn web(&self) -> &Http {
        let patience = &self.settings.patience;
        self.web.get_or_init(|| Http::new(patience.clone(), patience.idle))
    }

    fn s3(&self) -> Result<&S3Client, Problem> {
        if let Some(client) = self.s3.get() {
            return Ok(client);
        }
        let client = S3Client::new(&self.settings)?;
        Ok(self.s3.get_or_init(|| client))
    }

    pub(crate) fn hub(&self) -> &Client {
        self.hub.get_or_init(|| {
            if let Some(fault) = &self.settings.hub.token_fault {
                self.events.warn(format!("the Hub is asked without a token: {fault}"));
            }
            Client::new(self.settings.hub.clone(), &self.settings.patience)
        })
    }

    fn remote_cache(&self, reference: &Reference) -> RemoteCache {
        let root = &self.settings.remote_cache;
        match reference {
            Reference::S3(s3) => {
                let store = s3::store(&self.settings);
                let identity = [store.as_str(), &s3.bucket, &s3.key];
                let version = s3.version.as_deref().unwrap_or_default();
                RemoteCache::new(root, "s3", &identity, &[&store, &s3.bucket, &s3.key, version])
            }
            Reference::Web(web) => {
                let identity = aiperf_config::identity(web.url.expose());
                RemoteCache::new(root, "https", &[&identity], &[&identity])
            }
            Reference::Hub(_) | Reference::Local(_) => RemoteCache::new(root, "hf", &[], &[]),
        }
    }

    /// Step 1: may it be read, exactly which version, which files? No data.
    pub fn access(&self, reference: &Reference, ask: &Ask<'_>) -> Result<Plan, SourceError> {
        if let Reference::Web(web) = reference
            && web.is_open()
        {
            self.events.warn(format!("{reference}: plain http is neither private nor authenticated"));
        }
        let offline = self.settings.offline;
        self.run(reference, async {
            with_protocol!(self, reference, |protocol, store| {
                access::access(protocol, store, reference, ask, offline, &self.events).await
            })
        })
    }

    /// What is here of a plan's files already: their digests where they are known, `None` for a file that would be
    /// fetched.
    pub fn present(&self, plan: &Plan) -> Result<Vec<Presence>, SourceError> {
        self.run(&plan.reference, async {
            with_protocol!(self, &plan.reference, |protocol, store| {
                let _ = protocol;
                Ok(plan
                    .files
                    .iter()
                    .map(|file| {
                        let promised = match &file.promise {
                            Some(Promise::Sha256(sha256)) => Some(sha256.clone()),
                            _ => None,
                        };
                        Presence {
                            cached: store.hit(plan, file).is_some(),
                            sha256: store.recorded(plan, file).or(promised),
                        }
                    })
                    .collect())
            })
        })
    }

    /// Step 2: the stored bytes of the first file up to `most`.
    pub fn leading(&self, plan: &Plan, most: u64) -> Result<Leading, SourceError> {
        self.run(&plan.reference, async {
            with_protocol!(self, &plan.reference, |protocol, store| {
                leading(&self.work(protocol, store, plan), most, &self.settings).await
            })
        })
    }

    /// The first file alone, into the cache.
    pub fn fetch_first(&self, plan: &Plan) -> Result<LocalFile, SourceError> {
        self.run(&plan.reference, async {
            with_protocol!(self, &plan.reference, |protocol, store| {
                self.work(protocol, store, plan).first().await
            })
        })
    }

    /// Step 3: every file into the cache, verified.
    pub fn fetch(&self, plan: &Plan) -> Result<Local, SourceError> {
        let files = self.run(&plan.reference, async {
            with_protocol!(self, &plan.reference, |protocol, store| {
                self.work(protocol, store, plan).all().await
            })
        })?;
        let provenance = Provenance::of(plan, &files);
        Ok(Local { files, folder: plan.is_folder(), provenance })
    }

    pub(crate) fn work<'a, P: Protocol, S: Store>(
        &'a self,
        protocol: &'a P,
        store: &'a S,
        plan: &'a Plan,
    ) -> Fetch<'a, P, S> {
        Fetch {
            protocol,
            store,
            plan,
            patience: &self.settings.patience,
            events: &self.events,
            stop: &self.stop,
            compares: self.settings.compares,
            read: &self.read,
        }
    }

    /// Runs `work` to its end, or until it is stopped.
    pub(crate) fn run<T>(
        &self,
        reference: &Reference,
        work: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, SourceError> {
        self.about(reference.redacted(), work)
    }

    /// Whether everything that goes on is to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }

    /// Whether only what was downloaded is used.
    pub fn is_offline(&self) -> bool {
        self.settings.offline
    }

    /// As [`Sources::run`], for something that is named so in errors.
    pub(crate) fn about<T>(
        &self,
        name: String,
        work: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, SourceError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let result = match runtime {
            Ok(runtime) => {
                let result = runtime.block_on(async {
                    tokio::select! {
                        biased;
                        () = self.stop.wait() => Err(Problem::Interrupted),
                        result = work => result,
                    }
                });
                // A name that is being looked up, or a program that is asked for credentials, is not waited for.
                runtime.shutdown_background();
                result
            }
            Err(error) => {
                Err(Problem::Connect { host: "the network".into(), cause: error.to_string(), named_by: None })
            }
        };
        result.map_err(|problem| {
            // What was stopped in the middle of a transfer said no end.
            self.events.send(Event::End);
            problem.about(name)
        })
    }
}

pub(crate) async fn leading<P: Protocol, S: Store>(
    fetch: &Fetch<'_, P, S>,
    most: u64,
    settings: &Settings,
) -> Result<Leading, Problem> {
    use std::io::Read as _;

    let Fetch { protocol, plan, .. } = fetch;
    let first = plan.files.first().ok_or_else(|| Problem::Empty(plan.reference.redacted()))?;
    if let Some(path) = fetch.sound_hit(first)? {
        let cannot =
            |error: std::io::Error| Problem::CannotRead { path: path.clone(), cause: error.to_string() };
        let file = std::fs::File::open(&path).map_err(cannot)?;
        let length = file.metadata().map_err(cannot)?.len();
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).map_err(cannot)?;
        return Ok(Leading { whole: bytes.len() as u64 >= length, bytes });
    }
    retrying(&settings.patience, async || {
        let end = first.size.map_or(most, |size| size.min(most));
        let mut body = protocol.open(&plan.found, first, Range { start: 0, end: Some(end) }).await?;
        // What is decoded on its way is longer than what was announced.
        let (size, end) = if body.coded { (None, most) } else { (first.size, end) };
        let mut bytes: Vec<u8> = Vec::new();
        let mut ended = false;
        while (bytes.len() as u64) < end {
            let Some(chunk) = body.chunk().await? else {
                ended = true;
                break;
            };
            bytes.extend_from_slice(&chunk);
        }
        bytes.truncate(usize::try_from(end).unwrap_or(usize::MAX));
        let whole = match size {
            Some(size) => bytes.len() as u64 >= size,
            None => ended,
        };
        Ok(Leading { bytes, whole })
    })
    .await
}
