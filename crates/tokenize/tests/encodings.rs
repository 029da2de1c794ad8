//! The embedded encodings against the published vectors and against the crate whose ranks they carry.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use aiperf_tokenize::{OpenOptions, Tokenizer};
use proptest::prelude::*;
use serde_json::Value;

fn encode(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let mut tokens = Vec::new();
    tokenizer.encode(text, &mut tokens);
    assert_eq!(tokenizer.count(text), tokens.len() as u64, "count differs from encode for {text:?}");
    tokens
}

fn numbers(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as u32).collect()
}

#[test]
fn builtin_equals_the_published_vectors() {
    let vectors: Value = serde_json::from_str(include_str!("data/o200k_base_vectors.json")).unwrap();
    let tokenizer = Tokenizer::builtin();
    assert_eq!(u64::from(tokenizer.vocab_size()), vectors["n_vocab"].as_u64().unwrap());
    for case in vectors["encode"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        assert_eq!(encode(&tokenizer, text), numbers(&case["ids"]), "{text:?}");
    }
    for case in vectors["decode"].as_array().unwrap() {
        let tokens = numbers(&case["ids"]);
        let text = tokenizer.decode(&tokens);
        assert_eq!(text, case["text"].as_str().unwrap(), "{tokens:?}");
        assert_eq!(encode(&tokenizer, &text).len() as u64, case["reencoded_len"].as_u64().unwrap());
    }
}

#[test]
fn numbers_that_stand_for_nothing_decode_to_nothing() {
    let tokenizer = Tokenizer::builtin();
    for token in [199_998, 200_000, 200_017, 200_019, u32::MAX] {
        assert_eq!(tokenizer.decode(&[token]), "", "{token}");
    }
    assert_eq!(tokenizer.decode(&[199_999, 200_018]), "<|endoftext|><|endofprompt|>");
}

fn oracle(name: &str) -> &'static tiktoken_rs::CoreBPE {
    match name {
        "o200k_harmony" => tiktoken_rs::o200k_harmony_singleton(),
        "cl100k_base" => tiktoken_rs::cl100k_base_singleton(),
        "p50k_base" => tiktoken_rs::p50k_base_singleton(),
        "p50k_edit" => tiktoken_rs::p50k_edit_singleton(),
        "r50k_base" => tiktoken_rs::r50k_base_singleton(),
        _ => tiktoken_rs::o200k_base_singleton(),
    }
}

const NAMES: [&str; 6] =
    ["o200k_base", "o200k_harmony", "cl100k_base", "p50k_base", "p50k_edit", "r50k_base"];

fn check(name: &str, text: &str) {
    let tokenizer = Tokenizer::open(name, &OpenOptions::default()).unwrap();
    assert_eq!(encode(&tokenizer, text), oracle(name).encode_with_special_tokens(text), "{name}: {text:?}");
}

/// Texts that lie on the edges of the split patterns.
fn awkward() -> impl Strategy<Value = String> {
    let bits = prop::sample::select(vec![
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "\u{a0}",
        "\u{3000}",
        "\u{85}",
        "\u{2028}",
        "a",
        "the",
        "The",
        "THE",
        "tHe",
        "é",
        "É",
        "ß",
        "ſ",
        "ǅ",
        "日本",
        "ʰ",
        "\u{301}",
        "\u{20dd}",
        "ا",
        "\u{64b}",
        "１",
        "²",
        "Ⅷ",
        "1",
        "12345",
        "'",
        "'s",
        "'S",
        "'ſ",
        "'ll",
        "'LL",
        "'Re",
        "'ve",
        "'d",
        "'M",
        "’s",
        "/",
        "//",
        "-",
        "...",
        "(",
        "{\"",
        "_",
        "<|endoftext|>",
        "<|endofprompt|>",
        "<|fim_prefix|>",
        "<|reserved_200013|>",
        "<|start|>",
        "<|",
        "|>",
        "🙂",
        "👩‍👩‍👧",
        "\u{0}",
        "\u{fffd}",
        "\u{10ffff}",
        "www.",
        "://",
        "==",
        ";\n",
        "}\n\n",
        "\n    ",
        "𝒳",
        "𞤀",
        "ᲀ",
        "ꟑ",
    ]);
    prop::collection::vec(bits, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn awkward_texts_encode_as_published(text in awkward()) {
        for name in NAMES {
            check(name, &text);
        }
    }

    #[test]
    fn any_text_encodes_as_published(text in "\\PC{0,60}") {
        for name in NAMES {
            check(name, &text);
        }
    }

    #[test]
    fn any_characters_encode_as_published(text in prop::collection::vec(any::<char>(), 0..60)) {
        let text: String = text.into_iter().collect();
        for name in NAMES {
            check(name, &text);
        }
    }

    #[test]
    fn decoding_what_was_encoded_gives_the_text(text in awkward()) {
        let tokenizer = Tokenizer::builtin();
        prop_assert_eq!(tokenizer.decode(&encode(&tokenizer, &text)), text);
    }

    #[test]
    fn any_tokens_decode_as_published(tokens in prop::collection::vec(0u32..199_998, 0..20)) {
        let expected = oracle("o200k_base").decode_bytes(&tokens).unwrap();
        let mut bytes = Vec::new();
        Tokenizer::builtin().decode_into(&tokens, &mut bytes);
        prop_assert_eq!(bytes, expected);
    }
}

#[test]
fn every_character_encodes_as_published_among_others() {
    // Each character between letters, between spaces and before a capital: its class decides each split.
    let tokenizer = Tokenizer::builtin();
    for plane in 0..17u32 {
        let mut text = String::new();
        for code in (plane << 16..(plane + 1) << 16).step_by(if plane == 0 { 1 } else { 7 }) {
            if let Some(character) = char::from_u32(code) {
                text.extend(["a", "B "]);
                text.push(character);
                text.extend(["x ", "1"]);
            }
        }
        let expected = oracle("o200k_base").encode_with_special_tokens(&text);
        assert!(encode(&tokenizer, &text) == expected, "plane {plane}");
    }
}

#[test]
fn long_pieces_merge_as_published() {
    let unbroken: String = (0..3000u32).map(|i| char::from(b'a' + (i * i % 26) as u8)).collect();
    for text in [
        unbroken,
        "ab".repeat(5000),
        " ".repeat(3000),
        "=".repeat(777),
        "日本語".repeat(400),
        "\n".repeat(500),
    ] {
        for name in NAMES {
            check(name, &text);
        }
        for len in [62, 63, 64, 65, 66, 129] {
            let cut: String = text.chars().take(len).collect();
            check("o200k_base", &cut);
        }
    }
}
