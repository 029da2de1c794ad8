//! Shakespeare, packed: `corpus/PROVENANCE.md` says where the text is from and what was done to it.

use std::sync::{LazyLock, OnceLock};

use miniz_oxide::inflate::decompress_to_vec_with_limit;

static PACKED: &[u8] = include_bytes!("../../corpus/shakespeare.deflate");
/// A line per block: its packed bytes, then the bytes of each chunk in it.
static INDEX: &str = include_str!("../../corpus/shakespeare.index");

struct Block {
    packed: std::ops::Range<usize>,
    len: usize,
    text: OnceLock<String>,
}

struct Shakespeare {
    blocks: Vec<Block>,
    /// Block, begin within it, bytes.
    chunks: Vec<(usize, usize, usize)>,
}

static TEXT: LazyLock<Shakespeare> = LazyLock::new(|| {
    let mut text = Shakespeare { blocks: Vec::new(), chunks: Vec::new() };
    let mut packed_end = 0;
    for line in INDEX.lines() {
        let mut numbers = line.split(' ').filter_map(|number| number.parse::<usize>().ok());
        let packed = packed_end..packed_end + numbers.next().unwrap_or(0);
        packed_end = packed.end;
        let mut len = 0;
        for bytes in numbers {
            text.chunks.push((text.blocks.len(), len, bytes));
            len += bytes;
        }
        text.blocks.push(Block { packed, len, text: OnceLock::new() });
    }
    text
});

/// Bytes of every chunk.
pub(super) fn chunk_lens() -> impl ExactSizeIterator<Item = usize> {
    TEXT.chunks.iter().map(|&(_, _, len)| len)
}

/// The text of a chunk; unpacks its block if nobody has.
pub(super) fn chunk(index: usize) -> &'static str {
    let shakespeare: &'static Shakespeare = &TEXT;
    let (block, begin, len) = shakespeare.chunks[index];
    &unpacked(&shakespeare.blocks[block])[begin..begin + len]
}

#[expect(clippy::expect_used, reason = "the packed text is part of the program and a test unpacks all of it")]
fn unpacked(block: &Block) -> &str {
    block.text.get_or_init(|| {
        let bytes =
            decompress_to_vec_with_limit(&PACKED[block.packed.clone()], block.len).expect("sound block");
        String::from_utf8(bytes).expect("ASCII text")
    })
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_text_is_the_one_whose_provenance_is_stated() {
        let mut all = Sha256::new();
        let mut total = 0;
        for (index, len) in chunk_lens().enumerate() {
            let text = chunk(index);
            assert_eq!(text.len(), len);
            all.update(text);
            total += len;
        }
        assert_eq!((chunk_lens().len(), total), (499, 4_995_331));
        let digest = format!("{:x}", all.finalize());
        assert_eq!(digest, "8fc0fc918e394a3dbbff6684d373e6661213ad23911097d2d915c4f9e9f73c71");
        assert!(include_str!("../../corpus/PROVENANCE.md").contains(&digest));
        let packed = format!("{:x}", Sha256::digest(PACKED));
        assert!(include_str!("../../corpus/PROVENANCE.md").contains(&packed));
    }

    #[test]
    fn the_sonnets_come_first() {
        assert!(chunk(0).starts_with(" THE SONNETS by William Shakespeare I From fairest creatures"));
    }

    #[test]
    fn chunks_join_at_a_space_between_visible_characters() {
        let last = chunk_lens().len() - 1;
        for index in 0..=last {
            let text = chunk(index).as_bytes();
            assert!(text.is_ascii() && text[0] == b' ' && text[1].is_ascii_graphic(), "chunk {index}");
            assert!(text[text.len() - 1].is_ascii_graphic(), "chunk {index}");
            assert!(index == last || (10_000..10_200).contains(&text.len()), "chunk {index}");
        }
    }
}
