//! Rows of JSON: an object on each line, objects one after the other, or one array of objects. One object at a time is
//! in memory.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use flate2::read::MultiGzDecoder;

use super::{Choice, Row, unreadable};
use crate::public::shard::From;
use crate::public::{Fault, Shard};
use crate::source::{Coding, coding_of};

/// No row is longer.
const LONGEST: usize = 1 << 30;
const BUFFER: usize = 1 << 18;

pub(super) struct JsonRows {
    shard: Arc<str>,
    reader: BufReader<Box<dyn Read + Send>>,
    number: u64,
    in_array: bool,
    done: bool,
    text: Vec<u8>,
}

impl JsonRows {
    pub(super) fn open(shard: &Shard, head: &[u8]) -> Result<JsonRows, Fault> {
        let bytes = From::new(&shard.bytes, 0);
        let reader: Box<dyn Read + Send> = match coding_of(head) {
            Coding::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER, bytes))),
            Coding::Zstd => Box::new(
                zstd::stream::read::Decoder::new(bytes).map_err(|error| unreadable(&shard.name, &error))?,
            ),
            _ => Box::new(bytes),
        };
        let mut rows = JsonRows {
            shard: Arc::clone(&shard.name),
            reader: BufReader::with_capacity(BUFFER, reader),
            number: 0,
            in_array: false,
            done: false,
            text: Vec::new(),
        };
        if rows.peek()? == Some(0xef) {
            for _ in 0..3 {
                rows.peek()?;
                rows.reader.consume(1);
            }
        }
        if rows.skip_blank(b"")? == Some(b'[') {
            rows.reader.consume(1);
            rows.in_array = true;
        }
        Ok(rows)
    }

    fn peek(&mut self) -> Result<Option<u8>, Fault> {
        match self.reader.fill_buf() {
            Ok(bytes) => Ok(bytes.first().copied()),
            Err(error) => Err(unreadable(&self.shard, &error)),
        }
    }

    /// The next byte that is neither blank nor one of `more`, which stays.
    fn skip_blank(&mut self, more: &[u8]) -> Result<Option<u8>, Fault> {
        loop {
            match self.peek()? {
                Some(byte) if byte.is_ascii_whitespace() || more.contains(&byte) => self.reader.consume(1),
                other => return Ok(other),
            }
        }
    }

    fn place(&self) -> String {
        format!("{}: row {}", self.shard, self.number + 1)
    }

    /// Puts the bytes of the next object into `text`; false at the end.
    fn object(&mut self) -> Result<bool, Fault> {
        match self.skip_blank(if self.in_array { b"," } else { b"" })? {
            Some(b'{') => {}
            None if !self.in_array => return Ok(false),
            Some(b']') if self.in_array => return Ok(false),
            None => return Err(Fault::damaged(format!("{} ends in the middle of its array", self.shard))),
            Some(_) => return Err(Fault::damaged(format!("{} is no JSON object", self.place()))),
        }
        self.text.clear();
        let (mut depth, mut in_text, mut escaped) = (0u32, false, false);
        loop {
            let bytes = match self.reader.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) => return Err(unreadable(&self.shard, &error)),
            };
            if bytes.is_empty() {
                return Err(Fault::damaged(format!("{} ends in the middle", self.place())));
            }
            let mut used = bytes.len();
            let mut at = 0;
            while at < bytes.len() {
                if escaped {
                    escaped = false;
                } else if in_text {
                    match memchr::memchr2(b'"', b'\\', &bytes[at..]) {
                        None => break,
                        Some(next) => at += next,
                    }
                    escaped = bytes[at] == b'\\';
                    in_text = escaped;
                } else {
                    match bytes[at] {
                        b'"' => in_text = true,
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => {
                            depth -= 1;
                            if depth == 0 {
                                used = at + 1;
                                break;
                            }
                        }
                        _ => {}
                    }
                }
                at += 1;
            }
            let ended = depth == 0;
            self.text.extend_from_slice(&bytes[..used]);
            self.reader.consume(used);
            if ended {
                return Ok(true);
            }
            if self.text.len() > LONGEST {
                return Err(Fault::damaged(format!("{} is longer than {LONGEST} bytes", self.place())));
            }
        }
    }
}

impl JsonRows {
    /// Rows that were given, or are not wanted.
    pub(super) fn passed(&self) -> u64 {
        self.number
    }

    pub(super) fn next(&mut self, choice: Option<&Choice<'_>>) -> Option<Result<Row, Fault>> {
        loop {
            let row = self.next_of_all()?;
            let wanted = match (&row, choice) {
                (Ok(row), Some(choice)) => (choice.wants)(row),
                _ => Ok(true),
            };
            match wanted {
                Ok(true) => return Some(row),
                Ok(false) => {}
                Err(fault) => {
                    self.done = true;
                    return Some(Err(fault));
                }
            }
        }
    }

    fn next_of_all(&mut self) -> Option<Result<Row, Fault>> {
        if self.done {
            return None;
        }
        let row = match self.object() {
            Ok(false) => {
                self.done = true;
                return None;
            }
            Ok(true) => serde_json::from_slice::<serde_json::Value>(&self.text)
                .map(|value| Row {
                    shard: Arc::clone(&self.shard),
                    number: self.number,
                    value: value.into(),
                    schema: None,
                })
                .map_err(|error| Fault::damaged(format!("{} is not valid JSON: {error}", self.place()))),
            Err(fault) => Err(fault),
        };
        self.done = row.is_err();
        self.number += 1;
        Some(row)
    }
}
