//! The published byte-pair encodings, embedded: ready at once, no network, no files.

pub(crate) mod hash;
pub(crate) mod merge;
pub(crate) mod split;
mod table;

use merge::Scratch;
use split::Pattern;
use table::RankTable;

/// One published encoding.
#[derive(Debug)]
pub(crate) struct Encoding {
    pub(crate) name: &'static str,
    table: &'static RankTable,
    /// Tells cached pieces of different encodings apart.
    which: u32,
    /// Ranks below this are tokens (r50k is the head of p50k's table).
    limit: u32,
    pattern: Pattern,
    special: &'static [(&'static str, u32)],
    /// Special tokens `<|reserved_N|>`, where N is the token's number, first and last.
    reserved: Option<(u32, u32)>,
    /// Numbers run from 0 to this, not all in use.
    pub(crate) vocab_size: u32,
    /// The token put between unrelated texts.
    pub(crate) separator: u32,
}

const O200K: Pattern = Pattern::ByCase { contractions: true, digits: 3 };
const CL100K: Pattern = Pattern::AnyCase { digits: 3, whole_end: true };
pub(crate) const END_OF_TEXT: &str = "<|endoftext|>";
const FILL_IN: [(&str, u32); 3] =
    [("<|fim_prefix|>", 50_281), ("<|fim_middle|>", 50_282), ("<|fim_suffix|>", 50_283)];

static ENCODINGS: [Encoding; 6] = [
    Encoding {
        name: "o200k_base",
        table: &table::O200K,
        which: 1,
        limit: 199_998,
        pattern: O200K,
        special: &[(END_OF_TEXT, 199_999), ("<|endofprompt|>", 200_018)],
        reserved: None,
        vocab_size: 200_019,
        separator: 199_999,
    },
    Encoding {
        name: "o200k_harmony",
        table: &table::O200K,
        which: 1,
        limit: 199_998,
        pattern: O200K,
        special: &[
            ("<|startoftext|>", 199_998),
            (END_OF_TEXT, 199_999),
            ("<|return|>", 200_002),
            ("<|constrain|>", 200_003),
            ("<|channel|>", 200_005),
            ("<|start|>", 200_006),
            ("<|end|>", 200_007),
            ("<|message|>", 200_008),
            ("<|call|>", 200_012),
        ],
        reserved: Some((200_000, 201_087)),
        vocab_size: 201_088,
        separator: 199_998,
    },
    Encoding {
        name: "cl100k_base",
        table: &table::CL100K,
        which: 2,
        limit: 100_256,
        pattern: CL100K,
        special: &[
            (END_OF_TEXT, 100_257),
            ("<|fim_prefix|>", 100_258),
            ("<|fim_middle|>", 100_259),
            ("<|fim_suffix|>", 100_260),
            ("<|endofprompt|>", 100_276),
        ],
        reserved: None,
        vocab_size: 100_277,
        separator: 100_257,
    },
    Encoding {
        name: "p50k_base",
        table: &table::P50K,
        which: 3,
        limit: 50_281,
        pattern: Pattern::Gpt2,
        special: &[(END_OF_TEXT, 50_256)],
        reserved: None,
        vocab_size: 50_281,
        separator: 50_256,
    },
    Encoding {
        name: "p50k_edit",
        table: &table::P50K,
        which: 3,
        limit: 50_281,
        pattern: Pattern::Gpt2,
        special: &[(END_OF_TEXT, 50_256), FILL_IN[0], FILL_IN[1], FILL_IN[2]],
        reserved: None,
        vocab_size: 50_284,
        separator: 50_256,
    },
    Encoding {
        name: "r50k_base",
        table: &table::P50K,
        which: 4,
        limit: 50_256,
        pattern: Pattern::Gpt2,
        special: &[(END_OF_TEXT, 50_256)],
        reserved: None,
        vocab_size: 50_257,
        separator: 50_256,
    },
];

/// Numbers below this mark cached pieces of embedded encodings; others may use it and above.
pub(crate) const FIRST_FREE_OWNER: u32 = 5;

/// Names of the embedded encodings.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ENCODINGS.iter().map(|encoding| encoding.name)
}

