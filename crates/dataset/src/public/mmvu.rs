//! Rows that are a question about a video with its choices.

use aiperf_types::{Content, Media, MediaKind, TextGroup, Turn};

use super::{Converter, Fault, Made, Row, Value, video};

const QUESTION: &str = "question";
const CHOICES: &str = "choices";
const VIDEO: &str = "video";

struct VideoQuestions;

/// A converter of such rows.
pub(super) fn make() -> Box<dyn Converter> {
    Box::new(VideoQuestions)
}

/// The question, and behind it each choice that is not empty as `A.text`, in the order of the row.
fn text(question: &Value, choices: &Value) -> String {
    let mut text = question.shown().trim().to_owned();
    if let Value::Object(choices) = choices {
        for (key, choice) in choices {
            let choice = choice.shown();
            if !choice.is_empty() {
                text.push(' ');
                text.push_str(key);
                text.push('.');
                text.push_str(&choice);
            }
        }
    }
    text
}

impl Converter for VideoQuestions {
    fn columns(&self) -> Option<Vec<&str>> {
        Some(vec![QUESTION, CHOICES, VIDEO])
    }

    fn required(&self) -> Vec<&str> {
        vec![QUESTION, CHOICES, VIDEO]
    }

    fn convert(&self, row: &Row) -> Result<Made, Fault> {
        let (Some(question), Some(choices)) = (row.cell(QUESTION), row.cell(CHOICES)) else {
            return Ok(Made::Skipped("without a question or its choices"));
        };
        let Some(content) = row.cell(VIDEO).and_then(video::url) else {
            return Ok(Made::Skipped("without a video"));
        };
        let texts = vec![TextGroup { name: None, contents: vec![text(question, choices).into()] }];
        let media = vec![Media { kind: MediaKind::Video, name: None, content, uuid: None }];
        Ok(Made::one(Turn { content: Content::Parts { texts, media }, ..Turn::default() }))
    }
}
