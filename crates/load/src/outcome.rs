//! What came of a turn, as the network thread leaves it: bytes and stamps, not yet read.

use aiperf_clock::Mono;
use aiperf_endpoint::{Reader, Reading};
use aiperf_types::{HttpTrace, Identity, PlanInstants, RequestError, RequestFacts};

/// One request, over.
#[derive(Debug)]
pub struct Exchange {
    /// Which request.
    pub identity: Identity,
    /// What the plan wanted.
    pub plan: PlanInstants,
    /// The request was ready, just before a connection was asked for.
    pub start: Mono,
    /// Status and headers were in.
    pub headers: Option<Mono>,
    /// The exchange was over, or the failure known.
    pub end: Mono,
    /// The wire.
    pub trace: HttpTrace,
    /// Status of the answer.
    pub status: Option<u16>,
    /// The request.
    pub request: RequestFacts,
    /// JSON texts of messages and tools, where the input is counted through a chat template.
    pub template_input: Option<(String, Option<String>)>,
    /// The answer.
    pub received: Received,
    /// Why the transport failed it; what the answer says is not read yet.
    pub failure: Option<RequestError>,
    /// When the client broke it off.
    pub cancelled_at: Option<Mono>,
    /// The worker was late to its sockets while it ran.
    pub client_delayed: bool,
}

/// An answer on its way to being read.
#[derive(Debug, Default)]
pub enum Received {
    /// There is none.
    #[default]
    Nothing,
    /// Bytes as they came.
    Bytes(Box<ReceivedBytes>),
    /// Read already, on the network thread, because the next turn repeats it.
    Read(Box<Reading>),
}

/// The bytes of an answer, transfer coding removed.
#[derive(Debug, Default)]
pub struct ReceivedBytes {
    /// Media type of the answer.
    pub content_type: String,
    /// Content coding of the answer, mostly empty.
    pub content_encoding: String,
    /// A reader that took in everything before `data`.
    pub reader: Option<Reader>,
    /// Bytes not read yet.
    pub data: Vec<u8>,
    /// Where each socket read ended in `data`, and when it returned.
    pub reads: Vec<(u32, Mono)>,
}

impl ReceivedBytes {
    /// Calls `push` with the bytes of each socket read and its instant.
    pub fn each_read(&self, mut push: impl FnMut(&[u8], Mono)) {
        let mut from = 0;
        for &(to, at) in &self.reads {
            push(&self.data[from..to as usize], at);
            from = to as usize;
        }
    }
}
