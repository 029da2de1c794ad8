//! `mooncake_trace`: requests with recorded times. A request is a length (with the numbers of its blocks), a text,
//! messages, or a whole body.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, OnceLock};

use aiperf_config::{Corpus, EndpointKind, FileFormat};
use aiperf_types::{Content, ContextMode, Turn};

use super::single_turn::first_times;
use super::{Files, Format, later, speed_bench};
use crate::identity::Identity;
use crate::index::IDENTITY_RECORDS;
use crate::json::{self, Fault, Field};
use crate::open::Opening;
use crate::prompt::Prompts;
use crate::record::{Check, Found, FoundTurn, LineFormat, Problem, Render, Row, check_type, times};
use crate::{Survey, TurnFacts};

/// No model takes more; a prompt beyond this is a slip that would fill the memory.
const LONGEST_INPUT: i64 = 20_000_000;

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
        "--num-dataset-entries",
    ],
    fits: |_, look| {
        // A row of a Bailian trace reads as a row of this one; the numbers of its chats decide.
        look.record().is_some_and(|(line, record)| {
            !later::is_bailian(record) && !speed_bench::is_row(record) && is_row(line)
        })
    },
    times: first_times,
    open: Some(|opening| {
        let prompts = Prompts::new(opening.corpus(), opening.context)?;
        let format = format(&opening, prompts);
        opening.records(format)
    }),
    ..Format::new(FileFormat::MooncakeTrace, Files::Jsonl, "one request")
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

    /// Output limit; recorded values below 1 become 1.
    fn max_tokens(&self) -> Result<Option<u64>, Fault> {
        self.output_length
            .map(|length| json::integer("output_length", length).map(|length| length.max(1) as u64))
            .transpose()
    }
}

/// Whether a record is a row of such a trace, blocks aside.
fn is_row(text: &str) -> bool {
    MooncakeCheck::new(EndpointKind::Chat, u32::MAX, Arc::default(), false, true)
        .row(text, &mut Found::default(), false)
        .is_ok()
}

struct MooncakeCheck {
    endpoint: EndpointKind,
    streaming: bool,
    block_size: u32,
    /// Prompts can be made.
    prompts: bool,
    /// Blocks must fit their lengths and each other.
    check_blocks: bool,
    sizes: BlockSizes,
    identity: Option<Identity>,
    records: u64,
    shared: Arc<OnceLock<[u8; 32]>>,
}

impl MooncakeCheck {
    fn new(
        endpoint: EndpointKind,
        block_size: u32,
        shared: Arc<OnceLock<[u8; 32]>>,
        streaming: bool,
        prompts: bool,
    ) -> MooncakeCheck {
        MooncakeCheck {
            endpoint,
            streaming,
            block_size,
            prompts,
            check_blocks: true,
            sizes: BlockSizes::default(),
            identity: Some(Identity::default()),
            records: 0,
            shared,
        }
    }

