//! One turn: from the prepared request to the finished exchange.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use aiperf_clock::{Mono, now};
use aiperf_endpoint::{
    BodyDecoder, ReadPlan, Reader, Rendered, Reply, http_error, is_identity, redirect_error, switch_error,
};
use aiperf_types::{Body, HttpTrace, Identity, Lineage, RequestError, RequestFacts, TransportFacts};
use tokio::time::timeout;

use super::gather::Gather;
use super::ids::numbered;
use super::wire::{Ending, exchange};
use super::{Dispatch, PhaseInfo, Session, Worker};
use crate::outcome::{Exchange, Received, ReceivedBytes};
use crate::pacer::{Inbox, Returned};
use crate::prepared::{Prepared, Ticket};
use crate::schedule::{Family, Issue, SessionKey, TurnEnding};
use crate::transport::{HeadFields, errors};

/// Longest pause after a connection could not be made, before its slot is free again: a server that refuses is
/// not to be hammered by a closed loop.
const DIAL_PAUSE_MS: u64 = 50;

/// Reports the return of a turn exactly once, also when the turn is broken off, be it before it began to run.
pub(super) struct ReturnGuard {
    worker: Rc<Worker>,
    session: SessionKey,
    phase: u32,
    slot: usize,
    /// How the turn ends if it is broken off now.
    if_broken_off: TurnEnding,
    reported: bool,
}

impl ReturnGuard {
    pub(super) fn new(worker: Rc<Worker>, dispatch: &Dispatch, slot: usize) -> ReturnGuard {
        let (session, phase) = (dispatch.issue.session, dispatch.phase.serial);
        ReturnGuard { worker, session, phase, slot, if_broken_off: TurnEnding::NeverSent, reported: false }
    }

    fn report(&mut self, at: Mono, ending: TurnEnding) {
        if !std::mem::replace(&mut self.reported, true) {
            let mut tasks = self.worker.tasks.borrow_mut();
            tasks.handles[self.slot] = None;
            tasks.free.push(self.slot);
            drop(tasks);
            let inbox: &Inbox = &self.worker.inbox;
            let worker = self.worker.index;
            inbox.post(Returned { session: self.session, phase: self.phase, at, ending, worker });
        }
    }
}

impl Drop for ReturnGuard {
    fn drop(&mut self) {
        self.report(now(), self.if_broken_off);
    }
}

/// A turn that is ready to leave.
struct Ready {
    prepared: Arc<Prepared>,
    request: Arc<Rendered>,
}

pub(super) async fn run(
    worker: Rc<Worker>,
    session: Rc<Session>,
    dispatch: Dispatch,
    mut guard: ReturnGuard,
) {
    let Dispatch { mut issue, phase } = dispatch;
    let Ready { prepared, request } = match ready(&worker, &session, &mut issue, &phase).await {
        Ok(ready) => ready,
        Err(why) => {
            let at = now();
            guard.report(at, TurnEnding::Finished);
            worker.sink.accept(unbuildable(&worker, &issue, &phase, at, &why));
            return;
        }
    };
    // Whether a later turn, or a child, repeats this one.
    let goes_on = issue.forked || prepared.conversation.is_some() && !issue.last_turn;
    let request_id = worker.ids.borrow_mut().next();
    let correlation_id = session.correlation_id.borrow().clone();
    let fields = HeadFields {
        request_id: &request_id,
        correlation_id: &correlation_id,
        source_session: prepared.source_session.as_deref(),
        streaming: request.streaming,
        body_len: request.body.len(),
    };
    let settings = &worker.settings;
    let mut head = worker.heads.borrow_mut().pop().unwrap_or_default();
    settings.head.write(fields, &mut head);
    let mut trace = HttpTrace {
        facts: settings.want_facts.then(|| Box::new(TransportFacts::default())),
        ..HttpTrace::default()
    };
    let read_plan = ReadPlan { keep_history: goes_on, ..settings.read_plan };
    let underway = &worker.control.underway;
    let mut gather = Gather::new(&read_plan, underway);

    let start = now();
    worker.tally.borrow_mut().sent(&issue.plan, start);
    underway.sent();
    guard.if_broken_off = TurnEnding::Cut;
    let cancel = issue.cancel.then_some(phase.cancel_delay);
    let wire = exchange(&worker, &head, &request, cancel, &mut trace, &mut gather);
    let ending = match settings.request_timeout {
        None => wire.await,
        Some(limit) => match timeout(limit, wire).await {
            Ok(ending) => ending,
            Err(_) => Ending::timed_out(limit, settings, &trace, cancel.is_some()),
        },
    };
    let end = now();
    worker.heads.borrow_mut().push(head);
    let dial_failed = ending.failure.is_some() && trace.send_start.is_none();
    let client_delayed = worker.was_late(start, end);
    if client_delayed {
        worker.tally.borrow_mut().delayed_requests += 1;
    }
    let answer = Answered::of(ending, gather, &mut trace);
    let mut exchange = Exchange {
        identity: identity(&worker, &session, &issue, &phase, &prepared, request_id),
        plan: issue.plan,
        start,
        headers: answer.headers,
        end,
        trace,
        status: answer.status,
        request: RequestFacts {
            body: if settings.want_body { request.body.clone() } else { Body::default() },
            texts: if settings.want_texts { request.texts.clone() } else { Vec::new() },
            max_tokens: request.max_tokens,
            num_images: request.num_images,
            audio_seconds: request.audio_seconds,
            headers: settings.want_headers.then(|| settings.head.shown(fields)),
            marker: prepared.marker.clone(),
        },
        template_input: if settings.want_template_input {
            request.messages_json().map(|json| (json, request.tools_json().map(str::to_owned)))
        } else {
            None
        },
        received: answer.received,
        failure: answer.failure,
        cancelled_at: answer.cancelled_at,
        client_delayed,
    };
    if issue.last_turn && !issue.forked {
        worker.forget(issue.session);
    } else if prepared.conversation.is_none() && issue.turn as usize + 1 >= prepared.end() {
        // The next turn brings its own request.
        *session.prepared.borrow_mut() = None;
    }
    if !dial_failed {
        worker.dial_failures.set(0);
        guard.report(end, TurnEnding::Finished);
    }
    if goes_on {
        // The pacer runs after this task has given way, so the history is complete before the next turn.
        remember(read_plan, &session, &request, &mut exchange);
    }
    worker.sink.accept(exchange);
    if dial_failed {
        guard.if_broken_off = TurnEnding::Finished;
        dial_pause(&worker).await;
        guard.report(now(), TurnEnding::Finished);
    }
}

