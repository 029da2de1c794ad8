//! Server-sent events out of a stream of bytes, however the bytes were cut into reads.
//!
//! Follows the WHATWG event stream format, with two tolerances that servers need: a raw line break inside a JSON
//! object is mended, and an event that the end of the stream leaves without its blank line is delivered. Only CR
//! and LF end lines. Nothing is copied while an event lies whole in one read.

use memchr::memchr2;

/// Bytes that one event may have.
pub(crate) const MAX_EVENT: usize = 16 << 20;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// One event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event<'a> {
    /// Its `event` field; empty when it has none.
    pub(crate) name: &'a [u8],
    /// Its `data` lines, joined by LF; `None` when it has none.
    pub(crate) data: Option<&'a [u8]>,
    /// Its first comment line; empty when it has none.
    pub(crate) comment: &'a [u8],
}

/// What the splitter tells.
pub(crate) trait Sink {
    /// A field (or, named `comment`, a comment line) of the event that is being read.
    fn field(&mut self, name: &[u8], value: &[u8]);
    /// More of the value of the field before: a line break that was mended, then these bytes.
    fn field_continued(&mut self, value: &[u8]);
    /// A block of fields is complete.
    fn event(&mut self, event: Event<'_>);
    /// An event has more than [`MAX_EVENT`] bytes; nothing follows.
    fn overflow(&mut self);
}

/// The state between reads.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    /// Start of a line whose end has not come.
    line: Vec<u8>,
    /// `data` of the event so far.
    data: Vec<u8>,
    /// Name and comment of the event so far; events of the usual dialects have neither.
    labels: Option<Box<Labels>>,
    nesting: Nesting,
    bom: Bom,
    /// The last read ended in CR: an LF that comes first belongs to it.
    skip_lf: bool,
    has_data: bool,
    has_fields: bool,
    dead: bool,
}

#[derive(Debug, Default)]
struct Labels {
    name: Vec<u8>,
    comment: Vec<u8>,
    has_comment: bool,
}

/// How much of a byte order mark has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bom {
    Seen(u8),
    Decided,
}

impl Default for Bom {
    fn default() -> Bom {
        Bom::Seen(0)
    }
}

/// Where in a JSON text the `data` so far ends. Brought up to date only when a line comes that is no field.
#[derive(Clone, Copy, Debug, Default)]
struct Nesting {
    at: usize,
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl Nesting {
    fn follow(&mut self, data: &[u8]) {
        for &byte in &data[self.at..] {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
            } else {
                match byte {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
            }
        }
        self.at = data.len();
    }
}

impl Splitter {
    /// Takes the bytes of one read.
    #[inline]
    pub(crate) fn push(&mut self, mut input: &[u8], sink: &mut impl Sink) {
        if self.dead {
            return;
        }
        if self.bom != Bom::Decided {
            input = self.take_bom(input);
        }
        if self.skip_lf && !input.is_empty() {
            self.skip_lf = false;
            if input[0] == b'\n' {
                input = &input[1..];
            }
        }
        while !input.is_empty() {
            let Some(end) = memchr2(b'\n', b'\r', input) else {
                if self.data.len() + self.line.len() + input.len() > MAX_EVENT {
                    return self.die(sink);
                }
                self.line.extend_from_slice(input);
                return;
            };
            if self.data.len() + self.line.len() + end > MAX_EVENT {
                return self.die(sink);
            }
            let after = self.line_end(input, end);
            if self.line.is_empty() {
                let line = &input[..end];
                input = after;
                if !self.has_fields
                    && let Some(value) = data_value(line)
                    && let Some(after) = self.blank_line(input)
                {
                    // A whole event of one data line in one read: handed on where it lies.
                    input = after;
                    sink.field(b"data", value);
                    sink.event(Event { name: b"", data: Some(value), comment: b"" });
                } else {
                    self.take_line(line, sink);
                }
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&input[..end]);
                input = after;
                if !self.has_fields
                    && let Some(value) = data_value(&line)
                    && let Some(after) = self.blank_line(input)
                {
                    input = after;
                    sink.field(b"data", value);
                    sink.event(Event { name: b"", data: Some(value), comment: b"" });
                } else {
                    self.take_line(&line, sink);
                }
                line.clear();
                self.line = line;
            }
        }
    }

