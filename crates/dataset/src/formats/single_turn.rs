//! `single_turn`: each record is one request; records with the same session id are sent one after the other,
//! without history.

use std::sync::Arc;

use aiperf_config::{EndpointKind, FileFormat};
use aiperf_types::{ContextMode, Turn};

use super::parts::{self, PART_KEYS, PartFields, RANKED_NAMES};
use super::{Files, FirstTimes, Format, Near};
use crate::json::{self, Fault, Field};
use crate::look::{Look, given};
use crate::record::{
    Check, Found, FoundTurn, LineFormat, Problem, Render, Row, Tally, check_type, complaint, times,
};

pub(crate) const FORMAT: Format = Format {
    parquet: true,
    timed: true,
    writes_inputs: true,
    ranks: true,
    options: &[
        "--osl",
        "--inter-turn-delay-cap-seconds",
        "--uuid-and-strip",
        "--num-dataset-entries",
        "--input-columns",
    ],
    fields: &KEYS,
    common_names: &[
        ("text", &["prompt", "question", "instruction", "query", "input"]),
        (
            "output_length",
            &["output_tokens", "completion_tokens", "output_len", "max_tokens", "max_completion_tokens"],
        ),
        ("session_id", &["conversation_id"]),
    ],
    fits: |_, look| look.record_passes(format(EndpointKind::Chat)),
    times: first_times,
    near: Some(Near { keys: &KEYS, fault: |line| complaint(format(EndpointKind::Chat), line) }),
    ..Format::new(FileFormat::SingleTurn, Files::Jsonl, "one request", |opening| {
        let format = format(opening.context.endpoint);
        opening.records(format)
    })
};

/// Times of a first record that keeps them at its top.
pub(crate) fn first_times(look: &Look) -> FirstTimes {
    let times = |(_, record): (&str, &_)| FirstTimes {
        timestamp: given(record, "timestamp"),
        delay: given(record, "delay"),
    };
    look.record().map_or_else(FirstTimes::default, times)
}

/// Keys of a turn, as `single_turn` records and the turns of `multi_turn` have them.
const KEYS: [&str; 16] = {
    let mut keys = [""; 16];
    let mut at = 0;
    while at < PART_KEYS.len() {
        keys[at] = PART_KEYS[at];
        at += 1;
    }
    let rest = ["timestamp", "delay", "role", "session_id", "output_length", "extra", "type"];
    while at < keys.len() {
        keys[at] = rest[at - PART_KEYS.len()];
        at += 1;
    }
    keys
};

/// A turn, taken apart and not yet checked.
pub(crate) struct TurnFields<'a> {
    pub(crate) parts: PartFields<'a>,
    pub(crate) timestamp: Field<'a>,
    pub(crate) delay: Field<'a>,
    pub(crate) role: Field<'a>,
    pub(crate) session_id: Field<'a>,
    pub(crate) output_length: Field<'a>,
    pub(crate) extra: Field<'a>,
    pub(crate) kind: Field<'a>,
}

/// Whether a request can carry anything but text.
pub(crate) fn takes_media(endpoint: EndpointKind) -> bool {
    endpoint == EndpointKind::Chat
}

impl<'a> TurnFields<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<TurnFields<'a>, Fault> {
        let all = json::object(text, &KEYS)?;
        let [.., timestamp, delay, role, session_id, output_length, extra, kind] = all;
        let mut parts = PartFields::default();
        parts.copy_from_slice(&all[..PART_KEYS.len()]);
        Ok(TurnFields { parts, timestamp, delay, role, session_id, output_length, extra, kind })
    }

    /// Checks everything but the session id and the type.
    pub(crate) fn check(&self, endpoint: EndpointKind, tally: &mut Tally) -> Result<FoundTurn, Fault> {
        let holds = parts::check(&self.parts)?;
        if holds.media() && !takes_media(endpoint) {
            return Err(Fault::new(
                "",
                format!(
                    "the record has media, which the {} endpoint cannot carry; use --endpoint-type chat",
                    endpoint.name()
                ),
            ));
        }
        if endpoint.ranks() {
            let missing = match parts::ranked(&self.parts, None)? {
                (false, _) => Some("query"),
                (_, false) => Some("passages"),
                _ => None,
            };
            if let Some(missing) = missing {
                return Err(Fault::new("texts", format!("has no `{missing}`; {RANKED_NAMES}")));
            }
        }
        let (timestamp, delay) = times(self.timestamp, self.delay, tally)?;
        if timestamp.is_some_and(|time| time != 0.0) && delay.is_some_and(|delay| delay != 0.0) {
            return Err(Fault::new(
                "timestamp",
                "`timestamp` and `delay` exclude each other; keep one of them",
            ));
        }
        if let Some(role) = self.role {
            json::check_string("role", role)?;
        }
        if let Some(length) = self.output_length {
            let length = json::integer("output_length", length)?;
            if length <= 0 {
                return Err(Fault::new(
                    "output_length",
                    format!("must be above 0, is {length}; leave it out for no limit"),
                ));
            }
        }
        if let Some(extra) = self.extra {
            json::map("extra", extra)?;
        }
        Ok(FoundTurn { timestamp, delay, ..FoundTurn::default() })
    }

    /// The turn, times and output limits of others left out.
    pub(crate) fn turn(&self) -> Result<Turn, Problem> {
        Ok(Turn {
            max_tokens: match self.output_length {
                Some(length) => Some(json::integer("output_length", length)?.max(1) as u64),
                None => None,
            },
            role: match self.role {
                Some(role) => Some(json::string("role", role)?.into()),
                None => None,
            },
            content: parts::content(&self.parts, None)?,
            extra_body: match self.extra {
                Some(extra) => Some(json::map("extra", extra)?),
                None => None,
            },
            ..Turn::default()
        })
    }
}

struct SingleTurn {
    endpoint: EndpointKind,
}

impl Check for SingleTurn {
    fn keys(&self) -> Option<&'static [&'static str]> {
        Some(&KEYS)
    }

    fn record(&mut self, text: &str, found: &mut Found) -> Result<(), Fault> {
        let fields = TurnFields::parse(text)?;
        check_type(fields.kind, "single_turn")?;
        found.take_session(fields.session_id)?;
        let turn = fields.check(self.endpoint, &mut found.tally)?;
        found.turns.push(turn);
        Ok(())
    }
}

impl Render for SingleTurn {
    fn turns(&self, text: &str, _rows: &[Row], out: &mut Vec<Turn>) -> Result<(), Problem> {
        out.push(TurnFields::parse(text)?.turn()?);
        Ok(())
    }

    fn mode(&self, _first: Row) -> ContextMode {
        ContextMode::MessageArrayWithResponses
    }
}

pub(crate) fn format(endpoint: EndpointKind) -> LineFormat {
    LineFormat {
        whole_keys: &["session_id"],
        ..LineFormat::new(Box::new(SingleTurn { endpoint }), Arc::new(SingleTurn { endpoint }))
    }
}
