//! Rows that are recorded speech, to be written down.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use aiperf_types::{Content, Media, MediaKind, TextGroup, Turn};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Converter, Fault, Made, Row, Value};
use crate::media::sound::{Sound, Unusable};

/// What is asked.
const PROMPT: &str = "Transcribe this audio.";
/// Longer clips are left out, seconds.
const LONGEST: f64 = 30.0;

struct Speech {
    column: &'static str,
    /// Why clips could not be read, and how many, by reason.
    reasons: Mutex<BTreeMap<String, u64>>,
}

/// A converter of such rows, whose clips are in that column.
pub(super) fn make(column: &'static str) -> Box<dyn Converter> {
    Box::new(Speech { column, reasons: Mutex::default() })
}

/// The bytes of a file in a cell.
pub(super) fn file(cell: &Value) -> Option<&[u8]> {
    cell.bytes().or_else(|| cell.get("bytes")?.bytes()).filter(|bytes| !bytes.is_empty())
}

impl Converter for Speech {
    fn columns(&self) -> Option<Vec<&str>> {
        Some(vec![self.column])
    }

    fn required(&self) -> Vec<&str> {
        vec![self.column]
    }

    fn convert(&self, row: &Row) -> Result<Made, Fault> {
        let Some(bytes) = row.cell(self.column).and_then(file) else {
            return Ok(Made::Skipped("without audio"));
        };
        let sound = match Sound::decode(bytes.to_vec(), LONGEST) {
            Ok(sound) => sound,
            Err(Unusable::TooLong) => return Ok(Made::Skipped("longer than 30 s")),
            Err(Unusable::Undecodable(reason)) => {
                *self.reasons.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_default() += 1;
                return Ok(Made::Skipped("audio that cannot be decoded"));
            }
        };
        let mut content = String::from("wav,");
        STANDARD.encode_string(sound.wav(), &mut content);
        let clip = Media { kind: MediaKind::Audio, name: None, content: content.into(), uuid: None };
        Ok(Made::one(Turn {
            content: Content::Parts {
                texts: vec![TextGroup { name: None, contents: vec![PROMPT.into()] }],
                media: vec![clip],
            },
            audio_seconds: Some(sound.seconds()),
            ..Turn::default()
        }))
    }

    fn notes(&self) -> Vec<String> {
        let reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        reasons.iter().map(|(reason, rows)| format!("{rows} clip(s) cannot be decoded: {reason}")).collect()
    }
}