fn identity(
    worker: &Worker,
    session: &Session,
    issue: &Issue<Ticket>,
    phase: &PhaseInfo,
    prepared: &Prepared,
    request_id: [u8; 36],
) -> Identity {
    Identity {
        number: issue.number,
        request_id,
        correlation_id: session.correlation_id.borrow().clone(),
        conversation_id: Arc::clone(&prepared.id),
        turn_index: issue.turn,
        phase: phase.kind,
        phase_index: phase.index,
        worker: worker.index,
        lineage: session.lineage.borrow().clone(),
        source: prepared.sources.get(issue.turn as usize).cloned().flatten(),
    }
}

/// Waits for the conversation and makes the request of this turn.
async fn ready(
    worker: &Worker,
    session: &Session,
    issue: &mut Issue<Ticket>,
    phase: &PhaseInfo,
) -> Result<Ready, Arc<str>> {
    if let Some(mut ticket) = issue.ticket.take() {
        if !ticket.is_ready() && !issue.plan.initial_fill {
            worker.tally.borrow_mut().late_prompts += 1;
        }
        let prepared = ticket.take().await?;
        if issue.turn > 0 {
            *session.prepared.borrow_mut() = Some(prepared);
            return request_of(worker, session, issue);
        }
        *session.correlation_id.borrow_mut() = if let Some(family) = &issue.family {
            *session.lineage.borrow_mut() = Some(Arc::new(lineage(family, phase)));
            correlation_id(family, phase)
        } else if phase.fixed_schedule {
            scheduled_id(&prepared.id)
        } else {
            let id = worker.ids.borrow_mut().next();
            // Hexadecimal digits and dashes only.
            std::str::from_utf8(&id).unwrap_or_default().into()
        };
        *session.prepared.borrow_mut() = Some(prepared);
    }
    request_of(worker, session, issue)
}

fn request_of(worker: &Worker, session: &Session, issue: &Issue<Ticket>) -> Result<Ready, Arc<str>> {
    let Some(prepared) = session.prepared.borrow().clone() else {
        return Err("an earlier turn of the conversation could not be built".into());
    };
    let turn = issue.turn as usize;
    let known = turn.checked_sub(prepared.first_turn as usize).and_then(|at| prepared.requests.get(at));
    let request = match (known, &prepared.conversation) {
        (Some(request), _) => Arc::clone(request),
        (None, Some(conversation)) => {
            Arc::new(worker.settings.format.render(conversation, turn, &session.history.borrow()))
        }
        (None, None) => return Err("the conversation has no such turn".into()),
    };
    Ok(Ready { prepared, request })
}

fn scheduled_id(conversation: &str) -> Arc<str> {
    format!("fixed-schedule-{conversation}").into()
}

/// The correlation id of a run with relatives, on whichever worker it is asked for.
fn correlation_id(family: &Family, phase: &PhaseInfo) -> Arc<str> {
    match &family.drawn {
        Some(conversation) if phase.fixed_schedule => scheduled_id(conversation),
        _ => {
            let id = numbered(&phase.family_key, family.number);
            // Hexadecimal digits and dashes only.
            std::str::from_utf8(&id).unwrap_or_default().into()
        }
    }
}

fn lineage(family: &Family, phase: &PhaseInfo) -> Lineage {
    Lineage {
        depth: family.depth,
        turns: family.turns,
        parent: family.parent.as_ref().map(|parent| correlation_id(parent, phase)),
        root: correlation_id(family.root(), phase),
    }
}

