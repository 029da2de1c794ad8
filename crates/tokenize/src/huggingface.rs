//! A `tokenizer.json`.
//!
//! The `tokenizers` crate is the authority on what such a file means. Byte-level BPE with a well-known split
//! pattern, which is what most models use, is split here and only pieces not met before go to the crate; a
//! property test holds the two ways together.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

use tokenizers::decoders::DecoderWrapper;
use tokenizers::models::ModelWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::split::SplitPattern;
use tokenizers::tokenizer::normalizer::SplitDelimiterBehavior;
use tokenizers::{AddedToken, Model, PostProcessor};

use crate::ranks::merge::{Merger, with_scratch};
use crate::ranks::split::{Pattern, pieces};
use crate::ranks::{END_OF_TEXT, FIRST_FREE_OWNER};
use crate::vocabulary::Vocabulary;

/// Tokenizers of this kind opened so far, to tell their cached pieces apart.
static OPENED: AtomicU32 = AtomicU32::new(FIRST_FREE_OWNER);

#[derive(Debug)]
pub(crate) struct HuggingFace {
    tokenizer: tokenizers::Tokenizer,
    spelled: Option<Spelled>,
    direct: Option<Direct>,
    seams: bool,
    special: Vec<u32>,
    vocab_size: u32,
    pub(crate) added_by_template: u64,
}

/// The bytes of each token, where tokens are bytes put one after the other.
#[derive(Debug)]
struct Spelled {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

/// How to split without the crate.
#[derive(Debug)]
struct Direct {
    pattern: Pattern,
    owner: u32,
    /// Texts of added tokens; where one occurs the crate is asked.
    added: Vec<Box<[u8]>>,
    /// The bytes these begin with: one to three.
    begins: Vec<u8>,
}

/// The character that stands for each byte in byte-level vocabularies: itself where it prints.
pub(crate) fn byte_characters() -> [char; 256] {
    let mut characters = ['\0'; 256];
    let mut spare = 256;
    for byte in 0..=255u8 {
        characters[usize::from(byte)] = if matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF) {
            char::from(byte)
        } else {
            spare += 1;
            char::from_u32(spare - 1).unwrap_or('\0')
        };
    }
    characters
}

impl HuggingFace {
    /// Reads the bytes of a `tokenizer.json`.
    pub(crate) fn parse(json: &[u8]) -> Result<HuggingFace, String> {
        let mut tokenizer = tokenizers::Tokenizer::from_bytes(json).map_err(|cause| cause.to_string())?;
        // A limit on length or a padding set for training would falsify every count.
        tokenizer.with_truncation(None).map_err(|cause| cause.to_string())?;
        tokenizer.with_padding(None);
        // A vocabulary with gaps and no token for the unknown fails on some texts, and a failed count is no count.
        let awkward = "The 3 \u{e9}l\u{e8}ves\n\t\u{4e2d}\u{6587} \u{1f642} \u{0} \u{10ffff}";
        tokenizer
            .encode_fast(awkward, false)
            .map_err(|cause| format!("it cannot encode every text: {cause}"))?;
        let added = tokenizer.get_added_tokens_decoder();
        let special = added.iter().filter(|(_, token)| token.special).map(|(&id, _)| id).collect();
        let vocab = tokenizer.get_vocab(true);
        let vocab_size = vocab.values().max().map_or(0, |last| last + 1);
        let byte_level = matches!(tokenizer.get_decoder(), Some(DecoderWrapper::ByteLevel(_)));
        let spelled = byte_level.then(|| Spelled::new(&vocab, vocab_size));
        let pattern = if byte_level { split_pattern(&tokenizer) } else { None };
        let mut texts: Vec<&AddedToken> = added.values().collect();
        texts.sort_by(|left, right| left.content.cmp(&right.content));
        let direct = pattern.and_then(|pattern| Direct::new(pattern, &texts));
        let seams = pattern.is_some() && texts.iter().all(|token| keeps_seams(token));
        let added_by_template =
            tokenizer.get_post_processor().map_or(0, |processor| processor.added_tokens(false) as u64);
        Ok(HuggingFace { tokenizer, spelled, direct, seams, special, vocab_size, added_by_template })
    }

    fn direct_for(&self, text: &str) -> Option<&Direct> {
        self.direct.as_ref().filter(|direct| !direct.holds_added(text.as_bytes()))
    }

    /// The tokens of a piece no thread memory has.
    fn merge(&self, piece: &[u8], merger: &mut Merger) {
        let characters = byte_characters();
        let written: String = piece.iter().map(|&byte| characters[usize::from(byte)]).collect();
        if let Ok(found) = self.tokenizer.get_model().tokenize(&written) {
            merger.merged.extend(found.iter().map(|token| token.id));
        }
    }
}

