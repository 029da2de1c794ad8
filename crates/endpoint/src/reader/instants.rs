//! Content events, packed: a run has a hundred million of them, and most are a few milliseconds apart.

use aiperf_clock::Mono;
use aiperf_types::{Channel, ContentEvent};

/// Content events in order. The first instant is kept as it is; each event then is one variable-length number,
/// its distance from the event before (zigzag) and its channel in the low three bits; there is room for distances
/// of 18 years.
#[derive(Debug, Default)]
pub(super) struct Instants {
    first: Mono,
    last: Mono,
    packed: Vec<u8>,
    count: u32,
}

impl Instants {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn first(&self) -> Option<Mono> {
        (self.count > 0).then_some(self.first)
    }

    pub(super) fn held(&self) -> usize {
        self.packed.capacity()
    }

    #[inline]
    pub(super) fn push(&mut self, event: ContentEvent) {
        if self.count == 0 {
            self.first = event.at;
            self.last = event.at;
        }
        let delta = event.at.since(self.last);
        self.last = event.at;
        self.count += 1;
        let zigzag = ((delta << 1) ^ (delta >> 63)) as u64;
        let mut rest = zigzag << 3 | u64::from(code(event.channel));
        while rest >= 0x80 {
            self.packed.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.packed.push(rest as u8);
    }

    pub(super) fn expand(&self) -> Vec<ContentEvent> {
        let mut events = Vec::with_capacity(self.count as usize);
        let mut at = self.first;
        let mut bytes = self.packed.iter();
        for _ in 0..self.count {
            let mut number = 0u64;
            let mut shift = 0;
            for byte in bytes.by_ref() {
                number |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            let zigzag = number >> 3;
            let delta = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
            at = Mono(at.0.wrapping_add_signed(delta));
            events.push(ContentEvent { at, channel: channel((number & 7) as u8) });
        }
        events
    }
}

fn code(channel: Channel) -> u8 {
    match channel {
        Channel::Text => 0,
        Channel::Reasoning => 1,
        Channel::ReasoningAndText => 2,
        Channel::ToolCall => 3,
        Channel::Object => 4,
    }
}

fn channel(code: u8) -> Channel {
    match code {
        0 => Channel::Text,
        1 => Channel::Reasoning,
        2 => Channel::ReasoningAndText,
        3 => Channel::ToolCall,
        _ => Channel::Object,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn unpacking_gives_back_what_was_packed(
            events in prop::collection::vec((prop_oneof![0u64..1 << 40, 0u64..1 << 59], 0u8..5), 0..60),
        ) {
            let events: Vec<_> =
                events.into_iter().map(|(at, code)| ContentEvent { at: Mono(at), channel: channel(code) }).collect();
            let mut packed = Instants::default();
            for event in &events {
                packed.push(*event);
            }
            prop_assert_eq!(packed.expand(), events);
        }
    }
}
