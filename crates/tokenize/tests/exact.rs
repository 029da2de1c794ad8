//! Texts of n tokens have n tokens, by tokenising them again whole.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use aiperf_tokenize::corpus::Pool;
use aiperf_tokenize::seed::{Streams, below};
use aiperf_tokenize::{Corpus, CorpusKind, OpenOptions, Text, Tokenizer};

/// Lengths from 1 to 8,000: all small ones, then ever fewer.
fn lengths() -> impl Iterator<Item = u64> {
    (1..200).chain((200..1000).step_by(17)).chain([1023, 1024, 1500, 2048, 3001, 4096, 6000, 8000])
}

struct Tally {
    texts: u64,
    wrong: u64,
}

fn check(corpus: &Corpus, tally: &mut Tally, text: &Text, n: u64) {
    let mut tokens = Vec::new();
    corpus.tokenizer().encode(&text.text, &mut tokens);
    assert_eq!(tokens.len() as u64, text.tokens, "stated count is wrong for {:?}", text.text);
    assert!(text.tokens.abs_diff(n) <= 1, "{} tokens instead of {n}", text.tokens);
    tally.texts += 1;
    tally.wrong += u64::from(text.tokens != n);
}

fn exact(kind: CorpusKind, tokenizer: &Tokenizer) {
    exact_for(kind, tokenizer, 12);
}

/// With `each` texts of every small length.
fn exact_for(kind: CorpusKind, tokenizer: &Tokenizer, each: u64) {
    exact_of(&Corpus::open(kind, tokenizer), each);
}

fn exact_of(corpus: &Corpus, each: u64) {
    let family = Streams::new(3, "exact");
    let mut tally = Tally { texts: 0, wrong: 0 };
    for n in lengths() {
        for item in 0..if n < 200 { each } else { each.min(2) } {
            let mut rng = family.at(n * 100 + item);
            check(corpus, &mut tally, &corpus.exact_text(&mut rng, n), n);
        }
    }
    for item in 0..200 {
        let mut rng = family.at(1_000_000 + item);
        let (prefix, body) = (1 + below(&mut rng, 40), 1 + below(&mut rng, 40));
        let prefix = corpus.exact_text(&mut rng, prefix);
        let text = corpus.exact_text_after(&prefix, &mut rng, body);
        assert!(text.text.starts_with(&prefix.text));
        check(corpus, &mut tally, &text, prefix.tokens + body);
    }
    assert!(tally.wrong * 1000 <= tally.texts, "{} of {} texts are not exact", tally.wrong, tally.texts);
}

fn opened(name: &str) -> Tokenizer {
    let folder = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    Tokenizer::open(&folder, &OpenOptions::default()).unwrap()
}

fn small() -> Tokenizer {
    opened("byte-bpe")
}

/// Tokens of these are not bytes put one after the other, so every text is tokenised again whole.
#[test]
fn texts_are_exact_through_sentencepiece() {
    for name in ["sentencepiece-unigram", "sentencepiece-bpe"] {
        let tokenizer = opened(name);
        for kind in [CorpusKind::Sonnet, CorpusKind::Coding, CorpusKind::Random] {
            exact_for(kind, &tokenizer, 1);
        }
    }
}

#[test]
fn sonnet_is_exact() {
    exact(CorpusKind::Sonnet, &Tokenizer::builtin());
    exact(CorpusKind::Sonnet, &small());
}

#[test]
fn coding_is_exact() {
    exact(CorpusKind::Coding, &Tokenizer::builtin());
    exact(CorpusKind::Coding, &small());
}

#[test]
fn random_is_exact() {
    exact(CorpusKind::Random, &Tokenizer::builtin());
    exact(CorpusKind::Random, &small());
}

#[test]
fn random_is_exact_with_special_tokens_among_the_others() {
    exact_of(&Corpus::random(Pool::Decodable, &Tokenizer::builtin()), 3);
}

/// <https://github.com/triton-inference-server/perf_analyzer/pull/202>: prompts were brought to their length with one
/// word over and over, which servers then found in their caches.
#[test]
fn perf_analyzer_202_texts_are_not_padded_and_share_neither_beginning_nor_end() {
    for kind in [CorpusKind::Sonnet, CorpusKind::Coding, CorpusKind::Random] {
        let corpus = Corpus::open(kind, &Tokenizer::builtin());
        let family = Streams::new(5, "padding");
        let texts: Vec<Vec<u32>> = (0..60)
            .map(|item| {
                let text = corpus.exact_text(&mut family.at(item), 300 + item);
                let mut tokens = Vec::new();
                corpus.tokenizer().encode(&text.text, &mut tokens);
                tokens
            })
            .collect();
        let same = |pairs: &mut dyn Iterator<Item = (&u32, &u32)>| pairs.take_while(|(a, b)| a == b).count();
        for (index, one) in texts.iter().enumerate() {
            let last = same(&mut one.iter().rev().zip(one.iter().rev().skip(1)));
            assert!(last < 8, "{kind:?}: the text ends with one token {} times", last + 1);
            for other in &texts[index + 1..] {
                assert!(same(&mut one.iter().zip(other)) < 16, "{kind:?}: two texts begin alike");
                let ends = same(&mut one.iter().rev().zip(other.iter().rev()));
                assert!(ends < 16, "{kind:?}: two texts end alike");
            }
        }
    }
}
