//! Generated text about programs.

use std::sync::OnceLock;

const CHUNKS: usize = 2;
const CHUNK_BYTES: usize = 10_000;

static TEXT: [OnceLock<String>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];

/// Bytes of every chunk.
pub(super) fn chunk_lens() -> impl ExactSizeIterator<Item = usize> {
    std::iter::repeat_n(CHUNK_BYTES, CHUNKS)
}

/// The text of a chunk; generates it if nobody has.
pub(super) fn chunk(index: usize) -> &'static str {
    TEXT[index].get_or_init(|| " fn".repeat(CHUNK_BYTES / 3) + "d")
}
