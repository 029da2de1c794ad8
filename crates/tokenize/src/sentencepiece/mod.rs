//! A `tokenizer.model` of SentencePiece: unigram or BPE, with or without byte fallback.

mod bpe;
mod normalizer;
mod proto;
mod trie;
mod unigram;

use std::collections::HashMap;

use bpe::Bpe;
use normalizer::{Normalizer, SPACE};
use proto::{Algorithm, Kind, Model};
use trie::Trie;
use unigram::Unigram;

use crate::files::Settings;
use crate::vocabulary::Vocabulary;

#[derive(Debug)]
pub(crate) struct SentencePiece {
    normalizer: Normalizer,
    cutter: Cutter,
    unknown: u32,
    /// The piece of each byte, where characters without a piece are spelled in bytes.
    bytes: Option<Box<[u32; 256]>>,
    spelled: Vec<Spelled>,
    numbers: HashMap<String, u32>,
    added: Trie,
    sides: HashMap<u32, (bool, bool)>,
    /// Whether a text that follows an added token begins like one of its own.
    begins_anew: bool,
    /// Whether the first space of a decoded text is the one that was put before it.
    drops_first_space: bool,
    keeps_following_spaces: bool,
    added_by_template: u64,
}

#[derive(Debug)]
enum Cutter {
    Unigram(Unigram),
    Bpe(Bpe),
}

/// What a token is decoded to.
#[derive(Clone, Debug)]
enum Spelled {
    /// A number that stands for no token.
    Nothing,
    Byte(u8),
    /// Spaces are visible ones.
    Piece(Box<str>),
    /// A special token: as it is spelled.
    Special(Box<str>),
    Unknown(Box<str>),
}

impl SentencePiece {
    /// Reads a model file; what it does not say itself comes from the configuration beside it.
    pub(crate) fn parse(bytes: &[u8], settings: &Settings) -> Result<SentencePiece, String> {
        let model = Model::parse(bytes)?;
        let numbered = || (0u32..).zip(&model.pieces);
        let (unknown, _) = numbered()
            .find(|(_, piece)| piece.kind == Kind::Unknown)
            .ok_or("it has no piece for what is unknown")?;
        let texts = |wanted: &[Kind]| {
            Trie::new(
                numbered()
                    .filter(|(_, piece)| wanted.contains(&piece.kind))
                    .map(|(number, piece)| (piece.text.as_bytes(), number)),
            )
        };
        let normalizer = Normalizer::new(&model, texts(&[Kind::UserDefined]))?;
        let cutter = match model.algorithm {
            Algorithm::Unigram => Cutter::Unigram(Unigram::new(
                &model.pieces,
                texts(&[Kind::Normal, Kind::UserDefined, Kind::Unused]),
            )),
            Algorithm::Bpe => Cutter::Bpe(Bpe::new(&model.pieces, texts(&[Kind::UserDefined]))),
        };
        let bytes = if model.byte_fallback { Some(byte_pieces(&model)?) } else { None };
        let mut spelled: Vec<Spelled> = numbered()
            .map(|(_, piece)| match piece.kind {
                Kind::Byte => byte_of(&piece.text).map_or(Spelled::Nothing, Spelled::Byte),
                Kind::Control => Spelled::Special(piece.text.as_str().into()),
                Kind::Unknown => Spelled::Unknown(model.unknown_surface.as_str().into()),
                _ => Spelled::Piece(piece.text.as_str().into()),
            })
            .collect();
        let mut numbers: HashMap<String, u32> =
            numbered().map(|(number, piece)| (piece.text.clone(), number)).collect();
        let added = settings.added_tokens(&numbers, spelled.len() as u32)?;
        for token in &added {
            let place = token.number as usize;
            if place >= spelled.len() {
                spelled.resize(place + 1, Spelled::Nothing);
            }
            let text = token.text.as_str().into();
            spelled[place] = if token.special { Spelled::Special(text) } else { Spelled::Piece(text) };
            numbers.insert(token.text.clone(), token.number);
        }
        Ok(SentencePiece {
            normalizer,
            cutter,
            unknown,
            bytes,
            spelled,
            numbers,
            sides: added.iter().map(|token| (token.number, (token.lstrip, token.rstrip))).collect(),
            added: Trie::new(added.iter().map(|token| (token.text.as_bytes(), token.number))),
            begins_anew: settings.flag("legacy").unwrap_or(true),
            drops_first_space: model.add_dummy_prefix || model.remove_extra_whitespaces,
            keeps_following_spaces: !model.remove_extra_whitespaces,
            added_by_template: settings.added_by_sentencepiece(),
        })
    }

