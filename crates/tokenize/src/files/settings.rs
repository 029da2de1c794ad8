//! What the files beside a tokenizer say: its class, its added tokens, what is put around a text.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;

use crate::TokenizerError;

/// `tokenizer_config.json`, `special_tokens_map.json` and `added_tokens.json`; `null` where one is not there.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) config: Value,
    pub(crate) specials: Value,
    pub(crate) added: Value,
}

/// A token beside those of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Added {
    pub(crate) text: String,
    pub(crate) number: u32,
    pub(crate) special: bool,
    /// Whether it takes the white space before it and after it.
    pub(crate) lstrip: bool,
    pub(crate) rstrip: bool,
    pub(crate) single_word: bool,
    pub(crate) normalized: bool,
}

impl Added {
    /// A special token that takes nothing beside it.
    pub(crate) fn special(text: &str, number: u32) -> Added {
        Added {
            text: text.to_owned(),
            number,
            special: true,
            lstrip: false,
            rstrip: false,
            single_word: false,
            normalized: false,
        }
    }
}

/// Names under which special tokens are set.
const NAMED: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];
/// Numbers above this are no vocabulary.
const LARGEST: u64 = 16_000_000;

impl Settings {
    /// Reads the files of a folder.
    pub(crate) fn of_folder(folder: &Path) -> Result<Settings, TokenizerError> {
        Ok(Settings {
            config: optional_json(&folder.join("tokenizer_config.json"))?,
            specials: optional_json(&folder.join("special_tokens_map.json"))?,
            added: optional_json(&folder.join("added_tokens.json"))?,
        })
    }

    /// The class that the tokenizer had where it was made, without the mark of its fast form.
    pub(crate) fn class(&self) -> Option<&str> {
        let class = self.config.get("tokenizer_class")?.as_str()?;
        Some(class.strip_suffix("Fast").unwrap_or(class))
    }

    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.config.get(key)?.as_bool()
    }

    /// The text of a special token: a plain string, or an object with `content`.
    pub(crate) fn special(&self, key: &str) -> Option<String> {
        special_text(&self.config, key).or_else(|| special_text(&self.specials, key))
    }

    /// How many tokens are put around a text that a SentencePiece model cuts.
    pub(crate) fn added_by_sentencepiece(&self) -> u64 {
        let class = self.class().unwrap_or_default();
        let (begin, end) = match class {
            "T5Tokenizer" => (false, true),
            "AlbertTokenizer" | "XLNetTokenizer" => return 2,
            "LlamaTokenizer" | "CodeLlamaTokenizer" | "GemmaTokenizer" => (true, false),
            _ => (false, false),
        };
        u64::from(self.flag("add_bos_token").unwrap_or(begin))
            + u64::from(self.flag("add_eos_token").unwrap_or(end))
    }

    /// The added tokens with their numbers, in order of these. `known` are the tokens of the model, `next` is the
    /// number of the first token that has none yet.
    pub(crate) fn added_tokens(&self, known: &HashMap<String, u32>, next: u32) -> Result<Vec<Added>, String> {
        let mut found: Vec<Added> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut free = next;
        let mut keep = |token: Added| {
            if !token.text.is_empty() && !places.contains_key(&token.text) {
                places.insert(token.text.clone(), found.len());
                free = free.max(token.number + 1);
                found.push(token);
            }
        };
        let plain = |text: &str, number: u32, special: bool| Added {
            special,
            normalized: !special,
            ..Added::special(text, number)
        };
        for (number, token) in entries(self.config.get("added_tokens_decoder")) {
            let number = number.parse().ok().and_then(checked).ok_or_else(|| {
                format!("tokenizer_config.json: {number:?} in added_tokens_decoder is no token number")
            })?;
            let text = token.get("content").and_then(Value::as_str).unwrap_or_default();
            let flag = |key: &str| token.get(key).and_then(Value::as_bool).unwrap_or(false);
            keep(Added {
                lstrip: flag("lstrip"),
                rstrip: flag("rstrip"),
                single_word: flag("single_word"),
                normalized: flag("normalized"),
                ..plain(text, number, flag("special"))
            });
        }
        for (text, number) in entries(Some(&self.added)) {
            let number = number
                .as_u64()
                .and_then(checked)
                .ok_or_else(|| format!("added_tokens.json: the number of {text:?} is no token number"))?;
            keep(plain(text, number, false));
        }
        let mut named: Vec<String> = NAMED.iter().filter_map(|key| self.special(key)).collect();
        for object in [&self.config, &self.specials] {
            let more =
                object.get("additional_special_tokens").and_then(Value::as_array).into_iter().flatten();
            named.extend(more.filter_map(|token| text_of(token).map(str::to_owned)));
        }
        for text in named {
            if let Some(place) = places.get(&text) {
                found[*place].special = true;
                continue;
            }
            let number = known.get(&text).copied().unwrap_or(free);
            free = free.max(number + 1);
            places.insert(text.clone(), found.len());
            found.push(plain(&text, number, true));
        }
        found.sort_by_key(|token| token.number);
        Ok(found)
    }
}

fn checked(number: u64) -> Option<u32> {
    u32::try_from(number).ok().filter(|_| number <= LARGEST)
}

fn entries(object: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    object.and_then(Value::as_object).into_iter().flatten()
}

fn text_of(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("content")?.as_str())
}

/// The text of a special token: a plain string, or an object with `content`.
pub(crate) fn special_text(object: &Value, key: &str) -> Option<String> {
    object.get(key).and_then(text_of).map(str::to_owned)
}

/// A JSON file that need not be there; `null` when it is not.
fn optional_json(path: &Path) -> Result<Value, TokenizerError> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|cause| TokenizerError::Invalid { path: path.to_owned(), cause: cause.to_string() }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Value::Null),
        Err(cause) => Err(TokenizerError::Unreadable { path: path.to_owned(), cause }),
    }
}
