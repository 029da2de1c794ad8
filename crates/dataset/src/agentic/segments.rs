//! Which messages a recorded prompt was made of: blocks that an earlier answer explains are the assistant's, the others
//! the user's.

use super::trace::Request;

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    System,
    User,
    Assistant,
}

impl Speaker {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Speaker::System => "system",
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
        }
    }
}

/// One message: whole blocks of a prompt, and tokens of its own after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) speaker: Speaker,
    /// First block, and the one after the last.
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Tokens after the blocks; only the last message of a prompt has any.
    pub(crate) tail: u64,
}

impl Segment {
    fn blocks(speaker: Speaker, from: usize, to: usize) -> Segment {
        Segment { speaker, from, to, tail: 0 }
    }
}

/// The messages of a conversation as it goes on.
pub(crate) struct Segments {
    block_size: u64,
    /// Blocks of tools and system prompt.
    head: usize,
    /// They begin the next prompt.
    founds: bool,
    now: Vec<Segment>,
    /// Whole blocks of the last prompt, and tokens of the answer to it.
    last: Option<(usize, u64)>,
}

impl Segments {
    /// `head` tokens of tools and system prompt begin the first prompt.
    pub(crate) fn new(block_size: u32, head: u64) -> Segments {
        let block_size = u64::from(block_size.max(1));
        Segments {
            block_size,
            head: head.div_ceil(block_size) as usize,
            founds: false,
            now: Vec::new(),
            last: None,
        }
    }

    /// The next prompt begins with tools and system prompt, if it has nothing in common with the one before.
    pub(crate) fn found(&mut self, common: usize) {
        self.founds = common == 0;
    }

    /// Goes on to a prompt that shares `common` leading blocks with the one before. Afterwards these are its messages;
    /// the first of them, as many as the answer says, are the same as before.
    pub(crate) fn go_on(&mut self, request: &Request, common: usize) -> usize {
        let whole = request.ids.len().min((request.input / self.block_size) as usize);
        let tail = request.input - whole as u64 * self.block_size;
        let founds = std::mem::take(&mut self.founds);
        let kept = match self.last {
            _ if founds => {
                self.now.clear();
                self.first(self.head, whole, tail);
                0
            }
            None => {
                self.first(0, whole, tail);
                0
            }
            Some((before, output)) => self.next(whole, tail, common.min(before).min(whole), output),
        };
        self.last = Some((whole, request.output));
        kept
    }

    /// The messages.
    pub(crate) fn messages(&self) -> &[Segment] {
        &self.now
    }

    fn first(&mut self, head: usize, whole: usize, tail: u64) {
        let head = head.min(whole);
        if head > 0 {
            self.now.push(Segment::blocks(Speaker::System, 0, head));
        }
        self.now.push(Segment { tail, ..Segment::blocks(Speaker::User, head, whole) });
        self.end_with_user();
    }

    fn next(&mut self, whole: usize, tail: u64, common: usize, output: u64) -> usize {
        let before = self.now.clone();
        self.cut(common);
        let new = whole - common;
        let heard = self.now.iter().any(|segment| segment.speaker == Speaker::User);
        let mut answered = if heard { new.min(output.div_ceil(self.block_size) as usize) } else { 0 };
        if answered == new && tail == 0 {
            answered = answered.saturating_sub(1);
        }
        if answered > 0 {
            self.now.push(Segment::blocks(Speaker::Assistant, common, common + answered));
        }
        if answered < new || tail > 0 {
            self.now.push(Segment { tail, ..Segment::blocks(Speaker::User, common + answered, whole) });
        }
        self.end_with_user();
        // Equal places mean equal blocks up to what the prompts share; tokens of its own every prompt has anew.
        let stays = |old: &Segment, new: &Segment| old == new && new.to <= common && new.tail == 0;
        before.iter().zip(&self.now).take_while(|(old, new)| stays(old, new)).count()
    }

    /// Keeps the first `blocks` blocks.
    fn cut(&mut self, blocks: usize) {
        for segment in &mut self.now {
            segment.to = segment.to.min(blocks);
            segment.tail = 0;
        }
        self.now.retain(|segment| segment.from < segment.to);
    }