impl Vocabulary for HuggingFace {
    fn count(&self, text: &str) -> u64 {
        match self.direct_for(text) {
            Some(direct) => with_scratch(|scratch| {
                let mut total = 0;
                pieces(direct.pattern, text, |piece| {
                    total +=
                        scratch.tokens(direct.owner, piece, |merger| self.merge(piece, merger)).len() as u64;
                });
                total
            }),
            None => self.tokenizer.encode_fast(text, false).map_or(0, |encoding| encoding.len() as u64),
        }
    }

    fn encode(&self, text: &str, tokens: &mut Vec<u32>) {
        match self.direct_for(text) {
            Some(direct) => with_scratch(|scratch| {
                pieces(direct.pattern, text, |piece| {
                    tokens.extend_from_slice(
                        scratch.tokens(direct.owner, piece, |merger| self.merge(piece, merger)),
                    );
                });
            }),
            None => {
                if let Ok(encoding) = self.tokenizer.encode_fast(text, false) {
                    tokens.extend_from_slice(encoding.get_ids());
                }
            }
        }
    }

    fn decode_into(&self, tokens: &[u32], bytes: &mut Vec<u8>) {
        if let Some(spelled) = &self.spelled {
            for &token in tokens {
                bytes.extend_from_slice(spelled.bytes(token));
            }
        } else if let Ok(text) = self.tokenizer.decode(tokens, false) {
            bytes.extend_from_slice(text.as_bytes());
        }
    }

    fn decodes(&self, token: u32) -> bool {
        self.tokenizer.id_to_token(token).is_some()
    }

    fn is_special(&self, token: u32) -> bool {
        self.special.contains(&token)
    }

    fn token_len(&self, token: u32) -> Option<usize> {
        self.spelled.as_ref().map(|spelled| spelled.bytes(token).len())
    }

    fn splits_at_seams(&self) -> bool {
        self.seams
    }

    fn token(&self, text: &str) -> Option<u32> {
        self.tokenizer.token_to_id(text)
    }

    fn size(&self) -> u32 {
        self.vocab_size
    }

    fn added_by_template(&self) -> u64 {
        self.added_by_template
    }
}

impl Spelled {
    fn new(vocab: &HashMap<String, u32>, vocab_size: u32) -> Spelled {
        let of_character: HashMap<char, u8> =
            (0..=255).map(|byte| (byte_characters()[usize::from(byte)], byte)).collect();
        let mut by_number: Vec<&str> = vec![""; vocab_size as usize];
        for (text, &number) in vocab {
            by_number[number as usize] = text;
        }
        let mut spelled = Spelled { bytes: Vec::new(), ends: Vec::with_capacity(by_number.len()) };
        for text in by_number {
            // A token with a character of no byte (an added one) is its own text.
            match text
                .chars()
                .map(|character| of_character.get(&character).copied())
                .collect::<Option<Vec<u8>>>()
            {
                Some(bytes) => spelled.bytes.extend_from_slice(&bytes),
                None => spelled.bytes.extend_from_slice(text.as_bytes()),
            }
            spelled.ends.push(spelled.bytes.len() as u32);
        }
        spelled
    }

    fn bytes(&self, token: u32) -> &[u8] {
        let token = token as usize;
        let Some(&end) = self.ends.get(token) else { return &[] };
        let begin = if token == 0 { 0 } else { self.ends[token - 1] };
        &self.bytes[begin as usize..end as usize]
    }
}

impl Direct {
    fn new(pattern: Pattern, added: &[&AddedToken]) -> Option<Direct> {
        let mut begins: Vec<u8> = added.iter().filter_map(|token| token.content.bytes().next()).collect();
        begins.sort_unstable();
        begins.dedup();
        if begins.is_empty() {
            begins.push(END_OF_TEXT.as_bytes()[0]);
        }
        // A token that takes white space around it or begins with some could begin anywhere.
        let plain = |token: &&&AddedToken| !token.lstrip && !token.content.is_empty();
        if begins.len() > 3 || !added.iter().all(|token| plain(&token)) {
            return None;
        }
        let added = added.iter().map(|token| token.content.as_bytes().into()).collect();
        Some(Direct { pattern, owner: OPENED.fetch_add(1, Ordering::Relaxed), added, begins })
    }

    /// Whether the text of an added token occurs.
    fn holds_added(&self, text: &[u8]) -> bool {
        let found = |at: usize| self.added.iter().any(|added| text[at..].starts_with(added));
        match self.begins[..] {
            [one] => memchr::memchr_iter(one, text).any(found),
            [one, two] => memchr::memchr2_iter(one, two, text).any(found),
            [one, two, three] => memchr::memchr3_iter(one, two, three, text).any(found),
            _ => true,
        }
    }
}

/// Whether an added token leaves lone spaces alone: it takes none beside it and has none within.
fn keeps_seams(token: &AddedToken) -> bool {
    !token.lstrip && !token.rstrip && (token.content.trim().is_empty() || !token.content.contains(' '))
}