    fn row(&mut self, text: &str, found: &mut Found, check_blocks: bool) -> Result<(), Fault> {
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
        match input {
            Input::Length => {
                let length = json::integer("input_length", value)?;
                if length > LONGEST_INPUT {
                    return Err(Fault::new(
                        "input_length",
                        format!("must be at most {LONGEST_INPUT} tokens, is {length}"),
                    ));
                }
                if !self.prompts {
                    return Err(Fault::new(
                        "input_length",
                        "prompts need a tokenizer; name one with --tokenizer",
                    ));
                }
                match fields.hash_ids {
                    Some(ids) if check_blocks => self.blocks(length, ids)?,
                    Some(ids) => json::integers("hash_ids", ids, |_| Ok(()))?,
                    None if length < 0 => {
                        return Err(Fault::new("input_length", format!("must be 0 or more, is {length}")));
                    }
                    None => {}
                }
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
            found.tally.output_raised += u64::from(json::integer("output_length", length)? < 1);
        }
        let (timestamp, delay) = times(fields.timestamp, fields.delay, &mut found.tally)?;
        found.turns.push(FoundTurn { timestamp, delay, tag: input as u32 });
        Ok(())
    }

    /// Checks that the blocks make up the length, and that every block has one size in the whole file.
    fn blocks(&mut self, length: i64, ids: &str) -> Result<(), Fault> {
        let mut count = 0i64;
        json::integers("hash_ids", ids, |_| {
            count += 1;
            Ok(())
        })?;
        let block = i64::from(self.block_size);
        if count == 0 {
            return if length < 0 {
                Err(Fault::new("input_length", format!("must be 0 or more, is {length}")))
            } else {
                Ok(())
            };
        }
        if length <= 0 {
            return Err(Fault::new(
                "input_length",
                format!("must be above 0 where there are `hash_ids`, is {length}"),
            ));
        }
        // Tokens of the last block; a longer input goes on with tokens of its own.
        let last = (length - (count - 1) * block).min(block);
        if last < 1 {
            return Err(Fault::new(
                "hash_ids",
                format!(
                    "{count} blocks of {block} tokens do not fit an input of {length} tokens: the last one would have \
                     {last}, and it must have 1 to {block}; set the trace's block size with --isl-block-size"
                ),
            ));
        }
        let sizes = &mut self.sizes;
        let mut seen = 0;
        json::integers("hash_ids", ids, |id| {
            seen += 1;
            let size = if seen == count { last } else { block } as u32;
            match sizes.insert(id, size) {
                None => Ok(()),
                Some(other) => Err(Fault::new(
                    "hash_ids",
                    format!(
                        "block {id} has {size} tokens here and {other} in an earlier row; the trace is damaged or its \
                         block size is not {block}: set it with --isl-block-size"
                    ),
                )),
            }
        })
    }
}

fn check_messages(text: &str) -> Result<(), Fault> {
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
        self.row(text, found, self.check_blocks)?;
        self.records += 1;
        if self.records <= IDENTITY_RECORDS
            && let Some(identity) = &mut self.identity
        {
            identity.add(text);
        }
        if self.records == IDENTITY_RECORDS {
            self.finish()?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Fault> {
        if let Some(identity) = self.identity.take() {
            let _ = self.shared.set(identity.finish());
        }
        Ok(())
    }
}

/// The size of every block id met so far.
#[derive(Default)]
struct BlockSizes {
    /// Ids that count up from 0, as published traces have them; 0 is "not met".
    small: Vec<u32>,
    other: HashMap<i64, u32, BuildHasherDefault<IdHasher>>,
}

/// Ids below this are kept in a list.
const SMALL_IDS: i64 = 1 << 22;

impl BlockSizes {
    /// Notes the size of a block; the earlier size when it differs.
    fn insert(&mut self, id: i64, size: u32) -> Option<u32> {
        if (0..SMALL_IDS).contains(&id) {
            let index = id as usize;
            if index >= self.small.len() {
                self.small.resize((index + 1).next_power_of_two(), 0);
            }
            let known = &mut self.small[index];
            if *known == 0 {
                *known = size;
            }
            return Some(*known).filter(|known| *known != size);
        }
        match self.other.entry(id) {
            Entry::Occupied(known) => Some(*known.get()).filter(|known| *known != size),
            Entry::Vacant(place) => {
                place.insert(size);
                None
            }
        }
    }
}

/// Hashes one integer: ids are hashes already, or count up.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_i64(i64::from(*byte));
        }
    }

    fn write_i64(&mut self, id: i64) {
        let mixed = (self.0 ^ id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

struct MooncakeRender {
    prompts: Option<Prompts>,
    block_size: u32,
    identity: Arc<OnceLock<[u8; 32]>>,
}

impl MooncakeRender {
    fn content(&self, fields: &Fields<'_>, unique: u64) -> Result<(Content, Option<u64>), Problem> {
        let (input, value) = fields.input()?;
        Ok(match input {
            Input::Length => {
                let prompts = Prompts::required(self.prompts.as_ref())?;
                let length = json::integer("input_length", value)?.max(0) as u64;
                let text = match fields.hash_ids {
                    None => prompts.exact(unique, length),
                    Some(ids) => {
                        let mut list = Vec::new();
                        json::integers("hash_ids", ids, |id| {
                            list.push(id);
                            Ok(())
                        })?;
                        // Set as soon as enough records were read for a first conversation.
                        let identity = self.identity.get().copied().unwrap_or_default();
                        prompts.blocks(&identity, &list, self.block_size, length, unique)
                    }
                };
                (Content::text(text.text), Some(text.tokens))
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
        let (content, text_tokens) = self.content(&fields, rows[0].record())?;
        let verbatim = matches!(content, Content::Payload(_));
        out.push(Turn {
            max_tokens: if verbatim { None } else { fields.max_tokens()? },
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
                facts.input_tokens = Some(json::integer("input_length", value)?.max(0) as u64);
                if let Some(ids) = fields.hash_ids {
                    json::integers("hash_ids", ids, |id| {
                        facts.hash_ids.push(id);
                        Ok(())
                    })?;
                }
            }
            Input::Text | Input::Messages | Input::Payload => {
                facts.content = Some(self.content(&fields, rows[0].record())?.0);
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

fn format(opening: &Opening<'_>, prompts: Option<Prompts>) -> LineFormat {
    let identity = Arc::new(OnceLock::new());
    let block_size = opening.block_size();
    let survey = opening.context.survey;
    let mut check = MooncakeCheck::new(
        opening.context.endpoint,
        block_size,
        Arc::clone(&identity),
        opening.context.streaming,
        // Who only looks makes no prompts.
        prompts.is_some() || survey.is_some(),
    );
    check.check_blocks = survey.is_none_or(Survey::checks_blocks);
    LineFormat {
        check: Box::new(check),
        render: Arc::new(MooncakeRender { prompts, block_size, identity }),
        many_turns: false,
        whole_keys: &["session_id", "hash_ids"],
    }
}
