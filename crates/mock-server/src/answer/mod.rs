//! One answer as a state machine without I/O: it is told the time, appends the bytes that are due to a buffer, and
//! says when it wants to be asked again.

mod stream;
mod whole;

use aiperf_clock::Mono;

use crate::dialect::Kind;
use crate::draw::Draws;
use crate::fault::Fault;
use crate::settings::Settings;

/// Bytes appended in one step before the caller should write them.
const PORTION: usize = 256 * 1024;
/// Most tokens one answer can have.
pub(crate) const MOST_TOKENS: u64 = 10_000_000;
/// Between the last bytes and an RST, so that the client's kernel can hand the bytes over before it drops them.
const RESET_DELAY_NS: u64 = 1_000_000;

/// Prompt tokens of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prompt {
    /// Usage is switched off.
    Off,
    /// Being counted on another thread.
    Pending,
    Known(u64),
}

/// What is to be answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order<'a> {
    pub(crate) kind: Kind,
    pub(crate) index: u64,
    pub(crate) fault: Fault,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) continuous_usage: bool,
    pub(crate) limit: Option<u64>,
    pub(crate) min_tokens: u64,
    /// The model's name as the body spells it inside its quotes.
    pub(crate) model: &'a str,
    pub(crate) prompt: Prompt,
    pub(crate) inputs: u64,
    /// The read that completed the body.
    pub(crate) received: Mono,
    pub(crate) http11: bool,
    pub(crate) keep_alive: bool,
}

/// What the caller should do after an advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing more before this instant.
    At(Mono),
    /// More is due already: write what there is and ask again.
    More,
    /// Ask again once the prompt tokens are known.
    Count,
    /// Nothing more, for ever.
    Never,
    /// The answer has ended.
    End(Ending),
}

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    KeepAlive,
    Close,
    Reset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Head,
    Token,
    Finish,
    Whole,
    Hung,
    End(Ending),
}

/// The text field of a delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Content,
    Reasoning,
    Refusal,
}

/// An answer under way. Reused, so that a request allocates nothing once its buffers have grown.
#[derive(Debug)]
pub(crate) struct Answer {
    kind: Kind,
    index: u64,
    pub(crate) fault: Fault,
    stream: bool,
    include_usage: bool,
    continuous_usage: bool,
    spec_decode: bool,
    cached_tokens: Option<u64>,
    limit: Option<u64>,
    pub(crate) prompt: Prompt,
    /// It last stopped for want of its prompt tokens.
    awaits_count: bool,
    inputs: u64,
    http11: bool,
    keep_alive: bool,
    stall_ns: u64,
    draws: Draws,
    itl: crate::draw::Distribution,
    fixed_itl: Option<u64>,

    step: Step,
    /// When the next step is due.
    due: Mono,
    /// When the first token is due.
    first_due: Mono,
    /// The fault has done what it does.
    struck: bool,
    /// Tokens the text will have.
    total: u64,
    /// Tokens of them already appended.
    done: u64,
    /// Of the total, how many are reasoning.
    reasoning: u64,
    /// Content chunks appended.
    chunks: u64,

    model: String,
    vector: std::sync::Arc<str>,
    /// What every chunk begins with.
    opening: Vec<u8>,
    /// The wire bytes of a token that follows another.
    frame: Vec<u8>,
    event: Vec<u8>,
    encoder: Option<stream::Encoder>,

    pub(crate) status: Option<u16>,
    pub(crate) received: Mono,
    pub(crate) first_token: Option<Mono>,
    pub(crate) last_token: Option<Mono>,
    /// The largest distance of a token from its deadline.
    pub(crate) worst_lateness_ns: u64,
}

impl Answer {
    pub(crate) fn new(settings: &Settings) -> Answer {
        let draws = Draws::of_request(settings.seed, 0);
        Answer {
            kind: Kind::Chat,
            index: 0,
            fault: Fault::Ok,
            stream: false,
            include_usage: false,
            continuous_usage: false,
            spec_decode: settings.spec_decode,
            cached_tokens: settings.cached_tokens,
            limit: None,
            prompt: Prompt::Off,
            awaits_count: false,
            inputs: 0,
            http11: true,
            keep_alive: true,
            stall_ns: settings.stall_ns,
            draws,
            itl: settings.itl,
            fixed_itl: settings.itl.fixed().map(|ns| ns.round() as u64),
            step: Step::End(Ending::Close),
            due: Mono(0),
            first_due: Mono(0),
            struck: false,
            total: 0,
            done: 0,
            reasoning: 0,
            chunks: 0,
            model: String::new(),
            vector: "[]".into(),
            opening: Vec::new(),
            frame: Vec::new(),
            event: Vec::new(),
            encoder: None,
            status: None,
            received: Mono(0),
            first_token: None,
            last_token: None,
            worst_lateness_ns: 0,
        }
    }

