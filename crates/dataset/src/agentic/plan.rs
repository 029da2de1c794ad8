//! From recorded traces to conversations: which are replayed, who starts whom, and when.

use std::collections::HashSet;
use std::sync::Arc;

use aiperf_types::{BranchChild, BranchGroup, BranchPlan, BranchStart};

use super::chains::{self, Role};
use super::maker::{Call, Line};
use super::times::Times;
use super::trace::{Agent, Item, Request, Trace};
use crate::graph::Node;
use crate::open::Opening;
use crate::{DatasetError, Note, Outline, Place, TurnOutline};

/// What is asked of the replay.
pub(super) struct Options {
    delay_cap_ms: Option<f64>,
    idle_gap_cap: Option<f64>,
    think_time_only: bool,
    drop_times: bool,
    window: (Option<f64>, Option<f64>),
    max_context: Option<u64>,
    max_input: Option<u64>,
    max_output: Option<u64>,
    split_flattened: bool,
}

impl Options {
    pub(super) fn of(opening: &Opening<'_>) -> Options {
        let agents = &opening.file.agents;
        Options {
            delay_cap_ms: opening.config.inter_turn_delay_cap.map(|cap| cap.as_secs_f64() * 1000.0),
            idle_gap_cap: agents.idle_gap_cap.map(|cap| cap.as_secs_f64()),
            think_time_only: agents.think_time_only,
            drop_times: opening.file.ignore_trace_delays,
            window: if opening.context.fixed_schedule { opening.file.window } else { (None, None) },
            max_context: agents.max_context_length,
            max_input: opening.file.synthesis.max_isl,
            max_output: opening.file.synthesis.max_osl,
            split_flattened: agents.split_flattened,
        }
    }

    /// Whether long delays were dealt with.
    pub(super) fn caps_delays(&self) -> bool {
        self.delay_cap_ms.is_some() || self.idle_gap_cap.is_some() || self.drop_times
    }

    /// A wait, ms, as long as it may be. Where gaps were shortened it is not clamped again.
    fn clamped(&self, ms: f64) -> f64 {
        match self.delay_cap_ms.filter(|_| self.idle_gap_cap.is_none()) {
            Some(cap) => ms.min(cap),
            None => ms,
        }
    }

    fn keeps(&self, request: &Request) -> bool {
        self.max_input.is_none_or(|most| request.input <= most)
    }

    fn in_window(&self, request: &Request) -> bool {
        let ms = request.at * 1000.0;
        self.window.0.is_none_or(|from| from <= ms) && self.window.1.is_none_or(|to| ms <= to)
    }
}

/// What was left out or changed.
#[derive(Default)]
pub(super) struct Counts {
    too_long: u64,
    outside: u64,
    too_much_input: u64,
    empty: u64,
    orphans: u64,
    raised: u64,
    /// Requests that lie before the one that is listed before them, and where the first is.
    back: u64,
    first_back: String,
    /// Traces that were looked at.
    pub(super) traces: u64,
    pub(super) longest_delay_ms: f64,
}

impl Counts {
    pub(super) fn notes(&self) -> Vec<Note> {
        let all = [
            (self.raised, Note::OutputLengthRaised { turns: self.raised }),
            (self.outside, Note::OutsideWindow { rows: self.outside }),
            (self.too_long, Note::ContextTooLong { traces: self.too_long }),
            (self.orphans, Note::AgentsWithoutParent { agents: self.orphans }),
        ];
        let mut notes: Vec<Note> =
            all.into_iter().filter(|(count, _)| *count > 0).map(|(_, note)| note).collect();
        if self.back > 0 {
            notes.push(Note::TimesGoBack { requests: self.back, first: self.first_back.clone() });
        }
        notes
    }

    /// Counts requests that are not listed in the order of their times.
    fn order(&mut self, trace: &Trace) {
        let mut latest = f64::NEG_INFINITY;
        for (item, outer) in trace.items.iter().zip(0..) {
            let Item::Request(request) = item else { continue };
            if request.at < latest {
                if self.back == 0 {
                    self.first_back = place_of(trace, outer, None).of(&trace.file);
                }
                self.back += 1;
            }
            latest = latest.max(request.at);
        }
    }

