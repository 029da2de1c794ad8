//! Answers of `POST /v1/completions`: streams and whole bodies have one shape.

use aiperf_types::Channel;

use super::State;
use super::chat::strongest;
use super::chunk::{Choice, Chunk};

/// Takes the output of one chunk; what kind it was, if it had any.
#[inline]
pub(super) fn take(state: &mut State, chunk: &Chunk<'_>) -> Option<Channel> {
    if !chunk.is_one_of(&[b"text_completion", b"completion"]) {
        return None;
    }
    let mut channel = take_choice(state, &chunk.choices.first, 0);
    for (position, other) in (1..).zip(&chunk.choices.others) {
        channel = strongest(channel, take_choice(state, &Choice::of(other), position));
    }
    channel
}

#[inline]
fn take_choice(state: &mut State, choice: &Choice<'_>, position: u64) -> Option<Channel> {
    let number = choice.index.unwrap_or(position);
    state.finish_reason(choice.finish_reason, number);
    let text = choice.text.filter(|text| !text.is_empty())?;
    state.say(text, number);
    Some(Channel::Text)
}
