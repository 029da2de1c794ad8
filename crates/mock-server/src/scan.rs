//! One pass over a request body that checks it is JSON and notes the few facts an answer depends on. No tree is
//! built: strings are skipped by vector search, and only the keys below are looked at.

use memchr::memchr2;

/// Nesting beyond this is refused; the recursion below stays far from the end of a thread's stack.
const DEEPEST: u32 = 512;

/// A token limit as the body has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Missing or null.
    #[default]
    Absent,
    /// A whole number.
    Count(u64),
    /// Anything else.
    Bad,
}

/// A string of the body: where its raw characters lie, without the quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Bytes of UTF-8 it has once its escapes are resolved.
    pub(crate) bytes: usize,
    pub(crate) escaped: bool,
}

/// What a body says. Reused from request to request.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) model: Option<Text>,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) continuous_usage: bool,
    pub(crate) base64: bool,
    pub(crate) max_tokens: Limit,
    pub(crate) max_completion_tokens: Limit,
    pub(crate) min_tokens: Limit,
    pub(crate) messages: bool,
    pub(crate) prompt: bool,
    pub(crate) input: bool,
    /// Items of `input`: how many vectors an embeddings answer has.
    pub(crate) inputs: u64,
    pub(crate) query: bool,
    pub(crate) documents: bool,
    pub(crate) passages: bool,
    /// `texts`, as one server calls what it ranks.
    pub(crate) ranked_texts: bool,
    /// Items to rank.
    pub(crate) ranked: u64,
    /// Token ids given instead of text.
    pub(crate) token_ids: u64,
    /// The texts of messages, prompt, input or what is to be ranked, in order.
    pub(crate) texts: Vec<Text>,
}

impl Facts {
    fn clear(&mut self) {
        let mut texts = std::mem::take(&mut self.texts);
        texts.clear();
        *self = Facts { texts, ..Facts::default() };
    }

    /// Bytes of all texts joined by one space.
    pub(crate) fn joined_bytes(&self) -> u64 {
        let bytes: usize = self.texts.iter().map(|text| text.bytes).sum();
        (bytes + self.texts.len().saturating_sub(1)) as u64
    }
}

/// The body is not JSON, or not an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotJson;

type Scanned<T> = Result<T, NotJson>;

/// Fills `facts` from `body`.
pub(crate) fn scan(body: &[u8], facts: &mut Facts) -> Scanned<()> {
    facts.clear();
    if std::str::from_utf8(body).is_err() {
        return Err(NotJson);
    }
    let mut scanner = Scanner { body, at: 0 };
    scanner.space();
    if scanner.peek() != Some(b'{') {
        return Err(NotJson);
    }
    scanner.object(0, |scanner, key| scanner.top(key, facts))?;
    scanner.space();
    if scanner.at == body.len() { Ok(()) } else { Err(NotJson) }
}

/// The string that `text` stands for.
pub(crate) fn unescape(body: &[u8], text: Text) -> String {
    let raw = &body[text.start..text.end];
    if text.escaped {
        let quoted = &body[text.start - 1..=text.end];
        if let Ok(string) = serde_json::from_slice::<String>(quoted) {
            return string;
        }
    }
    // Lone surrogates are legal JSON but no text: they stay as they were written.
    String::from_utf8_lossy(raw).into_owned()
}

