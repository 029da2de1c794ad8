//! Conversations in a file: turns as JSON one after the other, and after them where each of them is. The file is made and
//! read by the same run, and is never kept.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aiperf_types::{Content, ContextMode, Media, MediaKind, TextGroup, Turn};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json};

use super::{Draft, Fault};
use crate::{DatasetError, Outline, TurnOutline};

/// One turn, as it is written.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Written {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    texts: Vec<(Option<String>, Vec<String>)>,
    /// Kind, name, content, id.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    media: Vec<(u8, Option<String>, String, Option<String>)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<Box<RawValue>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_body: Option<Map<String, Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio_seconds: Option<f64>,
}

const KINDS: [MediaKind; 3] = [MediaKind::Image, MediaKind::Audio, MediaKind::Video];
const MODES: [ContextMode; 3] = [
    ContextMode::DeltasWithoutResponses,
    ContextMode::DeltasWithResponses,
    ContextMode::MessageArrayWithResponses,
];

fn place<T: PartialEq>(all: &[T], wanted: &T) -> u8 {
    all.iter().position(|one| one == wanted).unwrap_or(0) as u8
}

impl Written {
    fn of(turn: &Turn) -> Written {
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        let mut written = Written {
            model: text(&turn.model),
            max_tokens: turn.max_tokens,
            role: text(&turn.role),
            extra_body: turn.extra_body.clone(),
            text_tokens: turn.text_tokens,
            audio_seconds: turn.audio_seconds,
            ..Written::default()
        };
        match &turn.content {
            Content::Parts { texts, media } => {
                let group = |group: &TextGroup| {
                    (text(&group.name), group.contents.iter().map(ToString::to_string).collect())
                };
                let item = |item: &Media| {
                    (place(&KINDS, &item.kind), text(&item.name), item.content.to_string(), text(&item.uuid))
                };
                written.texts = texts.iter().map(group).collect();
                written.media = media.iter().map(item).collect();
            }
            Content::Messages { messages, tools } => {
                written.messages = Some(messages.clone());
                written.tools.clone_from(tools);
            }
            Content::Payload(payload) => written.payload = Some(payload.clone()),
        }
        written
    }

    fn turn(self, outline: TurnOutline) -> Turn {
        let text = |text: Option<String>| text.map(Arc::from);
        let content = if let Some(payload) = self.payload {
            Content::Payload(payload)
        } else if let Some(messages) = self.messages {
            Content::Messages { messages, tools: self.tools }
        } else {
            let group = |(name, contents): (Option<String>, Vec<String>)| TextGroup {
                name: text(name),
                contents: contents.into_iter().map(Arc::from).collect(),
            };
            let item = |(kind, name, content, uuid): (u8, Option<String>, String, Option<String>)| Media {
                kind: KINDS.get(usize::from(kind)).copied().unwrap_or(MediaKind::Image),
                name: text(name),
                content: content.into(),
                uuid: text(uuid),
            };
            Content::Parts {
                texts: self.texts.into_iter().map(group).collect(),
                media: self.media.into_iter().map(item).collect(),
            }
        };
        Turn {
            timestamp_ms: outline.timestamp_ms,
            delay_ms: outline.delay_ms,
            model: text(self.model),
            max_tokens: self.max_tokens,
            role: text(self.role),
            content,
            extra_body: self.extra_body,
            text_tokens: self.text_tokens,
            audio_seconds: self.audio_seconds,
            ..Turn::default()
        }
    }
}

/// Where a turn is, and when it wants to leave.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u64,
    length: u64,
    outline: TurnOutline,
}

/// A conversation among the turns.
#[derive(Clone, Debug)]
struct Session {
    id: Option<Arc<str>>,
    /// Where it was recorded.
    source: Option<Arc<str>>,
    mode: ContextMode,
    first: u64,
    turns: u32,
}

/// Writes a store.
pub(super) struct Writer {
    path: PathBuf,
    file: BufWriter<File>,
    at: u64,
    turns: u64,
    /// The index, as it will be written.
    sessions: Vec<u8>,
    entries: Vec<u8>,
    count: u64,
}

/// Absent among numbers.
const NONE: u64 = u64::MAX;