    pub(super) fn nothing_left(&self, path: &str) -> DatasetError {
        if self.traces == 0 {
            return DatasetError::Empty(format!("{path}: there are no traces; nothing can be sent"));
        }
        DatasetError::Empty(format!(
            "{path}: nothing is left to send: of {} trace(s) {} need more context than --max-context-length, {} \
             request(s) are outside the window of the schedule, {} are longer than --synthesis-max-isl, and {} trace(s) \
             have no requests; widen the filters",
            self.traces, self.too_long, self.outside, self.too_much_input, self.empty
        ))
    }
}

/// Conversations so far.
#[derive(Default)]
pub(super) struct Planned {
    pub(super) roots: Vec<Root>,
    children: Vec<(Node, Line)>,
}

/// A drawn conversation, and its children by their place in the list of children.
pub(super) struct Root {
    outline: Outline,
    groups: Vec<(u32, BranchChild, Option<u32>)>,
    line: Line,
}

/// A child on its way.
struct Child {
    line: Line,
    /// Place in the list of the trace.
    outer: u32,
    /// When it was started, seconds.
    at: f64,
    end: f64,
    /// Its first request waits for its own time.
    keeps_offset: bool,
}

impl Planned {
    /// Plans a trace, unless it is left out.
    pub(super) fn add(
        &mut self,
        trace: Trace,
        options: &Options,
        counts: &mut Counts,
    ) -> Result<(), DatasetError> {
        counts.traces += 1;
        if options.max_context.is_some_and(|most| peak(&trace, options) > most) {
            counts.too_long += 1;
            return Ok(());
        }
        counts.order(&trace);
        let trace = Arc::new(trace);
        let mut main: Vec<(u32, Request)> = Vec::new();
        let mut agents: Vec<(u32, &Agent)> = Vec::new();
        for (item, outer) in trace.items.iter().zip(0..) {
            match item {
                Item::Agent(agent) => agents.push((outer, agent)),
                Item::Request(request) if !options.in_window(request) => counts.outside += 1,
                Item::Request(request) if !options.keeps(request) => counts.too_much_input += 1,
                Item::Request(request) => main.push((outer, request.clone())),
            }
        }
        if main.is_empty() {
            counts.empty += 1;
            return Ok(());
        }
        let (main, mut children) = split(&trace, &main, options);
        let mut seen = HashSet::new();
        for (outer, agent) in agents {
            if agent.requests.is_empty() || !main.calls.iter().any(|call| call.outer < outer) {
                counts.orphans += 1;
                continue;
            }
            if !seen.insert(Arc::clone(&agent.id)) {
                let place = place_of(&trace, outer, None);
                let rule = format!("agent `{}` occurs twice in the trace; ids must differ", agent.id);
                return Err(DatasetError::invalid(&trace.file, place, "agent_id", rule));
            }
            children.push(agent_line(&trace, outer, agent));
        }
        children.sort_by_key(|child| child.outer);
        self.take(&trace, main, children, options, counts)
    }

    fn take(
        &mut self,
        trace: &Trace,
        mut main: Line,
        mut children: Vec<Child>,
        options: &Options,
        counts: &mut Counts,
    ) -> Result<(), DatasetError> {
        for line in std::iter::once(&main).chain(children.iter().map(|child| &child.line)) {
            check_head(trace, line)?;
        }
        let starts = main.calls.iter().chain(children.iter().flat_map(|child| &child.line.calls));
        let times = Times::new(starts.map(|call| call.request.at).collect(), options.idle_gap_cap);
        count_cached(std::iter::once(&mut main).chain(children.iter_mut().map(|child| &mut child.line)));
        let mut groups = Vec::new();
        for child in children {
            let Some(after) = main.calls.iter().rposition(|call| call.outer < child.outer) else {
                counts.orphans += 1;
                continue;
            };
            let joins = main
                .calls
                .iter()
                .position(|call| call.outer > child.outer && call.request.at >= child.end)
                .map(|turn| turn as u32);
            let first = child.line.calls.first().map_or(child.at, |call| call.request.at);
            let offset = (times.replayed(first) - times.replayed(child.at)).max(0.0) * 1000.0;
            let waits = child.keeps_offset && !options.drop_times;
            let offset_ms = if waits { options.clamped(offset) } else { 0.0 };
            groups.push((
                after as u32,
                BranchChild { conversation: self.children.len() as u64, inherits: false, offset_ms },
                joins,
            ));
            let outline = outline(&child.line, &times, options, counts);
            self.children.push((Node { outline, branches: None }, child.line));
        }
        let outline = outline(&main, &times, options, counts);
        self.roots.push(Root { outline, groups, line: main });
        Ok(())
    }

