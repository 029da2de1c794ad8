//! A pull scanner: walks a JSON text once, validates all of it, hands out slices of the parts that are asked for.

use super::find::special;

/// Nesting that is followed; deeper texts are refused as malformed.
const MAX_DEPTH: usize = 512;

/// The text is not JSON. Where and why is not carried along, so that results stay in registers: see [`fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Result of a scanning step.
pub(crate) type Scan<T> = Result<T, Malformed>;

/// Where and why a text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Byte offset.
    pub(crate) at: usize,
    /// What was expected there.
    pub(crate) expected: &'static str,
}

/// Finds what is wrong with a text that a scanner refused.
pub(crate) fn fault(json: &[u8]) -> Option<Fault> {
    let mut scanner = Scanner::new(json);
    scanner.skip().and_then(|()| scanner.end()).err().and(scanner.fault)
}

/// A string of a JSON text, between its quotes, still escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    /// The bytes between the quotes.
    pub(crate) raw: &'a [u8],
}

impl<'a> Text<'a> {
    /// The text itself when nothing in it is escaped or invalid.
    pub(crate) fn plain(self) -> Option<&'a str> {
        if self.is_escaped() { None } else { std::str::from_utf8(self.raw).ok() }
    }

    /// The text as an owned string; invalid UTF-8 becomes U+FFFD.
    pub(crate) fn to_text(self) -> String {
        // An escape is longer than what it stands for.
        let mut out = String::with_capacity(self.raw.len());
        self.push_to(&mut out);
        out
    }

    /// Whether there is an escape in it.
    #[inline]
    pub(crate) fn is_escaped(self) -> bool {
        self.raw.contains(&b'\\')
    }

    /// Whether there is nothing between the quotes.
    pub(crate) fn is_empty(self) -> bool {
        self.raw.is_empty()
    }
}

