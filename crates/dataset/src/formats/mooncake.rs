//! `mooncake_trace`: requests with recorded times. A request is a length (with the numbers of its blocks), a text,
//! messages, or a whole body.

use std::sync::Arc;

use aiperf_config::{Corpus, EndpointKind, FileFormat, Synthesis};
use aiperf_types::{Content, ContextMode, Turn};

use super::blocks::{BlockCheck, BlockPrompts, block_facts, blocks};
use super::single_turn::first_times;
use super::{Files, Format, Near, bailian, speed_bench};
use crate::json::{self, Fault, Field};
use crate::open::Opening;
use crate::record::{
    Arranged, Check, Found, FoundTurn, LineFormat, Problem, Render, Row, Tally, check_type, times,
};
use crate::synthesis::Outputs;
use crate::{DatasetError, TurnFacts};

pub(crate) const FORMAT: Format = Format {
    parquet: true,
    trace: true,
    timed: true,
    promotes: true,
    makes_text: true,
    block_size: Some(512),
    corpus: Some(Corpus::Sonnet),
    options: &[
        "--osl",
        "--isl-block-size",
        "--prompt-corpus",
        "--inter-turn-delay-cap-seconds",
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
    common_names: &[
        ("input_length", &["input_tokens", "prompt_tokens", "prompt_len", "input_len"]),
        (
            "output_length",
            &["output_tokens", "completion_tokens", "output_len", "max_tokens", "max_completion_tokens"],
        ),
        ("hash_ids", &["hash_id"]),
        ("session_id", &["conversation_id"]),
    ],
    fits: |_, look| {
        // A row of a Bailian trace reads as a row of this one; the numbers of its chats decide.
        look.record().is_some_and(|(line, record)| {
            !bailian::is_row(line) && !speed_bench::is_row(record) && is_row(line)
        })
    },
    times: first_times,
    near: Some(Near { keys: &KEYS, fault: row_fault }),
    ..Format::new(FileFormat::MooncakeTrace, Files::Jsonl, "one request", |opening| {
        let format = format(&opening)?;
        opening.records(format)
    })
};

/// How the input of a row is given; also its tag in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Input {
    Length,
    Text,
    Messages,
    Payload,
}

impl Input {
    fn of(row: Row) -> Input {
        [Input::Length, Input::Text, Input::Messages, Input::Payload][row.tag as usize % 4]
    }

    fn key(self) -> &'static str {
        match self {
            Input::Length => "input_length",
            Input::Text => "text_input",
            Input::Messages => "messages",
            Input::Payload => "payload",
        }
    }

    /// Rows that go together in a session: those that add to the context, or all of one self-contained kind.
    fn family(self) -> u8 {
        match self {
            Input::Length | Input::Text => 0,
            Input::Messages => 1,
            Input::Payload => 2,
        }
    }
}

/// A row, taken apart.
pub(crate) struct Fields<'a> {
    inputs: [Field<'a>; 4],
    hash_ids: Field<'a>,
    output_length: Field<'a>,
    timestamp: Field<'a>,
    delay: Field<'a>,
    session_id: Field<'a>,
    tools: Field<'a>,
    extra: Field<'a>,
    kind: Field<'a>,
    message_mode: Field<'a>,
}

const KEYS: [&str; 13] = [
    "input_length",
    "text_input",
    "messages",
    "payload",
    "hash_ids",
    "output_length",
    "timestamp",
    "delay",
    "session_id",
    "tools",
    "extra",
    "type",
    "message_mode",
];