    /// The conversations, drawn ones first.
    pub(super) fn finish(self) -> (Box<[Node]>, Vec<Line>) {
        let roots = self.roots.len() as u64;
        let (mut nodes, mut lines) = (Vec::new(), Vec::new());
        for Root { outline, groups, line } in self.roots {
            let groups: Vec<BranchGroup> = groups
                .into_iter()
                .map(|(after, child, joins)| BranchGroup {
                    start: BranchStart::After(after),
                    children: vec![BranchChild { conversation: child.conversation + roots, ..child }],
                    joins,
                })
                .collect();
            let plan = BranchPlan { id: Arc::clone(&line.id), groups, spine: None };
            let branches = (!plan.groups.is_empty()).then(|| Arc::new(plan));
            nodes.push(Node { outline, branches });
            lines.push(line);
        }
        for (node, line) in self.children {
            nodes.push(node);
            lines.push(line);
        }
        (nodes.into(), lines)
    }
}

/// Most context that a trace needs, tokens; the cap on answers is for the main agent.
fn peak(trace: &Trace, options: &Options) -> u64 {
    let peaks = trace.items.iter().flat_map(|item| match item {
        Item::Request(request) => vec![request.peak(options.max_output)],
        Item::Agent(agent) => agent.requests.iter().map(|request| request.peak(None)).collect(),
    });
    peaks.max().unwrap_or(0)
}

/// The main conversation of a trace, and the agents that its list has flattened.
fn split(trace: &Arc<Trace>, list: &[(u32, Request)], options: &Options) -> (Line, Vec<Child>) {
    let requests: Vec<Request> = list.iter().map(|(_, request)| request.clone()).collect();
    let split = if options.split_flattened {
        chains::split(&requests)
    } else {
        chains::Split { main: (0..requests.len()).collect(), ..chains::Split::default() }
    };
    let calls = |places: &[usize], cap: Option<u64>| -> Vec<Call> {
        places.iter().map(|at| Call::new(list[*at].1.clone(), list[*at].0, None, cap)).collect()
    };
    let head_blocks = trace.head.div_ceil(u64::from(trace.block_size.max(1))) as usize;
    // The request that the others go on from; small ones before it only stand in front.
    let founder = requests.iter().enumerate().max_by_key(|(at, request)| {
        let shares = requests.iter().filter(|other| other.ids.common(&request.ids) > 0).count();
        (shares, std::cmp::Reverse(*at))
    });
    let begins = split
        .main
        .iter()
        .position(|at| founder.is_some_and(|(found, _)| requests[*at].ids.common(&requests[found].ids) > 0))
        .unwrap_or(0);
    let mut main =
        Line::new(trace, Arc::clone(&trace.id), "weka_main", calls(&split.main, options.max_output));
    (main.head, main.founded) = (trace.head, begins);
    let children = split
        .others
        .iter()
        .enumerate()
        .map(|(number, found)| {
            let name = match found.role {
                Role::Agent => format!("fa:{number:03}"),
                Role::Helper => format!("aux:{number:03}"),
                Role::Group(group, member) => format!("wg:{group:03}_{member:03}"),
            };
            let id: Arc<str> = format!("{}::{name}", trace.id).into();
            let mut line = Line::new(trace, id, "weka_flat", calls(&found.requests, options.max_output));
            let first = found.requests[0];
            let shares = split
                .main
                .get(begins)
                .is_some_and(|main| requests[*main].ids.common(&requests[first].ids) >= head_blocks);
            line.head = if shares { trace.head } else { 0 };
            let end = found.requests.iter().map(|at| requests[*at].end()).fold(0.0, f64::max);
            Child { outer: list[first].0, at: requests[first].at, end, keeps_offset: false, line }
        })
        .collect();
    (main, children)
}

