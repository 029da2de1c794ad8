//! Conversations made ready for sending, ahead of their time, on other threads.

use std::sync::Arc;

use aiperf_endpoint::Rendered;
use aiperf_types::{CacheBustMarker, Conversation, TraceSource};
use tokio::sync::oneshot::{self, error::TryRecvError};

/// A conversation whose requests can leave.
#[derive(Debug)]
pub struct Prepared {
    /// The turn that the first of the requests is.
    pub first_turn: u32,
    /// Session id.
    pub id: Arc<str>,
    /// The session that it was recorded in.
    pub source_session: Option<Arc<str>>,
    /// Requests that are known ahead: all of them where turns stand alone, the first where they build on answers, one
    /// where turns are made one by one.
    pub requests: Vec<Arc<Rendered>>,
    /// The conversation itself, where later requests are made from answers.
    pub conversation: Option<Conversation>,
    /// Where an agentic trace has each turn; empty for other data.
    pub sources: Vec<Option<Arc<TraceSource>>>,
    /// The mark in its requests.
    pub marker: Option<Arc<CacheBustMarker>>,
}

impl Prepared {
    /// The turn after the last one whose request is known.
    pub(crate) fn end(&self) -> usize {
        self.first_turn as usize + self.requests.len()
    }
}

/// A prepared conversation, or why it cannot be made.
pub type PreparedResult = Result<Arc<Prepared>, Arc<str>>;

/// Delivers a prepared conversation to the worker that sends it.
#[derive(Debug)]
pub struct Ticket {
    receiver: oneshot::Receiver<PreparedResult>,
    ready: Option<PreparedResult>,
}

impl Ticket {
    /// A ticket and the end that fulfils it.
    pub fn new() -> (oneshot::Sender<PreparedResult>, Ticket) {
        let (sender, receiver) = oneshot::channel();
        (sender, Ticket { receiver, ready: None })
    }

    /// A ticket that is fulfilled already.
    pub fn fulfilled(result: PreparedResult) -> Ticket {
        let (sender, receiver) = oneshot::channel();
        drop(sender);
        Ticket { receiver, ready: Some(result) }
    }

    /// Whether the conversation is ready, or known never to be.
    pub fn is_ready(&mut self) -> bool {
        if self.ready.is_none() {
            self.ready = match self.receiver.try_recv() {
                Ok(result) => Some(result),
                // A receiver that has said so once must not be asked again.
                Err(TryRecvError::Closed) => Some(abandoned()),
                Err(TryRecvError::Empty) => None,
            };
        }
        self.ready.is_some()
    }

    /// The conversation, waited for.
    pub(crate) async fn take(mut self) -> PreparedResult {
        match self.ready.take() {
            Some(result) => result,
            None => self.receiver.await.unwrap_or_else(|_| abandoned()),
        }
    }
}

/// Whoever was to make the conversation went away.
fn abandoned() -> PreparedResult {
    Err("the run is ending".into())
}
