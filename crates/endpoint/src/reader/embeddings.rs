//! Answers of `POST /v1/embeddings`: the vectors are checked by their shape and dropped.

use aiperf_types::Channel;

use super::chunk::Chunk;
use crate::json::{Scan, Scanner, Text};

/// What kind of output the answer has, if any.
pub(super) fn take(chunk: &Chunk<'_>) -> Option<Channel> {
    chunk.vectors.then_some(Channel::Object)
}

/// Whether `data` is a list of at least one item, every one an embedding with a vector.
pub(super) fn vectors(scanner: &mut Scanner<'_>) -> Scan<bool> {
    let (mut count, mut good) = (0usize, 0usize);
    scanner.items(|scanner, _| {
        let (mut object, mut vector) = (None, false);
        scanner.members(|scanner, key| {
            match key {
                b"object" => object = scanner.text()?,
                b"embedding" => vector = self::vector(scanner)?,
                _ => scanner.skip()?,
            }
            Ok(())
        })?;
        count += 1;
        good += usize::from(vector && object.is_some_and(|object| object.raw == b"embedding"));
        Ok(())
    })?;
    Ok(count > 0 && good == count)
}

/// A list of numbers, or base64 of 32-bit floats.
fn vector(scanner: &mut Scanner<'_>) -> Scan<bool> {
    match scanner.peek() {
        Some(b'[') => {
            let (mut count, mut numbers) = (0usize, 0usize);
            scanner.items(|scanner, _| {
                numbers += usize::from(matches!(scanner.peek(), Some(b'-' | b'0'..=b'9')));
                count += 1;
                scanner.skip()
            })?;
            Ok(count > 0 && numbers == count)
        }
        Some(b'"') => Ok(scanner.text()?.is_some_and(is_base64)),
        _ => scanner.skip().map(|()| false),
    }
}

fn is_base64(text: Text<'_>) -> bool {
    let body = text.raw.strip_suffix(b"==").or(text.raw.strip_suffix(b"=")).unwrap_or(text.raw);
    // An escaped solidus is the one escape that base64 can need.
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte) || *byte == b'\\';
    !body.is_empty() && body.iter().all(plain)
}
