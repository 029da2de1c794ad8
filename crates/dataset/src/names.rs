//! Session ids for conversations whose data has none.

use std::fmt::Write as _;
use std::sync::Arc;

use aiperf_tokenize::seed::{Rng as _, Streams};

/// Makes session ids: counted with a seed, random otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    streams: Option<Streams>,
}

impl Names {
    pub(crate) fn new(seed: u64, seed_given: bool) -> Names {
        Names { streams: (!seed_given).then(|| Streams::new(seed, "dataset.session_id")) }
    }

    /// The id of generated session `number`: `session_000007`, or a version 4 UUID.
    pub(crate) fn generate(&self, number: u64) -> Arc<str> {
        let mut id = String::with_capacity(36);
        match &self.streams {
            None => {
                // Writing to a string cannot fail.
                let _ = write!(id, "session_{number:06}");
            }
            Some(streams) => {
                let mut stream = streams.at(number);
                let high = stream.next_u64() & !0xf000 | 0x4000;
                let low = stream.next_u64() & !(0b11 << 62) | 0b10 << 62;
                let _ = write!(
                    id,
                    "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                    high >> 32,
                    high >> 16 & 0xffff,
                    high & 0xffff,
                    low >> 48,
                    low & 0xffff_ffff_ffff
                );
            }
        }
        id.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_counted_with_a_seed_and_uuids_without() {
        assert_eq!(&*Names::new(1, true).generate(0), "session_000000");
        assert_eq!(&*Names::new(1, true).generate(1_234_567), "session_1234567");
        let names = Names::new(1, false);
        let id = names.generate(3);
        assert_eq!(id.len(), 36);
        assert_eq!(id.as_bytes()[14], b'4');
        assert!(matches!(id.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
        assert_eq!(id, names.generate(3));
        assert_ne!(id, names.generate(4));
    }
}
