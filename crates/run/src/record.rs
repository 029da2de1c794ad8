//! From an exchange to a record: the answer is read, tokens are counted.

use std::sync::Arc;

use aiperf_config::{EndpointKind, RunConfig};
use aiperf_endpoint::{BodyDecoder, ReadPlan, Reader, Reading, is_identity};
use aiperf_load::{Exchange, Received, ReceivedBytes};
use aiperf_report::Log;
use aiperf_tokenize::{ChatTemplate, Tokenizer};
use aiperf_types::{RequestError, RequestRecord, TokenCounts};

use crate::notes::Once;

/// What records are made with.
pub(crate) struct Recorder {
    kind: EndpointKind,
    plan: ReadPlan,
    tokenizer: Option<Tokenizer>,
    template: Option<ChatTemplate>,
    pub(crate) server_token_counts: bool,
    /// The server was asked to say after each event how many tokens there are so far.
    per_chunk_usage: bool,
    pub(crate) once: Once,
    log: Arc<Log>,
}

impl Recorder {
    /// For the answers of a run, which are read by `plan`.
    pub(crate) fn new(
        config: &RunConfig,
        plan: ReadPlan,
        tokenizer: Option<Tokenizer>,
        log: Arc<Log>,
    ) -> Recorder {
        let endpoint = &config.endpoint;
        let templated = tokenizer.as_ref().filter(|_| config.tokenizer.apply_chat_template);
        let template = templated.and_then(Tokenizer::chat_template);
        if let Some(tokenizer) = templated
            && endpoint.kind == EndpointKind::Chat
            && template.is_none()
        {
            let why = tokenizer.chat_template_fault().unwrap_or("the tokenizer has no chat template");
            log.info("tokens", &format!("--apply-chat-template changes nothing: {why}"));
        }
        Recorder {
            kind: endpoint.kind,
            plan,
            template,
            tokenizer,
            server_token_counts: endpoint.use_server_token_count,
            per_chunk_usage: endpoint.per_chunk_usage && endpoint.use_server_token_count,
            once: Once::default(),
            log,
        }
    }

    /// Whether the tokenizer has a template for such requests, and inputs are counted without it.
    pub(crate) fn leaves_template_out(&self) -> bool {
        let has_template = || self.tokenizer.as_ref().is_some_and(|known| known.chat_template().is_some());
        self.kind == EndpointKind::Chat && self.template.is_none() && has_template()
    }

    /// Whether inputs are counted as the model's template writes them.
    pub(crate) fn counts_through_template(&self) -> bool {
        self.template.is_some()
    }

    /// The record of an exchange.
    pub(crate) fn record(&self, exchange: Exchange) -> RequestRecord {
        let Exchange {
            identity,
            plan,
            start,
            headers,
            end,
            trace,
            status,
            request,
            template_input,
            received,
            failure,
            cancelled_at,
            client_delayed,
        } = exchange;
        let reading = match received {
            Received::Nothing => Reading::default(),
            Received::Read(reading) => *reading,
            Received::Bytes(bytes) => self.read(*bytes, end),
        };
        if reading.bad_spec_decode {
            self.once.bad_spec_decode(&self.log);
        }
        let error = failure.or(reading.error);
        let answer = reading.answer;
        let mut record = RequestRecord {
            end: if error.is_none() { answer.last_event.unwrap_or(end) } else { end },
            context_overflow: error.as_ref().is_some_and(RequestError::is_context_overflow),
            identity,
            plan,
            start,
            headers,
            trace,
            status,
            request,
            answer,
            tokens: TokenCounts::default(),
            error,
            cancelled_at,
            client_delayed,
        };
        record.tokens = self.count(&record, template_input.as_ref());
        if self.per_chunk_usage && record.is_valid() && !record.answer.not_streamed {
            let TokenCounts { output, reasoning, .. } = record.tokens;
            let length = output.unwrap_or(0) + reasoning.unwrap_or(0);
            let first = record.answer.first_chunk_completion_tokens.unwrap_or(0);
            if length >= 2 && !(1..length).contains(&first) {
                self.once.first_event_unknown(&self.log);
            }
        }
        record
    }

    fn read(&self, mut bytes: ReceivedBytes, end: aiperf_clock::Mono) -> Reading {
        let mut reader = bytes.reader.take().unwrap_or_else(|| Reader::new(&self.plan, &bytes.content_type));
        let Some(mut decoder) = BodyDecoder::new(&bytes.content_encoding) else {
            bytes.each_read(|bytes, at| reader.push(bytes, at));
            let mut reading = reader.finish(end);
            if let Some(error) = &mut reading.error
                && !is_identity(&bytes.content_encoding)
                // What an answer in the clear says of itself stands, whatever its head says.
                && matches!(&*error.kind, "MalformedResponseError" | "InvalidInferenceResultError")
            {
                *error = undecodable(&bytes.content_encoding);
            }
            return reading;
        };
        self.once.compressed(&self.log);
        let mut plain = Vec::new();
        let mut failure = None;
        bytes.each_read(|bytes, at| {
            plain.clear();
            if failure.is_none() {
                failure = decoder.decode(bytes, &mut plain).err();
                reader.push(&plain, at);
            }
        });
        let mut reading = reader.finish(end);
        if let Some(error) = failure {
            reading.error = Some(RequestError::new(None, "ClientPayloadError", error.to_string()));
        }
        reading
    }

    fn count(
        &self,
        record: &RequestRecord,
        template_input: Option<&(String, Option<String>)>,
    ) -> TokenCounts {
        if self.server_token_counts {
            let usage = record.answer.usage.unwrap_or_default();
            let reasoning = usage.reasoning_tokens;
            let output = usage.completion_tokens.map(|all| {
                all.checked_sub(reasoning.unwrap_or(0)).unwrap_or_else(|| {
                    self.once.more_reasoning_than_output(&self.log);
                    0
                })
            });
            return TokenCounts { input: usage.prompt_tokens, output, reasoning };
        }
        let Some(tokenizer) = &self.tokenizer else { return TokenCounts::default() };
        let templated =
            template_input.zip(self.template.as_ref()).and_then(|((messages, tools), template)| {
                let text = template.render(messages, tools.as_deref(), true).ok()?;
                Some(tokenizer.count(&text))
            });
        let input = templated.or_else(|| {
            let texts = &record.request.texts;
            (!texts.is_empty())
                .then(|| texts.iter().map(|text| text.tokens(|text| tokenizer.count(text))).sum())
        });
        if record.error.is_some() || !self.kind.produces_tokens() {
            return TokenCounts { input, output: None, reasoning: None };
        }
        let answer = &record.answer;
        let reasoning = (!answer.reasoning.is_empty()).then(|| tokenizer.count(&answer.reasoning));
        TokenCounts { input, output: Some(tokenizer.count(&answer.text)), reasoning }
    }
}

/// The error of an answer that cannot be read because it is compressed, and not as this client can undo.
fn undecodable(encoding: &str) -> RequestError {
    let message = format!(
        "the answer is compressed ({encoding}), although no request asks for that: switch it off at the server or the proxy \
         before it (gzip and deflate can be read)"
    );
    RequestError::new(None, "MalformedResponseError", message)
}

#[cfg(test)]
mod tests;
