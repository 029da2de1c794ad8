//! What a person sees while a source is read.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::printable;

/// Something to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A line for the log.
    Note {
        /// Something is not as one would expect; else it is a fact.
        warning: bool,
        /// One line.
        text: String,
    },
    /// A transfer starts.
    Start {
        /// Files to fetch.
        files: usize,
        /// Bytes to fetch, as far as sizes are known.
        bytes: Option<u64>,
    },
    /// A transfer goes on; several times a second.
    Progress {
        /// Bytes fetched so far.
        done: u64,
    },
    /// Nothing more comes of that transfer.
    End,
}

/// Where events go.
#[derive(Clone)]
pub struct Events {
    take: Arc<dyn Fn(Event) + Send + Sync>,
    /// Warnings that are not worth a second time.
    warned: Arc<Mutex<BTreeSet<String>>>,
}

impl Events {
    /// To a function.
    pub fn to(take: impl Fn(Event) + Send + Sync + 'static) -> Events {
        Events { take: Arc::new(take), warned: Arc::default() }
    }

    /// Nowhere.
    pub fn none() -> Events {
        Events::to(|_| {})
    }

    pub(crate) fn send(&self, event: Event) {
        (self.take)(event);
    }

    pub(crate) fn info(&self, text: impl AsRef<str>) {
        self.send(Event::Note { warning: false, text: printable(text.as_ref()) });
    }

    pub(crate) fn warn(&self, text: impl AsRef<str>) {
        self.send(Event::Note { warning: true, text: printable(text.as_ref()) });
    }

    /// Warns, unless these very words were said before.
    pub(crate) fn warn_once(&self, text: String) {
        let is_new = self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone());
        if is_new {
            self.warn(text);
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}

/// Ends the work of a source within a tenth of a second, from any thread or signal handler.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// The flag itself, for a signal handler to set.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Stops.
    pub fn now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is set.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns once it is set.
    pub(crate) async fn wait(&self) {
        while !self.0.load(Ordering::Relaxed) {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}
