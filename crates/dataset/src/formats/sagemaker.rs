//! `sagemaker_data_capture`: chat requests as the data capture of an endpoint wrote them, each with its answer, by the
//! time they arrived.

use std::borrow::Cow;
use std::sync::Arc;

use aiperf_config::{EndpointKind, FileFormat};
use aiperf_types::{Content, ContextMode, Turn};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::mooncake::check_messages;
use super::{Files, FirstTimes, Folder, Format, Near};
use crate::json::{self, Fault, Field};
use crate::look::has_extension;
use crate::open::Opening;
use crate::record::{Check, Found, FoundTurn, LineFormat, Problem, Render, Row};
use crate::synthesis::Outputs;
use crate::{TurnFacts, instant};

pub(crate) const FORMAT: Format = Format {
    trace: true,
    timed: true,
    promotes: true,
    options: &[
        "--osl",
        "--ignore-trace-delays",
        "--synthesis-speedup-ratio",
        "--synthesis-prefix-len-multiplier",
        "--synthesis-prefix-root-multiplier",
        "--synthesis-prompt-len-multiplier",
        "--synthesis-output-len-multiplier",
        "--synthesis-max-isl",
        "--synthesis-max-osl",
        "--num-dataset-entries",
    ],
    fits: |_, look| {
        let keys = ["captureData", "eventMetadata"];
        look.record_with(&keys).is_some()
            || look
                .first_below(|file| has_extension(file, "jsonl"))
                .is_some_and(|file| file.record_with(&keys).is_some())
    },
    // Every record has one.
    times: |_| FirstTimes { timestamp: true, delay: false },
    folder: Folder::Below(|file| has_extension(file, "jsonl")),
    near: Some(Near {
        keys: &["captureData", "eventMetadata"],
        fault: |line| Call::parse(line).and_then(|call| call.request().map(|_| ())).err(),
    }),
    ..Format::new(FileFormat::SagemakerDataCapture, Files::Jsonl, "one captured call", |opening| {
        let format = format(&opening);
        opening.records(format)
    })
};

/// Parameters of a request that are not sent again as they are.
const NOT_EXTRA: [&str; 7] =
    ["messages", "tools", "model", "stream", "stream_options", "max_tokens", "max_completion_tokens"];

/// A call, taken apart.
struct Call<'a> {
    request: Cow<'a, str>,
    /// Answer as captured: data and encoding.
    answer: Field<'a>,
    time: i128,
    event: String,
}

/// The request of a call.
struct Request<'a> {
    messages: &'a str,
    tools: Field<'a>,
    limit: Option<i64>,
}

impl<'a> Call<'a> {
    fn parse(text: &'a str) -> Result<Call<'a>, Fault> {
        let [capture, metadata] = json::object(text, &["captureData", "eventMetadata"])?;
        let missing = |name: &'static str| move || Fault::new(name, "is missing");
        let [event, time] =
            json::object(metadata.ok_or_else(missing("eventMetadata"))?, &["eventId", "inferenceTime"])
                .map_err(|fault| fault.within("eventMetadata"))?;
        let event = match event {
            Some(event) => json::string("eventMetadata.eventId", event)?.into_owned(),
            None => String::new(),
        };
        let read = || {
            let time = time.ok_or_else(missing("eventMetadata.inferenceTime"))?;
            let time = json::string("eventMetadata.inferenceTime", time)?;
            let time = instant::nanoseconds(&time).ok_or_else(|| {
                Fault::new(
                    "eventMetadata.inferenceTime",
                    format!(
                        "expected an ISO 8601 time such as 2026-02-03T10:00:00Z, found {}",
                        json::excerpt(&time)
                    ),
                )
            })?;
            let capture = capture.ok_or_else(missing("captureData"))?;
            let [input, answer] = json::object(capture, &["endpointInput", "endpointOutput"])
                .map_err(|fault| fault.within("captureData"))?;
            let input = input.ok_or_else(missing("captureData.endpointInput"))?;
            let request = decoded(input).map_err(|fault| fault.within("captureData.endpointInput"))?;
            Ok((request, answer, time))
        };
        let (request, answer, time) = read().map_err(|fault: Fault| in_event(fault, &event))?;
        Ok(Call { request, answer, time, event })
    }

    fn request(&self) -> Result<Request<'_>, Fault> {
        let read = || {
            let [messages, tools, limit, completion_limit] =
                json::object(&self.request, &["messages", "tools", "max_tokens", "max_completion_tokens"])?;
            let messages = messages.ok_or_else(|| Fault::new("messages", "is missing"))?;
            check_messages(messages)?;
            let limit =
                limit.or(completion_limit).map(|limit| json::integer("max_tokens", limit)).transpose()?;
            Ok(Request { messages, tools, limit })
        };
        read().map_err(|fault: Fault| in_event(fault.within("captured request"), &self.event))
    }