/// The pattern of a byte-level BPE that does nothing else to a text.
fn split_pattern(tokenizer: &tokenizers::Tokenizer) -> Option<Pattern> {
    let ModelWrapper::BPE(model) = tokenizer.get_model() else { return None };
    let plain = model.dropout.is_none()
        && model.unk_token.is_none()
        && model.continuing_subword_prefix.as_deref().unwrap_or("").is_empty()
        && model.end_of_word_suffix.as_deref().unwrap_or("").is_empty()
        && !model.byte_fallback;
    if !plain || tokenizer.get_normalizer().is_some() {
        return None;
    }
    match tokenizer.get_pre_tokenizer()? {
        PreTokenizerWrapper::ByteLevel(bytes) if bytes.use_regex && !bytes.add_prefix_space => {
            Some(Pattern::Gpt2)
        }
        PreTokenizerWrapper::Sequence(steps) => match steps.as_ref() {
            [PreTokenizerWrapper::Split(split), PreTokenizerWrapper::ByteLevel(bytes)] => {
                let isolates = split.behavior == SplitDelimiterBehavior::Isolated && !split.invert;
                if !isolates || bytes.use_regex || bytes.add_prefix_space {
                    return None;
                }
                match &split.pattern {
                    SplitPattern::Regex(expression) => Pattern::of_expression(expression),
                    SplitPattern::String(_) => None,
                }
            }
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const FIXTURE: &str = include_str!("../tests/data/byte-bpe/tokenizer.json");

    fn with_expression(expression: &str) -> HuggingFace {
        let mut file: Value = serde_json::from_str(FIXTURE).unwrap();
        file["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
        ]});
        HuggingFace::parse(file.to_string().as_bytes()).unwrap()
    }

    /// The split patterns of widely used models, as their files spell them.
    const EXPRESSIONS: [&str; 6] = [
        // Llama 3
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        // Qwen 2 and 3
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        // gpt-oss, Llama 4
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        // Mistral Nemo and later
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        // A pattern that is not known here.
        r"\w+|\s+|[^\w\s]+",
    ];

    fn agree(ours: &HuggingFace, text: &str) {
        let mut tokens = Vec::new();
        ours.encode(text, &mut tokens);
        let theirs = ours.tokenizer.encode(text, false).unwrap();
        assert_eq!(tokens, theirs.get_ids(), "{text:?}");
        assert_eq!(ours.count(text), tokens.len() as u64);
        let mut bytes = Vec::new();
        ours.decode_into(&tokens, &mut bytes);
        assert_eq!(
            crate::tokenizer::lossy(bytes),
            ours.tokenizer.decode(&tokens, false).unwrap(),
            "{text:?}"
        );
    }

    #[test]
    fn common_patterns_are_known() {
        let known = EXPRESSIONS.map(|expression| with_expression(expression).direct.is_some());
        assert_eq!(known, [true, true, true, true, true, false]);
        assert!(HuggingFace::parse(FIXTURE.as_bytes()).unwrap().direct.is_some());
    }

    #[test]
    fn a_limit_on_length_in_the_file_is_not_a_limit_on_counting() {
        let mut file: Value = serde_json::from_str(FIXTURE).unwrap();
        file["truncation"] =
            json!({"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0});
        file["padding"] = json!({"strategy": {"Fixed": 64}, "direction": "Right", "pad_to_multiple_of": null,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "<s>"});
        let tokenizer = HuggingFace::parse(file.to_string().as_bytes()).unwrap();
        let text = "Shall I compare thee to a summer's day?";
        assert_eq!(tokenizer.tokenizer.encode_fast(text, false).unwrap().len(), 11);
        assert_eq!(tokenizer.count(text), 11);
    }

    fn awkward() -> impl Strategy<Value = String> {
        let bits = prop::sample::select(vec![
            " ",
            "  ",
            "\n",
            "\r\n",
            "\t",
            "\u{a0}",
            "\u{85}",
            "a",
            "the",
            "The",
            "THE",
            "é",
            "É",
            "ſ",
            "日本",
            "ʰ",
            "\u{301}",
            "１",
            "²",
            "1",
            "12345",
            "'",
            "'s",
            "'S",
            "'ſ",
            "'ll",
            "'Re",
            "/",
            "//",
            "-",
            "...",
            "({\"",
            "<s>",
            "</s>",
            "<|role|>",
            "<|",
            "<",
            "🙂",
            "\u{0}",
            "\u{10ffff}",
            ";\n",
            "}\n\n",
            "\n    ",
        ]);
        prop::collection::vec(bits, 0..30).prop_map(|parts| parts.concat())
    }

    #[test]
    fn splitting_here_equals_splitting_there() {
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
            cases: 150,
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        for expression in EXPRESSIONS {
            let tokenizer = with_expression(expression);
            runner
                .run(&(awkward(), prop::collection::vec(any::<char>(), 0..40)), |(text, characters)| {
                    agree(&tokenizer, &text);
                    agree(&tokenizer, &characters.into_iter().collect::<String>());
                    Ok(())
                })
                .unwrap();
        }
    }
}
