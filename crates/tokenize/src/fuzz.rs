//! Entry points for hostile bytes: the files that somebody publishes as a tokenizer. Each is read or refused, never a
//! panic; what is read cuts any text into numbers of its own and writes any of these out.

use serde_json::Value;

use crate::files::Settings;
use crate::sentencepiece::SentencePiece;
use crate::vocabulary::Vocabulary;

/// Texts that a tokenizer of any kind may stumble over.
const TEXTS: [&str; 5] =
    ["", " ", "thou art \u{65e5}\u{0301} <s>ab</s>", "\u{2581}\u{2581}\r\n\t x", "\u{fb01}\u{1f600}"];

/// A small model with everything that settings act on.
const MODEL: &[u8] = include_bytes!("../tests/data/sentencepiece-user-defined/tokenizer.model");

/// Reads `bytes` as a SentencePiece model.
///
/// # Panics
/// When a promise is broken.
pub fn fuzz_sentencepiece(bytes: &[u8]) {
    let _ = SentencePiece::parse(bytes, &Settings::default()).map(|model| use_all(&model));
}

/// Reads `bytes` as `tokenizer_config.json`, `special_tokens_map.json` and `added_tokens.json` of a model.
///
/// # Panics
/// When a promise is broken.
pub fn fuzz_tokenizer_settings(bytes: &[u8]) {
    let Ok(json) = serde_json::from_slice::<Value>(bytes) else { return };
    for settings in [
        Settings { config: json.clone(), ..Settings::default() },
        Settings { specials: json.clone(), ..Settings::default() },
        Settings { added: json.clone(), ..Settings::default() },
        Settings { config: json.clone(), specials: json.clone(), added: json },
    ] {
        let _ = SentencePiece::parse(MODEL, &settings).map(|model| use_all(&model));
    }
}

fn use_all(model: &SentencePiece) {
    let mut tokens = Vec::new();
    for text in TEXTS {
        tokens.clear();
        model.encode(text, &mut tokens);
        assert_eq!(tokens.len() as u64, model.count(text));
        assert!(tokens.iter().all(|&token| token < model.size()), "{text:?}: {tokens:?}");
        model.decode_into(&tokens, &mut Vec::new());
    }
    let all: Vec<u32> = (0..model.size().min(1000)).chain([u32::MAX]).collect();
    model.decode_into(&all, &mut Vec::new());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SETTINGS: &[u8] =
        br#"{"tokenizer_class":"LlamaTokenizer","legacy":false,"bos_token":{"content":"<s>"},
        "additional_special_tokens":["<x>",{"content":"<y>"}],"added_tokens_decoder":{"0":{"content":"<unk>"},
        "7":{"content":" ab ","lstrip":true,"rstrip":true},"40":{"content":"thou","normalized":true}}}"#;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn damaged_files_are_read_or_refused(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            cut in any::<prop::sample::Index>(),
        ) {
            for (bytes, read) in
                [(MODEL, fuzz_sentencepiece as fn(&[u8])), (SETTINGS, fuzz_tokenizer_settings)]
            {
                let mut bytes = bytes.to_vec();
                for (at, byte) in &changes {
                    let at = at.index(bytes.len());
                    bytes[at] = *byte;
                }
                read(&bytes);
                bytes.truncate(cut.index(bytes.len()));
                read(&bytes);
            }
        }
    }

    /// A file with many added tokens is read in one pass over them.
    #[test]
    fn fifty_thousand_added_tokens_are_no_matter() {
        let added: serde_json::Map<String, Value> =
            (0..50_000).map(|number| (format!("<{number}>"), Value::from(number + 1000))).collect();
        let special: Vec<String> = (0..50_000).map(|number| format!("<s{number}>")).collect();
        let settings = Settings {
            config: serde_json::json!({ "additional_special_tokens": special }),
            added: Value::Object(added),
            ..Settings::default()
        };
        let model = SentencePiece::parse(MODEL, &settings).unwrap();
        assert_eq!(model.size(), 101_000);
        assert_eq!(model.token("<s49999>"), Some(100_999));
    }
}
