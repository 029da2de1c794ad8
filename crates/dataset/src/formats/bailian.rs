//! `bailian_trace`: requests with lengths and block numbers, each of which may follow another; the chain of requests
//! from one root is a conversation.

use std::collections::HashMap;
use std::sync::Arc;

use aiperf_config::{Corpus, FileFormat, Synthesis};
use aiperf_types::{Content, ContextMode, Turn};

use super::blocks::{BlockCheck, BlockPrompts, block_facts, blocks, ids_of};
use super::single_turn::first_times;
use super::{Files, Format, Near};
use crate::json::{self, Fault, Field};
use crate::open::Opening;
use crate::record::{
    Arranged, Check, Found, FoundTurn, LineFormat, Problem, Render, Row, SessionKey, Tally, changed, times,
};
use crate::synthesis::Outputs;
use crate::{DatasetError, TurnFacts};

pub(crate) const FORMAT: Format = Format {
    parquet: true,
    trace: true,
    timed: true,
    promotes: true,
    makes_text: true,
    block_size: Some(16),
    corpus: Some(Corpus::Sonnet),
    options: &[
        "--isl-block-size",
        "--prompt-corpus",
        "--ignore-trace-delays",
        "--synthesis-speedup-ratio",
        "--synthesis-prefix-len-multiplier",
        "--synthesis-prefix-root-multiplier",
        "--synthesis-prompt-len-multiplier",
        "--synthesis-output-len-multiplier",
        "--synthesis-max-isl",
        "--synthesis-max-osl",
        "--num-dataset-entries",
        "--input-columns",
    ],
    fields: &KEYS,
    fits: |_, look| look.record().is_some_and(|(line, _)| is_row(line)),
    times: first_times,
    near: Some(Near { keys: &KEYS, fault: row_fault }),
    ..Format::new(FileFormat::BailianTrace, Files::Jsonl, "one request", |opening| {
        let format = format(&opening)?;
        opening.records(format)
    })
};

/// The parent of a chat that follows none.
const NO_PARENT: i64 = -1;

/// The prompts of the row's conversation repeat what was said before.
const SELF_CONTAINED: u32 = 1;

const KEYS: [&str; 8] =
    ["chat_id", "parent_chat_id", "timestamp", "input_length", "output_length", "type", "turn", "hash_ids"];

/// A row, taken apart.
struct Fields<'a> {
    chat: i64,
    parent: i64,
    turn: i64,
    length: i64,
    output: i64,
    timestamp: Field<'a>,
    hash_ids: Field<'a>,
}

fn required<'a>(name: &'static str, field: Field<'a>) -> Result<&'a str, Fault> {
    field.ok_or_else(|| Fault::new(name, "is missing"))
}

impl<'a> Fields<'a> {
    fn parse(text: &'a str) -> Result<Fields<'a>, Fault> {
        let [chat, parent, timestamp, length, output, kind, turn, hash_ids] = json::object(text, &KEYS)?;
        let or =
            |name, field: Field<'a>, default| field.map_or(Ok(default), |text| json::integer(name, text));
        if let Some(kind) = kind {
            json::check_string("type", kind)?;
        }
        if hash_ids.is_none() && has_null(text, "hash_ids") {
            return Err(Fault::new("hash_ids", "must be a list, is null; write [] for none"));
        }
        Ok(Fields {
            chat: json::integer("chat_id", required("chat_id", chat)?)?,
            parent: or("parent_chat_id", parent, NO_PARENT)?,
            turn: or("turn", turn, 1)?,
            length: json::integer("input_length", required("input_length", length)?)?,
            output: json::integer("output_length", required("output_length", output)?)?,
            timestamp: Some(required("timestamp", timestamp)?),
            hash_ids: hash_ids.filter(|ids| !(ids.starts_with('[') && json::is_hollow(ids))),
        })
    }

    fn ids(&self) -> Result<Vec<i64>, Fault> {
        self.hash_ids.map_or(Ok(Vec::new()), ids_of)
    }
}

/// Whether `key` is there with the value null.
fn has_null(text: &str, key: &str) -> bool {
    let quoted = format!("\"{key}\"");
    text.match_indices(&quoted).any(|(at, _)| {
        let value = text[at + quoted.len()..].trim_start().strip_prefix(':').map(str::trim_start);
        value.is_some_and(|value| value.starts_with("null"))
    })
}

/// Whether a record is a row of such a trace, blocks aside.
pub(crate) fn is_row(text: &str) -> bool {
    row_fault(text).is_none()
}

fn row_fault(text: &str) -> Option<Fault> {
    let mut check = BailianCheck::new(BlockCheck::of_one_row(), &Synthesis::default(), u32::MAX);
    check.row(text, &mut Found::default()).err()
}

struct BailianCheck {
    blocks: BlockCheck,
    outputs: Outputs,
    block_size: u32,
    /// Chats of the rows kept, in the order of the file.
    chats: Vec<Chat>,
    /// Of the last row.
    last: Option<Chat>,
}

#[derive(Clone, Copy)]
struct Chat {
    id: i64,
    parent: i64,
    turn: i64,
}

impl BailianCheck {
    fn new(blocks: BlockCheck, synthesis: &Synthesis, block_size: u32) -> BailianCheck {
        BailianCheck { blocks, outputs: Outputs::new(synthesis), block_size, chats: Vec::new(), last: None }
    }

