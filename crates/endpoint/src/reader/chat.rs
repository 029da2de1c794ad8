//! Answers of `POST /v1/chat/completions`: chunks with a `delta`, bodies with a `message`.

use aiperf_types::Channel;

use super::State;
use super::chunk::{Choice, Chunk};
use super::reply::Call;
use crate::json::{Scan, Scanner, Text, unsigned};

/// Takes the output of one chunk; what kind it was, if it had any.
#[inline]
pub(super) fn take(state: &mut State, chunk: &Chunk<'_>) -> Option<Channel> {
    if !chunk.is_one_of(&[b"chat.completion.chunk", b"chat.completion"]) {
        return None;
    }
    let mut channel = take_choice(state, &chunk.choices.first, 0);
    for (position, other) in (1..).zip(&chunk.choices.others) {
        channel = strongest(channel, take_choice(state, &Choice::of(other), position));
    }
    channel
}

/// Of two choices in one event, reasoning names the event, then tool calls, then text; text of an answer beside
/// reasoning is not lost.
pub(super) fn strongest(one: Option<Channel>, other: Option<Channel>) -> Option<Channel> {
    use Channel::{Reasoning, ReasoningAndText, ToolCall};
    match (one, other) {
        (None, only) | (only, None) => only,
        (Some(Reasoning), Some(Reasoning)) => Some(Reasoning),
        (Some(Reasoning | ReasoningAndText), _) | (_, Some(Reasoning | ReasoningAndText)) => {
            Some(ReasoningAndText)
        }
        (Some(ToolCall), _) | (_, Some(ToolCall)) => Some(ToolCall),
        (one, _) => one,
    }
}

#[inline]
fn take_choice(state: &mut State, choice: &Choice<'_>, position: u64) -> Option<Channel> {
    let number = choice.index.unwrap_or(position);
    state.finish_reason(choice.finish_reason, number);
    let delta = choice.delta();
    let filled = |text: &Text<'_>| !text.is_empty();
    let content = delta.content.filter(filled);
    if let (Some(content), None, None, None, None, 0, false) = (
        content,
        delta.thought(),
        delta.refusal,
        delta.tool_calls,
        delta.function_call,
        number,
        state.rare.is_some(),
    ) {
        if !state.drop_text {
            content.push_to(&mut state.text);
        }
        return Some(Channel::Text);
    }
    take_mixed(state, choice, number, content)
}

fn take_mixed(
    state: &mut State,
    choice: &Choice<'_>,
    number: u64,
    content: Option<Text<'_>>,
) -> Option<Channel> {
    let delta = choice.delta();
    let thought = delta.thought();
    if let Some(thought) = thought {
        state.think(thought, number);
    }
    let (mut thinks, mut said) = (thought.is_some(), content.is_some());
    if let Some(content) = content {
        state.say(content, number);
    } else if let (None, Some(parts)) = (delta.content, delta.parts) {
        // The chunk was validated: this cannot fail.
        let (more_thoughts, more_said) = take_parts(state, parts, number).unwrap_or_default();
        thinks |= more_thoughts;
        said |= more_said;
    }
    if let Some(refusal) = delta.refusal.filter(|text| !text.is_empty()) {
        state.say(refusal, number);
        said = true;
    }
    let mut called = false;
    if let Some(calls) = delta.tool_calls {
        called |= take_calls(state, calls, number).unwrap_or(false);
    }
    if let Some(call) = delta.function_call {
        called |= take_function(state, call, number).unwrap_or(false);
    }
    match (thinks, called, said) {
        (true, false, false) => Some(Channel::Reasoning),
        (true, ..) => Some(Channel::ReasoningAndText),
        (false, true, _) => Some(Channel::ToolCall),
        (false, false, true) => Some(Channel::Text),
        (false, false, false) => None,
    }
}

/// Texts of a `content` that is a list: `{"type": "text", "text"}`, a refusal, or a thought, which is a text or a list
/// itself. Whether there were thoughts, and whether other texts.
fn take_parts(state: &mut State, parts: &[u8], number: u64) -> Scan<(bool, bool)> {
    let (mut thinks, mut said) = (false, false);
    Scanner::new(parts).items(|scanner, _| {
        let (mut thought, mut text, mut refusal) = (None, None, None);
        scanner.members(|scanner, key| {
            match key {
                b"thinking" => thought = Some(scanner.span()?),
                b"text" => text = scanner.text()?,
                b"refusal" => refusal = scanner.text()?,
                _ => scanner.skip()?,
            }
            Ok(())
        })?;
        if let Some(thought) = thought {
            thinks |= take_thought(state, thought, number)?;
        }
        for text in [text, refusal].into_iter().flatten().filter(|text| !text.is_empty()) {
            state.say(text, number);
            said = true;
        }
        Ok(())
    })?;
    Ok((thinks, said))
}

