//! Conversations of people with a model: pairs of what was asked and how long the answer was.

use aiperf_tokenize::Tokenizer;
use aiperf_types::{Content, Turn};

use super::{Converter, Draft, Fault, Job, Made, Row, Value};

/// Tokens of a prompt and of an answer, at least.
const LEAST: u64 = 4;
/// Tokens of a prompt, at most.
const LONGEST_PROMPT: u64 = 1024;
/// Tokens of a prompt and its answer, at most.
const LONGEST_PAIR: u64 = 2048;

const NO_PAIR: &str = "without a question and its answer";
const LENGTH: &str = "with a question outside 4 to 1,024 tokens, an answer below 4, or both above 2,048";

struct Pairs<'a> {
    tokenizer: &'a Tokenizer,
}

/// A converter of such rows; tokens are counted by the tokenizer of the run, as far as rows are read.
pub(super) fn make(job: Job<'_>) -> Result<Box<dyn Converter + '_>, Fault> {
    match job.tokenizer {
        Some(tokenizer) => Ok(Box::new(Pairs { tokenizer })),
        None => Err(Fault::new(
            format!("{} is measured in tokens, and there is no tokenizer", job.set.name),
            "Name one with --tokenizer",
        )),
    }
}

/// What a message says.
fn value(message: &Value) -> &str {
    message.get("value").and_then(Value::text).unwrap_or_default()
}

/// The pairs of messages: a question right before its answer, both with text; where nobody is called `human` or `gpt`, the
/// first two.
pub(super) fn pairs(messages: &[Value]) -> Vec<(&str, &str)> {
    let from = |message: &Value| match message.get("from").and_then(Value::text) {
        Some("human") => Some(true),
        Some("gpt") => Some(false),
        _ => None,
    };
    let said: Vec<(bool, &Value)> =
        messages.iter().filter_map(|message| Some((from(message)?, message))).collect();
    if said.is_empty() {
        return match messages {
            [question, answer, ..] => vec![(value(question), value(answer))],
            _ => Vec::new(),
        };
    }
    let mut pairs = Vec::new();
    let mut at = 0;
    while let Some([(first, question), (second, answer)]) = said.get(at..at + 2) {
        if !*first || *second {
            at += 1;
            continue;
        }
        at += 2;
        if !value(question).is_empty() && !value(answer).is_empty() {
            pairs.push((value(question), value(answer)));
        }
    }
    pairs
}

impl Pairs<'_> {
    /// A pair as a turn; `None` when it is too short or too long.
    fn turn(&self, question: &str, answer: &str) -> Option<Turn> {
        let prompt = self.tokenizer.count(question);
        if !(LEAST..=LONGEST_PROMPT).contains(&prompt) {
            return None;
        }
        let completion = self.tokenizer.count(answer);
        if completion < LEAST || prompt + completion > LONGEST_PAIR {
            return None;
        }
        Some(Turn {
            content: Content::text(question),
            max_tokens: Some(completion),
            text_tokens: Some(prompt),
            ..Turn::default()
        })
    }
}

impl Converter for Pairs<'_> {
    fn columns(&self) -> Option<Vec<&str>> {
        Some(vec!["conversations"])
    }

    fn convert(&self, row: &Row) -> Result<Made, Fault> {
        let messages = row.cell("conversations").and_then(Value::list).unwrap_or_default();
        let pairs = if messages.len() < 2 { Vec::new() } else { pairs(messages) };
        if pairs.is_empty() {
            return Ok(Made::Skipped(NO_PAIR));
        }
        // One pair out of bounds rejects the conversation.
        let turns: Option<Vec<Turn>> =
            pairs.into_iter().map(|(question, answer)| self.turn(question, answer)).collect();
        Ok(match turns {
            Some(turns) => Made::Conversations(vec![Draft { turns, ..Draft::default() }]),
            None => Made::Skipped(LENGTH),
        })
    }
}