/// A cursor over one JSON text.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    fault: Option<Fault>,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Scanner<'a> {
        Scanner { bytes, at: 0, fault: None }
    }

    #[cold]
    pub(crate) fn expected<T>(&mut self, expected: &'static str) -> Scan<T> {
        self.fault = Some(Fault { at: self.at, expected });
        Err(Malformed)
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    /// The first byte of the value that comes next, white space passed over.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.bytes.get(self.at).copied()
    }

    /// Nothing but white space may follow.
    pub(crate) fn end(&mut self) -> Scan<()> {
        self.skip_space();
        if self.at == self.bytes.len() { Ok(()) } else { self.expected("the end of the text") }
    }

    #[inline]
    fn byte(&mut self, byte: u8, expected: &'static str) -> Scan<()> {
        if self.bytes.get(self.at) == Some(&byte) {
            self.at += 1;
            Ok(())
        } else {
            self.expected(expected)
        }
    }

    /// A string; the cursor stands on its opening quote.
    #[inline]
    pub(crate) fn string(&mut self) -> Scan<Text<'a>> {
        self.byte(b'"', "a string")?;
        let start = self.at;
        let end = special(self.bytes, start);
        if self.bytes.get(end) == Some(&b'"') {
            self.at = end + 1;
            return Ok(Text { raw: &self.bytes[start..end] });
        }
        self.at = end;
        self.long_string(start)
    }

    /// The rest of a string with escapes in it (or of one that is broken).
    fn long_string(&mut self, start: usize) -> Scan<Text<'a>> {
        loop {
            self.at = special(self.bytes, self.at);
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Text { raw: &self.bytes[start..self.at - 1] });
                }
                Some(b'\\') => match self.bytes.get(self.at + 1) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
                    Some(b'u') => {
                        let digits = self.bytes.get(self.at + 2..self.at + 6);
                        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                            return self.expected("four hex digits");
                        }
                        self.at += 6;
                    }
                    _ => return self.expected("an escape"),
                },
                Some(_) => return self.expected("no control character inside a string"),
                None => return self.expected("the end of a string"),
            }
        }
    }

    fn literal(&mut self, word: &'static str) -> Scan<()> {
        if self.bytes[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(())
        } else {
            self.expected("a value")
        }
    }

    #[inline]
    fn digits(&mut self) -> Scan<()> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start { self.expected("a digit") } else { Ok(()) }
    }

    #[inline]
    fn number(&mut self) -> Scan<()> {
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// Passes over one value of any kind.
    #[inline]
    pub(crate) fn skip(&mut self) -> Scan<()> {
        match self.peek() {
            Some(b'"') => self.string().map(|_| ()),
            Some(b'{' | b'[') => self.skip_nested(),
            Some(_) => self.skip_scalar(),
            None => self.expected("a value"),
        }
    }

    #[inline]
    fn skip_scalar(&mut self) -> Scan<()> {
        match self.bytes.get(self.at) {
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'n') => self.literal("null"),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            _ => self.expected("a value"),
        }
    }

    /// Passes over an object or array without recursion: bit k of the stack says what level k is.
    fn skip_nested(&mut self) -> Scan<()> {
        let mut objects = [0u64; MAX_DEPTH / 64];
        let mut depth = 0usize;
        loop {
            // A value begins here.
            match self.peek() {
                Some(open @ (b'{' | b'[')) => {
                    if depth == MAX_DEPTH {
                        return self.expected("fewer levels of nesting");
                    }
                    self.at += 1;
                    let (word, bit) = (depth / 64, 1u64 << (depth % 64));
                    if open == b'{' {
                        objects[word] |= bit;
                    } else {
                        objects[word] &= !bit;
                    }
                    depth += 1;
                    match (self.peek(), open) {
                        (Some(b'}'), b'{') | (Some(b']'), b'[') => {
                            self.at += 1;
                            depth -= 1;
                        }
                        (_, b'{') => {
                            self.member_key()?;
                            continue;
                        }
                        _ => continue,
                    }
                }
                Some(b'"') => {
                    self.string()?;
                }
                _ => self.skip_scalar()?,
            }
            // A value ended here: close what it closes, then a comma leads to the next.
            loop {
                if depth == 0 {
                    return Ok(());
                }
                let level = depth - 1;
                let object = objects[level / 64] >> (level % 64) & 1 == 1;
                match (self.peek(), object) {
                    (Some(b','), _) => {
                        self.at += 1;
                        if object {
                            self.skip_space();
                            self.member_key()?;
                        }
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.at += 1;
                        depth -= 1;
                    }
                    (_, true) => return self.expected("`,` or `}`"),
                    (_, false) => return self.expected("`,` or `]`"),
                }
            }
        }
    }

    #[inline]
    fn member_key(&mut self) -> Scan<Text<'a>> {
        let key = self.string()?;
        self.skip_space();
        self.byte(b':', "`:`")?;
        Ok(key)
    }

    /// Passes over one value and returns its bytes.
    #[inline]
    pub(crate) fn span(&mut self) -> Scan<&'a [u8]> {
        self.skip_space();
        let start = self.at;
        self.skip()?;
        Ok(&self.bytes[start..self.at])
    }

    /// The string that comes next; any other value is passed over and gives `None`.
    #[inline]
    pub(crate) fn text(&mut self) -> Scan<Option<Text<'a>>> {
        if self.peek() == Some(b'"') {
            return self.string().map(Some);
        }
        self.skip()?;
        Ok(None)
    }

    /// The members of the object that comes next: `member` is called for each key with the cursor before its
    /// value, which it must pass over. Any other value is passed over; the answer is whether it was an object.
    #[inline]
    pub(crate) fn members(&mut self, mut member: impl FnMut(&mut Self, &[u8]) -> Scan<()>) -> Scan<bool> {
        if self.peek() != Some(b'{') {
            self.skip()?;
            return Ok(false);
        }
        self.at += 1;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(true);
        }
        loop {
            self.skip_space();
            let key = self.member_key()?;
            if key.is_escaped() {
                member(self, key.to_text().as_bytes())?;
            } else {
                member(self, key.raw)?;
            }
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(true);
                }
                _ => return self.expected("`,` or `}`"),
            }
        }
    }

    /// The items of the array that comes next, in the manner of [`Scanner::members`]; `item` gets the index.
    #[inline]
    pub(crate) fn items(&mut self, mut item: impl FnMut(&mut Self, usize) -> Scan<()>) -> Scan<bool> {
        if self.peek() != Some(b'[') {
            self.skip()?;
            return Ok(false);
        }
        self.at += 1;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(true);
        }
        let mut index = 0;
        loop {
            item(self, index)?;
            index += 1;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(true);
                }
                _ => return self.expected("`,` or `]`"),
            }
        }
    }
}
