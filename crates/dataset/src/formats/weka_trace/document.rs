//! The document of a trace, key by key: what it does not know it refuses.

use std::path::Path;
use std::sync::Arc;

use crate::agentic::{Agent, BlockIds, Item, LONGEST_INPUT, Request, Trace};
use crate::identity::Identity;
use crate::index::IDENTITY_RECORDS;
use crate::json::{self, Fault, Field};
use crate::{DatasetError, Place};

/// Blocks larger than this are no blocks.
const LARGEST_BLOCK: i64 = 1 << 20;

const TRACE_KEYS: [&str; 8] =
    ["id", "models", "block_size", "hash_id_scope", "tool_tokens", "system_tokens", "requests", "totals"];

const REQUEST_KEYS: [&str; 12] = [
    "t",
    "type",
    "model",
    "in",
    "out",
    "hash_ids",
    "input_types",
    "output_types",
    "stop",
    "api_time",
    "think_time",
    "ttft",
];

const AGENT_KEYS: [&str; 12] = [
    "type",
    "t",
    "agent_id",
    "subagent_type",
    "duration_ms",
    "total_tokens",
    "tool_use_count",
    "status",
    "requests",
    "models",
    "tool_tokens",
    "system_tokens",
];

/// What is wrong with the head of a document.
pub(super) fn fault(text: &str) -> Option<Fault> {
    head(text).err()
}

/// Reads the document of one trace.
pub(super) fn parse(text: &str, file: &Path) -> Result<Trace, DatasetError> {
    let invalid = |place: String, fault: Fault| {
        DatasetError::invalid(file, Place::Json(place), fault.field, fault.rule)
    };
    if text.trim().is_empty() {
        return Err(DatasetError::Empty(format!(
            "{}: the file is empty; nothing can be sent",
            file.display()
        )));
    }
    let head = head(text).map_err(|fault| match json::document_fault(text) {
        Some((line, fault)) => DatasetError::invalid(file, Place::Line(line), "", fault.rule),
        None => invalid(String::new(), fault),
    })?;
    let mut models = Models::default();
    let mut identity = Identity::default();
    identity.add(&serde_json::Value::from(head.id.as_ref()).to_string());
    let mut items = Vec::with_capacity(head.requests.len());
    for (number, entry) in head.requests.into_iter().enumerate() {
        if number < IDENTITY_RECORDS as usize {
            identity.add(entry);
        }
        let place = format!("requests[{number}]");
        items.push(item(entry, &mut models, &place).map_err(|(place, fault)| invalid(place, fault))?);
    }
    Ok(Trace {
        id: head.id,
        block_size: head.block_size,
        head: head.tokens,
        items,
        identity: identity.finish(),
        file: file.to_owned(),
        place: Place::Json(String::new()),
    })
}

struct Head<'a> {
    id: Arc<str>,
    block_size: u32,
    tokens: u64,
    requests: Vec<&'a str>,
}

fn head(text: &str) -> Result<Head<'_>, Fault> {
    let [id, models, block_size, scope, tools, system, requests, _totals] = json::strict(text, &TRACE_KEYS)?;
    let id = name("id", id)?.ok_or_else(|| Fault::new("id", "is missing"))?;
    strings("models", models)?;
    let block_size = block_size.ok_or_else(|| Fault::new("block_size", "is missing"))?;
    let block_size = json::integer("block_size", block_size)?;
    if !(1..=LARGEST_BLOCK).contains(&block_size) {
        return Err(Fault::new(
            "block_size",
            format!("must be 1 to {LARGEST_BLOCK} tokens, is {block_size}"),
        ));
    }
    if let Some(scope) = name("hash_id_scope", scope)?.filter(|scope| &**scope != "local") {
        return Err(Fault::new(
            "hash_id_scope",
            format!("must be local (ids of one trace mean nothing in another), is {}", json::excerpt(&scope)),
        ));
    }
    let requests = requests.ok_or_else(|| Fault::new("requests", "is missing"))?;
    Ok(Head {
        id,
        block_size: block_size as u32,
        tokens: count("tool_tokens", tools)? + count("system_tokens", system)?,
        requests: json::list("requests", requests)?,
    })
}

/// Models in the order in which they occur.
#[derive(Default)]
struct Models(Vec<String>);

impl Models {
    fn number(&mut self, name: &str) -> u32 {
        let known = self.0.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        }) as u32
    }
}

type Placed = (String, Fault);

fn item(text: &str, models: &mut Models, place: &str) -> Result<Item, Placed> {
    let at = |fault| (place.to_owned(), fault);
    if !text.starts_with('{') {
        return Err(at(Fault::new("", format!("expected an object, found {}", json::kind(text)))));
    }
    let [kind] = json::object(text, &["type"]).map_err(at)?;
    let kind = kind.ok_or_else(|| at(Fault::new("type", "is missing; it must be n, s or subagent")))?;
    if kind == "\"subagent\"" {
        return agent(text, models, place).map(Item::Agent);
    }
    request(text, models).map(Item::Request).map_err(at)
}