    /// Tokens that the server counted in the request.
    fn input_tokens(&self) -> Option<u64> {
        let answer = decoded(self.answer?).ok()?;
        let [usage] = json::object(&answer, &["usage"]).ok()?;
        let [tokens] = json::object(usage?, &["prompt_tokens"]).ok()?;
        u64::try_from(json::integer("prompt_tokens", tokens?).ok()?).ok()
    }

    /// What else the request asked for.
    fn extra(&self) -> Option<Map<String, Value>> {
        let mut all: Map<String, Value> = serde_json::from_str(&self.request).ok()?;
        all.retain(|name, value| !NOT_EXTRA.contains(&name.as_str()) && !value.is_null());
        Some(all).filter(|all| !all.is_empty())
    }
}

fn in_event(mut fault: Fault, event: &str) -> Fault {
    if !event.is_empty() {
        fault.rule = format!("{} (event {event})", fault.rule);
    }
    fault
}

/// Data as it was before it was captured.
fn decoded(side: &str) -> Result<Cow<'_, str>, Fault> {
    let [data, encoding] = json::object(side, &["data", "encoding"])?;
    let data = json::string("data", data.ok_or_else(|| Fault::new("data", "is missing"))?)?;
    let encoding = match encoding {
        Some(encoding) => json::string("encoding", encoding)?,
        None => Cow::Borrowed("BASE64"),
    };
    match &*encoding {
        "JSON" => Ok(data),
        "BASE64" => {
            let bytes = STANDARD
                .decode(data.trim())
                .map_err(|error| Fault::new("data", format!("not valid BASE64: {error}")))?;
            String::from_utf8(bytes)
                .map(Cow::Owned)
                .map_err(|_| Fault::new("data", "is no UTF-8 text once decoded"))
        }
        other => Err(Fault::new("encoding", format!("must be JSON or BASE64, is {}", json::excerpt(other)))),
    }
}

struct CaptureCheck {
    endpoint: EndpointKind,
    outputs: Outputs,
    /// What times are counted from: that of the first record.
    origin: Option<i128>,
    reshapes: bool,
}

impl Check for CaptureCheck {
    fn record(&mut self, text: &str, found: &mut Found) -> Result<(), Fault> {
        let call = Call::parse(text)?;
        let request = call.request()?;
        if self.endpoint != EndpointKind::Chat {
            return Err(Fault::new(
                "messages",
                format!(
                    "a sagemaker_data_capture record is a chat request and cannot be sent to the {} endpoint; use \
                     --endpoint-type chat",
                    self.endpoint.name()
                ),
            ));
        }
        if let Some(limit) = request.limit {
            found.tally.output("max_tokens", limit, self.outputs)?;
        }
        for name in call.extra().iter().flat_map(Map::keys) {
            found.tally.replays(name);
        }
        found.tally.nothing_to_reshape = self.reshapes;
        let origin = *self.origin.get_or_insert(call.time);
        found.turns.push(FoundTurn {
            timestamp: Some((call.time - origin) as f64 / 1e6),
            input_tokens: call.input_tokens(),
            ..FoundTurn::default()
        });
        Ok(())
    }
}

struct CaptureRender {
    outputs: Outputs,
}

impl Render for CaptureRender {
    fn turns(&self, text: &str, _rows: &[Row], out: &mut Vec<Turn>) -> Result<(), Problem> {
        let call = Call::parse(text)?;
        let request = call.request()?;
        let messages = json::list("messages", request.messages)?
            .into_iter()
            .map(|message| json::raw("messages", message))
            .collect::<Result<_, _>>()?;
        let tools = request.tools.map(|tools| json::raw("tools", tools)).transpose()?;
        out.push(Turn {
            content: Content::Messages { messages, tools },
            max_tokens: request.limit.map(|limit| self.outputs.limit(limit)),
            extra_body: call.extra(),
            ..Turn::default()
        });
        Ok(())
    }

    fn facts(&self, text: &str, rows: &[Row], out: &mut Vec<TurnFacts>) -> Result<(), Problem> {
        let input_tokens = Call::parse(text)?.input_tokens();
        let mut turns = Vec::with_capacity(1);
        self.turns(text, rows, &mut turns)?;
        out.extend(turns.into_iter().map(|turn| TurnFacts { input_tokens, ..TurnFacts::from(turn) }));
        Ok(())
    }

    fn mode(&self, _first: Row) -> ContextMode {
        ContextMode::MessageArrayWithResponses
    }
}

fn format(opening: &Opening<'_>) -> LineFormat {
    let synthesis = &opening.file.synthesis;
    let outputs = Outputs::new(synthesis);
    let check = CaptureCheck {
        endpoint: opening.context.endpoint,
        outputs,
        origin: None,
        reshapes: synthesis.reshapes(),
    };
    LineFormat {
        absolute_times: true,
        by_time: true,
        ..LineFormat::new(Box::new(check), Arc::new(CaptureRender { outputs }))
    }
}
