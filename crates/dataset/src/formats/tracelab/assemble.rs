//! From rounds to traces: sessions in order, and which of them ran inside another.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use aiperf_config::AgentReplay;

use super::round::{Round, ToolCall};
use crate::agentic::{Agent, BlockIds, Item, Request, Trace};
use crate::identity::Identity;
use crate::{DatasetError, Place};

/// Longest id of a trace.
const LONGEST_ID: usize = 150;

/// The rounds of one session.
pub(super) struct Session {
    id: String,
    owner: Owner,
    is_codex: bool,
    place: Place,
    rounds: Vec<Round>,
    calls: Vec<ToolCall>,
}

impl Session {
    pub(super) fn new(id: String, owner: Owner, is_codex: bool, place: Place) -> Session {
        Session { id, owner, is_codex, place, rounds: Vec::new(), calls: Vec::new() }
    }

    pub(super) fn push(&mut self, round: Round, calls: Vec<ToolCall>) {
        self.rounds.push(round);
        self.calls.extend(calls);
    }

    fn span(&self) -> (f64, f64) {
        let from = self.rounds.iter().map(|round| round.at).fold(f64::INFINITY, f64::min);
        (from, self.rounds.iter().map(|round| round.end).fold(from, f64::max))
    }

    /// When other sessions may have run for this one.
    fn windows(&self, options: &AgentReplay) -> Vec<(f64, f64)> {
        if self.is_codex {
            let starts = self.calls.iter().filter(|call| call.name == "spawn_agent").map(|call| call.from);
            let ends = self.calls.iter().filter(|call| call.name == "wait_agent").map(|call| call.to);
            let window = starts.reduce(f64::min).zip(ends.reduce(f64::max));
            return window.filter(|_| options.join_codex_sessions).into_iter().collect();
        }
        if !options.join_sessions {
            return Vec::new();
        }
        let least_ms = options.min_spawn.as_secs_f64() * 1000.0;
        self.calls
            .iter()
            .filter(|call| matches!(call.name.as_str(), "Agent" | "Task") && call.took_ms >= least_ms)
            .map(|call| (call.from, call.to))
            .collect()
    }
}

/// A session, and a window of it in seconds.
type Window = (usize, (f64, f64));
/// The session and window that another session ran in.
type Inside = Option<Window>;
/// User and project.
type Owner = (Option<String>, Option<String>);

/// Makes traces of sessions, in the order of their first rounds.
pub(super) fn traces(
    mut sessions: Vec<Session>,
    options: &AgentReplay,
    block_size: u32,
    identity: &[u8; 32],
    file: &Path,
) -> Result<Vec<Trace>, DatasetError> {
    for session in &mut sessions {
        session.rounds.sort_by(|one, other| one.at.total_cmp(&other.at).then(one.index.cmp(&other.index)));
    }
    let inside = containment(&sessions, options);
    let ids = trace_ids(&sessions, file)?;
    let mut models = HashMap::new();
    let mut traces = Vec::new();
    for (number, session) in sessions.iter().enumerate() {
        if inside[number].is_some() {
            continue;
        }
        let zero = session.span().0;
        let mut next = 0;
        let mut items: Vec<(f64, Item)> = requests(session, zero, block_size, &mut next, &mut models)
            .into_iter()
            .map(|request| (request.at, Item::Request(request)))
            .collect();
        for (child, place) in inside.iter().enumerate() {
            let Some((_, (from, to))) = place.filter(|(parent, _)| *parent == number) else { continue };
            let agent = Agent {
                id: Arc::clone(&ids[child]),
                at: (from - zero).max(0.0),
                lasted: Some((to - from).max(0.0)),
                head: 0,
                requests: requests(&sessions[child], zero, block_size, &mut next, &mut models),
            };
            items.push((agent.at, Item::Agent(agent)));
        }
        // Stable: what starts an agent stands before it.
        items.sort_by(|one, other| one.0.total_cmp(&other.0));
        traces.push(Trace {
            id: Arc::clone(&ids[number]),
            block_size,
            head: 0,
            items: items.into_iter().map(|(_, item)| item).collect(),
            identity: own(identity, &ids[number]),
            file: file.to_owned(),
            place: session.place.clone(),
        });
    }
    Ok(traces)
}

/// The numbers of blocks count from 0 in each trace, so each has texts of its own.
fn own(identity: &[u8; 32], id: &str) -> [u8; 32] {
    let mut own = Identity::default();
    own.add(&serde_json::Value::from(format!("{identity:?} {id}")).to_string());
    own.finish()
}

/// Which sessions ran inside a call of another one. What ran inside such a session stays by itself.
fn containment(sessions: &[Session], options: &AgentReplay) -> Vec<Inside> {
    let mut by_owner: HashMap<&Owner, Vec<Window>> = HashMap::new();
    for (number, session) in sessions.iter().enumerate() {
        let windows = session.windows(options).into_iter().map(|window| (number, window));
        by_owner.entry(&session.owner).or_default().extend(windows);
    }
    let inside: Vec<Inside> = sessions
        .iter()
        .enumerate()
        .map(|(number, session)| {
            let (from, to) = session.span();
            let width = |window: (f64, f64)| window.1 - window.0;
            by_owner
                .get(&session.owner)?
                .iter()
                .filter(|(parent, window)| *parent != number && window.0 <= from && to <= window.1)
                .min_by(|one, other| width(one.1).total_cmp(&width(other.1)))
                .copied()
        })
        .collect();
    inside.iter().map(|place| place.filter(|(parent, _)| inside[*parent].is_none())).collect()
}

fn trace_ids(sessions: &[Session], file: &Path) -> Result<Vec<Arc<str>>, DatasetError> {
    let mut owners: HashMap<Arc<str>, &str> = HashMap::new();
    sessions
        .iter()
        .map(|session| {
            let plain = |letter: char| {
                if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' }
            };
            let id: Arc<str> = session.id.chars().take(LONGEST_ID).map(plain).collect::<String>().into();
            match owners.insert(Arc::clone(&id), &session.id) {
                None => Ok(id),
                Some(other) => Err(DatasetError::invalid(
                    file,
                    session.place.clone(),
                    "session_id",
                    format!(
                        "the sessions `{}` and `{}` would both be called `{id}`; rename one",
                        crate::json::excerpt(other),
                        crate::json::excerpt(&session.id)
                    ),
                )),
            }
        })
        .collect()
}

/// The rounds of a session as requests; block ids count on from `next` through the whole trace.
fn requests(
    session: &Session,
    zero: f64,
    block_size: u32,
    next: &mut i64,
    models: &mut HashMap<String, u32>,
) -> Vec<Request> {
    let block = u64::from(block_size.max(1));
    let mut before = BlockIds::default();
    session
        .rounds
        .iter()
        .map(|round| {
            let blocks = (round.input / block) as usize;
            let reused = ((round.prefix.min(round.input) / block) as usize).min(before.len());
            let new = (blocks - reused) as i64;
            let ids: BlockIds = before.slice(0, reused).chain(*next..*next + new).collect();
            *next += new;
            before = ids.clone();
            let count = models.len() as u32;
            Request {
                at: (round.at - zero).max(0.0),
                took: round.end - round.at,
                think: None,
                model: *models.entry(round.model.clone()).or_insert(count),
                input: round.input,
                output: round.output,
                ids,
            }
        })
        .collect()
}
