//! `vocab.json` with `merges.txt`: byte-level BPE.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::settings::{Added, Settings};
use crate::huggingface::HuggingFace;

/// The split pattern of Qwen's tokenizers.
const QWEN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// What a class does beside merging: the normaliser, the split, and the tokens around a text.
fn steps(class: &str, settings: &Settings) -> Result<(Value, Value, u64), String> {
    let prefix = settings.flag("add_prefix_space").unwrap_or(false);
    let whole =
        json!({"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": true, "use_regex": true});
    match class {
        "Qwen2Tokenizer" => {
            let split = json!({"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": QWEN}, "behavior": "Isolated", "invert": false},
                {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": true, "use_regex": false},
            ]});
            Ok((json!({"type": "NFC"}), split, 0))
        }
        "RobertaTokenizer"
        | "LongformerTokenizer"
        | "BartTokenizer"
        | "LEDTokenizer"
        | "DebertaTokenizer" => Ok((Value::Null, whole, 2)),
        "CLIPTokenizer"
        | "HerbertTokenizer"
        | "FSMTTokenizer"
        | "CTRLTokenizer"
        | "XLMTokenizer"
        | "OpenAIGPTTokenizer"
        | "BertweetTokenizer"
        | "PhobertTokenizer"
        | "BlenderbotSmallTokenizer" => {
            Err(format!("its vocab.json and merges.txt are those of a {class}, which is no byte-level BPE"))
        }
        _ => Ok((Value::Null, whole, u64::from(settings.flag("add_bos_token").unwrap_or(false)))),
    }
}

pub(super) fn parse(vocab: &[u8], merges: &[u8], settings: &Settings) -> Result<HuggingFace, String> {
    let mut vocab: HashMap<String, u32> = serde_json::from_slice(vocab)
        .map_err(|cause| format!("it is no map of tokens to numbers: {cause}"))?;
    let merges = std::str::from_utf8(merges).map_err(|_| "merges.txt is no UTF-8".to_owned())?;
    let merges: Vec<&str> = merges
        .split('\n')
        .map(|line| line.trim_end_matches('\r'))
        .filter(|line| !line.is_empty() && !line.starts_with("#version"))
        .collect();
    for (number, line) in merges.iter().enumerate() {
        if line.split(' ').count() != 2 {
            return Err(format!("merge {} of merges.txt is not two tokens: {line:?}", number + 1));
        }
    }
    let (normalizer, pre_tokenizer, around) = steps(settings.class().unwrap_or("GPT2Tokenizer"), settings)?;
    let next = vocab.values().max().map_or(0, |last| last + 1);
    let mut added = settings.added_tokens(&vocab, next)?;
    let usual: &[&str] =
        if around == 2 { &["<s>", "</s>", "<unk>", "<pad>", "<mask>"] } else { &["<|endoftext|>"] };
    for &text in usual {
        if let Some(&number) = vocab.get(text).filter(|_| !added.iter().any(|token| token.text == text)) {
            added.push(Added { lstrip: text == "<mask>", ..Added::special(text, number) });
        }
    }
    for token in &added {
        vocab.entry(token.text.clone()).or_insert(token.number);
    }
    let file = json!({
        "version": "1.0",
        "added_tokens": added.iter().map(super::wordpiece::added_json).collect::<Vec<_>>(),
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
    });
    let mut tokenizer = HuggingFace::parse(file.to_string().as_bytes())?;
    tokenizer.added_by_template = around;
    Ok(tokenizer)
}