impl<'a> Fields<'a> {
    fn parse(text: &'a str) -> Result<Fields<'a>, Fault> {
        let [
            length,
            text_input,
            messages,
            payload,
            hash_ids,
            output_length,
            timestamp,
            delay,
            session_id,
            tools,
            extra,
            kind,
            message_mode,
        ] = json::object(text, &KEYS)?;
        Ok(Fields {
            inputs: [length, text_input, messages, payload],
            hash_ids: hash_ids.filter(|ids| *ids != "[]"),
            output_length,
            timestamp,
            delay,
            session_id,
            tools,
            extra,
            kind,
            message_mode,
        })
    }

    /// The one way in which the input is given, and its value.
    fn input(&self) -> Result<(Input, &'a str), Fault> {
        let all = [Input::Length, Input::Text, Input::Messages, Input::Payload];
        let mut given = all.into_iter().zip(self.inputs).filter_map(|(input, value)| Some((input, value?)));
        let first = given.next().ok_or_else(|| {
            Fault::new(
                "",
                "has none of `input_length`, `text_input`, `messages`, `payload`; give exactly one",
            )
        })?;
        match given.next() {
            None => Ok(first),
            Some(second) => Err(Fault::new(
                first.0.key(),
                format!(
                    "`{}` and `{}` exclude each other; give exactly one input",
                    first.0.key(),
                    second.0.key()
                ),
            )),
        }
    }

    fn max_tokens(&self, outputs: Outputs) -> Result<Option<u64>, Fault> {
        let recorded = self.output_length.map(|length| json::integer("output_length", length)).transpose()?;
        Ok(recorded.map(|length| outputs.limit(length)))
    }
}

/// Whether a record is a row of such a trace, blocks aside.
fn is_row(text: &str) -> bool {
    row_fault(text).is_none()
}

fn row_fault(text: &str) -> Option<Fault> {
    let outputs = Outputs::new(&Synthesis::default());
    let blocks = BlockCheck::of_one_row();
    MooncakeCheck { endpoint: EndpointKind::Chat, streaming: false, blocks, outputs }
        .row(text, &mut Found::default())
        .err()
}

struct MooncakeCheck {
    endpoint: EndpointKind,
    streaming: bool,
    blocks: BlockCheck,
    outputs: Outputs,
}

impl MooncakeCheck {
    fn row(&mut self, text: &str, found: &mut Found) -> Result<(), Fault> {
        let fields = Fields::parse(text)?;
        check_type(fields.kind, "mooncake_trace")?;
        if fields.message_mode.is_some() {
            return Err(Fault::new(
                "message_mode",
                "is not supported; write the whole history of each request into `messages` and leave the key out",
            ));
        }
        let (input, value) = fields.input()?;
        found.take_session(fields.session_id)?;
        if fields.hash_ids.is_some() && input != Input::Length {
            return Err(Fault::new(
                "hash_ids",
                format!("goes with `input_length` only, not with `{}`", input.key()),
            ));
        }
        if let Some(tools) = fields.tools {
            if input != Input::Messages {
                return Err(Fault::new(
                    "tools",
                    format!("goes with `messages` only, not with `{}`", input.key()),
                ));
            }
            let tools = json::list("tools", tools)?;
            if tools.is_empty() || tools.iter().any(|tool| !tool.starts_with('{')) {
                return Err(Fault::new("tools", "must be a list of objects that is not empty"));
            }
        }
        let mut input_tokens = None;
        match input {
            Input::Length => {
                let length = json::integer("input_length", value)?;
                let tokens = self.blocks.input(length, fields.hash_ids)?;
                found.tally.input(tokens, fields.hash_ids.is_some());
                input_tokens = Some(tokens);
            }
            Input::Text => {
                json::check_string("text_input", value)?;
            }
            Input::Messages => {
                check_messages(value)?;
                if self.endpoint != EndpointKind::Chat {
                    return Err(Fault::new(
                        "messages",
                        format!(
                            "a mooncake_trace row with messages cannot be sent to the {} endpoint; use \
                             --endpoint-type chat",
                            self.endpoint.name()
                        ),
                    ));
                }
            }
            Input::Payload => {
                if !value.starts_with('{') || json::is_hollow(value) {
                    return Err(Fault::new("payload", "must be an object that is not empty"));
                }
                found.tally.extra_beside_payload += u64::from(fields.extra.is_some());
                if self.streaming {
                    let [stream] = json::object(value, &["stream"])?;
                    found.tally.body(true, stream);
                }
            }
        }
        if let Some(extra) = fields.extra {
            json::map("extra", extra)?;
        }
        if let Some(length) = fields.output_length {
            found.tally.output("output_length", json::integer("output_length", length)?, self.outputs)?;
        }
        let (timestamp, delay) = times(fields.timestamp, fields.delay, &mut found.tally)?;
        if let Some(time) = timestamp.filter(|time| *time < 0.0) {
            return Err(Fault::new("timestamp", format!("must be 0 or more milliseconds, is {time}")));
        }
        found.turns.push(FoundTurn { timestamp, delay, tag: input as u32, input_tokens });
        Ok(())
    }
}

/// Checks a list of chat messages.
pub(crate) fn check_messages(text: &str) -> Result<(), Fault> {
    let messages = json::list("messages", text)?;
    if messages.is_empty() {
        return Err(Fault::new("messages", "must not be empty"));
    }
    for (index, message) in messages.into_iter().enumerate() {
        let fault = |rule: &str| Err(Fault::new(format!("messages[{index}]"), rule));
        if !message.starts_with('{') {
            return fault(&format!("expected an object, found {}", json::kind(message)));
        }
        match json::object(message, &["role"])? {
            [Some(role)] if role.starts_with('"') => {}
            [Some(_)] => return fault("`role` must be a string"),
            [None] => return fault("`role` is missing"),
        }
    }
    Ok(())
}

impl Check for MooncakeCheck {
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
    }