impl Writer {
    pub(super) fn create(path: &Path) -> Result<Writer, Fault> {
        let file = File::create_new(path).map_err(|error| cannot(path, &error))?;
        Ok(Writer {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 18, file),
            at: 0,
            turns: 0,
            sessions: Vec::new(),
            entries: Vec::new(),
            count: 0,
        })
    }

    pub(super) fn add(&mut self, draft: &Draft) -> Result<(), Fault> {
        for turn in &draft.turns {
            let text =
                serde_json::to_vec(&Written::of(turn)).map_err(|error| cannot(&self.path, &error.into()))?;
            self.file.write_all(&text).map_err(|error| cannot(&self.path, &error))?;
            let bits = |ms: Option<f64>| ms.map_or(NONE, f64::to_bits);
            for number in [self.at, text.len() as u64, bits(turn.timestamp_ms), bits(turn.delay_ms)] {
                self.entries.extend_from_slice(&number.to_le_bytes());
            }
            self.at += text.len() as u64;
        }
        let texts = [draft.id.as_deref(), draft.source_session.as_deref()];
        let [id, source] = texts.map(|text| text.map_or(NONE, |text| text.len() as u64));
        let mode = u64::from(place(&MODES, &draft.mode));
        for number in [self.turns, draft.turns.len() as u64, mode, id, source] {
            self.sessions.extend_from_slice(&number.to_le_bytes());
        }
        for text in texts.into_iter().flatten() {
            self.sessions.extend_from_slice(text.as_bytes());
        }
        self.turns += draft.turns.len() as u64;
        self.count += 1;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), Fault> {
        let mut write = |bytes: &[u8]| self.file.write_all(bytes);
        let written = write(&self.entries)
            .and_then(|()| write(&self.sessions))
            .and_then(|()| {
                [self.at, self.turns, self.count].iter().try_for_each(|number| write(&number.to_le_bytes()))
            })
            .and_then(|()| self.file.flush());
        written.map_err(|error| cannot(&self.path, &error))
    }
}

fn cannot(path: &Path, error: &std::io::Error) -> Fault {
    let folder = path.parent().unwrap_or(path);
    Fault::new(
        format!("cannot write to {}: {error}", folder.display()),
        "Free some space there, or set TMPDIR to another folder",
    )
}

/// A store that is read.
pub(super) struct Store {
    path: PathBuf,
    file: File,
    entries: Vec<Entry>,
    sessions: Vec<Session>,
}

impl Store {
    /// Opens what was kept at `path`; no delay is longer than `delay_cap_ms`.
    pub(super) fn open(path: &Path, delay_cap_ms: f64) -> Result<Store, DatasetError> {
        let io = |error: std::io::Error| DatasetError::io(path, &error);
        let file = File::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        let read = |start: u64, length: u64| {
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
            file.read_exact_at(&mut bytes, start).map(|()| bytes).map_err(io)
        };
        let tail = size.checked_sub(24).ok_or_else(|| damaged(path))?;
        let [at, turns, count] = numbers(&read(tail, 24)?);
        let index =
            turns.checked_mul(32).and_then(|length| at.checked_add(length)).filter(|end| *end <= tail);
        let index = index.ok_or_else(|| damaged(path))?;
        let ms = |bits: u64| (bits != NONE).then(|| f64::from_bits(bits));
        let entries = read(at, index - at)?
            .chunks_exact(32)
            .map(|bytes| {
                let [start, length, timestamp, delay] = numbers(bytes);
                let delay_ms = ms(delay).map(|delay| delay.min(delay_cap_ms));
                let outline = TurnOutline { timestamp_ms: ms(timestamp), delay_ms };
                Entry { start, length, outline }
            })
            .collect();
        let bytes = read(index, tail - index)?;
        let mut rest = bytes.as_slice();
        let mut sessions = Vec::new();
        for _ in 0..count {
            let (head, after) = rest.split_at_checked(40).ok_or_else(|| damaged(path))?;
            let [first, turns, mode, id, source] = numbers(head);
            rest = after;
            let mut text = |length: u64| {
                if length == NONE {
                    return Ok(None);
                }
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                let (text, after) = rest.split_at_checked(length).ok_or_else(|| damaged(path))?;
                rest = after;
                std::str::from_utf8(text).map(|text| Some(text.into())).map_err(|_| damaged(path))
            };
            let (id, source) = (text(id)?, text(source)?);
            let mode = MODES.get(usize::try_from(mode).unwrap_or(0)).copied().unwrap_or_default();
            let turns = u32::try_from(turns).map_err(|_| damaged(path))?;
            sessions.push(Session { id, source, mode, first, turns });
        }
        Ok(Store { path: path.to_owned(), file, entries, sessions })
    }

    pub(super) fn len(&self) -> u64 {
        self.sessions.len() as u64
    }

