//! A request whose body is complete: what it asks for, and the refusals of what cannot be answered.

use aiperf_clock::Mono;

use crate::answer::{Answer, MOST_TOKENS, Order, Prompt};
use crate::connection::{Connection, Phase};
use crate::dialect::{self, Kind};
use crate::head::{Head, Route};
use crate::scan::{self, Facts, Limit};
use crate::serve::Fate;
use crate::settings::UsageMode;
use crate::worker::Worker;

/// Bytes of all vectors of an answer, at the most.
const LONGEST_VECTORS: u64 = 256 << 20;

/// A refusal of a request whose head was fine.
struct Refusal {
    status: u16,
    body: Vec<u8>,
    /// Lines of the head.
    more: String,
}

fn refusal(status: u16, message: &str, parameter: Option<&str>, code: Option<&str>) -> Refusal {
    let body = dialect::error(message, "invalid_request_error", parameter, &code.into());
    Refusal { status, body, more: String::new() }
}

impl Worker {
    /// Answers a request whose body is complete. The connection is ready for the next head unless it answers still.
    pub(crate) fn request(
        &mut self,
        connection: &mut Connection,
        slot: usize,
        head: Head,
        body: &[u8],
        at: Mono,
    ) -> Result<(), Fate> {
        connection.current.received = Some(at);
        let keep_alive = head.keep_alive;
        let refused = match head.route {
            Route::Chat => self.load(connection, slot, Kind::Chat, head, body, at),
            Route::Completions => self.load(connection, slot, Kind::Completions, head, body, at),
            Route::Embeddings => self.load(connection, slot, Kind::Embeddings, head, body, at),
            Route::CohereRankings => self.load(connection, slot, Kind::CohereRankings, head, body, at),
            Route::HfTeiRankings => self.load(connection, slot, Kind::HfTeiRankings, head, body, at),
            Route::NimRankings => self.load(connection, slot, Kind::NimRankings, head, body, at),
            Route::Unknown => {
                self.shared.counters.body(body.len() as u64);
                Err(refusal(404, "there is nothing at this path", None, None))
            }
            Route::NotAllowed(allowed) => {
                self.shared.counters.body(body.len() as u64);
                let message = format!("this path answers to {allowed} alone");
                let refusal = refusal(405, &message, None, None);
                Err(Refusal { more: format!("Allow: {allowed}\r\n"), ..refusal })
            }
            route => {
                let (content_type, text) = self.look(route);
                self.respond(connection, 200, content_type, keep_alive, text.as_bytes(), "")?;
                connection.idle_since = at;
                return if keep_alive { Ok(()) } else { Err(Fate::Close) };
            }
        };
        match refused {
            Ok(()) => self.pump(connection, slot),
            Err(refusal) => {
                let Refusal { status, body, more } = refusal;
                self.respond(connection, status, "application/json", keep_alive, &body, &more)?;
                self.ended(connection, Some(status), None, false);
                if keep_alive { Ok(()) } else { Err(Fate::Close) }
            }
        }
    }

    /// The answer to a look at the mock itself.
    fn look(&self, route: Route) -> (&'static str, String) {
        let counters = &self.shared.counters;
        match route {
            Route::Metrics => ("text/plain; version=0.0.4; charset=utf-8", counters.prometheus()),
            Route::Models => ("application/json", models(&self.shared.settings.models)),
            Route::Reset => {
                counters.reset();
                ("application/json", counters.stats().json())
            }
            _ => ("application/json", counters.stats().json()),
        }
    }

    /// Begins the answer to a load request.
    fn load(
        &mut self,
        connection: &mut Connection,
        slot: usize,
        kind: Kind,
        head: Head,
        body: &[u8],
        at: Mono,
    ) -> Result<(), Refusal> {
        let shared = std::sync::Arc::clone(&self.shared);
        let index = shared.counters.arrive();
        shared.counters.body(body.len() as u64);
        let fault = head.asked.or(shared.settings.plan.of(index)).map_err(|name| {
            refusal(400, &format!("`{name}` is no fault of the mock server"), Some("fault"), None)
        })?;
        let mut facts = std::mem::take(&mut self.facts);
        let order = self.order(kind, &mut facts, body).map(|order| Order {
            index,
            fault,
            received: at,
            http11: head.http11,
            keep_alive: head.keep_alive,
            ..order
        });
        let started = order.map(|order| {
            let mut answer = self.spare.pop().unwrap_or_else(|| Box::new(Answer::new(&self.shared.settings)));
            answer.start(&order, &shared.settings, &shared.vectors[usize::from(facts.base64)]);
            connection.serial = self.serial();
            match (order.prompt, &self.counting) {
                (Prompt::Pending, Some(counting)) => {
                    counting.count(slot, connection.serial, body, &facts);
                }
                (Prompt::Known(tokens), _) => self.shared.counters.prompt(tokens),
                _ => {}
            }
            connection.answer = Some(answer);
            connection.phase = Phase::Answering;
        });
        self.facts = facts;
        started
    }

