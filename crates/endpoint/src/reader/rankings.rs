//! Answers of endpoints that rank: a list, bare or under a key, of which passage has which score.

use aiperf_types::Channel;

use super::chunk::Chunk;
use crate::json::{Scan, Scanner, unsigned};

/// What kind of output the answer has, if any.
pub(super) fn take(chunk: &Chunk<'_>) -> Option<Channel> {
    chunk.ranked.then_some(Channel::Object)
}

/// Whether what comes next is a list of at least one item, every one with the index of its passage and a
/// score, whatever that is called.
pub(super) fn ranked(scanner: &mut Scanner<'_>) -> Scan<bool> {
    let (mut count, mut good) = (0usize, 0usize);
    scanner.items(|scanner, _| {
        let (mut index, mut score) = (false, false);
        scanner.members(|scanner, key| {
            if key == b"index" {
                index = unsigned(scanner.span()?).is_some();
                return Ok(());
            }
            score |= matches!(scanner.peek(), Some(b'-' | b'0'..=b'9'));
            scanner.skip()
        })?;
        count += 1;
        good += usize::from(index && score);
        Ok(())
    })?;
    Ok(count > 0 && good == count)
}
