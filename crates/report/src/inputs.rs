//! `inputs.json`: the whole dataset as it is sent, written beside the run.

use std::io::{self, Write};
use std::path::PathBuf;

use aiperf_types::Body;

use crate::files::AtomicFile;
use crate::json;

/// Writes `{data:[{session_id, payloads:[body, …]}]}` with an indent of two, body by body, without building any
/// tree. Finished early (Ctrl-C) it is still valid JSON; dropped unfinished it leaves no file.
#[derive(Debug)]
pub struct InputsWriter {
    file: AtomicFile,
    buffer: Vec<u8>,
    sessions: u64,
    payloads: u64,
    session_open: bool,
}

/// Bytes that are taken, and written, at once.
const WRITTEN: usize = 32 * 1024;

/// Depth of a payload below the top: data → session → payloads → body.
const PAYLOAD_DEPTH: usize = 4;

impl InputsWriter {
    /// Starts the file at `path`.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<InputsWriter> {
        let mut buffer = Vec::with_capacity(64 * 1024);
        buffer.extend_from_slice(b"{\n  \"data\": [");
        Ok(InputsWriter {
            file: AtomicFile::create(path)?,
            buffer,
            sessions: 0,
            payloads: 0,
            session_open: false,
        })
    }

    /// Starts the next conversation.
    pub fn session(&mut self, id: &str) -> io::Result<()> {
        self.end_session();
        if self.sessions > 0 {
            self.buffer.push(b',');
        }
        self.buffer.extend_from_slice(b"\n    {\n      \"session_id\": ");
        json::string(&mut self.buffer, id);
        self.buffer.extend_from_slice(b",\n      \"payloads\": [");
        self.sessions += 1;
        self.payloads = 0;
        self.session_open = true;
        self.write_out(WRITTEN)
    }

    /// Appends a body (compact JSON, in any number of slices) to the conversation. After an error the file cannot be
    /// finished any more: drop it.
    pub fn payload(&mut self, body: &Body) -> io::Result<()> {
        debug_assert!(self.session_open, "a payload belongs to a session");
        if self.payloads > 0 {
            self.buffer.push(b',');
        }
        self.payloads += 1;
        let mut pretty = Pretty::new(PAYLOAD_DEPTH);
        new_line(&mut self.buffer, PAYLOAD_DEPTH);
        for piece in body.segments().iter().flat_map(|segment| segment.chunks(WRITTEN)) {
            pretty.push(piece, &mut self.buffer);
            self.write_out(WRITTEN)?;
        }
        Ok(())
    }

    /// Conversations so far.
    pub fn sessions(&self) -> u64 {
        self.sessions
    }

    /// Closes what is open and gives the file its name.
    pub fn finish(mut self) -> io::Result<PathBuf> {
        self.end_session();
        self.buffer.extend_from_slice(if self.sessions > 0 { b"\n  ]\n}" } else { b"]\n}" });
        self.write_out(0)?;
        self.file.commit()
    }

    fn end_session(&mut self) {
        if self.session_open {
            self.session_open = false;
            self.buffer.extend_from_slice(if self.payloads > 0 { b"\n      ]\n    }" } else { b"]\n    }" });
        }
    }

    fn write_out(&mut self, at_least: usize) -> io::Result<()> {
        if self.buffer.len() >= at_least {
            self.file.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

fn new_line(out: &mut Vec<u8>, depth: usize) {
    const SPACES: [u8; 64] = [b' '; 64];
    out.push(b'\n');
    let mut left = 2 * depth;
    while left > 0 {
        let now = left.min(SPACES.len());
        out.extend_from_slice(&SPACES[..now]);
        left -= now;
    }
}

/// Re-indents JSON that arrives in pieces. It looks at structure only: strings and numbers pass as they are.
#[derive(Debug)]
struct Pretty {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// A bracket was opened and nothing has come after it yet.
    opened: bool,
}

impl Pretty {
    fn new(depth: usize) -> Pretty {
        Pretty { depth, in_string: false, escaped: false, opened: false }
    }

    fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        out.reserve(bytes.len() * 2);
        while !bytes.is_empty() {
            bytes = if self.in_string { self.string(bytes, out) } else { self.structure(bytes, out) };
        }
    }

    /// Copies string content up to its closing quote; gives what follows.
    fn string<'b>(&mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> &'b [u8] {
        if self.escaped {
            self.escaped = false;
            out.push(bytes[0]);
            return &bytes[1..];
        }
        match memchr::memchr2(b'"', b'\\', bytes) {
            None => {
                out.extend_from_slice(bytes);
                &[]
            }
            Some(at) => {
                out.extend_from_slice(&bytes[..=at]);
                if bytes[at] == b'"' {
                    self.in_string = false;
                } else {
                    self.escaped = true;
                }
                &bytes[at + 1..]
            }
        }
    }

    /// Handles bytes outside strings up to the next quote; gives what follows.
    fn structure<'b>(&mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> &'b [u8] {
        for (index, &byte) in bytes.iter().enumerate() {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => {}
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if !std::mem::take(&mut self.opened) {
                        new_line(out, self.depth);
                    }
                    out.push(byte);
                }
                b',' => {
                    out.push(byte);
                    new_line(out, self.depth);
                }
                b':' => out.extend_from_slice(b": "),
                _ => {
                    if std::mem::take(&mut self.opened) {
                        new_line(out, self.depth);
                    }
                    out.push(byte);
                    match byte {
                        b'{' | b'[' => {
                            self.depth += 1;
                            self.opened = true;
                        }
                        b'"' => {
                            self.in_string = true;
                            return &bytes[index + 1..];
                        }
                        _ => {}
                    }
                }
            }
        }
        &[]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e300..1e300f64).prop_map(Value::from),
            ".*".prop_map(Value::from),
            "[\"\\\\{}\\[\\],: \\n]*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec((".{0,6}", inner), 0..5)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    fn pretty(pieces: &[&[u8]]) -> String {
        let mut out = Vec::new();
        let mut pretty = Pretty::new(0);
        for piece in pieces {
            pretty.push(piece, &mut out);
        }
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn any_json_in_any_pieces_is_indented_as_serde_json_does(value in any_json(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..4)) {
            for compact in [serde_json::to_string(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap()] {
                let bytes = compact.as_bytes();
                let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
                at.extend([0, bytes.len()]);
                at.sort_unstable();
                let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
                prop_assert_eq!(pretty(&pieces), serde_json::to_string_pretty(&value).unwrap());
            }
        }
    }

    fn file_of(build: impl FnOnce(&mut InputsWriter)) -> String {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = InputsWriter::create(dir.path().join("inputs.json")).unwrap();
        build(&mut writer);
        std::fs::read_to_string(writer.finish().unwrap()).unwrap()
    }

    #[test]
    fn the_file_is_byte_for_byte_the_published_layout() {
        let golden = include_str!("../tests/data/multi_turn/inputs.json");
        let value: Value = serde_json::from_str(golden).unwrap();
        let text = file_of(|writer| {
            for session in value["data"].as_array().unwrap() {
                writer.session(session["session_id"].as_str().unwrap()).unwrap();
                for payload in session["payloads"].as_array().unwrap() {
                    let compact = serde_json::to_vec(payload).unwrap();
                    let mut body = Body::default();
                    for piece in compact.chunks(37) {
                        body.push(piece.to_vec());
                    }
                    writer.payload(&body).unwrap();
                }
            }
        });
        assert_eq!(text, golden);
    }

    #[test]
    fn a_dataset_cut_short_is_still_valid() {
        assert_eq!(serde_json::from_str::<Value>(&file_of(|_| ())).unwrap(), json!({"data": []}));
        let text = file_of(|writer| {
            writer.session("a\"b").unwrap();
            writer.payload(&Body::single(&b"{}"[..])).unwrap();
            writer.session("empty").unwrap();
        });
        let expected = json!({"data": [{"session_id": "a\"b", "payloads": [{}]}, {"session_id": "empty", "payloads": []}]});
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
        assert_eq!(text, serde_json::to_string_pretty(&expected).unwrap());
    }

    #[test]
    fn an_abandoned_file_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = InputsWriter::create(dir.path().join("inputs.json")).unwrap();
        writer.session("a").unwrap();
        drop(writer);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