    /// Reads the body; what the head says is filled in by the caller.
    fn order<'b>(&self, kind: Kind, facts: &mut Facts, body: &'b [u8]) -> Result<Order<'b>, Refusal> {
        if scan::scan(body, facts).is_err() {
            return Err(refusal(400, "the request body is not a JSON object", None, None));
        }
        let (present, field) = match kind {
            Kind::Chat => (facts.messages, "messages"),
            Kind::Completions => (facts.prompt, "prompt"),
            Kind::Embeddings => (facts.input || facts.messages, "input"),
            _ if !facts.query => (false, "query"),
            Kind::CohereRankings => (facts.documents, "documents"),
            Kind::HfTeiRankings => (facts.ranked_texts, "texts"),
            Kind::NimRankings => (facts.passages, "passages"),
        };
        if !present {
            return Err(refusal(400, &format!("`{field}` is missing"), Some(field), None));
        }
        let limit = match limit("max_completion_tokens", facts.max_completion_tokens)? {
            Some(limit) => Some(limit),
            None => limit("max_tokens", facts.max_tokens)?,
        };
        let min_tokens = limit_or_zero("min_tokens", facts.min_tokens)?;
        let settings = &self.shared.settings;
        let model = match facts.model {
            // The whole body was checked to be UTF-8, and a string begins and ends at a character.
            Some(text) => std::str::from_utf8(&body[text.start..text.end]).unwrap_or(dialect::MODEL),
            None => dialect::MODEL,
        };
        if let (Some(text), false) = (facts.model, settings.models.is_empty()) {
            let name = scan::unescape(body, text);
            if !settings.models.contains(&name) {
                let is_served = |part: &str| settings.models.iter().any(|model| model == part);
                let hint = if name.split(':').all(is_served) {
                    format!("; `models` was read as several names: as `{name},` it is one")
                } else {
                    String::new()
                };
                let message = format!("the model `{name}` does not exist{hint}");
                return Err(refusal(404, &message, Some("model"), Some("model_not_found")));
            }
        }
        let vector = self.shared.vectors[usize::from(facts.base64)].len() as u64;
        if kind == Kind::Embeddings && facts.inputs.saturating_mul(vector) > LONGEST_VECTORS {
            let message = format!(
                "`input` has {} texts, and vectors for them are more than {} MiB",
                facts.inputs,
                LONGEST_VECTORS >> 20
            );
            return Err(refusal(400, &message, Some("input"), None));
        }
        let prompt = match settings.usage {
            UsageMode::Off => Prompt::Off,
            UsageMode::Exact if !facts.texts.is_empty() => Prompt::Pending,
            _ => Prompt::Known(facts.joined_bytes() / 4 + facts.token_ids),
        };
        Ok(Order {
            kind,
            index: 0,
            fault: crate::Fault::Ok,
            stream: facts.stream,
            include_usage: facts.include_usage,
            continuous_usage: facts.continuous_usage,
            limit,
            min_tokens,
            model,
            prompt,
            inputs: match kind {
                Kind::CohereRankings | Kind::HfTeiRankings | Kind::NimRankings => facts.ranked,
                _ if facts.input => facts.inputs,
                _ => 1,
            },
            received: Mono(0),
            http11: true,
            keep_alive: true,
        })
    }
}

fn limit(name: &str, limit: Limit) -> Result<Option<u64>, Refusal> {
    match limit {
        Limit::Absent => Ok(None),
        Limit::Count(tokens) if (1..=MOST_TOKENS).contains(&tokens) => Ok(Some(tokens)),
        _ => {
            let message = format!("`{name}` must be a whole number from 1 to {MOST_TOKENS}");
            Err(refusal(400, &message, Some(name), None))
        }
    }
}

fn limit_or_zero(name: &str, value: Limit) -> Result<u64, Refusal> {
    if value == Limit::Count(0) { Ok(0) } else { limit(name, value).map(Option::unwrap_or_default) }
}

/// The list of `/v1/models`.
fn models(names: &[String]) -> String {
    let default = [dialect::MODEL.to_owned()];
    let names = if names.is_empty() { &default[..] } else { names };
    let data: Vec<serde_json::Value> = names
        .iter()
        .map(|name| serde_json::json!({"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "mock"}))
        .collect();
    serde_json::json!({"object": "list", "data": data}).to_string()
}
