//! What is drawn depends on the seed and on nothing else.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::thread;

use aiperf_tokenize::corpus::{Pool, TokenPool};
use aiperf_tokenize::seed::{Streams, stream};
use aiperf_tokenize::{Corpus, CorpusKind, OpenOptions, Passage, Text, Tokenizer};

const KINDS: [CorpusKind; 3] = [CorpusKind::Sonnet, CorpusKind::Coding, CorpusKind::Random];
const IDENTITY: [u8; 32] = [7; 32];

/// The texts of items `0..60` of a corpus, made on `threads` threads in an order of their own.
fn texts(kind: CorpusKind, threads: usize) -> Vec<Text> {
    let corpus = Corpus::open(kind, &Tokenizer::builtin());
    let family = Streams::new(11, "prompts");
    let mut texts: Vec<(u64, Text)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let (corpus, family) = (corpus.clone(), family.clone());
                scope.spawn(move || {
                    let mine = (0..60).rev().filter(move |item| *item as usize % threads == worker);
                    mine.map(|item| (item, corpus.exact_text(&mut family.at(item), 1 + item * 7)))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    texts.sort_by_key(|(item, _)| *item);
    texts.into_iter().map(|(_, text)| text).collect()
}

#[test]
fn texts_do_not_depend_on_threads_or_order() {
    for kind in KINDS {
        let one = texts(kind, 1);
        assert_eq!(one, texts(kind, 3));
        assert_eq!(one, texts(kind, 8));
    }
}

#[test]
fn a_seed_gives_the_same_text_in_every_build() {
    // If this changes, so does every run with a seed that somebody wrote down.
    let corpus = Corpus::open(CorpusKind::Sonnet, &Tokenizer::builtin());
    let text = corpus.exact_text(&mut stream(42, "pinned"), 12).text;
    assert_eq!(text, " that can I tell. Will you send him, mistress,");
}

fn block(corpus: &Corpus, seed: u64, id: i64, n: usize) -> Vec<u32> {
    let mut tokens = Vec::new();
    corpus.block_tokens(seed, &IDENTITY, id, n, &mut tokens);
    tokens
}

#[test]
fn blocks_depend_on_seed_file_and_id_alone() {
    for kind in KINDS {
        let corpus = Corpus::open(kind, &Tokenizer::builtin());
        let fresh = Corpus::open(kind, &Tokenizer::builtin());
        let forward: Vec<_> = (-3..40).map(|id| block(&corpus, 5, id, 512)).collect();
        let mut backward: Vec<_> = (-3..40).rev().map(|id| block(&fresh, 5, id, 512)).collect();
        backward.reverse();
        assert_eq!(forward, backward);
        assert_eq!(forward[0].len(), 512);
        for (id, full) in (-3..40).zip(&forward) {
            for n in [0, 1, 2, 16, 511] {
                assert_eq!(
                    block(&corpus, 5, id, n),
                    full[..n],
                    "a partial block is the beginning of the full one"
                );
            }
        }
        assert_ne!(forward[5], block(&corpus, 6, 2, 512));
        let mut other = Vec::new();
        corpus.block_tokens(5, &[8; 32], 2, 512, &mut other);
        assert_ne!(forward[5], other);
        let mut distinct = forward.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() >= forward.len() - 1);
    }
}

#[test]
fn blocks_begin_with_the_separator_and_tokenise_as_they_were_made() {
    let tokenizer = Tokenizer::builtin();
    let corpus = Corpus::open(CorpusKind::Sonnet, &tokenizer);
    let mut total: u64 = 0;
    for first in 0..50 {
        let mut tokens = Vec::new();
        for id in first..first + 4 {
            corpus.block_tokens(1, &IDENTITY, id, 128, &mut tokens);
        }
        assert_eq!(Some(tokens[0]), tokenizer.block_separator());
        let count = tokenizer.count(&tokenizer.decode(&tokens));
        // 1 % of 512 tokens, for each prompt.
        assert!(count.abs_diff(512) <= 5, "{count}");
        total += count;
    }
    assert!(total.abs_diff(50 * 512) <= 50, "{total}");
}

#[test]
fn windows_wrap_at_the_end() {
    let corpus = Corpus::open(CorpusKind::Coding, &Tokenizer::builtin());
    let (mut twice, mut once) = (Vec::new(), Vec::new());
    corpus.draw_window(&mut stream(1, "wrap"), 1_000_000, &mut twice);
    corpus.draw_window(&mut stream(1, "wrap"), 1000, &mut once);
    assert_eq!(twice.len(), 1_000_000);
    assert_eq!(twice[..1000], once);
    let period = (250_000..500_000).find(|&shift| twice[shift..shift + 1000] == once[..]).unwrap();
    assert_eq!(twice[..400_000], twice[period..period + 400_000]);
    let text = corpus.exact_text(&mut stream(1, "wrap"), 500_000);
    assert_eq!(corpus.tokenizer().count(&text.text), 500_000);
}

#[test]
fn the_random_pool_holds_what_decodes_and_is_not_special() {
    let tokenizer = Tokenizer::builtin();
    assert_eq!(TokenPool::of(&tokenizer, Pool::Ordinary).tokens().len(), 199_998);
    let decodable = TokenPool::of(&tokenizer, Pool::Decodable);
    assert_eq!(decodable.tokens().len(), 200_000);
    assert_eq!(decodable.tokens()[199_998..], [199_999, 200_018]);
    let mut window = Vec::new();
    TokenPool::of(&tokenizer, Pool::Ordinary).append(199_996, 4, &mut window);
    assert_eq!(window, [199_996, 199_997, 0, 1]);
}

/// A prompt of blocks and a window, put together as text and as tokens that are decoded at once.
fn passages(corpus: &Corpus) -> (String, String) {
    let tokenizer = corpus.tokenizer();
    let blocks = corpus.blocks(3, &IDENTITY);
    let mut passage = Passage::new(corpus, 0);
    let mut tokens = Vec::new();
    for (id, n) in [(-4, 0), (1, 1), (9, 512), (2, 7), (9, 512), (5, 20_000), (6, 2)] {
        passage.push_block(&blocks, id, n);
        blocks.append_tokens(id, n, &mut tokens);
        passage.push_bare_block(&blocks, id + 1, n);
        blocks.append_bare_tokens(id + 1, n, &mut tokens);
    }
    passage.push_window(&mut stream(1, "passage"), 333);
    corpus.draw_window(&mut stream(1, "passage"), 333, &mut tokens);
    (passage.finish(), tokenizer.decode(&tokens))
}

#[test]
fn a_passage_is_what_decoding_its_tokens_gives() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/byte-bpe");
    for name in ["builtin", "cl100k_base", "r50k_base", folder] {
        let tokenizer = Tokenizer::open(name, &OpenOptions::default()).unwrap();
        for kind in KINDS {
            let (passage, decoded) = passages(&Corpus::open(kind, &tokenizer));
            assert!(passage == decoded, "{name} {kind:?}");
        }
    }
}
