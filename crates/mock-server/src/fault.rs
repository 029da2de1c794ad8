//! The faults an answer can have, and the plan that deals them out.

/// What a client sees of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A normal answer.
    Ok,
    /// This status (300 to 599) with a JSON error body.
    Http(u16),
    /// The third content chunk is truncated JSON.
    Malformed,
    /// An error object after two content chunks, then `[DONE]`.
    MidstreamError,
    /// An `event: error` block after two content chunks.
    SseErrorEvent,
    /// No content at all.
    Empty,
    /// Closed after two content chunks.
    EarlyClose,
    /// As `EarlyClose`, by RST.
    Reset,
    /// Closed before any header.
    Close,
    /// Shorter than its `Content-Length`.
    Truncated,
    /// A clean end without `[DONE]` and finish reason.
    NoDone,
    /// A pause after two content chunks.
    Stall,
    /// A pause before the headers.
    SlowHeaders,
    /// Nothing more after two content chunks.
    Hang,
    /// The first half of the tokens as reasoning.
    Reasoning,
    /// Three tool-call deltas.
    Tools,
    /// Refusal text only.
    Refusal,
    /// One token.
    One,
    /// Four tokens per chunk.
    Bundle,
    /// Comment lines and an unknown event type between chunks.
    Comments,
    /// Every write cut into single bytes.
    Split,
    /// Line ends CRLF.
    Crlf,
    /// Not HTTP.
    Garbage,
    /// A JSON answer to a streaming request.
    NoStream,
    /// No usage.
    NoUsage,
    /// A compressed body.
    Gzip,
}

/// Names and meanings, in the order of the help text; `httpNNN` stands beside them.
pub(crate) const NAMED: &[(&str, Fault, &str)] = &[
    ("ok", Fault::Ok, "a normal answer"),
    ("malformed", Fault::Malformed, "the third chunk is truncated JSON; the stream goes on"),
    ("midstream_error", Fault::MidstreamError, "an error object after two content chunks, then [DONE]"),
    ("sse_error_event", Fault::SseErrorEvent, "an `event: error` block after two content chunks"),
    ("empty", Fault::Empty, "role chunk, finish chunk and usage, no content"),
    ("early_close", Fault::EarlyClose, "closed after two content chunks without the final chunk"),
    ("reset", Fault::Reset, "as early_close, by RST"),
    ("close", Fault::Close, "closed before any header"),
    ("truncated", Fault::Truncated, "an answer shorter than its Content-Length"),
    ("no_done", Fault::NoDone, "a clean end without [DONE] and finish reason"),
    ("stall", Fault::Stall, "nothing for the stall time after two content chunks, then on"),
    ("slow_headers", Fault::SlowHeaders, "nothing for the stall time before the headers"),
    ("hang", Fault::Hang, "nothing more after two content chunks"),
    ("reasoning", Fault::Reasoning, "the first half of the tokens as reasoning_content"),
    ("tools", Fault::Tools, "three tool-call deltas"),
    ("refusal", Fault::Refusal, "refusal text only"),
    ("one", Fault::One, "one token"),
    ("bundle", Fault::Bundle, "four tokens per chunk"),
    ("comments", Fault::Comments, "comment lines and an unknown event type between chunks"),
    ("split", Fault::Split, "each write cut into single bytes"),
    ("crlf", Fault::Crlf, "line ends CRLF"),
    ("garbage", Fault::Garbage, "not HTTP"),
    ("no_stream", Fault::NoStream, "a JSON answer to a streaming request"),
    ("no_usage", Fault::NoUsage, "no usage"),
    ("gzip", Fault::Gzip, "a compressed body"),
];

/// Stands for the statuses.
pub(crate) const HTTP: &str = "httpNNN";

/// What a plan may name, each with what a client then sees, in the order of the help text.
pub fn faults() -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut named = NAMED.iter().map(|(name, _, meaning)| (*name, *meaning));
    let first = named.next();
    first.into_iter().chain([(HTTP, "this status, 300 to 599, with a JSON error body")]).chain(named)
}

impl Fault {
    /// The fault of this name, `httpNNN` included.
    pub fn parse(name: &str) -> Option<Fault> {
        if let Some(code) = name.strip_prefix("http") {
            let status: u16 = (code.len() == 3).then(|| code.parse().ok())??;
            return (300..=599).contains(&status).then_some(Fault::Http(status));
        }
        NAMED.iter().find(|(known, ..)| *known == name).map(|(_, fault, _)| *fault)
    }

    /// The name of this fault, without the status of `httpNNN`.
    pub(crate) fn name(self) -> &'static str {
        if let Fault::Http(_) = self {
            return "http";
        }
        NAMED.iter().find(|(_, fault, _)| *fault == self).map_or("ok", |(name, ..)| name)
    }
}

/// A repeating sequence of faults: request `i` gets element `i` modulo the length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Faults with how many requests in a row get each.
    runs: Vec<(Fault, u64)>,
    length: u64,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan { runs: vec![(Fault::Ok, 1)], length: 1 }
    }
}

impl Plan {
    /// A plan from `ok*9:http500`; the error is the element that is no fault.
    pub(crate) fn parse(text: &str) -> Result<Plan, String> {
        let mut runs = Vec::new();
        let mut length = 0u64;
        for element in text.split(':') {
            let (name, times) = match element.split_once('*') {
                Some((name, times)) => (name, times.parse().ok().filter(|n| (1..=1_000_000_000).contains(n))),
                None => (element, Some(1)),
            };
            let (Some(fault), Some(times)) = (Fault::parse(name), times) else {
                return Err(element.to_owned());
            };
            runs.push((fault, times));
            length += times;
        }
        Ok(Plan { runs, length })
    }

    /// The fault of request `index`.
    pub(crate) fn of(&self, index: u64) -> Fault {
        if let [(fault, _)] = self.runs[..] {
            return fault;
        }
        let mut at = index % self.length;
        for &(fault, times) in &self.runs {
            if at < times {
                return fault;
            }
            at -= times;
        }
        Fault::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_to_the_fault_that_has_it() {
        for (name, fault, _) in NAMED {
            assert_eq!(Fault::parse(name), Some(*fault));
            assert_eq!(fault.name(), *name);
        }
        assert_eq!(Fault::parse("http500"), Some(Fault::Http(500)));
        for refused in ["http", "http299", "http600", "http5000", "http+50", "OK", ""] {
            assert_eq!(Fault::parse(refused), None, "{refused}");
        }
    }

    #[test]
    fn a_plan_repeats_over_its_length() {
        let plan = Plan::parse("ok*3:http500:one*2").unwrap();
        let dealt: Vec<Fault> = (0..8).map(|i| plan.of(i)).collect();
        let (ok, http, one) = (Fault::Ok, Fault::Http(500), Fault::One);
        assert_eq!(dealt, [ok, ok, ok, http, one, one, ok, ok]);
        assert_eq!(plan.of(6_000_003), http);
    }

    #[test]
    fn a_plan_names_the_element_that_is_no_fault() {
        assert_eq!(Plan::parse("ok:nope"), Err("nope".to_owned()));
        assert_eq!(Plan::parse("ok*0"), Err("ok*0".to_owned()));
        assert_eq!(Plan::parse("ok*x"), Err("ok*x".to_owned()));
        assert_eq!(Plan::parse(""), Err(String::new()));
    }
}
