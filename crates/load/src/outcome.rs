//! What came of a turn, as the network thread leaves it: bytes and stamps, not yet read.

use aiperf_clock::Mono;
use aiperf_endpoint::{Reader, Reading};
use aiperf_types::{ContentEvent, HttpTrace, Identity, PlanInstants, RequestError, RequestFacts};

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

impl Exchange {
    /// Heap bytes that grow with the request and the answer: what it costs to let it wait. Texts that it shares count as
    /// if they were its own.
    pub fn held_bytes(&self) -> usize {
        let texts: usize = self.request.texts.iter().map(|text| text.held_bytes()).sum();
        let template = self
            .template_input
            .as_ref()
            .map_or(0, |(messages, tools)| messages.len() + tools.as_ref().map_or(0, String::len));
        let received = match &self.received {
            Received::Nothing => 0,
            Received::Bytes(bytes) => {
                bytes.data.capacity()
                    + bytes.reads.capacity() * size_of::<(u32, Mono)>()
                    + bytes.reader.as_ref().map_or(0, Reader::held)
            }
            Received::Read(reading) => {
                let answer = &reading.answer;
                answer.text.len() + answer.reasoning.len() + answer.content.len() * size_of::<ContentEvent>()
            }
        };
        self.request.body.len() + texts + template + received
    }
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