    fn row(&mut self, text: &str, found: &mut Found) -> Result<(), Fault> {
        let fields = Fields::parse(text)?;
        let input_tokens = self.blocks.input(fields.length, fields.hash_ids)?;
        found.tally.input(input_tokens, fields.hash_ids.is_some());
        let (seconds, _) = times(fields.timestamp, None, &mut found.tally)?;
        found.tally.output("output_length", fields.output, self.outputs)?;
        self.last = Some(Chat { id: fields.chat, parent: fields.parent, turn: fields.turn });
        let timestamp = seconds.map(|seconds| seconds * 1000.0);
        found.turns.push(FoundTurn { timestamp, input_tokens: Some(input_tokens), ..FoundTurn::default() });
        Ok(())
    }

    /// Whether a request of a conversation begins with all full blocks of the one that it follows: such prompts
    /// were recorded with what was said before.
    fn repeats_history(
        &self,
        turns: &Arranged<'_>,
        rows: std::ops::Range<usize>,
    ) -> Result<bool, DatasetError> {
        let mut full: HashMap<i64, Vec<i64>> = HashMap::new();
        let mut follow_ups: Vec<(i64, Vec<i64>)> = Vec::new();
        for number in rows {
            let text = turns.text(number)?;
            let read = Fields::parse(&text).and_then(|fields| Ok((fields.ids()?, fields)));
            let (ids, fields) = read.map_err(|fault| changed(turns.files, turns.rows[number], fault))?;
            let blocks = fields.length.max(0) as u64 / u64::from(self.block_size);
            full.insert(fields.chat, ids[..ids.len().min(blocks as usize)].to_vec());
            follow_ups.push((fields.parent, ids));
        }
        Ok(follow_ups.iter().any(|(parent, ids)| {
            full.get(parent).is_some_and(|full| !full.is_empty() && ids.starts_with(full))
        }))
    }
}

/// The root of every chat: the last one reached by going from child to parent.
fn roots(chats: &[Chat]) -> HashMap<i64, i64> {
    // Of chats with the same id the last one decides.
    let parents: HashMap<i64, i64> = chats.iter().map(|chat| (chat.id, chat.parent)).collect();
    let mut roots: HashMap<i64, i64> = HashMap::with_capacity(parents.len());
    let mut path = Vec::new();
    let mut places: HashMap<i64, usize> = HashMap::new();
    for chat in chats {
        path.clear();
        places.clear();
        let mut at = chat.id;
        let (root, round) = loop {
            if let Some(root) = roots.get(&at) {
                break (*root, path.len());
            }
            if let Some(place) = places.get(&at) {
                // A circle: whoever enters it goes round once.
                break (path[path.len() - 1], *place);
            }
            places.insert(at, path.len());
            path.push(at);
            match parents.get(&at) {
                Some(parent) if *parent != at && parents.contains_key(parent) => at = *parent,
                _ => break (at, path.len()),
            }
        };
        for (place, id) in path.iter().enumerate() {
            let root = if place > round { path[place - 1] } else { root };
            roots.insert(*id, root);
        }
    }
    roots
}

impl Check for BailianCheck {
    fn keys(&self) -> Option<&'static [&'static str]> {
        Some(&KEYS)
    }

    fn record(&mut self, text: &str, found: &mut Found) -> Result<(), Fault> {
        self.row(text, found)?;
        self.blocks.checked(text);
        Ok(())
    }