    fn finish(&mut self) -> Result<(), Fault> {
        self.blocks.finish();
        Ok(())
    }

    fn arrange(&mut self, turns: &mut Arranged<'_>, tally: &mut Tally) -> Result<(), DatasetError> {
        self.blocks.plan(turns, tally, |text, row| {
            let Input::Length = Input::of(row) else { return Ok(None) };
            let fields = Fields::parse(text)?;
            Ok(Some((json::integer("input_length", fields.input()?.1)?, fields.hash_ids)))
        })
    }
}

struct MooncakeRender {
    prompts: BlockPrompts,
    outputs: Outputs,
}

impl MooncakeRender {
    fn content(&self, fields: &Fields<'_>, row: Row) -> Result<(Content, Option<u64>), Problem> {
        let (input, value) = fields.input()?;
        Ok(match input {
            Input::Length => {
                let length = json::integer("input_length", value)?;
                let (text, tokens) = self.prompts.text(length, fields.hash_ids, row)?;
                (Content::text(text), tokens)
            }
            Input::Text => (Content::text(&*json::string("text_input", value)?), None),
            Input::Messages => {
                let messages = json::list("messages", value)?
                    .into_iter()
                    .map(|message| json::raw("messages", message))
                    .collect::<Result<_, _>>()?;
                let tools = fields.tools.map(|tools| json::raw("tools", tools)).transpose()?;
                (Content::Messages { messages, tools }, None)
            }
            Input::Payload => (Content::Payload(json::raw("payload", value)?), None),
        })
    }
}

impl Render for MooncakeRender {
    fn turns(&self, text: &str, rows: &[Row], out: &mut Vec<Turn>) -> Result<(), Problem> {
        let fields = Fields::parse(text)?;
        let (content, text_tokens) = self.content(&fields, rows[0])?;
        let verbatim = matches!(content, Content::Payload(_));
        out.push(Turn {
            max_tokens: if verbatim { None } else { fields.max_tokens(self.outputs)? },
            extra_body: match fields.extra {
                Some(extra) if !verbatim => Some(json::map("extra", extra)?),
                _ => None,
            },
            content,
            text_tokens,
            ..Turn::default()
        });
        Ok(())
    }

    fn facts(&self, text: &str, rows: &[Row], out: &mut Vec<TurnFacts>) -> Result<(), Problem> {
        let fields = Fields::parse(text)?;
        let (input, value) = fields.input()?;
        let mut facts = TurnFacts::default();
        match input {
            Input::Length => {
                facts = block_facts(json::integer("input_length", value)?, fields.hash_ids)?;
            }
            Input::Text | Input::Messages | Input::Payload => {
                facts.content = Some(self.content(&fields, rows[0])?.0);
            }
        }
        if let Some(length) = fields.output_length {
            facts.output_tokens = Some(json::integer("output_length", length)?.max(0) as u64);
        }
        out.push(facts);
        Ok(())
    }

    fn mode(&self, first: Row) -> ContextMode {
        match Input::of(first) {
            Input::Length | Input::Text => ContextMode::DeltasWithoutResponses,
            Input::Messages | Input::Payload => ContextMode::MessageArrayWithResponses,
        }
    }

    fn check_session(&self, rows: &[Row]) -> Result<(), (usize, Fault)> {
        let first = Input::of(rows[0]);
        match rows.iter().position(|row| Input::of(*row).family() != first.family()) {
            None => Ok(()),
            Some(index) => {
                let other = Input::of(rows[index]);
                let rule = format!(
                    "its rows mix `{}` and `{}`; a session is all `messages`, all `payload`, or all `input_length` and \
                     `text_input`",
                    first.key(),
                    other.key()
                );
                Err((index, Fault::new(other.key(), rule)))
            }
        }
    }
}

fn format(opening: &Opening<'_>) -> Result<LineFormat, DatasetError> {
    let (blocks, prompts) = blocks(opening)?;
    let outputs = Outputs::new(&opening.file.synthesis);
    let (endpoint, streaming) = (opening.context.endpoint, opening.context.streaming);
    let check = MooncakeCheck { endpoint, streaming, blocks, outputs };
    Ok(LineFormat {
        whole_keys: &["session_id", "hash_ids"],
        whole: opening.file.synthesis.reshapes(),
        ..LineFormat::new(Box::new(check), Arc::new(MooncakeRender { prompts, outputs }))
    })
}
