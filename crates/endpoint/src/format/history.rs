//! What a conversation has said so far, as it goes on the wire.

use std::sync::Arc;

use aiperf_types::CountedText;
use bytes::Bytes;

use super::Rendered;
use super::tools::Tools;
use crate::reader::Reply;

/// The serialised past of one conversation. A request of turn k refers to the bytes of the k − 1 requests before
/// it; nothing is copied or serialised twice.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Messages of earlier requests, the first with the opening of the body.
    pub(super) segments: Vec<Bytes>,
    /// Answers since then, each with a comma in front.
    pub(super) pending: Vec<u8>,
    pub(super) texts: Vec<Arc<CountedText>>,
    pub(super) images: u32,
    pub(super) tools: Option<Tools>,
    /// Whether any message has been sent.
    pub(super) any: bool,
    keep_answers: bool,
}

impl History {
    /// Whether nothing has been said.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Adds the turn that was sent as `rendered`. Requests of endpoints without history add nothing.
    pub fn push_turn(&mut self, rendered: &Rendered) {
        let Some(carry) = &rendered.carry else { return };
        if carry.fresh {
            self.segments.clear();
        }
        self.pending.clear();
        self.segments.push(carry.segment.clone());
        self.texts.clone_from(carry.built.as_ref().unwrap_or(&rendered.texts));
        if carry.tools.as_ref().is_some_and(|tools| tools.text.is_some()) {
            // The text of the tools stands last, and after the messages of the next request too.
            self.texts.pop();
        }
        self.images = rendered.num_images;
        self.tools.clone_from(&carry.tools);
        self.any = carry.any;
        self.keep_answers = carry.keep_answers;
    }

    /// Adds the live answer to the turn pushed last; without effect where the conversation brings its own
    /// answers. A failed turn has no reply to push: the next request then follows without one.
    pub fn push_answer(&mut self, reply: &Reply) {
        if !self.keep_answers || self.segments.is_empty() {
            return;
        }
        if self.any {
            self.pending.push(b',');
        }
        self.pending.extend_from_slice(reply.message());
        self.any = true;
        if let Some(text) = reply.text() {
            self.texts.push(text);
        }
    }

    /// Bytes held, for reports of memory.
    pub fn len(&self) -> usize {
        self.pending.len() + self.segments.iter().map(Bytes::len).sum::<usize>()
    }
}
