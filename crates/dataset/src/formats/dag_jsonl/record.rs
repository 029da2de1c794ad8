//! One line of a graph: a conversation with its turns, checked as far as it can be by itself.

use std::collections::HashSet;

use aiperf_types::{Content, ContextMode, ThinkTime, Turn};

use crate::json::{self, Fault, Field};

/// A conversation, without its texts.
pub(super) struct Record {
    pub(super) id: String,
    pub(super) mode: ContextMode,
    pub(super) turns: Vec<TurnShape>,
    /// Children that start before the first turn.
    pub(super) before: Vec<String>,
    /// Children of a conversation that sends nothing.
    pub(super) orchestrator: Option<Orchestrator>,
}

/// What a turn is besides its text.
pub(super) struct TurnShape {
    pub(super) delay_ms: f64,
    pub(super) forks: Vec<ForkEdge>,
    pub(super) spawns: Vec<SpawnGroup>,
    /// Index of the first message with the role `system`.
    pub(super) system_at: Option<usize>,
    /// Another one after it.
    pub(super) system_again: bool,
}

pub(super) struct ForkEdge {
    pub(super) child: String,
    pub(super) background: bool,
}

pub(super) struct SpawnGroup {
    pub(super) children: Vec<String>,
    /// The turn that waits for them; none after the last turn.
    pub(super) joins: Option<u32>,
}

/// Rounds of children.
pub(super) struct Orchestrator {
    pub(super) rounds: Vec<Round>,
    /// It starts its children and waits for none.
    pub(super) once: bool,
}

pub(super) struct Round {
    pub(super) children: Vec<String>,
    pub(super) think: Option<ThinkTime>,
}

/// Most rounds that a number may ask for: more would fill the memory.
const MOST_ROUNDS: i64 = 100_000;

const KEYS: [&str; 11] = [
    "session_id",
    "turns",
    "context_mode",
    "pre_session_spawns",
    "orchestrator",
    "spawns",
    "rounds",
    "think_time_ms",
    "think_time_sigma",
    "think_time_min_ms",
    "think_time_max_ms",
];

const TURN_KEYS: [&str; 8] =
    ["messages", "model", "max_tokens", "tools", "extra", "delay", "forks", "spawns"];

/// Takes a line apart and checks it.
pub(super) fn parse(text: &str, cap_ms: f64) -> Result<Record, Fault> {
    let [id, turns, mode, before, orchestrator, spawns, rounds, think, sigma, least, most] =
        json::strict(text, &KEYS)?;
    let id = required_name("session_id", id)?;
    within_session(&id.clone(), || {
        let turns = turns.map(|turns| json::list("turns", turns)).transpose()?.unwrap_or_default();
        let before = before.map(|list| names("pre_session_spawns", list)).transpose()?.unwrap_or_default();
        distinct("pre_session_spawns", &before)?;
        let mode = mode.map(context_mode).transpose()?.unwrap_or_default();
        let is_orchestrator = orchestrator.map(|flag| json::boolean("orchestrator", flag)).transpose()?;
        let given = [
            ("spawns", spawns),
            ("rounds", rounds),
            ("think_time_ms", think),
            ("think_time_sigma", sigma),
            ("think_time_min_ms", least),
            ("think_time_max_ms", most),
        ];
        if is_orchestrator == Some(true) {
            if !turns.is_empty() {
                return Err(Fault::new("turns", "must be empty: an orchestrator sends nothing itself"));
            }
            if !before.is_empty() {
                return Err(Fault::new(
                    "pre_session_spawns",
                    "does not go with `orchestrator`; name the children in `spawns`",
                ));
            }
            let think = Think::of(think, sigma, least, most, rounds.is_some(), cap_ms)?;
            let orchestrator = Some(orchestrated(spawns, rounds, think.as_ref())?);
            return Ok(Record { id, mode, turns: Vec::new(), before, orchestrator });
        }
        if let Some((key, _)) = given.iter().find(|(_, value)| value.is_some()) {
            return Err(Fault::new(*key, "goes with \"orchestrator\": true only"));
        }
        if turns.is_empty() {
            return Err(Fault::new("turns", "must not be empty"));
        }
        let count = turns.len() as u32;
        let turns = turns
            .into_iter()
            .zip(0..count)
            .map(|(turn, number)| {
                turn_shape(turn, number, count, cap_ms).map_err(|fault| in_turn(fault, number))
            })
            .collect::<Result<_, _>>()?;
        Ok(Record { id, mode, turns, before, orchestrator: None })
    })
}