    fn kept(&mut self, turns: usize) {
        self.blocks.kept(turns > 0);
        self.chats.extend(self.last.take().filter(|_| turns > 0));
    }

    fn finish(&mut self) -> Result<(), Fault> {
        self.blocks.finish();
        Ok(())
    }

    fn sessions(&mut self) -> Option<Vec<SessionKey>> {
        let chats = std::mem::take(&mut self.chats);
        let roots = roots(&chats);
        let key = |chat: &Chat| SessionKey {
            session: roots.get(&chat.id).copied().unwrap_or(chat.id),
            order: chat.turn,
        };
        Some(chats.iter().map(key).collect())
    }

    fn arrange(&mut self, turns: &mut Arranged<'_>, tally: &mut Tally) -> Result<(), DatasetError> {
        for bounds in turns.starts.unwrap_or_default().windows(2) {
            let rows = bounds[0] as usize..bounds[1] as usize;
            if rows.len() < 2 {
                continue;
            }
            if self.repeats_history(turns, rows.clone())? {
                tally.sessions_repeating += 1;
                turns.rows[rows].iter_mut().for_each(|row| row.tag |= SELF_CONTAINED);
            } else {
                tally.sessions_adding += 1;
            }
        }
        self.blocks.plan(turns, tally, |text, _| {
            let fields = Fields::parse(text)?;
            Ok(Some((fields.length, fields.hash_ids)))
        })
    }
}

struct BailianRender {
    prompts: BlockPrompts,
    outputs: Outputs,
}

impl Render for BailianRender {
    fn turns(&self, text: &str, rows: &[Row], out: &mut Vec<Turn>) -> Result<(), Problem> {
        let fields = Fields::parse(text)?;
        let (text, text_tokens) = self.prompts.text(fields.length, fields.hash_ids, rows[0])?;
        out.push(Turn {
            content: Content::text(text),
            text_tokens,
            max_tokens: Some(self.outputs.limit(fields.output)),
            ..Turn::default()
        });
        Ok(())
    }

    fn facts(&self, text: &str, _rows: &[Row], out: &mut Vec<TurnFacts>) -> Result<(), Problem> {
        let fields = Fields::parse(text)?;
        out.push(TurnFacts {
            output_tokens: Some(fields.output.max(0) as u64),
            ..block_facts(fields.length, fields.hash_ids)?
        });
        Ok(())
    }

    fn mode(&self, first: Row) -> ContextMode {
        if first.tag & SELF_CONTAINED == 0 {
            ContextMode::DeltasWithoutResponses
        } else {
            ContextMode::MessageArrayWithResponses
        }
    }
}

fn format(opening: &Opening<'_>) -> Result<LineFormat, DatasetError> {
    let (blocks, prompts) = blocks(opening)?;
    let synthesis = &opening.file.synthesis;
    let check = BailianCheck::new(blocks, synthesis, opening.block_size());
    let render = BailianRender { prompts, outputs: Outputs::new(synthesis) };
    Ok(LineFormat { whole: true, ..LineFormat::new(Box::new(check), Arc::new(render)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_of(chats: &[(i64, i64)], of: i64) -> i64 {
        let chats: Vec<Chat> =
            chats.iter().map(|(id, parent)| Chat { id: *id, parent: *parent, turn: 1 }).collect();
        roots(&chats)[&of]
    }

    #[test]
    fn a_chain_ends_at_a_missing_parent_a_self_parent_or_a_circle() {
        let chain = [(1, -1), (2, 1), (3, 2), (5, 4), (6, 5), (7, 7), (8, 7)];
        assert_eq!([1, 2, 3].map(|id| root_of(&chain, id)), [1, 1, 1]);
        assert_eq!([5, 6].map(|id| root_of(&chain, id)), [5, 5]);
        assert_eq!([7, 8].map(|id| root_of(&chain, id)), [7, 7]);
        // 10 → 11 → 12 → 10, and 13 → 11 comes in from outside.
        for circle in [[(10, 11), (11, 12), (12, 10), (13, 11)], [(13, 11), (12, 10), (10, 11), (11, 12)]] {
            assert_eq!([10, 11, 12, 13].map(|id| root_of(&circle, id)), [12, 10, 11, 10], "{circle:?}");
        }
    }

    #[test]
    fn the_last_chat_of_an_id_decides_its_parent() {
        assert_eq!(root_of(&[(1, -1), (2, 1), (3, -1), (2, 3)], 2), 3);
    }
}
