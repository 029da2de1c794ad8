//! Taking an answer in: its bytes are kept as they come until there are many, and read on the go from then on,
//! so that what a stream holds does not grow with its events.

use aiperf_clock::Mono;
use aiperf_endpoint::{ReadPlan, Reader};

use crate::outcome::ReceivedBytes;
use crate::transport::exchange::Inbound;
use crate::transport::response::Head;
use crate::underway::Underway;

/// Streams longer than this are read as they come.
const KEEP_BYTES: usize = 8 * 1024;
/// Bodies of failures are read up to this.
const ERROR_BODY: usize = 64 * 1024;
/// No answer is longer.
const LARGEST_BODY: usize = 512 * 1024 * 1024;

/// The answer so far.
pub(super) struct Gather<'a> {
    plan: &'a ReadPlan,
    underway: &'a Underway,
    pub(super) head: Option<Head>,
    pub(super) headers_at: Option<Mono>,
    pub(super) bytes: ReceivedBytes,
    pub(super) too_large: bool,
    ok: bool,
    reads_on_the_go: bool,
}

impl<'a> Gather<'a> {
    pub(super) fn new(plan: &'a ReadPlan, underway: &'a Underway) -> Gather<'a> {
        Gather {
            plan,
            underway,
            head: None,
            headers_at: None,
            bytes: ReceivedBytes::default(),
            too_large: false,
            ok: false,
            reads_on_the_go: false,
        }
    }

    fn read_on_the_go(&mut self) {
        let mut reader = Reader::new(self.plan, &self.bytes.content_type);
        self.bytes.each_read(|bytes, at| reader.push(bytes, at));
        self.bytes.data = Vec::new();
        self.bytes.reads = Vec::new();
        self.bytes.reader = Some(reader);
    }
}

impl Inbound for Gather<'_> {
    fn head(&mut self, mut head: Head, at: Mono) {
        self.ok = (200..300).contains(&head.status);
        self.headers_at = Some(at);
        self.underway.begun();
        self.bytes.content_type = std::mem::take(&mut head.content_type);
        self.bytes.content_encoding = std::mem::take(&mut head.content_encoding);
        let stream =
            self.bytes.content_type.get(..17).is_some_and(|t| t.eq_ignore_ascii_case("text/event-stream"));
        self.reads_on_the_go = self.ok && stream && self.bytes.content_encoding.is_empty();
        self.head = Some(head);
    }

    fn body(&mut self, bytes: &[u8], at: Mono) -> bool {
        if let Some(reader) = &mut self.bytes.reader {
            reader.push(bytes, at);
            return true;
        }
        let kept = &mut self.bytes;
        kept.data.extend_from_slice(bytes);
        let end = kept.data.len() as u32;
        match kept.reads.last_mut() {
            // Chunks of one socket read share its instant.
            Some(last) if last.1 == at => last.0 = end,
            _ => kept.reads.push((end, at)),
        }
        if !self.ok {
            return kept.data.len() < ERROR_BODY;
        }
        if kept.data.len() > KEEP_BYTES && self.reads_on_the_go {
            self.read_on_the_go();
        }
        self.too_large = self.bytes.data.len() > LARGEST_BODY;
        !self.too_large
    }
}
