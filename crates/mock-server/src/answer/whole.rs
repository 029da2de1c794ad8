//! Answers in one piece.

use std::io::Write as _;

use aiperf_clock::Mono;

use super::{Answer, Ending, Step};
use crate::dialect::{self, Kind};
use crate::fault::Fault;

impl Answer {
    pub(super) fn whole(&mut self, now: Mono, out: &mut Vec<u8>) {
        if self.fault == Fault::Hang {
            self.step = Step::Hung;
            return;
        }
        if let Fault::Http(status) = self.fault {
            self.status = Some(status);
            let body = dialect::fault_error(status);
            dialect::response(out, status, "application/json", self.keep_alive, &body);
            self.step = Step::End(self.ending());
            return;
        }
        self.status = Some(200);
        self.stamp(now, self.due);
        let mut body = std::mem::take(&mut self.event);
        body.clear();
        self.body(&mut body);
        if self.fault == Fault::Gzip {
            body = super::stream::gzip(&body);
        }
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ");
        dialect::number(out, body.len() as u64);
        if self.fault == Fault::Gzip {
            out.extend_from_slice(b"\r\nContent-Encoding: gzip");
        }
        let cut = match self.fault {
            Fault::EarlyClose | Fault::Truncated => Some(Ending::Close),
            Fault::Reset => Some(Ending::Reset),
            _ => None,
        };
        if !self.keep_alive {
            out.extend_from_slice(b"\r\nConnection: close");
        } else if !self.http11 {
            out.extend_from_slice(b"\r\nConnection: keep-alive");
        }
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(if cut.is_some() { &body[..body.len() / 2] } else { &body });
        self.event = body;
        self.step = Step::End(cut.unwrap_or_else(|| self.ending()));
        if cut == Some(Ending::Reset) {
            self.delay_reset(now);
        }
    }

    fn body(&mut self, body: &mut Vec<u8>) {
        match self.fault {
            Fault::Malformed => return body.extend_from_slice(super::stream::BROKEN.as_bytes()),
            Fault::MidstreamError | Fault::SseErrorEvent => {
                return body.extend_from_slice(super::stream::ENGINE_DIED.as_bytes());
            }
            _ => {}
        }
        self.done = self.total;
        if !self.kind.produces_tokens() {
            let usage = self.usage();
            let (prompt, cached) = (usage.map(|u| u.prompt), usage.and_then(|u| u.cached));
            let items = if self.fault == Fault::Empty { 0 } else { self.inputs };
            if self.kind == Kind::Embeddings {
                return dialect::embeddings(body, &self.model, items, &self.vector, prompt, cached);
            }
            return dialect::rankings(body, self.kind, self.index, items, prompt, cached);
        }
        dialect::opening(body, self.kind, false, self.index, &self.model);
        body.extend_from_slice(b"{\"index\":0,");
        if self.kind == Kind::Chat {
            self.message(body);
        } else {
            self.text(body);
        }
        body.extend_from_slice(b",\"finish_reason\":");
        body.extend_from_slice(self.finish_reason());
        body.extend_from_slice(b"}]");
        if let Some(usage) = self.usage() {
            body.push(b',');
            dialect::usage(body, usage);
        }
        if self.spec_decode {
            dialect::speculative(body, self.index);
        }
        body.push(b'}');
    }

    fn text(&self, body: &mut Vec<u8>) {
        body.extend_from_slice(b"\"text\":\"");
        dialect::words(body, true, self.total);
        body.push(b'"');
    }

    fn message(&self, body: &mut Vec<u8>) {
        body.extend_from_slice(b"\"message\":{\"role\":\"assistant\",");
        match self.fault {
            Fault::Tools => {
                let [first, second] = dialect::TOOL_ARGUMENTS;
                // Writing to a Vec cannot fail.
                let _ = write!(
                    body,
                    "\"content\":null,\"tool_calls\":[{{\"id\":\"call_0\",\"type\":\"function\",\
                     \"function\":{{\"name\":\"lookup\",\"arguments\":\"{first}{second}\"}}}}]"
                );
            }
            Fault::Refusal => {
                body.extend_from_slice(b"\"content\":null,\"refusal\":\"");
                dialect::words(body, true, self.total);
                body.push(b'"');
            }
            _ => {
                if self.reasoning > 0 {
                    body.extend_from_slice(b"\"reasoning_content\":\"");
                    dialect::words(body, true, self.reasoning);
                    body.extend_from_slice(b"\",");
                }
                body.extend_from_slice(b"\"content\":\"");
                dialect::words(body, true, self.total - self.reasoning);
                body.push(b'"');
            }
        }
        body.push(b'}');
    }
}