    /// The stream has ended by itself: an event without its blank line counts.
    pub(crate) fn finish(&mut self, sink: &mut impl Sink) {
        if self.dead {
            return;
        }
        if let Bom::Seen(seen) = self.bom
            && seen > 0
        {
            self.line.extend_from_slice(&BOM[..usize::from(seen)]);
        }
        self.bom = Bom::Decided;
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, sink);
        }
        self.dispatch(sink);
    }

    /// Bytes held between reads.
    pub(crate) fn held(&self) -> usize {
        self.line.capacity() + self.data.capacity()
    }

    fn take_bom<'a>(&mut self, mut input: &'a [u8]) -> &'a [u8] {
        while let (Bom::Seen(seen), [first, rest @ ..]) = (self.bom, input) {
            if *first == BOM[usize::from(seen)] {
                input = rest;
                self.bom =
                    if usize::from(seen) + 1 == BOM.len() { Bom::Decided } else { Bom::Seen(seen + 1) };
            } else {
                self.line.extend_from_slice(&BOM[..usize::from(seen)]);
                self.bom = Bom::Decided;
            }
        }
        input
    }

    /// What follows the line end at `end`: CR, LF and CRLF each end one line.
    #[inline]
    fn line_end<'a>(&mut self, input: &'a [u8], end: usize) -> &'a [u8] {
        let after = &input[end + 1..];
        if input[end] == b'\n' {
            return after;
        }
        match after.first() {
            Some(b'\n') => &after[1..],
            Some(_) => after,
            None => {
                self.skip_lf = true;
                after
            }
        }
    }

    /// What follows a blank line that `input` begins with.
    #[inline]
    fn blank_line<'a>(&mut self, input: &'a [u8]) -> Option<&'a [u8]> {
        match input.first() {
            Some(b'\n' | b'\r') => Some(self.line_end(input, 0)),
            _ => None,
        }
    }

    #[cold]
    fn die(&mut self, sink: &mut impl Sink) {
        self.dead = true;
        self.line = Vec::new();
        self.data = Vec::new();
        sink.overflow();
    }

    fn take_line(&mut self, line: &[u8], sink: &mut impl Sink) {
        if line.is_empty() {
            return self.dispatch(sink);
        }
        self.has_fields = true;
        if let Some(value) = data_value(line) {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value);
            self.has_data = true;
            return sink.field(b"data", value);
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], one_space_less(&line[colon + 1..])),
            None => (line, &line[line.len()..]),
        };
        let known = matches!(name, b"" | b"data" | b"event" | b"id" | b"retry");
        if self.data.first() == Some(&b'{') && self.continues_json(known) {
            let glue: &[u8] = if self.nesting.in_string { b"\\n" } else { b"\n" };
            self.data.extend_from_slice(glue);
            self.data.extend_from_slice(line);
            return sink.field_continued(line);
        }
        match name {
            b"" => {
                let labels = self.labels.get_or_insert_default();
                if !labels.has_comment {
                    labels.has_comment = true;
                    labels.comment.extend_from_slice(value);
                }
                sink.field(b"comment", value);
            }
            b"event" => {
                let labels = self.labels.get_or_insert_default();
                labels.name.clear();
                labels.name.extend_from_slice(value);
                sink.field(name, value);
            }
            b"data" => {
                // `data` without a colon: an empty line of data.
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                sink.field(name, value);
            }
            _ => sink.field(name, value),
        }
    }

    /// Whether a line that is not data goes on with an object that the line before left open. Inside a string no
    /// well-formed stream has another line, so whatever comes is more of it; outside, fields stay fields.
    fn continues_json(&mut self, known_field: bool) -> bool {
        self.nesting.follow(&self.data);
        self.nesting.in_string || (self.nesting.depth > 0 && !known_field)
    }

    fn dispatch(&mut self, sink: &mut impl Sink) {
        if !self.has_fields {
            return;
        }
        let mut labels = self.labels.take();
        let (name, comment) =
            labels.as_ref().map_or((&b""[..], &b""[..]), |labels| (&labels.name, &labels.comment));
        sink.event(Event { name, data: self.has_data.then_some(self.data.as_slice()), comment });
        if let Some(labels) = &mut labels {
            labels.name.clear();
            labels.comment.clear();
            labels.has_comment = false;
        }
        self.labels = labels;
        self.data.clear();
        self.nesting = Nesting::default();
        self.has_data = false;
        self.has_fields = false;
    }
}

#[inline]
fn data_value(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(b"data:").map(one_space_less)
}

#[inline]
fn one_space_less(value: &[u8]) -> &[u8] {
    value.strip_prefix(b" ").unwrap_or(value)
}

#[cfg(test)]
mod tests;
