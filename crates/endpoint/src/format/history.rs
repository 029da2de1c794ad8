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
    /// Where each message ends, those that were put in front of the data first.
    pub(super) marks: Vec<Mark>,
    /// Messages put in front of the data.
    pub(super) lead: u32,
    keep_answers: bool,
}

/// Where a message of the past ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// The segment.
    pub(super) segment: u32,
    /// The byte after it in the segment.
    pub(super) end: u32,
    /// Texts up to and with it.
    pub(super) texts: u32,
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
            self.marks.clear();
            self.lead = carry.lead;
        } else if let Some(kept) = carry.kept {
            self.keep(kept);
        }
        self.pending.clear();
        let segment = self.segments.len() as u32;
        self.marks.extend(carry.marks.iter().map(|mark| Mark { segment, ..*mark }));
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

    /// The mark up to which `messages` messages of the data reach; `None` when there are none, or not so many.
    pub(super) fn mark(&self, messages: u32) -> Option<Mark> {
        let place = (self.lead + messages).checked_sub(1)?;
        self.marks.get(place as usize).copied()
    }

    /// Drops what comes after the first `messages` messages of the data.
    fn keep(&mut self, messages: u32) {
        let Some(mark) = self.mark(messages) else { return };
        self.marks.truncate((self.lead + messages) as usize);
        self.segments.truncate(mark.segment as usize + 1);
        if let Some(last) = self.segments.last_mut() {
            *last = last.slice(..mark.end as usize);
        }
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