/// Names the session in a fault.
pub(super) fn within_session<T>(id: &str, check: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    check()
        .map_err(|fault| Fault { rule: format!("{} (session `{}`)", fault.rule, json::excerpt(id)), ..fault })
}

/// Names the turn in a fault.
pub(super) fn in_turn(fault: Fault, turn: u32) -> Fault {
    fault.within(format!("turns[{turn}]"))
}

fn required_name(key: &'static str, field: Field<'_>) -> Result<String, Fault> {
    let text = field.ok_or_else(|| Fault::new(key, "is missing"))?;
    let name = json::string(key, text)?;
    if name.is_empty() { Err(Fault::new(key, "must not be empty")) } else { Ok(name.into_owned()) }
}

fn names(key: &'static str, text: &str) -> Result<Vec<String>, Fault> {
    json::list(key, text)?.into_iter().map(|name| required_name(key, Some(name))).collect()
}

fn distinct(key: &'static str, names: &[String]) -> Result<(), Fault> {
    let mut seen = HashSet::new();
    match names.iter().find(|name| !seen.insert(name.as_str())) {
        None => Ok(()),
        Some(twice) => Err(Fault::new(key, format!("names `{}` twice", json::excerpt(twice)))),
    }
}

fn context_mode(text: &str) -> Result<ContextMode, Fault> {
    match json::string("context_mode", text)?.as_ref() {
        "deltas_without_responses" => Ok(ContextMode::DeltasWithoutResponses),
        "deltas_with_responses" => Ok(ContextMode::DeltasWithResponses),
        "message_array_with_responses" => Ok(ContextMode::MessageArrayWithResponses),
        _ => Err(Fault::new(
            "context_mode",
            "must be deltas_without_responses, deltas_with_responses or message_array_with_responses",
        )),
    }
}

fn turn_shape(text: &str, number: u32, count: u32, cap_ms: f64) -> Result<TurnShape, Fault> {
    let [messages, model, max_tokens, tools, extra, delay, forks, spawns] = json::strict(text, &TURN_KEYS)?;
    let messages = messages.ok_or_else(|| Fault::new("messages", "is missing"))?;
    let messages = json::list("messages", messages)?;
    if messages.is_empty() {
        return Err(Fault::new("messages", "must not be empty"));
    }
    let mut systems = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let fault = |rule: String| Fault::new(format!("messages[{index}]"), rule);
        if !message.starts_with('{') {
            return Err(fault(format!("expected an object, found {}", json::kind(message))));
        }
        let [role] = json::object(message, &["role"])?;
        let role = role.ok_or_else(|| fault("`role` is missing".into()))?;
        if json::string("role", role).map_err(|_| fault("`role` must be a string".into()))? == "system" {
            systems.push(index);
        }
    }
    if let Some(model) = model {
        required_name("model", Some(model))?;
    }
    if let Some(limit) = max_tokens {
        let limit = json::integer("max_tokens", limit)?;
        if limit < 1 {
            return Err(Fault::new("max_tokens", format!("must be 1 or more, is {limit}")));
        }
    }
    if let Some(tools) = tools {
        let tools = json::list("tools", tools)?;
        if tools.iter().any(|tool| !tool.starts_with('{')) {
            return Err(Fault::new("tools", "must be a list of objects"));
        }
    }
    if let Some(extra) = extra {
        json::map("extra", extra)?;
    }
    let delay_ms = delay.map(|delay| pause("delay", delay)).transpose()?.unwrap_or(0.0).min(cap_ms);
    let forks = forks.map(|forks| fork_edges(forks, number, count)).transpose()?.unwrap_or_default();
    let spawns = spawns.map(|spawns| spawn_groups(spawns, number, count)).transpose()?.unwrap_or_default();
    let all: Vec<String> = spawns.iter().flat_map(|group| group.children.iter().cloned()).collect();
    distinct("spawns", &all)?;
    Ok(TurnShape {
        delay_ms,
        forks,
        spawns,
        system_at: systems.first().copied(),
        system_again: systems.len() > 1,
    })
}

/// A time of 0 or more, ms.
fn pause(key: &'static str, text: &str) -> Result<f64, Fault> {
    let ms = json::number(key, text)?;
    if ms >= 0.0 && ms.is_finite() {
        Ok(ms)
    } else {
        Err(Fault::new(key, format!("must be 0 or more milliseconds, is {ms}")))
    }
}

