//! A rank file (`*.tiktoken`, `tiktoken.model`): a token in base64 and its rank on each line.

use std::collections::HashMap;
use std::path::Path;

use serde_json::json;

use super::settings::{Added, Settings};
use super::wordpiece::added_json;
use crate::huggingface::{HuggingFace, byte_characters};

/// The first pattern of OpenAI, of its encodings up to p50k.
const GPT2: &str = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const ANY_CASE_3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const ANY_CASE_1: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Chinese characters are pieces of their own.
const KIMI: &str = r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The split pattern of a tokenizer class.
const BY_CLASS: [(&str, &str); 7] = [
    ("TikTokenTokenizer", KIMI),
    ("QWenTokenizer", ANY_CASE_1),
    ("ChatGLM4Tokenizer", ANY_CASE_3),
    ("Phi3SmallTokenizer", ANY_CASE_3),
    ("DbrxTokenizer", ANY_CASE_3),
    ("Llama3Tokenizer", ANY_CASE_3),
    ("GPT2Tokenizer", GPT2),
];
/// And, where no class is named, that of a published encoding, by what the file's name begins with.
const BY_NAME: [(&str, &str); 7] = [
    ("o200k_", O200K),
    ("cl100k_", ANY_CASE_3),
    ("p50k_", GPT2),
    ("r50k_", GPT2),
    ("gpt2", GPT2),
    ("qwen", ANY_CASE_1),
    // Llama 3 keeps its ranks under the name of a SentencePiece model.
    ("tokenizer.model", ANY_CASE_3),
];

/// Whether bytes are ranks, and no SentencePiece model.
pub(super) fn is_one(bytes: &[u8]) -> bool {
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    str::from_utf8(line).is_ok_and(|line| rank(line).is_some())
}

fn rank(line: &str) -> Option<(Vec<u8>, u32)> {
    let (token, rank) = line.trim_end().split_once(' ')?;
    Some((base64(token)?, rank.parse().ok()?))
}

/// The bytes that standard base64 stands for.
fn base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    if digits.is_empty() || !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0);
    for &digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    Some(bytes)
}

fn pattern(path: &Path, settings: &Settings) -> Result<&'static str, String> {
    let known = |table: &[(&str, &'static str)], matches: &dyn Fn(&str) -> bool| {
        table.iter().find(|(name, _)| matches(name)).map(|(_, pattern)| *pattern)
    };
    let class = settings.class();
    if let Some(found) = class.and_then(|class| known(&BY_CLASS, &|name| name == class)) {
        return Ok(found);
    }
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let generic = class.is_none_or(|class| class == "PreTrainedTokenizer");
    if let Some(found) = known(&BY_NAME, &|name| file.starts_with(name)).filter(|_| generic) {
        return Ok(found);
    }
    let classes = BY_CLASS.map(|(name, _)| name).join(", ");
    let said = class.map_or_else(|| "no class".to_owned(), |class| format!("the class {class}"));
    Err(format!(
        "ranks say nothing of how a text is split, and tokenizer_config.json names {said}; known are {classes}. Code \
         of a repository is never run: give --tokenizer a compatible repository or `builtin`"
    ))
}

pub(super) fn parse(path: &Path, bytes: &[u8], settings: &Settings) -> Result<HuggingFace, String> {
    let text = str::from_utf8(bytes).map_err(|_| "it is no file of ranks".to_owned())?;
    let pattern = pattern(path, settings)?;
    let mut ranks: HashMap<Vec<u8>, u32> = HashMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let (token, rank) =
            rank(line).ok_or_else(|| format!("line {} is no token in base64 and its rank", number + 1))?;
        ranks.insert(token, rank);
    }
    if let Some(byte) = (0..=255u8).find(|byte| !ranks.contains_key([*byte].as_slice())) {
        return Err(format!("it has no rank for byte {byte:#04X}, so it cannot encode every text"));
    }
    let next = ranks.values().max().map_or(0, |last| last + 1);
    let characters = byte_characters();
    let written = |bytes: &[u8]| bytes.iter().map(|&byte| characters[usize::from(byte)]).collect::<String>();
    let mut vocab: HashMap<String, u32> = ranks.iter().map(|(bytes, &rank)| (written(bytes), rank)).collect();
    let added = added(settings, &vocab, next)?;
    for token in &added {
        vocab.entry(token.text.clone()).or_insert(token.number);
    }
    let file = json!({
        "version": "1.0",
        "added_tokens": added.iter().map(added_json).collect::<Vec<_>>(),
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
        ]},
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "ignore_merges": true, "vocab": vocab, "merges": merges(&ranks, written)},
    });
    HuggingFace::parse(file.to_string().as_bytes())
}

/// Any two tokens whose bytes make a third may merge, at the rank of that.
fn merges(ranks: &HashMap<Vec<u8>, u32>, written: impl Fn(&[u8]) -> String) -> Vec<[String; 2]> {
    let mut by_rank: Vec<(&Vec<u8>, u32)> = ranks.iter().map(|(bytes, &rank)| (bytes, rank)).collect();
    by_rank.sort_unstable_by_key(|&(_, rank)| rank);
    let mut merges = Vec::with_capacity(by_rank.len() * 2);
    for (token, _) in by_rank {
        for at in 1..token.len() {
            let (left, right) = token.split_at(at);
            if ranks.contains_key(left) && ranks.contains_key(right) {
                merges.push([written(left), written(right)]);
            }
        }
    }
    merges
}

/// The special tokens, which lie after the ranks.
fn added(settings: &Settings, vocab: &HashMap<String, u32>, next: u32) -> Result<Vec<Added>, String> {
    let mut added = settings.added_tokens(vocab, next)?;
    let mut reserve = |text: String, number: u32| {
        if !added.iter().any(|token| token.number == number || token.text == text) {
            added.push(Added::special(&text, number));
        }
    };
    match settings.class() {
        Some("TikTokenTokenizer") => {
            (next..next + 256).for_each(|number| reserve(format!("<|reserved_token_{number}|>"), number));
        }
        Some("QWenTokenizer") => {
            let named = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"].map(str::to_owned);
            let more = (0..205).map(|index| format!("<|extra_{index}|>"));
            (next..).zip(named.into_iter().chain(more)).for_each(|(number, text)| reserve(text, number));
        }
        _ => {}
    }
    added.sort_by_key(|token| token.number);
    Ok(added)
}