    /// Whether every request is whole by itself.
    pub(super) fn stands_alone(&self) -> bool {
        self.sessions.iter().all(|session| !session.mode.accumulates())
    }

    pub(super) fn turns(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Its id and how its turns build on each other.
    pub(super) fn session(&self, index: u64) -> (Option<Arc<str>>, ContextMode, u32) {
        let session = &self.sessions[index as usize];
        (session.id.clone(), session.mode, session.turns)
    }

    /// The session that it was recorded in.
    pub(super) fn source_session(&self, index: u64) -> Option<Arc<str>> {
        self.sessions[index as usize].source.clone()
    }

    fn entries(&self, index: u64) -> &[Entry] {
        let session = &self.sessions[index as usize];
        let first = session.first as usize;
        &self.entries[first..first + session.turns as usize]
    }

    pub(super) fn outline(&self, index: u64) -> Outline {
        let entries = self.entries(index);
        let mut outlines = entries.iter().map(|entry| entry.outline);
        // Invariant: a conversation has a turn.
        let first = outlines.next().unwrap_or_default();
        Outline::new(first, outlines.collect::<Box<[_]>>())
    }

    pub(super) fn turn(&self, index: u64, turn: u32) -> Result<Turn, DatasetError> {
        let entry = self.entries(index)[turn as usize];
        let mut bytes = vec![0; usize::try_from(entry.length).unwrap_or(0)];
        self.file
            .read_exact_at(&mut bytes, entry.start)
            .map_err(|error| DatasetError::io(&self.path, &error))?;
        let written: Written = serde_json::from_slice(&bytes).map_err(|_| damaged(&self.path))?;
        Ok(written.turn(entry.outline))
    }
}

fn damaged(path: &Path) -> DatasetError {
    DatasetError::Unreadable {
        path: path.to_owned(),
        reason: "it changed while it was in use; leave the folder of temporary files alone during a run"
            .into(),
    }
}

fn numbers<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut numbers = [0; N];
    for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks().0) {
        *number = u64::from_le_bytes(*bytes);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let raw = |text: &str| RawValue::from_string(text.into()).unwrap();
        let media =
            Media { kind: MediaKind::Video, name: None, content: "data:x".into(), uuid: Some("u".into()) };
        let turns = vec![
            Turn {
                timestamp_ms: Some(0.1),
                delay_ms: Some(1e-7),
                max_tokens: Some(7),
                content: Content::Messages { messages: vec![raw("{\"a\" : 1}")], tools: Some(raw("[ ]")) },
                extra_body: Some(Map::from_iter([("seed".to_owned(), 3.into())])),
                ..Turn::default()
            },
            Turn {
                role: Some("user".into()),
                content: Content::Parts {
                    texts: vec![TextGroup { name: None, contents: vec!["one\n\"two\"".into()] }],
                    media: vec![media],
                },
                ..Turn::default()
            },
            Turn { content: Content::Payload(raw("{}")), text_tokens: Some(2), ..Turn::default() },
        ];
        let mode = ContextMode::MessageArrayWithResponses;
        let draft =
            Draft { id: Some("s:1".into()), source_session: Some("s".into()), mode, turns: turns.clone() };
        let mut writer = Writer::create(&path).unwrap();
        writer.add(&Draft { turns: vec![Turn::default()], ..Draft::default() }).unwrap();
        writer.add(&draft).unwrap();
        writer.finish().unwrap();
        let store = Store::open(&path, f64::INFINITY).unwrap();
        assert_eq!((store.len(), store.turns()), (2, 4));
        assert_eq!(store.session(0), (None, ContextMode::DeltasWithoutResponses, 1));
        assert_eq!(store.session(1), (Some("s:1".into()), mode, 3));
        assert_eq!((store.source_session(0), store.source_session(1)), (None, Some("s".into())));
        assert_eq!(store.outline(1).turn(0).unwrap().timestamp_ms, Some(0.1));
        for (number, turn) in turns.iter().enumerate() {
            assert_eq!(format!("{:?}", store.turn(1, number as u32).unwrap()), format!("{turn:?}"));
        }
    }

    #[test]
    fn a_file_that_is_no_store_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        for bytes in [&b""[..], &[0xff; 24], &[1; 80]] {
            let path = folder.path().join(bytes.len().to_string());
            std::fs::write(&path, bytes).unwrap();
            assert!(Store::open(&path, f64::INFINITY).is_err());
        }
    }
}