fn fork_edges(text: &str, number: u32, count: u32) -> Result<Vec<ForkEdge>, Fault> {
    let edges = json::list("forks", text)?
        .into_iter()
        .map(|edge| {
            if !edge.starts_with('{') {
                return Ok(ForkEdge { child: required_name("forks", Some(edge))?, background: false });
            }
            let [child, background] = json::strict(edge, &["child", "background"])?;
            let background = background.map(|flag| json::boolean("background", flag)).transpose()?;
            Ok(ForkEdge { child: required_name("child", child)?, background: background.unwrap_or(false) })
        })
        .collect::<Result<Vec<_>, Fault>>()?;
    let all: Vec<String> = edges.iter().map(|edge| edge.child.clone()).collect();
    distinct("forks", &all)?;
    match edges.iter().find(|edge| !edge.background && number + 1 < count) {
        None => Ok(edges),
        Some(edge) => Err(Fault::new(
            "forks",
            format!(
                "`{}` goes on in place of its parent, so it must be on the last turn; move it there, or write \
                 {{\"child\": …, \"background\": true}}",
                json::excerpt(&edge.child)
            ),
        )),
    }
}

fn spawn_groups(text: &str, number: u32, count: u32) -> Result<Vec<SpawnGroup>, Fault> {
    let next = Some(number + 1).filter(|next| *next < count);
    let mut groups: Vec<SpawnGroup> = Vec::new();
    // Names that follow each other go together.
    let mut open = false;
    for spawn in json::list("spawns", text)? {
        if spawn.starts_with('{') {
            let [children, join_at] = json::strict(spawn, &["children", "join_at"])?;
            let children = children.ok_or_else(|| Fault::new("children", "is missing"))?;
            let children = names("children", children)?;
            if children.is_empty() {
                return Err(Fault::new("children", "must not be empty"));
            }
            let join_at = join_at.map(|turn| json::integer("join_at", turn)).transpose()?;
            if let Some(turn) = join_at.filter(|turn| *turn <= i64::from(number) || *turn >= i64::from(count))
            {
                let rule =
                    format!("must name a later turn of the same conversation ({count} turns), is {turn}");
                return Err(Fault::new("join_at", rule));
            }
            groups.push(SpawnGroup { children, joins: join_at.map(|turn| turn as u32).or(next) });
            open = false;
        } else {
            let child = required_name("spawns", Some(spawn))?;
            match groups.last_mut().filter(|_| open) {
                Some(group) => group.children.push(child),
                None => groups.push(SpawnGroup { children: vec![child], joins: next }),
            }
            open = true;
        }
    }
    Ok(groups)
}

/// The pauses of an orchestrator.
struct Think {
    time: ThinkTime,
    cap_ms: f64,
}

impl Think {
    fn of(
        think: Field<'_>,
        sigma: Field<'_>,
        least: Field<'_>,
        most: Field<'_>,
        has_rounds: bool,
        cap_ms: f64,
    ) -> Result<Option<Think>, Fault> {
        let median_ms = think.map(|text| pause("think_time_ms", text)).transpose()?;
        let sigma = sigma.map(|text| json::number("think_time_sigma", text)).transpose()?;
        if let Some(sigma) = sigma.filter(|sigma| !(*sigma > 0.0 && *sigma <= 10.0)) {
            return Err(Fault::new(
                "think_time_sigma",
                format!("must be above 0 and at most 10, is {sigma}"),
            ));
        }
        let least = least.map(|text| pause("think_time_min_ms", text)).transpose()?;
        let most = most.map(|text| pause("think_time_max_ms", text)).transpose()?;
        if sigma.is_some() && median_ms.is_none() {
            return Err(Fault::new("think_time_sigma", "needs `think_time_ms`, the median"));
        }
        for (key, bound) in [("think_time_min_ms", least), ("think_time_max_ms", most)] {
            if bound.is_some() && sigma.is_none() {
                return Err(Fault::new(key, "needs `think_time_sigma`: a fixed pause has no bounds"));
            }
        }
        if let (Some(least), Some(most)) = (least, most)
            && least > most
        {
            return Err(Fault::new(
                "think_time_min_ms",
                format!("{least} is above `think_time_max_ms` {most}"),
            ));
        }
        let Some(median_ms) = median_ms else { return Ok(None) };
        if !has_rounds {
            return Err(Fault::new("think_time_ms", "needs `rounds`: it is the pause before each of them"));
        }
        let time = ThinkTime {
            median_ms,
            sigma: sigma.unwrap_or(0.0),
            min_ms: least.unwrap_or(0.0).min(cap_ms),
            max_ms: most.unwrap_or(f64::INFINITY).min(cap_ms),
        };
        Ok(Some(Think { time, cap_ms }))
    }
}

