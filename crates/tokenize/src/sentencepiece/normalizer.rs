//! The text that is cut into pieces: rules of normalisation applied, white space made visible.

use super::proto::Model;
use super::trie::Trie;

/// What stands for a space.
pub(crate) const SPACE: &str = "\u{2581}";

/// Turns a text into the one that is cut.
#[derive(Debug)]
pub(crate) struct Normalizer {
    rules: Option<Rules>,
    /// Pieces that are kept as they are.
    kept: Trie,
    dummy_prefix: bool,
    remove_extra: bool,
    escape: bool,
    suffix: bool,
}

/// Compiled replacements: a double array of what is replaced, and the texts it is replaced by.
#[derive(Debug)]
struct Rules {
    units: Vec<u32>,
    texts: String,
}

impl Rules {
    fn parse(bytes: &[u8]) -> Option<Rules> {
        let (len, rest) = bytes.split_first_chunk::<4>()?;
        let (array, texts) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        let (units, odd) = array.as_chunks::<4>();
        let texts = String::from_utf8(texts.to_vec()).ok()?;
        odd.is_empty()
            .then(|| Rules { units: units.iter().map(|unit| u32::from_le_bytes(*unit)).collect(), texts })
    }

    /// The longest text that is replaced at the beginning of `bytes`: its length and what replaces it.
    fn longest(&self, bytes: &[u8]) -> Option<(usize, &str)> {
        const LABEL: u32 = 1 << 31 | 0xFF;
        let offset = |unit: u32| (unit >> 10) << ((unit & (1 << 9)) >> 6);
        let unit = |at: u32| self.units.get(at as usize).copied();
        let mut at = offset(unit(0)?);
        let mut found = None;
        for (index, &byte) in bytes.iter().enumerate() {
            at ^= u32::from(byte);
            let Some(here) = unit(at).filter(|here| here & LABEL == u32::from(byte)) else { break };
            at ^= offset(here);
            if here >> 8 & 1 == 1 {
                found = unit(at).map(|leaf| (index + 1, leaf & !(1 << 31))).or(found);
            }
        }
        let (len, start) = found?;
        let text = self.texts.get(start as usize..)?;
        Some((len, text.split_once('\0').map_or(text, |(text, _)| text)))
    }
}

impl Normalizer {
    pub(crate) fn new(model: &Model, kept: Trie) -> Result<Normalizer, String> {
        let rules = match model.rules.as_slice() {
            [] => None,
            bytes => Some(
                Rules::parse(bytes).ok_or_else(|| "its rules of normalisation cannot be read".to_owned())?,
            ),
        };
        Ok(Normalizer {
            rules,
            kept,
            dummy_prefix: model.add_dummy_prefix,
            remove_extra: model.remove_extra_whitespaces,
            escape: model.escape_whitespaces,
            suffix: model.whitespace_as_suffix,
        })
    }

    /// The text a piece of input stands for, and the length of that input (at least 1).
    fn first<'text>(&'text self, input: &'text str) -> (&'text str, usize) {
        if let Some((len, _)) = self.kept.longest(input.as_bytes()) {
            return (&input[..len], len);
        }
        let replaced = self.rules.as_ref().and_then(|rules| rules.longest(input.as_bytes()));
        // A rule that ends within a character would be no rule for text.
        if let Some((len, text)) = replaced.filter(|(len, _)| input.is_char_boundary(*len)) {
            return (text, len);
        }
        let len = input.chars().next().map_or(1, char::len_utf8);
        (&input[..len], len)
    }

    /// The text that is cut. `begins` is false for what follows a token within a text.
    pub(crate) fn normalize(&self, mut input: &str, begins: bool) -> String {
        let space = if self.escape { SPACE } else { " " };
        let mut text = String::with_capacity(input.len() + input.len() / 4 + space.len());
        if self.remove_extra {
            while !input.is_empty() {
                let (piece, len) = self.first(input);
                if piece != " " {
                    break;
                }
                input = &input[len..];
            }
        }
        if input.is_empty() {
            return text;
        }
        let dummy = self.dummy_prefix && begins;
        if dummy && !self.suffix {
            text.push_str(space);
        }
        let mut after_space = self.remove_extra;
        while !input.is_empty() {
            let (mut piece, len) = self.first(input);
            if after_space {
                piece = piece.trim_start_matches(' ');
            }
            if !piece.is_empty() {
                for (index, part) in piece.split(' ').enumerate() {
                    if index > 0 {
                        text.push_str(space);
                    }
                    text.push_str(part);
                }
                after_space = self.remove_extra && piece.ends_with(' ');
            }
            input = &input[len..];
        }
        if self.remove_extra {
            text.truncate(text.trim_end_matches(space).len());
        }
        if dummy && self.suffix {
            text.push_str(space);
        }
        text
    }
}