fn agent(text: &str, models: &mut Models, place: &str) -> Result<Agent, Placed> {
    let at = |fault| (place.to_owned(), fault);
    let [_kind, time, id, sort, duration, tokens, uses, status, requests, of_models, tools, system] =
        json::strict(text, &AGENT_KEYS).map_err(at)?;
    let read = || -> Result<(Arc<str>, f64, Option<f64>, u64), Fault> {
        let id = name("agent_id", id)?.ok_or_else(|| Fault::new("agent_id", "is missing"))?;
        name("subagent_type", sort)?;
        name("status", status)?;
        count("total_tokens", tokens)?;
        count("tool_use_count", uses)?;
        strings("models", of_models)?;
        let head = count("tool_tokens", tools)? + count("system_tokens", system)?;
        let lasted = seconds("duration_ms", duration)?.map(|ms| ms / 1000.0);
        let time = seconds("t", time)?.ok_or_else(|| Fault::new("t", "is missing"))?;
        Ok((id, time, lasted, head))
    };
    let (id, time, lasted, head) = read().map_err(at)?;
    let requests = requests.ok_or_else(|| at(Fault::new("requests", "is missing")))?;
    let requests = json::list("requests", requests)
        .map_err(at)?
        .into_iter()
        .enumerate()
        .map(|(number, text)| {
            request(text, models).map_err(|fault| (format!("{place}.requests[{number}]"), fault))
        })
        .collect::<Result<_, _>>()?;
    Ok(Agent { id, at: time, lasted, head, requests })
}

fn request(text: &str, models: &mut Models) -> Result<Request, Fault> {
    let [time, kind, model, input, output, ids, heard, said, stop, took, think, ttft] =
        json::strict(text, &REQUEST_KEYS)?;
    match kind {
        Some("\"n\"") if ttft.is_some() => {
            return Err(Fault::new("ttft", "goes with the type s (streamed) only"));
        }
        Some("\"n\"" | "\"s\"") => {
            seconds("ttft", ttft)?;
        }
        Some(other) => {
            let rule =
                format!("must be n, s or, in the list of a trace, subagent; is {}", json::excerpt(other));
            return Err(Fault::new("type", rule));
        }
        None => return Err(Fault::new("type", "is missing; it must be n or s")),
    }
    strings("input_types", heard)?;
    strings("output_types", said)?;
    if let Some(stop) = stop {
        json::check_string("stop", stop)?;
    }
    let model = name("model", model)?.unwrap_or_default();
    let input = input.ok_or_else(|| Fault::new("in", "is missing"))?;
    let input = json::integer("in", input)?;
    if !(0..=LONGEST_INPUT).contains(&input) {
        return Err(Fault::new("in", format!("must be 0 to {LONGEST_INPUT} tokens, is {input}")));
    }
    let output = output.ok_or_else(|| Fault::new("out", "is missing"))?;
    let mut list = Vec::new();
    if let Some(ids) = ids {
        json::integers("hash_ids", ids, |id| {
            list.push(id);
            Ok(())
        })?;
    }
    Ok(Request {
        at: seconds("t", time)?.ok_or_else(|| Fault::new("t", "is missing"))?,
        took: seconds("api_time", took)?.unwrap_or(0.0),
        think: seconds("think_time", think)?,
        model: models.number(&model),
        input: input.max(1) as u64,
        // Recorded nothing is nothing; fewer cannot be.
        output: json::integer("out", output)?.max(0) as u64,
        ids: list.into_iter().collect::<BlockIds>(),
    })
}

fn name(key: &'static str, field: Field<'_>) -> Result<Option<Arc<str>>, Fault> {
    match field.map(|text| json::string(key, text)).transpose()? {
        None => Ok(None),
        Some(name) if name.is_empty() && matches!(key, "id" | "agent_id") => {
            Err(Fault::new(key, "must not be empty"))
        }
        Some(name) => Ok(Some(name.as_ref().into())),
    }
}

fn strings(key: &'static str, field: Field<'_>) -> Result<(), Fault> {
    let Some(text) = field else { return Ok(()) };
    json::list(key, text)?.into_iter().try_for_each(|text| json::check_string(key, text).map(|_| ()))
}

/// A count; 0 where there is none.
fn count(key: &'static str, field: Field<'_>) -> Result<u64, Fault> {
    let count = field.map(|text| json::integer(key, text)).transpose()?.unwrap_or(0);
    // Prompts are made of the first two; the others are only recorded.
    let most = if matches!(key, "tool_tokens" | "system_tokens") { LONGEST_INPUT } else { i64::MAX };
    if (0..=most).contains(&count) {
        Ok(count as u64)
    } else {
        Err(Fault::new(key, format!("must be 0 to {most}, is {count}")))
    }
}

/// A time of 0 or more.
fn seconds(key: &'static str, field: Field<'_>) -> Result<Option<f64>, Fault> {
    // About 3,000 years: longer times are slips, and would not fit the clock.
    const END: f64 = 1e11;
    let Some(time) = field.map(|text| json::number(key, text)).transpose()? else { return Ok(None) };
    if (0.0..END).contains(&time) {
        Ok(Some(time))
    } else {
        Err(Fault::new(key, format!("must be 0 or more and below {END}, is {time}")))
    }
}