/// The text of a thought, or those of its parts; whether there was any.
fn take_thought(state: &mut State, thought: &[u8], number: u64) -> Scan<bool> {
    let mut any = false;
    let mut take = |text: Option<Text<'_>>| {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            state.think(text, number);
            any = true;
        }
    };
    let mut scanner = Scanner::new(thought);
    if scanner.peek() == Some(b'"') {
        take(scanner.text()?);
        return Ok(any);
    }
    scanner.items(|scanner, _| {
        let mut text = None;
        scanner.members(|scanner, key| {
            match key {
                b"text" => text = scanner.text()?,
                _ => scanner.skip()?,
            }
            Ok(())
        })?;
        take(text);
        Ok(())
    })?;
    Ok(any)
}

/// One item of `tool_calls`, or a `function_call`.
#[derive(Default)]
struct CallPart<'a> {
    index: Option<u64>,
    id: Option<Text<'a>>,
    kind: Option<Text<'a>>,
    function: Function<'a>,
}

#[derive(Clone, Copy, Default)]
struct Function<'a> {
    name: Option<Text<'a>>,
    arguments: Option<Text<'a>>,
}

impl<'a> Function<'a> {
    fn scan(scanner: &mut Scanner<'a>) -> Scan<Function<'a>> {
        let mut function = Function::default();
        scanner.members(|scanner, key| {
            match key {
                b"name" => function.name = scanner.text()?,
                b"arguments" => function.arguments = scanner.text()?,
                _ => scanner.skip()?,
            }
            Ok(())
        })?;
        Ok(function)
    }
}

/// Text of the calls, names and arguments in order; whether there was any.
fn take_calls(state: &mut State, calls: &[u8], number: u64) -> Scan<bool> {
    let mut any = false;
    Scanner::new(calls).items(|scanner, _| {
        let mut part = CallPart::default();
        scanner.members(|scanner, key| {
            match key {
                b"index" => part.index = unsigned(scanner.span()?),
                b"id" => part.id = scanner.text()?,
                b"type" => part.kind = scanner.text()?,
                b"function" => part.function = Function::scan(scanner)?,
                _ => scanner.skip()?,
            }
            Ok(())
        })?;
        any |= take_call(state, &part, number, false);
        Ok(())
    })?;
    Ok(any)
}

fn take_function(state: &mut State, call: &[u8], number: u64) -> Scan<bool> {
    let function = Function::scan(&mut Scanner::new(call))?;
    let part = CallPart { index: Some(0), function, ..CallPart::default() };
    Ok(take_call(state, &part, number, true))
}

fn take_call(state: &mut State, part: &CallPart<'_>, number: u64, legacy: bool) -> bool {
    let texts = [part.function.name, part.function.arguments];
    if state.plan.keep_history && number == 0 {
        let length = state.text.len();
        let calls = state.rare().calls.get_or_insert_default();
        if calls.list.is_empty() {
            calls.content_end = length;
        }
        let call = calls.at(part.index, legacy);
        merge(call, part);
    }
    let mut any = false;
    for text in texts.into_iter().flatten().filter(|text| !text.is_empty()) {
        state.say_call(text, number);
        any = true;
    }
    any
}

fn merge(call: &mut Call, part: &CallPart<'_>) {
    let last = |slot: &mut Option<String>, text: Option<Text<'_>>| {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            *slot = Some(text.to_text());
        }
    };
    last(&mut call.id, part.id);
    last(&mut call.kind, part.kind);
    last(&mut call.name, part.function.name);
    if let Some(arguments) = part.function.arguments {
        arguments.push_to(&mut call.arguments);
    }
}

impl State {
    /// Reasoning. It is counted as one text over all choices: only replay tells them apart, and it repeats none.
    #[inline]
    pub(super) fn think(&mut self, text: Text<'_>, number: u64) {
        if self.drop_text {
            return;
        }
        let start = self.reasoning.len();
        text.push_to(&mut self.reasoning);
        if number == 0
            && let Some(rare) = &mut self.rare
            && let Some(transcript) = &mut rare.transcript
        {
            transcript.push_str(&self.reasoning[start..]);
        }
    }

    /// Text of the answer.
    #[inline]
    pub(super) fn say(&mut self, text: Text<'_>, number: u64) {
        let start = self.text.len();
        self.append(text, number);
        if number == 0
            && let Some(rare) = &mut self.rare
            && let Some(calls) = &mut rare.calls
            && !calls.list.is_empty()
        {
            calls.content_after.push_str(&self.text[start..]);
        }
    }

    /// Text of a tool call.
    fn say_call(&mut self, text: Text<'_>, number: u64) {
        self.append(text, number);
    }

    fn append(&mut self, text: Text<'_>, number: u64) {
        if self.drop_text {
            return;
        }
        if number > 0 {
            return text.push_to(self.rare().other_text(number));
        }
        let start = self.text.len();
        text.push_to(&mut self.text);
        if let Some(rare) = &mut self.rare
            && let Some(transcript) = &mut rare.transcript
        {
            transcript.push_str(&self.text[start..]);
        }
    }

    /// The reason why a choice ended.
    #[inline]
    pub(super) fn finish_reason(&mut self, reason: Option<Text<'_>>, number: u64) {
        let Some(reason) = reason else { return };
        self.finished = true;
        if number > 0 {
            return;
        }
        self.finish_stop = reason.raw == b"stop";
        if !self.finish_stop {
            self.rare().finish_reason = Some(reason.to_text());
        }
    }
}
