//! Answers of `POST /v1/completions`: streams and whole bodies have one shape.

use aiperf_types::Channel;

use super::State;
use super::chat::strongest;
use super::chunk::{Choice, Chunk};
use crate::json::Scanner;

/// Takes the output of one chunk; what kind it was, if it had any.
#[inline]
pub(super) fn take(state: &mut State, chunk: &Chunk<'_>) -> Option<Channel> {
    if !chunk.is_one_of(&[b"text_completion", b"completion"]) {
        return None;
    }
    let choices = chunk.choices.as_ref()?;
    let mut channel = choices.first.and_then(|choice| take_choice(state, &choice, 0));
    for (position, other) in (1..).zip(&choices.others) {
        let choice = Choice::scan(&mut Scanner::new(other)).unwrap_or_default();
        channel = strongest(channel, take_choice(state, &choice, position));
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
