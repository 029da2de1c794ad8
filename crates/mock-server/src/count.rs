//! Prompt tokens, counted away from the network threads while the first token is waited for.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use aiperf_tokenize::Tokenizer;

use crate::scan::{Facts, Text, unescape};
use crate::shared::{Message, Shared};

/// The texts of one request.
#[derive(Debug)]
struct Job {
    slot: usize,
    serial: u32,
    /// The texts as the body has them, quotes included, one after the other.
    raw: Vec<u8>,
    texts: Vec<Text>,
    token_ids: u64,
}

/// The network thread's end: takes requests to count.
#[derive(Debug)]
pub(crate) struct Counting(Sender<Job>);

/// The counting thread's end.
#[derive(Debug)]
pub(crate) struct Counter {
    jobs: Receiver<Job>,
    shared: Arc<Shared>,
    /// The network thread it counts for.
    thread: usize,
}

/// Both ends for network thread `thread`.
pub(crate) fn counting(shared: &Arc<Shared>, thread: usize) -> (Counting, Counter) {
    let (sender, jobs) = channel();
    (Counting(sender), Counter { jobs, shared: Arc::clone(shared), thread })
}

impl Counting {
    /// Has the texts of `body` counted for the request that has `serial` in `slot`.
    pub(crate) fn count(&self, slot: usize, serial: u32, body: &[u8], facts: &Facts) {
        let quoted = |text: &Text| text.start - 1..text.end + 1;
        let mut raw = Vec::with_capacity(facts.texts.iter().map(|text| quoted(text).len()).sum());
        let mut texts = Vec::with_capacity(facts.texts.len());
        for text in &facts.texts {
            let start = raw.len() + 1;
            raw.extend_from_slice(&body[quoted(text)]);
            texts.push(Text { start, end: raw.len() - 1, ..*text });
        }
        // The counting thread ends only after this one.
        let _ = self.0.send(Job { slot, serial, raw, texts, token_ids: facts.token_ids });
    }
}

impl Counter {
    /// Counts until its network thread ends.
    pub(crate) fn run(self) {
        let tokenizer = Tokenizer::builtin();
        for job in self.jobs {
            let tokens = tokenizer.count(&joined(&job)) + job.token_ids;
            self.shared.counters.prompt(tokens);
            self.shared.inboxes[self.thread].send(Message::Counted {
                slot: job.slot,
                serial: job.serial,
                tokens,
            });
        }
    }
}

/// The texts joined by one space.
fn joined(job: &Job) -> String {
    let mut all = String::with_capacity(job.raw.len());
    for (number, text) in job.texts.iter().enumerate() {
        if number > 0 {
            all.push(' ');
        }
        match std::str::from_utf8(&job.raw[text.start..text.end]) {
            Ok(plain) if !text.escaped => all.push_str(plain),
            _ => all.push_str(&unescape(&job.raw, *text)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::scan;

    #[test]
    fn texts_are_joined_by_one_space_with_their_escapes_resolved() {
        let body =
            r#"{"messages":[{"content":"a\"b"},{"content":[{"type":"text","text":"ü"}]},{"content":""}]}"#;
        let mut facts = Facts::default();
        scan(body.as_bytes(), &mut facts).unwrap();
        let (sender, jobs) = channel();
        Counting(sender).count(3, 4, body.as_bytes(), &facts);
        let job = jobs.recv().unwrap();
        assert_eq!((job.slot, job.serial), (3, 4));
        assert_eq!(joined(&job), "a\"b ü ");
        assert_eq!(joined(&job).len() as u64, facts.joined_bytes());
    }
}
