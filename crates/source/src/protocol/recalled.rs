//! An S3 or HTTPS source as the cache knows it: no socket, no name lookup.

use crate::cache::remote::{Recalled, RemoteCache};
use crate::error::Problem;
use crate::events::Events;
use crate::http::{Body, Failure};
use crate::protocol::hub::offline::age;
use crate::protocol::{Entry, Found, Node, Protocol, Range, Target};
use crate::reference::Reference;

/// What the last run that was online found.
pub(crate) struct OfflineRemote<'a> {
    reference: &'a Reference,
    recalled: Recalled,
    events: &'a Events,
}

impl<'a> OfflineRemote<'a> {
    /// Recalls a reference.
    pub(crate) fn new(
        cache: &RemoteCache,
        reference: &'a Reference,
        events: &'a Events,
    ) -> Result<OfflineRemote<'a>, Problem> {
        let recalled = cache
            .recall()
            .ok_or_else(|| cache.barrier().unwrap_or_else(|| Problem::Offline(reference.redacted())))?;
        Ok(OfflineRemote { reference, recalled, events })
    }
}

impl Protocol for OfflineRemote<'_> {
    async fn look_up(&self) -> Result<Found, Problem> {
        let recalled = &self.recalled;
        let pinned = matches!(self.reference, Reference::S3(s3) if s3.version.is_some());
        if !pinned {
            let seconds =
                aiperf_clock::wall(aiperf_clock::now()).saturating_sub(recalled.checked) / 1_000_000_000;
            self.events.warn(format!(
                "offline mode is on: {} uses the newest cached version, {}, first seen {} ago",
                self.reference,
                recalled.version.as_deref().unwrap_or("without a name"),
                age(seconds)
            ));
        }
        let node = match recalled.files.first() {
            Some(file) if !recalled.is_folder_reference => Node::File(file.clone()),
            _ => Node::Folder,
        };
        let declaration =
            recalled.declaration.as_ref().map(|(path, text)| (path.clone(), text.clone().into_bytes()));
        Ok(Found { commit: None, node, declaration, declared_by: recalled.declared_by.clone() })
    }

    async fn node(&self, _: &Found, path: &str) -> Result<Option<Node>, Problem> {
        if let Some(file) = self.recalled.files.iter().find(|file| file.path == path) {
            return Ok(Some(Node::File(file.clone())));
        }
        Ok((self.recalled.folder.as_deref() == Some(path)).then_some(Node::Folder))
    }

    async fn list(&self, _: &Found, _: &str) -> Result<Vec<Entry>, Problem> {
        Ok(self.recalled.files.clone())
    }

    async fn prove(&self, _: &Found, file: Entry) -> Result<Entry, Problem> {
        Ok(file)
    }

    async fn open(&self, _: &Found, file: &Entry, _: Range) -> Result<Body, Failure> {
        Err(Problem::Offline(file.path.clone()).into())
    }

    fn folder(&self) -> String {
        match self.reference {
            Reference::S3(s3) => crate::protocol::s3::folder_of(&s3.key),
            _ => String::new(),
        }
    }

    fn title(&self, folder: &str) -> String {
        match self.reference {
            Reference::S3(s3) => format!("s3://{}/{folder}", s3.bucket),
            other => other.redacted(),
        }
    }

    fn reference_to(&self, path: &str) -> String {
        self.title(path)
    }

    fn version(&self, _: &Found, _: &Target<'_>) -> (Option<String>, String) {
        (self.recalled.version.clone(), self.recalled.resolved_reference.clone())
    }

    fn fetches_whole_folders(&self) -> bool {
        matches!(self.reference, Reference::S3(_))
    }
}
