//! Tokenizer files of every kind give the tokens that `sentencepiece`, `tiktoken` and `transformers` give for the same
//! files (`vectors.json`: text, tokens, decoded text where it was recorded).

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use aiperf_tokenize::{OpenOptions, Tokenizer, TokenizerError};
use proptest::prelude::*;
use serde_json::Value;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn open(path: &Path) -> Result<Tokenizer, TokenizerError> {
    Tokenizer::open(path.to_str().unwrap(), &OpenOptions { revision: None, hub_caches: Some(Vec::new()) })
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let mut tokens = Vec::new();
    tokenizer.encode(text, &mut tokens);
    tokens
}

fn agrees(name: &str) -> Tokenizer {
    let tokenizer = open(&data(name)).unwrap();
    let vectors: Vec<(String, Vec<u32>, Option<String>)> =
        serde_json::from_slice(&fs::read(data(name).join("vectors.json")).unwrap()).unwrap();
    assert!(vectors.len() > 50);
    for (text, tokens, back) in vectors {
        assert_eq!(encode(&tokenizer, &text), tokens, "{name}: {text:?}");
        assert_eq!(tokenizer.count(&text), tokens.len() as u64);
        if let Some(back) = back {
            assert_eq!(tokenizer.decode(&tokens), back, "{name}: {tokens:?}");
        }
    }
    tokenizer
}

/// The files that came with expected tokens.
fn as_expected(name: &str) {
    let tokenizer = agrees(name);
    let expected: Value =
        serde_json::from_slice(&fs::read(data(name).join("expected.json")).unwrap()).unwrap();
    assert_eq!(u64::from(tokenizer.vocab_size()), expected["vocab_size"].as_u64().unwrap());
    for case in expected["cases"].as_array().unwrap() {
        let tokens: Vec<u32> = serde_json::from_value(case["ids"].clone()).unwrap();
        assert_eq!(encode(&tokenizer, case["text"].as_str().unwrap()), tokens);
        assert_eq!(tokenizer.decode(&tokens), case["decoded"].as_str().unwrap());
    }
    // `add_bos_token`, and a special token in a text is itself.
    assert_eq!(tokenizer.num_special_tokens_to_add(), 1);
    let begin = tokenizer.block_separator().unwrap();
    assert_eq!(encode(&tokenizer, "<s>")[..], [begin]);
    assert!(encode(&tokenizer, "a<s>b").contains(&begin));
}

#[test]
fn a_sentencepiece_unigram_model_gives_the_expected_tokens() {
    as_expected("sentencepiece-unigram");
}

#[test]
fn a_sentencepiece_bpe_model_gives_the_expected_tokens() {
    as_expected("sentencepiece-bpe");
}

#[test]
fn what_a_user_defined_is_never_cut_and_runs_of_unknown_characters_are_one_token() {
    let tokenizer = agrees("sentencepiece-user-defined");
    assert_eq!(tokenizer.num_special_tokens_to_add(), 0);
}

#[test]
fn a_model_that_keeps_spaces_keeps_them() {
    let tokenizer = agrees("sentencepiece-keeps-spaces");
    let text = "  two  spaces ";
    assert_eq!(tokenizer.decode(&encode(&tokenizer, text)), text);
}

#[test]
fn vocab_json_and_merges_txt_give_the_expected_tokens() {
    let tokenizer = agrees("vocab-and-merges");
    assert_eq!(encode(&tokenizer, "<|endoftext|>"), [tokenizer.block_separator().unwrap()]);
    // Either file names the pair.
    for name in ["vocab.json", "merges.txt"] {
        let of_file = open(&data("vocab-and-merges").join(name)).unwrap();
        assert_eq!(encode(&of_file, "Shall I?"), encode(&tokenizer, "Shall I?"));
    }
}

#[test]
fn vocab_txt_gives_the_expected_tokens() {
    assert_eq!(agrees("wordpiece").num_special_tokens_to_add(), 2);
}

#[test]
fn vllm_bench_a_rank_file_is_split_by_its_class_without_running_code() {
    let tokenizer = agrees("rank-file");
    assert_eq!(tokenizer.block_separator(), Some(tokenizer.vocab_size() - 256));
    assert_eq!(encode(&tokenizer, "<|reserved_token_513|>").len(), 1);
}

#[test]
fn a_rank_file_of_an_unknown_class_says_which_classes_are_known() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(data("rank-file").join("tiktoken.model"), folder.path().join("tiktoken.model")).unwrap();
    for (config, said) in [("{}", "names no class"), (r#"{"tokenizer_class": "Odd"}"#, "names the class Odd")]
    {
        fs::write(folder.path().join("tokenizer_config.json"), config).unwrap();
        let text = open(folder.path()).unwrap_err().to_string();
        for part in [said, "TikTokenTokenizer", "never run", "`builtin`"] {
            assert!(text.contains(part), "{text}");
        }
    }
    // Under the name that Llama 3 gives its ranks they are split as Llama 3 does.
    fs::remove_file(folder.path().join("tokenizer_config.json")).unwrap();
    fs::rename(folder.path().join("tiktoken.model"), folder.path().join("tokenizer.model")).unwrap();
    assert_eq!(open(folder.path()).unwrap().count("12345"), open(&data("rank-file")).unwrap().count("12345"));
}

#[test]
fn the_first_kind_in_order_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let put = |from: &str, file: &str| {
        fs::copy(data(from).join(file), folder.path().join(file)).unwrap();
        open(folder.path()).unwrap().vocab_size()
    };
    let sizes = [
        put("wordpiece", "vocab.txt"),
        // The merges alone are no pair.
        put("vocab-and-merges", "merges.txt"),
        put("vocab-and-merges", "vocab.json"),
        put("sentencepiece-bpe", "tokenizer.model"),
        put("byte-bpe", "tokenizer.json"),
    ];
    let alone = ["wordpiece", "wordpiece", "vocab-and-merges", "sentencepiece-bpe", "byte-bpe"]
        .map(|name| open(&data(name)).unwrap().vocab_size());
    assert_eq!(sizes, alone);
}

#[test]
fn broken_files_are_errors_that_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content, said) in [
        ("tokenizer.model", &b"\x0a\xff\xff\xff\xff\x0f"[..], "no SentencePiece model"),
        ("tokenizer.model", b"", "no pieces"),
        ("vocab.txt", b"a\nb\n", "[UNK]"),
        ("x.tiktoken", b"IQ== 0\n", "names no class"),
        ("cl100k_base.tiktoken", b"IQ== 0\nIg==\n", "line 2"),
        ("cl100k_base.tiktoken", b"IQ== 0\n", "byte 0x00"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let text = open(&path).unwrap_err().to_string();
        assert!(text.contains(said) && text.contains(name), "{text}");
        fs::remove_file(path).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_model_is_read_or_refused_and_never_panics(
        at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = fs::read(data("sentencepiece-user-defined").join("tokenizer.model")).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.truncate(cut.index(bytes.len()).max(bytes.len() * 3 / 4));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.model");
        fs::write(&path, bytes).unwrap();
        if let Ok(tokenizer) = open(&path) {
            let tokens = encode(&tokenizer, "thou art \u{65e5} ab");
            tokenizer.decode(&tokens);
        }
    }
}
