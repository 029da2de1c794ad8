//! `vocab.txt`: `WordPiece`, as BERT has it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::settings::{Added, Settings};
use crate::huggingface::HuggingFace;

/// An added token as a `tokenizer.json` has it.
pub(super) fn added_json(token: &Added) -> Value {
    json!({"id": token.number, "content": token.text, "single_word": token.single_word, "lstrip": token.lstrip,
        "rstrip": token.rstrip, "normalized": token.normalized, "special": token.special})
}

pub(super) fn parse(vocab: &[u8], settings: &Settings) -> Result<HuggingFace, String> {
    let text = std::str::from_utf8(vocab).map_err(|_| "it is no UTF-8".to_owned())?;
    let mut vocab: HashMap<String, u32> = HashMap::new();
    let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    for (number, line) in (0..).zip(lines) {
        vocab.insert(line.trim_end_matches('\r').to_owned(), number);
    }
    let special = |key: &str, usual: &str| settings.special(key).unwrap_or_else(|| usual.to_owned());
    let unknown = special("unk_token", "[UNK]");
    if !vocab.contains_key(&unknown) {
        return Err(format!("it has no token {unknown}, which stands for what is unknown"));
    }
    let around = [special("cls_token", "[CLS]"), special("sep_token", "[SEP]")]
        .iter()
        .filter(|text| vocab.contains_key(*text))
        .count();
    let mut added = settings.added_tokens(&vocab, vocab.len() as u32)?;
    for text in ["[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"] {
        if let Some(&number) = vocab.get(text)
            && !added.iter().any(|token| token.text == text)
        {
            added.push(Added::special(text, number));
        }
    }
    for token in &added {
        vocab.entry(token.text.clone()).or_insert(token.number);
    }
    let file = json!({
        "version": "1.0",
        "added_tokens": added.iter().map(added_json).collect::<Vec<_>>(),
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": true,
            "handle_chinese_chars": settings.flag("tokenize_chinese_chars").unwrap_or(true),
            "strip_accents": settings.flag("strip_accents"),
            "lowercase": settings.flag("do_lower_case").unwrap_or(true),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {"type": "WordPiece", "vocab": vocab, "unk_token": unknown, "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100},
    });
    let mut tokenizer = HuggingFace::parse(file.to_string().as_bytes())?;
    tokenizer.added_by_template = around as u64;
    Ok(tokenizer)
}
