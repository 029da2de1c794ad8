//! `speed_bench_…`: questions by category, and prompts of given lengths. A row is a conversation, and every message
//! of it a turn.

use std::collections::HashSet;
use std::sync::Arc;

use aiperf_config::FileFormat;
use aiperf_types::{Content, ContextMode, Turn};
use serde_json::{Map, Value};

use super::{Files, Format, Near};
use crate::json::{self, Fault};
use crate::look::{has_extension, stem};
use crate::record::{Check, Found, FoundTurn, LineFormat, Problem, Render, Row};

/// Files that hold a split, by their name without `.jsonl`.
const SPLITS: [&str; 6] =
    ["qualitative", "throughput_1k", "throughput_2k", "throughput_8k", "throughput_16k", "throughput_32k"];

/// What stands in published rows in place of text that may not be passed on.
const PLACEHOLDER: &str = "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE USING SPECDEC_BENCH";

/// Characters of a question's id.
const ID_LENGTH: usize = 32;

/// What is said of one of the types.
pub(crate) const fn format_of(format: FileFormat) -> Format {
    Format {
        parquet: true,
        writes_inputs: true,
        options: &["--osl", "--num-dataset-entries"],
        fits: |format, look| {
            if !has_extension(&look.path, "jsonl") {
                return false;
            }
            let split = stem(&look.path);
            if !SPLITS.contains(&split.as_str()) {
                return false;
            }
            // A file holds all categories of its split: the type of the whole split is meant unless a row says other.
            let fits = match category_of(format.format) {
                None => format.name() == format!("speed_bench_{split}"),
                Some(_) => look.claims(format.name()),
            };
            fits && look.record().is_some_and(|(_, record)| is_row(record))
        },
        // Of so many that are alike, one speaks for all.
        near: match format {
            FileFormat::SpeedBenchQualitative => Some(Near { keys: &KEYS, fault: row_fault }),
            _ => None,
        },
        ..Format::new(format, Files::Jsonl, "one question", |opening| {
            let check = SpeedBench { category: category_of(opening.format.format), seen: HashSet::new() };
            let format = LineFormat {
                many_turns: true,
                whole: true,
                ..LineFormat::new(Box::new(check), Arc::new(Messages))
            };
            opening.records(format)
        })
    }
}

/// The one category that a type keeps; nothing for the types of whole splits.
fn category_of(format: FileFormat) -> Option<&'static str> {
    let kind = format.name().strip_prefix("speed_bench_")?;
    match kind.strip_prefix("throughput_") {
        Some(size) => size.split_once('_').map(|(_, category)| category),
        None => Some(kind).filter(|kind| *kind != "qualitative"),
    }
}

/// Whether a record is a question of SPEED-Bench.
pub(crate) fn is_row(record: &Map<String, Value>) -> bool {
    let text = |key: &str| record.get(key).and_then(Value::as_str);
    text("question_id").is_some_and(|id| id.chars().count() == ID_LENGTH)
        && text("category").is_some_and(|category| !category.is_empty())
        && record.get("messages").and_then(Value::as_array).is_some_and(|messages| !messages.is_empty())
}

const KEYS: [&str; 3] = ["question_id", "category", "messages"];

struct SpeedBench {
    category: Option<&'static str>,
    seen: HashSet<Box<str>>,
}

/// What keeps a row from being one of the types.
fn row_fault(line: &str) -> Option<Fault> {
    let broken =
        SpeedBench { category: None, seen: HashSet::new() }.record(line, &mut Found::default()).err();
    broken.or_else(|| {
        Some(Fault::new(
            "",
            "the type goes by the name of the file, such as qualitative.jsonl or throughput_1k.jsonl",
        ))
    })
}

/// Role and content of a message.
fn message(text: &str) -> Result<(&str, &str), Fault> {
    if !text.starts_with('{') {
        return Err(Fault::new("", format!("expected an object, found {}", json::kind(text))));
    }
    let [role, content] = json::object(text, &["role", "content"])?;
    let role = role.ok_or_else(|| Fault::new("role", "is missing"))?;
    let content = content.ok_or_else(|| Fault::new("content", "is missing"))?;
    Ok((role, content))
}

impl Check for SpeedBench {
    fn keys(&self) -> Option<&'static [&'static str]> {
        Some(&KEYS)
    }

    fn record(&mut self, text: &str, found: &mut Found) -> Result<(), Fault> {
        let [id, category, messages] = json::object(text, &KEYS)?;
        let id = json::string("question_id", id.ok_or_else(|| Fault::new("question_id", "is missing"))?)?;
        if id.chars().count() != ID_LENGTH {
            return Err(Fault::new(
                "question_id",
                format!("must have {ID_LENGTH} characters, has {}", id.chars().count()),
            ));
        }
        let category = category.ok_or_else(|| Fault::new("category", "is missing"))?;
        let category = json::string("category", category)?;
        if category.is_empty() {
            return Err(Fault::new("category", "must not be empty"));
        }
        let messages = messages.ok_or_else(|| Fault::new("messages", "is missing"))?;
        let messages = json::list("messages", messages)?;
        if messages.is_empty() {
            return Err(Fault::new("messages", "must not be empty"));
        }
        for (index, text) in messages.iter().enumerate() {
            let within = |fault: Fault| fault.within(format_args!("messages[{index}]"));
            let (role, content) = message(text).map_err(within)?;
            for (name, text) in [("role", role), ("content", content)] {
                let text = json::string(name, text).map_err(within)?;
                if text.trim().is_empty() {
                    return Err(within(Fault::new(name, "must not be blank")));
                }
                if name == "content" && text.trim().starts_with(PLACEHOLDER) {
                    return Err(within(Fault::new(
                        name,
                        "holds a placeholder instead of the text, which the data set may not pass on; fetch the full data \
                         from its sources as the data set's page says",
                    )));
                }
            }
        }
        if self.category.is_some_and(|wanted| wanted != category) {
            found.tally.rows_of_others += 1;
            return Ok(());
        }
        if !self.seen.insert((*id).into()) {
            return Err(Fault::new("question_id", format!("`{id}` occurs twice; ids must differ")));
        }
        found.session.push_str(&id);
        found.has_session = true;
        found.turns.extend((0..messages.len() as u32).map(|tag| FoundTurn { tag, ..FoundTurn::default() }));
        Ok(())
    }
}

struct Messages;

impl Render for Messages {
    fn turns(&self, text: &str, rows: &[Row], out: &mut Vec<Turn>) -> Result<(), Problem> {
        let [messages] = json::object(text, &["messages"])?;
        let messages = json::list("messages", messages.unwrap_or("[]"))?;
        for row in rows {
            let text = messages
                .get(row.tag as usize)
                .ok_or_else(|| Fault::new("messages", "has fewer items than when the file was indexed"))?;
            let (role, content) = message(text)?;
            out.push(Turn {
                role: Some(json::string("role", role)?.into()),
                content: Content::text(&*json::string("content", content)?),
                ..Turn::default()
            });
        }
        Ok(())
    }

    fn mode(&self, _first: Row) -> ContextMode {
        ContextMode::DeltasWithoutResponses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_a_split_or_one_category_of_it() {
        for (format, category) in [
            (FileFormat::SpeedBenchQualitative, None),
            (FileFormat::SpeedBenchCoding, Some("coding")),
            (FileFormat::SpeedBenchThroughput16k, None),
            (FileFormat::SpeedBenchThroughput16kHighEntropy, Some("high_entropy")),
            (FileFormat::SpeedBenchThroughput1kMixed, Some("mixed")),
        ] {
            assert_eq!(category_of(format), category, "{format:?}");
        }
    }
}