struct Scanner<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.body.get(self.at).copied()
    }

    #[inline]
    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Scanned<()> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(NotJson)
    }

    fn top(&mut self, key: &[u8], facts: &mut Facts) -> Scanned<()> {
        match key {
            b"model" => facts.model = self.text_or_skip()?,
            b"stream" => facts.stream = self.boolean()?,
            b"encoding_format" => {
                let format = self.text_or_skip()?;
                facts.base64 = format.is_some_and(|text| &self.body[text.start..text.end] == b"base64");
            }
            b"max_tokens" => facts.max_tokens = self.limit()?,
            b"max_completion_tokens" => facts.max_completion_tokens = self.limit()?,
            b"min_tokens" => facts.min_tokens = self.limit()?,
            b"stream_options" if self.peek() == Some(b'{') => self.object(1, |scanner, key| {
                match key {
                    b"include_usage" => facts.include_usage = scanner.boolean()?,
                    b"continuous_usage_stats" => facts.continuous_usage = scanner.boolean()?,
                    _ => scanner.skip(2)?,
                }
                Ok(())
            })?,
            b"messages" => {
                facts.messages = self.present();
                self.messages(facts)?;
            }
            b"prompt" => {
                facts.prompt = self.present();
                self.prompts(facts)?;
            }
            b"input" => {
                facts.input = self.present();
                self.prompts(facts)?;
            }
            b"query" => {
                facts.query = self.present();
                self.ranked(facts)?;
            }
            b"documents" | b"passages" | b"texts" => {
                let present = self.present();
                match key {
                    b"documents" => facts.documents = present,
                    b"passages" => facts.passages = present,
                    _ => facts.ranked_texts = present,
                }
                if self.peek() != Some(b'[') {
                    return self.skip(1);
                }
                self.array(|scanner| {
                    facts.ranked += 1;
                    scanner.ranked(facts)
                })?;
            }
            _ => self.skip(1)?,
        }
        Ok(())
    }

    fn present(&self) -> bool {
        self.peek() != Some(b'n')
    }

    /// `messages`: the texts are string contents and the `text` of content parts.
    fn messages(&mut self, facts: &mut Facts) -> Scanned<()> {
        if self.peek() != Some(b'[') {
            return self.skip(1);
        }
        self.array(|scanner| {
            if scanner.peek() != Some(b'{') {
                return scanner.skip(2);
            }
            scanner.object(2, |scanner, key| {
                if key != b"content" {
                    return scanner.skip(3);
                }
                match scanner.peek() {
                    Some(b'"') => facts.texts.push(scanner.string()?),
                    Some(b'[') => scanner.array(|scanner| {
                        if scanner.peek() != Some(b'{') {
                            return scanner.skip(4);
                        }
                        scanner.object(4, |scanner, key| {
                            if key == b"text" && scanner.peek() == Some(b'"') {
                                facts.texts.push(scanner.string()?);
                                return Ok(());
                            }
                            scanner.skip(5)
                        })
                    })?,
                    _ => scanner.skip(3)?,
                }
                Ok(())
            })
        })
    }

    /// `prompt` and `input`: a text, texts, token ids, or lists of token ids.
    fn prompts(&mut self, facts: &mut Facts) -> Scanned<()> {
        match self.peek() {
            Some(b'"') => {
                facts.inputs += 1;
                facts.texts.push(self.string()?);
                Ok(())
            }
            Some(b'[') => {
                let mut bare_ids = false;
                self.array(|scanner| {
                    match scanner.peek() {
                        Some(b'"') => {
                            facts.inputs += 1;
                            facts.texts.push(scanner.string()?);
                        }
                        Some(b'[') => {
                            facts.inputs += 1;
                            scanner.array(|scanner| {
                                facts.token_ids += 1;
                                scanner.skip(3)
                            })?;
                        }
                        Some(b'{') => {
                            facts.inputs += 1;
                            scanner.skip(2)?;
                        }
                        _ => {
                            bare_ids = true;
                            facts.token_ids += 1;
                            scanner.skip(2)?;
                        }
                    }
                    Ok(())
                })?;
                facts.inputs += u64::from(bare_ids);
                Ok(())
            }
            _ => self.skip(1),
        }
    }

    /// A text, or an object with a `text`.
    fn ranked(&mut self, facts: &mut Facts) -> Scanned<()> {
        match self.peek() {
            Some(b'"') => {
                facts.texts.push(self.string()?);
                Ok(())
            }
            Some(b'{') => self.object(2, |scanner, key| {
                if key == b"text" && scanner.peek() == Some(b'"') {
                    facts.texts.push(scanner.string()?);
                    return Ok(());
                }
                scanner.skip(3)
            }),
            _ => self.skip(2),
        }
    }

    fn text_or_skip(&mut self) -> Scanned<Option<Text>> {
        if self.peek() == Some(b'"') {
            return self.string().map(Some);
        }
        self.skip(1).map(|()| None)
    }

    /// Whether the value is `true`.
    fn boolean(&mut self) -> Scanned<bool> {
        let yes = self.peek() == Some(b't');
        self.skip(2).map(|()| yes)
    }

    fn limit(&mut self) -> Scanned<Limit> {
        let start = self.at;
        let absent = self.peek() == Some(b'n');
        self.skip(1)?;
        if absent {
            return Ok(Limit::Absent);
        }
        let digits = &self.body[start..self.at];
        let number = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok());
        Ok(number.map_or(Limit::Bad, Limit::Count))
    }

    /// An object whose first byte is next; `member` reads the value of the key it is given.
    fn object(
        &mut self,
        depth: u32,
        mut member: impl FnMut(&mut Scanner<'a>, &'a [u8]) -> Scanned<()>,
    ) -> Scanned<()> {
        if depth > DEEPEST {
            return Err(NotJson);
        }
        self.expect(b'{')?;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.space();
            self.expect(b':')?;
            self.space();
            member(self, &self.body[key.start..key.end])?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(NotJson),
            }
            self.space();
        }
        self.at += 1;
        Ok(())
    }

    /// An array whose first byte is next; `item` reads one value.
    fn array(&mut self, mut item: impl FnMut(&mut Scanner<'a>) -> Scanned<()>) -> Scanned<()> {
        self.expect(b'[')?;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            item(self)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(NotJson),
            }
            self.space();
        }
        self.at += 1;
        Ok(())
    }

    /// Any value at nesting `depth`.
    fn skip(&mut self, depth: u32) -> Scanned<()> {
        match self.peek() {
            Some(b'"') => self.string().map(|_| ()),
            Some(b'{') => self.object(depth, |scanner, _| scanner.skip(depth + 1)),
            Some(b'[') if depth <= DEEPEST => self.array(|scanner| scanner.skip(depth + 1)),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(NotJson),
        }
    }

    fn literal(&mut self, word: &[u8]) -> Scanned<()> {
        if self.body[self.at..].starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        Err(NotJson)
    }

    fn digits(&mut self) -> Scanned<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(NotJson) }
    }

    fn number(&mut self) -> Scanned<()> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn string(&mut self) -> Scanned<Text> {
        self.expect(b'"')?;
        let start = self.at;
        let (mut saved, mut escaped) = (0, false);
        loop {
            let rest = &self.body[self.at..];
            let length = memchr2(b'"', b'\\', rest).ok_or(NotJson)?;
            // The least byte, without an early exit, is what vector instructions can find.
            if rest[..length].iter().fold(u8::MAX, |least, byte| least.min(*byte)) < b' ' {
                return Err(NotJson);
            }
            self.at += length;
            if rest[length] == b'"' {
                let end = self.at;
                self.at += 1;
                return Ok(Text { start, end, bytes: end - start - saved, escaped });
            }
            escaped = true;
            saved += self.escape()?;
        }
    }

    /// Steps over the escape that is next; gives how many bytes shorter its character is.
    fn escape(&mut self) -> Scanned<usize> {
        match self.body.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(1)
            }
            Some(b'u') => {
                let digits = self.body.get(self.at + 2..self.at + 6).ok_or(NotJson)?;
                let mut code = 0;
                for digit in digits {
                    code = code * 16 + char::from(*digit).to_digit(16).ok_or(NotJson)?;
                }
                self.at += 6;
                Ok(match code {
                    0..0x80 => 5,
                    // A pair of surrogates is one character of four bytes.
                    0x80..0x800 | 0xd800..0xe000 => 4,
                    _ => 3,
                })
            }
            _ => Err(NotJson),
        }
    }
}

#[cfg(test)]
mod tests;