impl Encoding {
    /// The encoding of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Encoding> {
        ENCODINGS.iter().find(|encoding| encoding.name == name)
    }

    /// `o200k_base`
    pub(crate) fn builtin() -> &'static Encoding {
        &ENCODINGS[0]
    }

    /// Number of tokens; allocates nothing once the thread is warm.
    pub(crate) fn count(&self, text: &str) -> u64 {
        let mut total = 0;
        self.each_span(text, |plain, special| {
            total += u64::from(special.is_some());
            total += self.count_plain(plain);
        });
        total
    }

    fn count_plain(&self, text: &str) -> u64 {
        let mut total = 0;
        merge::with_scratch(|scratch| {
            split::pieces(self.pattern, text, |piece| {
                total += match self.rank(piece) {
                    Some(_) => 1,
                    None => self.merged(scratch, piece).len() as u64,
                };
            });
        });
        total
    }

    /// Appends the tokens of `text`.
    pub(crate) fn encode(&self, text: &str, tokens: &mut Vec<u32>) {
        self.each_span(text, |plain, special| {
            merge::with_scratch(|scratch| {
                split::pieces(self.pattern, plain, |piece| match self.rank(piece) {
                    Some(rank) => tokens.push(rank),
                    None => tokens.extend_from_slice(self.merged(scratch, piece)),
                });
            });
            tokens.extend(special);
        });
    }

    fn merged<'scratch>(&self, scratch: &'scratch mut Scratch, piece: &[u8]) -> &'scratch [u32] {
        scratch.tokens(self.which, piece, |merger| merger.merge(self.table, self.limit, piece))
    }

    #[inline]
    fn rank(&self, piece: &[u8]) -> Option<u32> {
        self.table.rank(piece).filter(|&rank| rank < self.limit)
    }

    /// Calls `span` with each stretch of plain text and the special token that ends it, if any.
    fn each_span(&self, text: &str, mut span: impl FnMut(&str, Option<u32>)) {
        let mut begin = 0;
        let mut from = 0;
        while let Some(offset) = memchr::memchr(b'<', &text.as_bytes()[from..]) {
            let at = from + offset;
            match self.special_at(&text[at..]) {
                Some((len, token)) => {
                    span(&text[begin..at], Some(token));
                    begin = at + len;
                    from = begin;
                }
                None => from = at + 1,
            }
        }
        if begin < text.len() {
            span(&text[begin..], None);
        }
    }

    /// The special token whose text `rest` begins with, and the length of that text.
    fn special_at(&self, rest: &str) -> Option<(usize, u32)> {
        if !rest.starts_with("<|") {
            return None;
        }
        let known = self.special.iter().find(|(name, _)| rest.starts_with(name));
        if let Some((name, token)) = known {
            return Some((name.len(), *token));
        }
        let (first, last) = self.reserved?;
        let digits = rest.strip_prefix("<|reserved_")?.split_once("|>")?.0;
        let token = digits.parse().ok().filter(|token| (first..=last).contains(token))?;
        let named = self.special.iter().any(|&(_, special)| special == token);
        // A number has one spelling: no sign, no leading zero.
        (!named && digits.len() == 6 && !digits.starts_with('+'))
            .then(|| ("<|reserved_".len() + 6 + 2, token))
    }

    /// Whether this number is a special token.
    pub(crate) fn is_special(&self, token: u32) -> bool {
        self.special.iter().any(|&(_, special)| special == token)
            || self.reserved.is_some_and(|(first, last)| (first..=last).contains(&token))
    }

    /// Appends the bytes of a token; nothing, and `false`, for a number that stands for none.
    pub(crate) fn decode_token(&self, token: u32, bytes: &mut Vec<u8>) -> bool {
        if token < self.limit {
            let text = self.table.bytes(token);
            if !text.is_empty() {
                bytes.extend_from_slice(text);
                return true;
            }
        }
        if let Some((name, _)) = self.special.iter().find(|(_, special)| *special == token) {
            bytes.extend_from_slice(name.as_bytes());
            return true;
        }
        if self.is_special(token) {
            bytes.extend_from_slice(format!("<|reserved_{token}|>").as_bytes());
            return true;
        }
        false
    }

    /// Length in bytes of a token's text; 0 for a number that stands for none.
    pub(crate) fn token_len(&self, token: u32) -> usize {
        if token < self.limit {
            let len = self.table.bytes(token).len();
            if len > 0 {
                return len;
            }
        }
        let mut bytes = Vec::new();
        self.decode_token(token, &mut bytes);
        bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::split::is_seam;
    use super::*;

    fn encode(encoding: &Encoding, text: &str) -> Vec<u32> {
        let mut tokens = Vec::new();
        encoding.encode(text, &mut tokens);
        tokens
    }

    /// What exact lengths rest on: a text may be cut at any seam and its parts encoded apart.
    #[test]
    fn texts_may_be_cut_at_seams() {
        let bits = prop::sample::select(vec![
            " ",
            " ",
            " ",
            "  ",
            "\n",
            "a",
            "The",
            "don't",
            "'s",
            "1",
            "123",
            "/",
            ";",
            "...",
            "é",
            "日本",
            "\u{301}",
            "<|",
            "endoftext",
            "|>",
            "<|endoftext|>",
            "\u{a0}",
            "x=1",
            "(",
        ]);
        let texts = prop::collection::vec(bits, 0..30).prop_map(|parts| parts.concat());
        let config = ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() };
        proptest::test_runner::TestRunner::new(config)
            .run(&texts, |text| {
                for encoding in &ENCODINGS {
                    let whole = encode(encoding, &text);
                    for at in (0..text.len()).filter(|&at| is_seam(text.as_bytes(), at)) {
                        let parts = [encode(encoding, &text[..at]), encode(encoding, &text[at..])].concat();
                        prop_assert_eq!(&parts, &whole, "{}: {:?} at {}", encoding.name, text, at);
                    }
                }
                Ok(())
            })
            .unwrap();
    }
}
