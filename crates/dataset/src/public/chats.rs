//! Rows that are conversations with images, of which the first question is asked.

use aiperf_types::Turn;

use super::{Converter, Fault, Made, Row, Value, media};

/// Where the parts of a conversation are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// The messages.
    pub(super) messages: &'static str,
    /// What a message says.
    pub(super) content: &'static str,
    /// The image or images.
    pub(super) image: &'static str,
}

struct Chats {
    columns: Columns,
}

/// A converter of such rows.
pub(super) fn make(columns: Columns) -> Box<dyn Converter> {
    Box::new(Chats { columns })
}

/// What marks the place of an image in a text.
const MARK: &str = "<image>";

/// A message, or the first of a list of them.
fn message(value: &Value) -> &Value {
    value.list().and_then(<[Value]>::first).unwrap_or(value)
}

fn is_question(message: &Value) -> bool {
    let who = ["role", "from"].into_iter().find_map(|key| message.get(key)?.text());
    who.is_some_and(|who| ["user", "human"].iter().any(|name| who.eq_ignore_ascii_case(name)))
}

impl Converter for Chats {
    fn columns(&self) -> Option<Vec<&str>> {
        Some(vec![self.columns.messages, self.columns.image])
    }

    fn required(&self) -> Vec<&str> {
        vec![self.columns.messages]
    }

    fn convert(&self, row: &Row) -> Result<Made, Fault> {
        let messages = row.cell(self.columns.messages).and_then(Value::list).unwrap_or_default();
        let mut all = messages.iter().map(message);
        let first = all.clone().find(|message| is_question(message)).or_else(|| all.next());
        let said = first.and_then(|message| message.get(self.columns.content)).and_then(Value::text);
        let text = said.unwrap_or_default().replace(MARK, "");
        let text = text.trim();
        if text.is_empty() {
            return Ok(Made::Skipped("without a question"));
        }
        let image = row.cell(self.columns.image).and_then(media::image);
        Ok(Made::one(Turn { content: media::with_text(text, image), ..Turn::default() }))
    }
}