    fn encode_plain(&self, text: &str, begins: bool, tokens: &mut Vec<u32>) {
        let text = self.normalizer.normalize(text, begins);
        let (mut begin, mut after_unknown) = (0, false);
        let mut push = |piece: Option<u32>, end: usize| {
            let piece = piece.unwrap_or(self.unknown);
            let is_unknown = piece == self.unknown;
            match &self.bytes {
                Some(bytes) if is_unknown => {
                    tokens.extend(text.as_bytes()[begin..end].iter().map(|&byte| bytes[usize::from(byte)]));
                }
                // A run of what is unknown is one token.
                _ if is_unknown && after_unknown => {}
                _ => tokens.push(piece),
            }
            (begin, after_unknown) = (end, is_unknown);
        };
        match &self.cutter {
            Cutter::Unigram(unigram) => {
                unigram.cut(&text, self.unknown, |piece, end| push(Some(piece), end));
            }
            Cutter::Bpe(bpe) => bpe.cut(&text, push),
        }
    }

    /// The first added token in `text`: where it begins, its length and its number.
    fn next_added(&self, text: &str) -> Option<(usize, usize, u32)> {
        (0..text.len())
            .filter(|&at| text.is_char_boundary(at))
            .find_map(|at| self.added.longest(&text.as_bytes()[at..]).map(|(len, number)| (at, len, number)))
    }
}

impl Vocabulary for SentencePiece {
    fn encode(&self, mut text: &str, tokens: &mut Vec<u32>) {
        let mut begins = true;
        while let Some((at, len, number)) = self.next_added(text) {
            let (left, right) = self.sides.get(&number).copied().unwrap_or_default();
            let before = if left { text[..at].trim_end() } else { &text[..at] };
            self.encode_plain(before, begins, tokens);
            tokens.push(number);
            begins = self.begins_anew;
            text = &text[at + len..];
            if right {
                text = text.trim_start();
            }
        }
        self.encode_plain(text, begins, tokens);
    }

    fn decode_into(&self, tokens: &[u32], bytes: &mut Vec<u8>) {
        let mut first = self.drops_first_space;
        for &token in tokens {
            match self.spelled.get(token as usize) {
                None | Some(Spelled::Nothing) => {}
                Some(Spelled::Byte(byte)) => {
                    bytes.push(*byte);
                    first = false;
                }
                Some(Spelled::Special(text) | Spelled::Unknown(text)) => {
                    bytes.extend_from_slice(text.as_bytes());
                    first = false;
                }
                Some(Spelled::Piece(text)) => {
                    let mut rest = &**text;
                    let mut dropped = false;
                    if first && let Some(after) = rest.strip_prefix(SPACE) {
                        (rest, dropped) = (after, true);
                    }
                    bytes.extend_from_slice(rest.replace(SPACE, " ").as_bytes());
                    first &= rest.is_empty() && !(dropped && self.keeps_following_spaces);
                }
            }
        }
    }

    fn size(&self) -> u32 {
        self.spelled.len() as u32
    }

    fn added_by_template(&self) -> u64 {
        self.added_by_template
    }

    fn decodes(&self, token: u32) -> bool {
        !matches!(self.spelled.get(token as usize), None | Some(Spelled::Nothing))
    }

    fn is_special(&self, token: u32) -> bool {
        matches!(self.spelled.get(token as usize), Some(Spelled::Special(_) | Spelled::Unknown(_)))
    }

    fn token_len(&self, _: u32) -> Option<usize> {
        // The first space of a text is dropped, so lengths do not add up.
        None
    }

    fn splits_at_seams(&self) -> bool {
        false
    }

    fn token(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }
}

fn byte_of(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    u8::from_str_radix(digits, 16).ok()
}

fn byte_pieces(model: &Model) -> Result<Box<[u32; 256]>, String> {
    let mut bytes: Box<[Option<u32>; 256]> = Box::new([None; 256]);
    for (number, piece) in (0..).zip(&model.pieces).filter(|(_, piece)| piece.kind == Kind::Byte) {
        if let Some(byte) = byte_of(&piece.text) {
            bytes[usize::from(byte)] = Some(number);
        }
    }
    let mut all = Box::new([0; 256]);
    for (byte, (to, from)) in all.iter_mut().zip(bytes.iter()).enumerate() {
        *to = from
            .ok_or_else(|| format!("it spells characters in bytes and has no piece for byte {byte:#04X}"))?;
    }
    Ok(all)
}
