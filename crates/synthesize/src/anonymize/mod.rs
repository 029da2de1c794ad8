//! From requests with text to rows with numbers: lengths, times and which prefixes are shared, and nothing else.
//!
//! No error of this module holds a character of a request: rules are fixed texts, fields are known names.

mod blocks;
mod prompt;

use std::collections::HashMap;
use std::io::{self, Write};

use aiperf_tokenize::{ChatTemplate, Tokenizer};
use aiperf_types::Content;
use serde_json::Value;

use blocks::BlockIds;
pub use prompt::Refusal;
use prompt::{Message, Prompt};

/// Why a request gives no row.
#[derive(Debug, thiserror::Error)]
pub enum AnonymizeError {
    /// It holds an image, audio, video or file: its tokens are not those of a text.
    #[error(
        "field `{0}`: holds media, whose tokens cannot be counted; --skip-media leaves such requests out"
    )]
    Media(&'static str),
    /// It has no text that is known how to read.
    #[error("field `{}`: {}", .0.field, .0.rule)]
    Refused(Refusal),
    /// The row cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// One request with its text.
#[derive(Debug)]
pub struct Request<'a> {
    /// What is said.
    pub content: &'a Content,
    /// Role of the message, where the content is a text.
    pub role: Option<&'a str>,
    /// Messages in front of it: role and text.
    pub before: &'a [(&'a str, &'a str)],
    /// Tool definitions beside the content.
    pub tools: Option<&'a Value>,
    /// Time since the first request, ms.
    pub timestamp_ms: Option<f64>,
    /// Pause before it, ms.
    pub delay_ms: Option<f64>,
    /// Tokens of the answer: counted, else their limit.
    pub output_tokens: Option<u64>,
    /// The session that it adds to; none where it is whole in itself.
    pub session: Option<u64>,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Rows.
    pub rows: u64,
    /// Sessions among them.
    pub sessions: u64,
    /// Tokens of all prompts.
    pub input_tokens: u64,
    /// Blocks of all prompts.
    pub blocks: u64,
    /// Different blocks among them.
    pub distinct: u64,
}

/// Turns requests into rows, in the order in which they come. Memory follows the different blocks and the sessions.
pub struct Anonymizer {
    tokenizer: Tokenizer,
    template: Option<ChatTemplate>,
    block_size: usize,
    ids: BlockIds,
    /// Number of each session, and the last block of it.
    sessions: HashMap<u64, (u64, Option<u64>)>,
    tokens: Vec<u32>,
    line: Vec<u8>,
    totals: Totals,
}

impl Anonymizer {
    /// Blocks of `block_size` tokens, at least 1, counted by `tokenizer`; messages go through its chat template, where
    /// it has one.
    pub fn new(tokenizer: Tokenizer, block_size: u32) -> Anonymizer {
        Anonymizer {
            template: tokenizer.chat_template(),
            tokenizer,
            block_size: block_size.max(1) as usize,
            ids: BlockIds::default(),
            sessions: HashMap::new(),
            tokens: Vec::new(),
            line: Vec::new(),
            totals: Totals::default(),
        }
    }

    /// What was written so far.
    pub fn totals(&self) -> Totals {
        Totals { sessions: self.sessions.len() as u64, distinct: self.ids.len(), ..self.totals }
    }

    /// Writes the row of one request.
    pub fn add(&mut self, request: &Request<'_>, out: &mut dyn Write) -> Result<(), AnonymizeError> {
        let (prompt, limit) = self.prompt(request)?;
        self.tokens.clear();
        match prompt {
            Prompt::Text(text) => self.tokenizer.encode(&text, &mut self.tokens),
            Prompt::Tokens(tokens) => self.tokens = tokens,
        }
        let line = &mut self.line;
        line.clear();
        line.push(b'{');
        let mut before = None;
        if let Some(session) = request.session {
            let next = self.sessions.len() as u64 + 1;
            let (number, last) = self.sessions.entry(session).or_insert((next, None));
            write!(line, "\"session_id\":\"s-{number}\",")?;
            before = *last;
        }
        if let Some(time) = request.timestamp_ms {
            write!(line, "\"timestamp\":{},", micros(time))?;
        }
        if let Some(delay) = request.delay_ms {
            write!(line, "\"delay\":{},", micros(delay))?;
        }
        write!(line, "\"input_length\":{}", self.tokens.len())?;
        if let Some(tokens) = request.output_tokens.or(limit) {
            write!(line, ",\"output_length\":{tokens}")?;
        }
        if !self.tokens.is_empty() {
            line.extend_from_slice(b",\"hash_ids\":[");
            let mut numbers = itoa::Buffer::new();
            for block in self.tokens.chunks(self.block_size) {
                let id = self.ids.id(before, block);
                before = Some(id);
                line.extend_from_slice(numbers.format(id).as_bytes());
                line.push(b',');
                self.totals.blocks += 1;
            }
            line.pop();
            line.push(b']');
        }
        line.extend_from_slice(b"}\n");
        out.write_all(line)?;
        if let Some(session) = request.session.and_then(|session| self.sessions.get_mut(&session)) {
            session.1 = before;
        }
        self.totals.rows += 1;
        self.totals.input_tokens += self.tokens.len() as u64;
        Ok(())
    }

    /// The text that the server would get, and the output limit that is written in it.
    fn prompt(&self, request: &Request<'_>) -> Result<(Prompt, Option<u64>), AnonymizeError> {
        let template = self.template.as_ref();
        let before = request.before.iter().map(|(role, text)| Message::new(role, (*text).to_owned()));
        match request.content {
            Content::Parts { texts, media } => {
                if !media.is_empty() {
                    return Err(AnonymizeError::Media("media"));
                }
                let texts: Vec<&str> =
                    texts.iter().flat_map(|group| &group.contents).map(|text| &**text).collect();
                let message = Message::new(request.role.unwrap_or("user"), texts.join("\n"));
                let messages: Vec<Message> = before.chain([message]).collect();
                Ok((prompt::chat(&messages, request.tools, template)?, None))
            }
            Content::Messages { messages, tools } => {
                let parse = |text: &str| prompt::parse(text, "messages");
                let values = messages.iter().map(|text| parse(text.get())).collect::<Result<Vec<_>, _>>()?;
                let tools = tools.as_ref().map(|text| prompt::parse(text.get(), "tools")).transpose()?;
                let mut all: Vec<Message> = before.collect();
                prompt::messages(&values, "messages", &mut all)?;
                Ok((prompt::chat(&all, tools.as_ref().or(request.tools), template)?, None))
            }
            Content::Payload(text) => prompt::payload(&prompt::parse(text.get(), "payload")?, template),
        }
    }
}

/// A time to the microsecond, without what subtraction leaves behind.
fn micros(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests;