fn agent_line(trace: &Arc<Trace>, outer: u32, agent: &Agent) -> Child {
    let calls: Vec<Call> = agent
        .requests
        .iter()
        .zip(0..)
        .map(|(request, inner)| {
            // A time before that of the agent counts from it.
            let at = if request.at < agent.at { agent.at + request.at } else { request.at };
            Call::new(Request { at, ..request.clone() }, outer, Some(inner), None)
        })
        .collect();
    let end = match agent.lasted {
        Some(lasted) => agent.at + lasted,
        None => calls.iter().map(|call| call.request.end()).fold(agent.at, f64::max),
    };
    let id: Arc<str> = format!("{}::sa:{}", trace.id, agent.id).into();
    let mut line = Line::new(trace, id, "weka_subagent", calls);
    line.head = agent.head;
    Child { line, outer, at: agent.at, end, keeps_offset: true }
}

/// Tools and system prompt are whole blocks of the first prompt.
fn check_head(trace: &Trace, line: &Line) -> Result<(), DatasetError> {
    let blocks = line.head.div_ceil(u64::from(trace.block_size.max(1)));
    let Some(call) = line.calls.get(line.founded) else { return Ok(()) };
    let found = call.request.ids.len() as u64;
    if found >= blocks {
        return Ok(());
    }
    Err(DatasetError::invalid(
        &trace.file,
        place_of(trace, call.outer, call.inner),
        "hash_ids",
        format!(
            "{found} block(s), and tools and system prompt alone ({} tokens) are {blocks} of {} tokens; correct \
             tool_tokens, system_tokens or block_size",
            line.head, trace.block_size
        ),
    ))
}

/// Place of a request in the file.
pub(super) fn place_of(trace: &Trace, outer: u32, inner: Option<u32>) -> Place {
    match (&trace.place, inner) {
        (Place::Json(_), None) => Place::Json(format!("requests[{outer}]")),
        (Place::Json(_), Some(inner)) => Place::Json(format!("requests[{outer}].requests[{inner}]")),
        (place, _) => place.clone(),
    }
}

/// What an endless cache shared by the whole trace would have had of each prompt.
fn count_cached<'l>(lines: impl Iterator<Item = &'l mut Line>) {
    let mut calls: Vec<&mut Call> = lines.flat_map(|line| &mut line.calls).collect();
    calls.sort_by(|one, other| one.request.at.total_cmp(&other.request.at));
    let mut seen = HashSet::new();
    for call in calls {
        let ids = &call.request.ids;
        let cached = ids.iter().take_while(|id| seen.contains(id)).count();
        seen.extend(ids.slice(cached, ids.len()));
        call.cached = cached as u64;
    }
}

fn outline(line: &Line, times: &Times, options: &Options, counts: &mut Counts) -> Outline {
    let mut before: Option<&Request> = None;
    let mut turns = line.calls.iter().map(|call| {
        let request = &call.request;
        counts.raised += u64::from(request.output == 0);
        let delay_ms = before.replace(request).filter(|_| !options.drop_times).map(|before| {
            let gap = (times.replayed(request.at) - times.replayed(before.at) - before.took).max(0.0);
            let wait = request.think.filter(|_| options.think_time_only).unwrap_or(gap);
            options.clamped(wait.max(0.0) * 1000.0)
        });
        counts.longest_delay_ms = counts.longest_delay_ms.max(delay_ms.unwrap_or(0.0));
        let scheduled = !options.drop_times && !options.think_time_only;
        TurnOutline { timestamp_ms: scheduled.then(|| times.replayed(request.at) * 1000.0), delay_ms }
    });
    let first = turns.next().unwrap_or_default();
    Outline::new(first, turns.collect::<Vec<_>>())
}