    /// The last word is the user's: a block of the last message becomes one.
    fn end_with_user(&mut self) {
        self.now.retain(|segment| segment.from < segment.to || segment.tail > 0);
        let Some(last) = self.now.last_mut().filter(|last| last.speaker != Speaker::User) else { return };
        let from = last.to - 1;
        let to = last.to;
        last.to = from;
        if last.from == last.to {
            self.now.pop();
        }
        self.now.push(Segment::blocks(Speaker::User, from, to));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ids::BlockIds;
    use super::*;

    const B: u64 = 64;

    /// A prompt of these runs of blocks and a tail, and the tokens of its answer.
    fn request(ids: &[(i64, i64)], input: u64, output: u64) -> Request {
        let ids: BlockIds = ids.iter().flat_map(|(from, to)| *from..*to).collect();
        Request { input, output, ids, ..Request::default() }
    }

    /// Speaker and tokens of each message of each prompt, and how many messages stay.
    fn told(head: u64, requests: &[Request]) -> Vec<(usize, String)> {
        let mut segments = Segments::new(B as u32, head);
        segments.found(0);
        let mut before: Option<&Request> = None;
        requests
            .iter()
            .map(|request| {
                let common = before.map_or(0, |before| before.ids.common(&request.ids));
                before = Some(request);
                let kept = segments.go_on(request, common);
                let text: Vec<String> = segments
                    .messages()
                    .iter()
                    .map(|segment| {
                        let tokens = (segment.to - segment.from) as u64 * B + segment.tail;
                        format!("{}{tokens}", &segment.speaker.name()[..1])
                    })
                    .collect();
                (kept, text.join(" "))
            })
            .collect()
    }

    #[test]
    fn prompts_are_tiled_as_observed() {
        let requests = [
            request(&[(1, 7)], 64 * 6 + 10, 130),
            request(&[(1, 13)], 64 * 12 + 5, 64),
            // The answer would take the only new block: it goes to the user.
            request(&[(1, 14)], 64 * 13, 500),
            // The context was cut to nine blocks.
            request(&[(1, 10), (50, 59)], 64 * 18 + 1, 10),
            request(&[(1, 10), (50, 61)], 64 * 20, 1),
            request(&[(1, 5)], 64 * 4 + 3, 7),
            // One block has no id.
            request(&[(1, 5), (70, 73)], 64 * 8, 7),
        ];
        let expected = [
            (0, "s128 u266"),
            (1, "s128 u256 a192 u197"),
            (3, "s128 u256 a192 u192 u64"),
            (3, "s128 u256 a192 a512 u65"),
            (4, "s128 u256 a192 a512 u64 a64 u64"),
            (1, "s128 u128 u3"),
            (2, "s128 u128 a64 u192"),
        ];
        let expected: Vec<_> = expected.iter().map(|(kept, text)| (*kept, (*text).to_owned())).collect();
        assert_eq!(told(100, &requests), expected);
    }

    #[test]
    fn where_nothing_of_the_user_is_left_all_that_is_new_is_the_users() {
        let requests = [
            request(&[(1, 7)], 64 * 6, 65),
            request(&[(1, 3), (80, 84)], 64 * 6 + 3, 65),
            request(&[(1, 2), (90, 95)], 64 * 6, 65),
            request(&[(200, 206)], 64 * 6, 65),
            request(&[(200, 203)], 64 * 3, 65),
            request(&[(200, 203)], 64 * 3, 65),
            request(&[(200, 203), (300, 302)], 64 * 5, 65),
        ];
        let expected = [
            (0, "s128 u256"),
            (1, "s128 u259"),
            (0, "s64 u320"),
            (0, "u384"),
            (0, "u192"),
            (1, "u192"),
            (1, "u192 a64 u64"),
        ];
        let expected: Vec<_> = expected.iter().map(|(kept, text)| (*kept, (*text).to_owned())).collect();
        assert_eq!(told(100, &requests), expected);
    }

    proptest! {
        #[test]
        fn messages_tile_the_prompt_and_the_user_has_the_last_word(
            prompts in prop::collection::vec((0_i64..8, 0_i64..6, 0_u64..130, 0_u64..200), 1..8),
            head in 0_u64..200,
        ) {
            let mut segments = Segments::new(B as u32, head);
            segments.found(0);
            let mut before: Option<Request> = None;
            for (shared, new, tail, output) in prompts {
                let ids: BlockIds = (0..shared).chain(100..100 + new).collect();
                let input = (ids.len() as u64 * B + tail).max(1);
                let request = Request { input, output, ids, ..Request::default() };
                let common = before.as_ref().map_or(0, |before| before.ids.common(&request.ids));
                segments.go_on(&request, common);
                let messages = segments.messages();
                let mut next = 0;
                for segment in messages {
                    prop_assert_eq!(segment.from, next);
                    next = segment.to;
                }
                let tokens: u64 =
                    messages.iter().map(|segment| (segment.to - segment.from) as u64 * B + segment.tail).sum();
                prop_assert_eq!(tokens, input);
                prop_assert_eq!(messages.last().unwrap().speaker, Speaker::User);
                before = Some(request);
            }
        }
    }
}