    /// Begins to answer `order`; `vector` is the JSON value of one embedding.
    pub(crate) fn start(&mut self, order: &Order<'_>, settings: &Settings, vector: &std::sync::Arc<str>) {
        let mut draws = Draws::of_request(settings.seed, order.index);
        let reasons = settings.reasoning > 0 && draws.unit() * 100.0 < f64::from(settings.reasoning);
        let ttft = settings.ttft.draw_ns(&mut draws);
        let usual = settings.tokens.draw_count(&mut draws).min(MOST_TOKENS);
        let chat = order.kind == Kind::Chat;
        self.fault = match order.fault {
            Fault::Ok if reasons && chat => Fault::Reasoning,
            Fault::Reasoning | Fault::Tools | Fault::Refusal if !chat => Fault::Ok,
            fault => fault,
        };
        self.kind = order.kind;
        self.index = order.index;
        self.stream = order.stream && order.kind.produces_tokens() && self.fault != Fault::NoStream;
        let usage = order.prompt != Prompt::Off && self.fault != Fault::NoUsage;
        self.include_usage = usage && (order.include_usage || !self.stream);
        self.continuous_usage = usage && order.continuous_usage;
        self.prompt = if usage { order.prompt } else { Prompt::Off };
        self.awaits_count = false;
        self.limit = order.limit;
        self.inputs = order.inputs;
        self.http11 = order.http11;
        self.keep_alive = order.keep_alive;
        self.draws = draws;
        self.total = match self.fault {
            Fault::Empty => 0,
            Fault::One => 1,
            Fault::Tools => 3,
            _ => order.limit.unwrap_or_else(|| usual.max(order.min_tokens)),
        };
        self.reasoning = if self.fault == Fault::Reasoning { self.total / 2 } else { 0 };
        self.struck = false;
        self.done = 0;
        self.chunks = 0;
        self.model.clear();
        self.model.push_str(order.model);
        if !std::sync::Arc::ptr_eq(&self.vector, vector) {
            self.vector = std::sync::Arc::clone(vector);
        }
        self.opening.clear();
        self.frame.clear();
        self.encoder = None;
        self.status = None;
        self.received = order.received;
        self.first_token = None;
        self.last_token = None;
        self.worst_lateness_ns = 0;

        let pause = if self.fault == Fault::SlowHeaders { self.stall_ns } else { 0 };
        let begun = order.received.plus(pause);
        self.first_due = begun.plus(ttft);
        (self.step, self.due) = match self.fault {
            Fault::Close | Fault::Garbage => (Step::Head, begun),
            Fault::Http(_) => (Step::Whole, self.first_due),
            _ if self.stream => (Step::Head, begun),
            _ => (Step::Whole, self.whole_due()),
        };
    }

    /// When an answer that is not streamed is due: with the last of its tokens.
    fn whole_due(&mut self) -> Mono {
        if !self.kind.produces_tokens() {
            return self.stalled(self.first_due);
        }
        let chunks = if self.fault == Fault::Bundle { self.total.div_ceil(4) } else { self.total };
        let gaps = chunks.saturating_sub(1);
        let due = match self.fixed_itl {
            Some(ns) => self.first_due.plus(ns.saturating_mul(gaps)),
            None => (0..gaps).fold(self.first_due, |due, _| due.plus(self.itl.draw_ns(&mut self.draws))),
        };
        self.stalled(due)
    }

    fn stalled(&self, due: Mono) -> Mono {
        if self.fault == Fault::Stall { due.plus(self.stall_ns) } else { due }
    }

    /// Appends what is due at `now`.
    pub(crate) fn advance(&mut self, now: Mono, out: &mut Vec<u8>) -> Next {
        loop {
            if out.len() >= PORTION {
                return Next::More;
            }
            match self.step {
                Step::End(Ending::Reset) if now < self.due => return Next::At(self.due),
                Step::End(ending) => return Next::End(ending),
                Step::Hung => return Next::Never,
                _ if now < self.due => return Next::At(self.due),
                Step::Head => self.head(out),
                Step::Token if self.continuous_usage && self.prompt == Prompt::Pending => {
                    return self.await_count();
                }
                Step::Finish | Step::Whole if self.include_usage && self.prompt == Prompt::Pending => {
                    return self.await_count();
                }
                Step::Token => self.token(now, out),
                Step::Finish => self.finish(out),
                Step::Whole => self.whole(now, out),
            }
        }
    }

    fn await_count(&mut self) -> Next {
        self.awaits_count = true;
        Next::Count
    }

    /// Takes the prompt tokens; true when the answer has stopped for them.
    pub(crate) fn counted(&mut self, tokens: u64) -> bool {
        if self.prompt == Prompt::Pending {
            self.prompt = Prompt::Known(tokens);
        }
        std::mem::take(&mut self.awaits_count)
    }

    /// Gives back what an unusually long answer took.
    pub(crate) fn rest(&mut self) {
        crate::connection::give_back(&mut self.event);
        self.encoder = None;
    }

    /// Tokens the client was sent, as usage reports them.
    pub(crate) fn completion_tokens(&self) -> u64 {
        match (self.kind, self.fault) {
            (kind, _) if !kind.produces_tokens() => 0,
            (_, Fault::Tools) => 8 * self.done / 3,
            _ => self.done,
        }
    }

    /// Whether nothing is left to append.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.step, Step::End(_))
    }

    /// Whether every write is cut into single bytes.
    pub(crate) fn is_split(&self) -> bool {
        self.fault == Fault::Split
    }

    fn usage(&self) -> Option<crate::dialect::Usage> {
        let Prompt::Known(prompt) = self.prompt else { return None };
        Some(crate::dialect::Usage {
            prompt,
            completion: self.completion_tokens(),
            reasoning: self.reasoning.min(self.done),
            cached: self.cached_tokens,
        })
    }

    fn finish_reason(&self) -> &'static [u8] {
        match self.fault {
            Fault::NoDone => b"null",
            Fault::Tools => b"\"stop\"",
            _ if self.limit == Some(self.done) => b"\"length\"",
            _ => b"\"stop\"",
        }
    }

    fn ending(&self) -> Ending {
        if self.keep_alive { Ending::KeepAlive } else { Ending::Close }
    }

    fn stamp(&mut self, now: Mono, due: Mono) {
        self.first_token.get_or_insert(now);
        self.last_token = Some(now);
        self.worst_lateness_ns = self.worst_lateness_ns.max(now.saturating_since(due));
    }
}

#[cfg(test)]
mod tests;
