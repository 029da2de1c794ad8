//! What loads, and is hardly meant: it is sent otherwise than it stands in the file, or than its author thought.

use aiperf_config::FileFormat;
use aiperf_dataset::{Dataset, DatasetError, Invalid, Place};

use crate::validation::Finding;
use crate::walk::{in_file_order, senders, walk};

/// Warnings of a dataset: the first of them, and how many there are.
#[derive(Default)]
pub(crate) struct Warnings {
    most: usize,
    is_folder: bool,
    pub(crate) count: u64,
    pub(crate) kept: Vec<Finding>,
}

impl Warnings {
    /// Looks through a dataset; the first `most` warnings are kept.
    pub(crate) fn of(
        dataset: &dyn Dataset,
        format: FileFormat,
        most: usize,
        is_folder: bool,
    ) -> Result<Warnings, DatasetError> {
        let mut warnings = Warnings { most, is_folder, ..Warnings::default() };
        match format {
            FileFormat::MooncakeTrace => warnings.lengths(dataset)?,
            FileFormat::MultiTurn => warnings.merged(dataset),
            FileFormat::WekaTrace => warnings.blocks(dataset)?,
            _ => {}
        }
        warnings.times(dataset);
        Ok(warnings)
    }

    /// What is said of the dataset as a whole.
    pub(crate) fn note(&mut self, message: String) {
        self.count += 1;
        self.kept.push(Finding { message, ..Finding::default() });
    }

    /// `rule` is made only where it is kept: places are looked for in the file.
    fn warn(&mut self, dataset: &dyn Dataset, at: (u64, u32), field: &str, rule: impl FnOnce() -> String) {
        self.count += 1;
        if self.kept.len() >= self.most {
            return;
        }
        let (field, rule) = (field.to_owned(), rule());
        self.kept.push(match dataset.place(at.0, at.1) {
            Some((file, place)) => Finding::of(
                &DatasetError::Invalid(Box::new(Invalid { file, place, field, rule })),
                self.is_folder,
            ),
            None => Finding { field, message: rule, ..Finding::default() },
        });
    }

    /// Lengths of which a replay makes others.
    fn lengths(&mut self, dataset: &dyn Dataset) -> Result<(), DatasetError> {
        walk(dataset, &in_file_order(dataset), |stop, _, facts| {
            let at = (stop.conversation, stop.turn);
            if facts.output_tokens == Some(0) {
                self.warn(dataset, at, "output_length", || "is below 1; a replay asks for 1 token".into());
            }
            if facts.input_tokens == Some(0) && facts.hash_ids.is_empty() {
                self.warn(dataset, at, "input_length", || "is 0; a replay sends 1 token".into());
            }
        })
    }

    /// Records that are one conversation because they have one id.
    fn merged(&mut self, dataset: &dyn Dataset) {
        for conversation in senders(dataset) {
            let turns = 0..dataset.outline(conversation).turns();
            let mut firsts: Vec<u32> = turns.collect();
            firsts.dedup_by_key(|turn| dataset.position(conversation, *turn));
            let [first, second, ..] = firsts[..] else { continue };
            self.warn(dataset, (conversation, second), "session_id", || {
                format!(
                    "is that of {}, too: the turns of {} records are sent as one conversation, in the order of the file; \
                     give each conversation an id of its own where that is not meant",
                    place(dataset, (conversation, first), (conversation, second)),
                    firsts.len()
                )
            });
        }
    }

    /// Prompts with more or fewer blocks than their length has.
    fn blocks(&mut self, dataset: &dyn Dataset) -> Result<(), DatasetError> {
        walk(dataset, &in_file_order(dataset), |stop, _, facts| {
            let (Some(input), Some(size)) = (facts.input_tokens, facts.block_size) else { return };
            let (size, ids) = (u64::from(size.max(1)), facts.hash_ids.len() as u64);
            let consequence = if ids > input.div_ceil(size) {
                "the last ids are not sent"
            } else if ids < input / size {
                "what has no id is sent as text that no other request shares"
            } else {
                return;
            };
            self.warn(dataset, (stop.conversation, stop.turn), "hash_ids", || {
                format!(
                    "has {ids} id(s), and the {input} tokens of `in` are {} whole block(s) of {size}: {consequence}; \
                     correct `in`, `hash_ids` or `block_size`",
                    input / size
                )
            });
        })
    }

    /// Times that go back within a conversation.
    fn times(&mut self, dataset: &dyn Dataset) {
        for conversation in senders(dataset) {
            let outline = dataset.outline(conversation);
            let mut latest: Option<(u32, f64)> = None;
            for turn in 0..outline.turns() {
                let Some(time) = outline.turn(turn).and_then(|turn| turn.timestamp_ms) else { continue };
                let Some((before, latest_ms)) = latest.filter(|(_, latest)| time < *latest) else {
                    latest = Some((turn, time));
                    continue;
                };
                self.warn(dataset, (conversation, turn), "timestamp", || {
                    format!(
                        "lies {} ms before that of {}, which comes first in its session: turns go in the order of the \
                         file, so this one leaves late, after the answer to that one; put the turns of a session in \
                         the order of their times",
                        latest_ms - time,
                        place(dataset, (conversation, before), (conversation, turn))
                    )
                });
            }
        }
    }
}

/// Where a turn is, with its file where that is not the one of turn `from`.
fn place(dataset: &dyn Dataset, turn: (u64, u32), from: (u64, u32)) -> String {
    let Some((file, place)) = dataset.place(turn.0, turn.1) else { return format!("turn {}", turn.1 + 1) };
    let within = match place {
        Place::Line(line) => format!("line {line}"),
        Place::Row(row) => format!("row {row}"),
        Place::Json(path) if !path.is_empty() => path,
        _ => format!("turn {}", turn.1 + 1),
    };
    match dataset.place(from.0, from.1) {
        Some((other, _)) if other != file => format!("{within} of {}", file.display()),
        _ => within,
    }
}
