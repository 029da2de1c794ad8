//! `multi_turn`: each record is a conversation, or a piece of one; every request carries what was said before.

use std::sync::Arc;

use aiperf_config::{EndpointKind, FileFormat};
use aiperf_types::{ContextMode, Turn};
use serde_json::Value;

use super::single_turn::TurnFields;
use super::{Files, FirstTimes, Format, Near};
use crate::json::{self, Fault};
use crate::look::{Look, given};
use crate::record::{Check, Found, LineFormat, Problem, Render, Row, check_type, complaint};

pub(crate) const FORMAT: Format = Format {
    parquet: true,
    timed: true,
    writes_inputs: true,
    ranks: true,
    options: &["--osl", "--inter-turn-delay-cap-seconds", "--num-dataset-entries", "--input-columns"],
    fields: &KEYS,
    fits: |_, look| look.record_passes(format(EndpointKind::Chat)),
    times: first_times,
    near: Some(Near { keys: &KEYS, fault: |line| complaint(format(EndpointKind::Chat), line) }),
    ..Format::new(FileFormat::MultiTurn, Files::Jsonl, "one conversation", |opening| {
        let format = format(opening.context.endpoint);
        opening.records(format)
    })
};

/// Times of the first turn that is a request: a leading system message has none.
fn first_times(look: &Look) -> FirstTimes {
    let turns = look.record().and_then(|(_, record)| record.get("turns")?.as_array());
    let mut turns = turns.into_iter().flatten().filter_map(Value::as_object);
    let timed = turns.find(|turn| given(turn, "timestamp") || given(turn, "delay"));
    timed.map_or_else(FirstTimes::default, |turn| FirstTimes {
        timestamp: given(turn, "timestamp"),
        delay: given(turn, "delay"),
    })
}

/// The row is a turn with role `system`.
const SYSTEM: u32 = 1 << 30;
/// … and may become the conversation's system message: text only, no time, limit or extra keys.
const HOISTABLE: u32 = 1 << 31;
const TURN: u32 = SYSTEM - 1;

struct MultiTurn {
    endpoint: EndpointKind,
}

const KEYS: [&str; 3] = ["turns", "session_id", "type"];

/// The turns of a record.
fn turns(text: &str) -> Result<[json::Field<'_>; 3], Fault> {
    json::object(text, &KEYS)
}

impl Check for MultiTurn {
    fn keys(&self) -> Option<&'static [&'static str]> {
        Some(&KEYS)
    }

    fn record(&mut self, text: &str, found: &mut Found) -> Result<(), Fault> {
        let [turns, session_id, kind] = turns(text)?;
        check_type(kind, "multi_turn")?;
        found.take_session(session_id)?;
        let turns = turns.ok_or_else(|| Fault::new("turns", "is missing; a record needs a list of turns"))?;
        let turns = json::list("turns", turns)?;
        if turns.is_empty() {
            return Err(Fault::new("turns", "must not be empty"));
        }
        if turns.len() > TURN as usize {
            return Err(Fault::new("turns", format!("has more than {TURN} items")));
        }
        for (index, turn) in turns.into_iter().enumerate() {
            let within = |fault: Fault| fault.within(format_args!("turns[{index}]"));
            let fields = TurnFields::parse(turn).map_err(within)?;
            check_type(fields.kind, "single_turn").map_err(within)?;
            let mut checked = fields.check(self.endpoint, &mut found.tally).map_err(within)?;
            let role = fields.role.map(|role| json::string("role", role)).transpose().map_err(within)?;
            checked.tag = index as u32;
            if role.as_deref() == Some("system") {
                let text_only = fields.parts[2..].iter().all(Option::is_none);
                let plain = [fields.timestamp, fields.delay, fields.output_length, fields.extra]
                    .iter()
                    .all(Option::is_none);
                checked.tag |= if text_only && plain { SYSTEM | HOISTABLE } else { SYSTEM };
            }
            found.turns.push(checked);
        }
        Ok(())
    }
}

impl Render for MultiTurn {
    fn turns(&self, text: &str, rows: &[Row], out: &mut Vec<Turn>) -> Result<(), Problem> {
        let [turns, ..] = turns(text)?;
        let turns = json::list("turns", turns.unwrap_or("[]"))?;
        for row in rows {
            let turn = turns
                .get((row.tag & TURN) as usize)
                .ok_or_else(|| Fault::new("turns", "has fewer turns than when the file was indexed"))?;
            out.push(TurnFields::parse(turn)?.turn()?);
        }
        Ok(())
    }

    fn mode(&self, _first: Row) -> ContextMode {
        ContextMode::DeltasWithoutResponses
    }

    fn hoists(&self, rows: &[Row]) -> bool {
        self.endpoint == EndpointKind::Chat
            && rows[0].tag & HOISTABLE != 0
            && rows.get(1).is_some_and(|next| next.tag & SYSTEM == 0)
    }
}

pub(crate) fn format(endpoint: EndpointKind) -> LineFormat {
    LineFormat {
        many_turns: true,
        whole_keys: &["session_id"],
        ..LineFormat::new(Box::new(MultiTurn { endpoint }), Arc::new(MultiTurn { endpoint }))
    }
}
