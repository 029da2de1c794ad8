//! What is sent: conversations in the order in which they are started.

use std::sync::Arc;

use aiperf_endpoint::{Format, History, Rendered};
use aiperf_load::schedule::{Draw, NewSession, SessionSource, TurnTiming};
use aiperf_load::{Prepared, Source, Ticket};
use aiperf_types::{Body, Content, Conversation, Turn};

type DrawNext = Box<dyn FnMut() -> Draw<Ticket> + Send>;
type Timing = Box<dyn Fn(u64, u32) -> TurnTiming + Send>;

/// A source made of two functions.
pub(crate) struct Feed {
    draw: DrawNext,
    timing: Timing,
}

impl Feed {
    pub(crate) fn new(draw: impl FnMut() -> Draw<Ticket> + Send + 'static) -> Feed {
        Feed { draw: Box::new(draw), timing: Box::new(|_, _| TurnTiming::default()) }
    }

    pub(crate) fn timed(self, timing: impl Fn(u64, u32) -> TurnTiming + Send + 'static) -> Feed {
        Feed { timing: Box::new(timing), ..self }
    }

    pub(crate) fn boxed(self) -> Source {
        Box::new(self)
    }
}

impl SessionSource for Feed {
    type Ticket = Ticket;

    fn draw(&mut self) -> Draw<Ticket> {
        (self.draw)()
    }

    fn timing(&self, conversation: u64, turn: u32) -> TurnTiming {
        (self.timing)(conversation, turn)
    }
}

/// A request with this body.
pub(crate) fn body(text: impl Into<String>) -> Arc<Rendered> {
    let mut request = Rendered::default();
    request.body = Body::single(text.into().into_bytes());
    Arc::new(request)
}

/// A conversation of requests that stand alone.
pub(crate) fn prepared(id: impl Into<Arc<str>>, requests: Vec<Arc<Rendered>>) -> Prepared {
    Prepared {
        first_turn: 0,
        id: id.into(),
        source_session: None,
        requests,
        conversation: None,
        sources: Vec::new(),
        marker: None,
    }
}

/// A ticket for a conversation that is ready.
pub(crate) fn ticket(prepared: Prepared) -> Ticket {
    let (sender, ticket) = Ticket::new();
    sender.send(Ok(Arc::new(prepared))).unwrap();
    ticket
}

fn session(conversation: u64, turns: u32, ticket: Ticket) -> Draw<Ticket> {
    Draw::Session(NewSession { conversation, turns, first_ms: None, run: 0, ticket })
}

/// Conversations `c0`, `c1`, … without end: one request each, with its number in the body.
pub(crate) fn singles() -> Source {
    let mut next = 0_u64;
    Feed::new(move || {
        let n = next;
        next += 1;
        session(n, 1, ticket(prepared(format!("c{n}"), vec![body(format!("{{\"n\":{n}}}"))])))
    })
    .boxed()
}

/// The conversation `id` in which the user says `says`, one text per turn.
pub(crate) fn conversation(id: &str, says: &[&str]) -> Conversation {
    let turns = says.iter().map(|text| Turn { content: Content::text(*text), ..Turn::default() }).collect();
    Conversation { id: id.into(), turns, ..Conversation::default() }
}

/// `conversations` once each, their later turns built on the answers; every turn but the first waits `delay_ms`.
pub(crate) fn talks(conversations: Vec<Conversation>, format: &Arc<Format>, delay_ms: f64) -> Source {
    let format = Arc::clone(format);
    let mut next = conversations.into_iter().enumerate();
    Feed::new(move || {
        let Some((n, conversation)) = next.next() else { return Draw::Exhausted };
        let first = format.render(&conversation, 0, &History::default());
        let turns = conversation.turns.len() as u32;
        let id = Arc::clone(&conversation.id);
        let prepared = Prepared {
            first_turn: 0,
            id,
            source_session: None,
            requests: vec![Arc::new(first)],
            conversation: Some(conversation),
            sources: Vec::new(),
            marker: None,
        };
        session(n as u64, turns, ticket(prepared))
    })
    .timed(move |_, _| TurnTiming { timestamp_ms: None, delay_ms: Some(delay_ms) })
    .boxed()
}

/// A recorded schedule: per conversation and turn a timestamp or a delay, ms. Bodies tell conversation and turn.
pub(crate) fn trace(conversations: Vec<Vec<TurnTiming>>) -> Source {
    let conversations = Arc::new(conversations);
    let timings = Arc::clone(&conversations);
    let mut next = 0;
    Feed::new(move || {
        let Some(turns) = conversations.get(next) else { return Draw::Exhausted };
        let c = next;
        next += 1;
        let requests = (0..turns.len()).map(|t| body(format!("{{\"c\":{c},\"t\":{t}}}"))).collect();
        Draw::Session(NewSession {
            conversation: c as u64,
            turns: turns.len() as u32,
            first_ms: turns[0].timestamp_ms,
            run: 0,
            ticket: ticket(prepared(format!("c{c}"), requests)),
        })
    })
    .timed(move |c, t| timings[c as usize][t as usize])
    .boxed()
}