/// Holds the slot of a request whose connection could not be made, longer after each failure in a row.
async fn dial_pause(worker: &Worker) {
    let failures = worker.dial_failures.get().saturating_add(1);
    worker.dial_failures.set(failures);
    let pause = Duration::from_millis((1 << failures.min(10)).min(DIAL_PAUSE_MS));
    worker.tally.borrow_mut().dial_failed(pause);
    tokio::time::sleep(pause).await;
}

/// Reads the answer for the sake of the next turn.
fn remember(read_plan: ReadPlan, session: &Session, request: &Rendered, exchange: &mut Exchange) {
    let mut history = session.history.borrow_mut();
    history.push_turn(request);
    if exchange.failure.is_some() {
        return;
    }
    if let Received::Bytes(mut bytes) = std::mem::take(&mut exchange.received) {
        if !bytes.content_encoding.is_empty() {
            // Compressed although nobody asked for it, which the record is to tell: only the reply is read here.
            if let Some(reply) = encoded_reply(read_plan, &bytes, exchange.end) {
                history.push_answer(&reply);
            }
            exchange.received = Received::Bytes(bytes);
            return;
        }
        let mut reader = bytes.reader.take().unwrap_or_else(|| Reader::new(&read_plan, &bytes.content_type));
        bytes.each_read(|bytes, at| reader.push(bytes, at));
        let reading = reader.finish(exchange.end);
        if reading.error.is_none()
            && let Some(reply) = &reading.reply
        {
            history.push_answer(reply);
        }
        exchange.received = Received::Read(Box::new(reading));
    }
}

/// The reply in a body with a content coding, where it can be read.
fn encoded_reply(read_plan: ReadPlan, bytes: &ReceivedBytes, end: Mono) -> Option<Reply> {
    let mut decoder = BodyDecoder::new(&bytes.content_encoding);
    if decoder.is_none() && !is_identity(&bytes.content_encoding) {
        return None;
    }
    let mut reader = Reader::new(&read_plan, &bytes.content_type);
    let mut plain = Vec::new();
    let mut intact = true;
    bytes.each_read(|bytes, at| match &mut decoder {
        None => reader.push(bytes, at),
        Some(decoder) => {
            plain.clear();
            intact = intact && decoder.decode(bytes, &mut plain).is_ok();
            reader.push(&plain, at);
        }
    });
    if intact { reader.finish(end).reply } else { None }
}

/// A turn whose request does not exist is still one record.
fn unbuildable(worker: &Worker, issue: &Issue<Ticket>, phase: &PhaseInfo, at: Mono, why: &str) -> Exchange {
    Exchange {
        identity: Identity {
            number: issue.number,
            request_id: worker.ids.borrow_mut().next(),
            correlation_id: Arc::from(""),
            conversation_id: Arc::from(""),
            turn_index: issue.turn,
            phase: phase.kind,
            phase_index: phase.index,
            worker: worker.index,
            lineage: None,
            source: None,
        },
        plan: issue.plan,
        start: at,
        headers: None,
        end: at,
        trace: HttpTrace::default(),
        status: None,
        request: RequestFacts::default(),
        template_input: None,
        received: Received::Nothing,
        failure: Some(errors::unbuildable(why)),
        cancelled_at: None,
        client_delayed: false,
    }
}

/// What is known of an answer when the wire is quiet.
struct Answered {
    status: Option<u16>,
    headers: Option<Mono>,
    received: Received,
    failure: Option<RequestError>,
    cancelled_at: Option<Mono>,
}

impl Answered {
    fn of(ending: Ending, gather: Gather<'_>, trace: &mut HttpTrace) -> Answered {
        let Gather { head, headers_at, bytes, too_large, .. } = gather;
        let Ending { mut failure, cancelled_at } = ending;
        let Some(mut head) = head else {
            return Answered {
                status: None,
                headers: None,
                received: Received::Nothing,
                failure,
                cancelled_at,
            };
        };
        let success = (200..300).contains(&head.status);
        let mut received = Received::Nothing;
        match head.status {
            200..=299 => received = Received::Bytes(Box::new(bytes)),
            101 => failure = failure.or_else(|| Some(switch_error(&head.reason))),
            status @ 300..=399 => {
                failure.get_or_insert_with(|| redirect_error(status, &head.reason, head.location.as_deref()));
            }
            // A failed status explains itself; what cut its body short does not matter.
            status if cancelled_at.is_none() => {
                failure = Some(http_error(status, &head.reason, &bytes.data, head.retry_after.as_deref()));
            }
            _ => {}
        }
        if too_large {
            failure.get_or_insert_with(|| errors::payload("The answer is larger than 512 MiB"));
        }
        if let Some(facts) = &mut trace.facts {
            facts.reason = std::mem::take(&mut head.reason);
            facts.response_headers = std::mem::take(&mut head.all);
        }
        Answered {
            status: Some(head.status),
            headers: headers_at.filter(|_| success),
            received,
            failure,
            cancelled_at,
        }
    }
}