fn orchestrated(spawns: Field<'_>, rounds: Field<'_>, think: Option<&Think>) -> Result<Orchestrator, Fault> {
    let spawns = spawns.map(|list| names("spawns", list)).transpose()?.unwrap_or_default();
    distinct("spawns", &spawns)?;
    let default_think = think.map(|think| think.time);
    let Some(rounds) = rounds else {
        if spawns.is_empty() {
            return Err(Fault::new("spawns", "an orchestrator needs `spawns` or `rounds`"));
        }
        return Ok(Orchestrator { rounds: vec![Round { children: spawns, think: None }], once: true });
    };
    if !rounds.starts_with('[') {
        let count = json::integer("rounds", rounds)?;
        if !(1..=MOST_ROUNDS).contains(&count) {
            return Err(Fault::new("rounds", format!("must be 1 to {MOST_ROUNDS}, is {count}")));
        }
        if spawns.is_empty() {
            return Err(Fault::new("spawns", "is missing: the children of each round"));
        }
        let round = || Round { children: spawns.clone(), think: default_think };
        return Ok(Orchestrator { rounds: (0..count).map(|_| round()).collect(), once: false });
    }
    if !spawns.is_empty() {
        return Err(Fault::new(
            "spawns",
            "does not go with a list of `rounds`, which name their own children",
        ));
    }
    let rounds = json::list("rounds", rounds)?
        .into_iter()
        .enumerate()
        .map(|(number, round)| {
            let round = || -> Result<Round, Fault> {
                let [children, own] = json::strict(round, &["spawns", "think_time_ms"])?;
                let children = children.ok_or_else(|| Fault::new("spawns", "is missing"))?;
                let children = names("spawns", children)?;
                if children.is_empty() {
                    return Err(Fault::new("spawns", "must not be empty"));
                }
                let own = own.map(|text| pause("think_time_ms", text)).transpose()?;
                let cap_ms = think.map_or(f64::INFINITY, |think| think.cap_ms);
                let think = match (own, default_think) {
                    (None, default) => default,
                    (Some(median_ms), Some(default)) => Some(ThinkTime { median_ms, ..default }),
                    (Some(median_ms), None) => {
                        Some(ThinkTime { median_ms, sigma: 0.0, min_ms: 0.0, max_ms: cap_ms })
                    }
                };
                Ok(Round { children, think })
            };
            round().map_err(|fault| fault.within(format!("rounds[{number}]")))
        })
        .collect::<Result<Vec<_>, Fault>>()?;
    if rounds.is_empty() {
        return Err(Fault::new("rounds", "must not be empty"));
    }
    let all: Vec<String> = rounds.iter().flat_map(|round| round.children.iter().cloned()).collect();
    distinct("rounds", &all)?;
    Ok(Orchestrator { rounds, once: false })
}

/// The turns of a line that was checked before.
pub(super) fn turns(text: &str) -> Result<Vec<Turn>, Fault> {
    let [turns] = json::object(text, &["turns"])?;
    let turns = turns.map(|turns| json::list("turns", turns)).transpose()?.unwrap_or_default();
    turns.into_iter().map(turn).collect()
}

fn turn(text: &str) -> Result<Turn, Fault> {
    let [messages, model, max_tokens, tools, extra] =
        json::object(text, &["messages", "model", "max_tokens", "tools", "extra"])?;
    let messages = json::list("messages", messages.unwrap_or("[]"))?;
    Ok(Turn {
        model: model
            .map(|model| json::string("model", model))
            .transpose()?
            .map(|model| model.as_ref().into()),
        max_tokens: max_tokens
            .map(|limit| json::integer("max_tokens", limit))
            .transpose()?
            .map(|n| n.max(1) as u64),
        content: Content::Messages {
            messages: messages
                .into_iter()
                .map(|text| json::raw("messages", text))
                .collect::<Result<_, _>>()?,
            tools: tools.map(|tools| json::raw("tools", tools)).transpose()?,
        },
        extra_body: extra.map(|extra| json::map("extra", extra)).transpose()?,
        ..Turn::default()
    })
}
