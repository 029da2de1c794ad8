//! Two lists of request bodies beside each other.

use std::collections::BTreeMap;

use aiperf_tokenize::Tokenizer;
use serde_json::{Map, Value};

use super::cases::{Case, Start, Texts};

/// One request that was sent.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) conversation: String,
    pub(crate) turn: u64,
    /// Wall clock, ns.
    pub(crate) start: u64,
    /// The same.
    pub(crate) end: u64,
    /// Where the schedule has it; only we record that. Wall clock, ns.
    pub(crate) scheduled: Option<u64>,
    pub(crate) body: Value,
}

/// A prompt that was made: its tokens.
type Prompt = Vec<u32>;

/// What differs, a line each.
pub(crate) fn compare(case: &Case, theirs: &[Request], ours: &[Request]) -> Vec<String> {
    let (theirs, ours) = (&named(case, theirs)[..], &named(case, ours)[..]);
    let mut lines = Vec::new();
    if theirs.len() != ours.len() {
        lines.push(format!("the reference sent {} request(s), we {}", theirs.len(), ours.len()));
    }
    let order = |list: &[Request]| -> Vec<String> {
        list.iter().map(|request| format!("{}#{}", request.conversation, request.turn)).collect()
    };
    // Of a schedule the plan itself is compared; a busy machine may swap two sends.
    let is_planned = case.starts.iter().any(|start| matches!(start, Start::At(_)));
    if order(theirs) != order(ours) && !is_planned {
        lines.push(format!("order: {} | {}", order(theirs).join(" "), order(ours).join(" ")));
    }
    let (mut their_prompts, mut our_prompts) = (Vec::new(), Vec::new());
    let tokenizer = Tokenizer::builtin();
    let theirs = keyed(case, theirs, &tokenizer, &mut their_prompts);
    let ours = keyed(case, ours, &tokenizer, &mut our_prompts);
    for (key, their) in &theirs {
        match ours.get(key) {
            None => lines.push(format!("{key}: not sent by us")),
            Some(our) => differences(&format!("{key} "), their, our, &mut lines),
        }
    }
    lines.extend(
        ours.keys().filter(|key| !theirs.contains_key(*key)).map(|key| format!("{key}: sent by us only")),
    );
    if let Texts::Made { block } = case.texts
        && their_prompts.len() == our_prompts.len()
    {
        for (one, other, their, our) in shared(block, &their_prompts, &our_prompts) {
            lines.push(format!("prompts {one} and {other} share {their} block(s) there and {our} here"));
        }
    }
    lines
}

/// Requests with their conversations named by the order in which they start, where the case asks for that.
fn named(case: &Case, requests: &[Request]) -> Vec<Request> {
    let mut known: Vec<String> = Vec::new();
    let mut all = requests.to_vec();
    for request in all.iter_mut().filter(|_| case.by_order) {
        let place = known.iter().position(|id| *id == request.conversation).unwrap_or_else(|| {
            known.push(request.conversation.clone());
            known.len() - 1
        });
        request.conversation = format!("conversation {place}");
    }
    all
}

/// Bodies by conversation, turn and how often it was met before; made prompts are replaced by their lengths.
fn keyed(
    case: &Case,
    requests: &[Request],
    tokenizer: &Tokenizer,
    prompts: &mut Vec<Prompt>,
) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let mut sorted: Vec<&Request> = requests.iter().collect();
    sorted.sort_by_key(|request| (&request.conversation, request.turn, request.start));
    for request in sorted {
        let mut body = request.body.clone();
        match case.texts {
            Texts::Whole => {}
            Texts::Made { .. } => measure(&mut body, tokenizer, prompts),
            Texts::Drawn => hide(&mut body),
        }
        let key = (0..).map(|nth| format!("{}#{}/{nth}", request.conversation, request.turn));
        if let Some(key) = { key }.find(|key| !all.contains_key(key)) {
            all.insert(key, body);
        }
    }
    all
}

/// Replaces the texts of a body that a run makes by their lengths in tokens.
fn measure(body: &mut Value, tokenizer: &Tokenizer, prompts: &mut Vec<Prompt>) {
    let mut replace = |text: &mut Value| {
        if let Value::String(content) = text {
            let mut tokens = Vec::new();
            tokenizer.encode(content, &mut tokens);
            *text = Value::from(format!("<{} tokens>", tokens.len()));
            prompts.push(tokens);
        }
    };
    if let Some(prompt) = body.get_mut("prompt") {
        replace(prompt);
    }
    for message in body.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
        if message["role"] == "user"
            && let Some(content) = message.get_mut("content")
        {
            replace(content);
        }
    }
}

/// Replaces what a run draws by a word.
fn hide(body: &mut Value) {
    match body {
        Value::String(text) => "drawn".clone_into(text),
        Value::Array(values) => values.iter_mut().for_each(hide),
        Value::Object(map) => {
            let drawn = ["content", "text", "prompt", "messages"];
            map.iter_mut()
                .filter(|(key, _)| drawn.contains(&key.as_str()))
                .for_each(|(_, value)| hide(value));
        }
        _ => {}
    }
}

/// Most that a busy machine is late, ms.
const LATE: f64 = 250.0;

/// Where our sends are not where the case wants them.
pub(crate) fn starts(case: &Case, ours: &[Request]) -> Vec<String> {
    if case.starts.is_empty() {
        return Vec::new();
    }
    let ms = |to: u64, from: u64| (i128::from(to) - i128::from(from)) as f64 / 1e6;
    let zero = ours.iter().filter_map(|request| request.scheduled).min();
    let mut lines = Vec::new();
    let (mut planned, mut waited) = (Vec::new(), Vec::new());
    for request in ours {
        if let (Some(at), Some(zero)) = (request.scheduled, zero) {
            planned.push(ms(at, zero));
            let late = ms(request.start, at);
            if !(-0.01..LATE).contains(&late) {
                lines.push(format!("{}#{} leaves {late} ms late", request.conversation, request.turn));
            }
        } else if let Some(before) = ours.iter().rfind(|other| {
            (&other.conversation, other.turn + 1) == (&request.conversation, request.turn)
                && other.end <= request.start
        }) {
            waited.push(ms(request.start, before.end));
        }
    }
    let mut expected = (Vec::new(), Vec::new());
    for start in case.starts {
        match start {
            Start::At(at) => expected.0.push(*at),
            Start::After(wait) => expected.1.push(*wait),
        }
    }
    fits("starts", &mut planned, &mut expected.0, 0.01, &mut lines);
    fits("waits", &mut waited, &mut expected.1, LATE, &mut lines);
    lines
}

/// Whether the numbers, sorted, are those wanted or up to `more` above them.
fn fits(what: &str, found: &mut [f64], wanted: &mut [f64], more: f64, lines: &mut Vec<String>) {
    found.sort_by(f64::total_cmp);
    wanted.sort_by(f64::total_cmp);
    let fit = |(found, wanted): (&f64, &f64)| (-0.01..more).contains(&(found - wanted));
    if found.len() != wanted.len() || !found.iter().zip(&*wanted).all(fit) {
        lines.push(format!("{what}: {found:?} instead of {wanted:?}"));
    }
}

/// Pairs of prompts that share another number of leading blocks.
fn shared(block: usize, theirs: &[Prompt], ours: &[Prompt]) -> Vec<(usize, usize, usize, usize)> {
    let count = |one: &Prompt, other: &Prompt| {
        one.iter().zip(other).take_while(|(one, other)| one == other).count() / block
    };
    let mut found = Vec::new();
    for one in 0..theirs.len().min(ours.len()) {
        for other in 0..one {
            let there = count(&theirs[one], &theirs[other]);
            let here = count(&ours[one], &ours[other]);
            if there != here {
                found.push((other, one, there, here));
            }
        }
    }
    found
}

fn differences(path: &str, their: &Value, our: &Value, lines: &mut Vec<String>) {
    match (their, our) {
        (Value::Object(their), Value::Object(our)) => objects(path, their, our, lines),
        (Value::Array(their), Value::Array(our)) if their.len() == our.len() => {
            for (index, (their, our)) in their.iter().zip(our).enumerate() {
                differences(&format!("{path}[{index}]"), their, our, lines);
            }
        }
        _ if their == our || their.is_number() && their.as_f64() == our.as_f64() => {}
        _ => lines.push(format!("{path}: {} | {}", excerpt(their), excerpt(our))),
    }
}

fn objects(path: &str, their: &Map<String, Value>, our: &Map<String, Value>, lines: &mut Vec<String>) {
    for (key, value) in their {
        match our.get(key) {
            Some(other) => differences(&format!("{path}.{key}"), value, other, lines),
            None => lines.push(format!("{path}.{key}: {} | absent", excerpt(value))),
        }
    }
    for (key, value) in our.iter().filter(|(key, _)| !their.contains_key(*key)) {
        lines.push(format!("{path}.{key}: absent | {}", excerpt(value)));
    }
}

fn excerpt(value: &Value) -> String {
    const LONGEST: usize = 120;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::cases::CASES;
    use super::*;

    #[test]
    fn what_differs_is_named_with_its_path() {
        let mut lines = Vec::new();
        let their = json!({"a": [1, {"b": 2.0}], "c": 1, "d": "x"});
        let our = json!({"a": [1, {"b": 2}], "d": "y", "e": null});
        differences("s#0 ", &their, &our, &mut lines);
        assert_eq!(lines, ["s#0 .c: 1 | absent", "s#0 .d: \"x\" | \"y\"", "s#0 .e: absent | null"]);
    }

    #[test]
    fn sharing_is_counted_in_blocks() {
        let theirs = vec![vec![1, 2, 3, 4, 5], vec![1, 2, 3, 4, 9]];
        let ours = vec![vec![7, 7, 7, 7, 7], vec![7, 7, 8, 7, 7]];
        assert_eq!(shared(2, &theirs, &ours), [(0, 1, 2, 1)]);
    }

    fn sent(conversation: &str, turn: u64, start: u64, scheduled: Option<u64>) -> Request {
        let ns = |ms: u64| (5000 + ms) * 1_000_000;
        Request {
            conversation: conversation.into(),
            turn,
            start: ns(start),
            end: ns(start + 20),
            scheduled: scheduled.map(ns),
            body: Value::Null,
        }
    }

    #[test]
    fn a_plan_that_is_another_and_a_send_before_it_are_told() {
        let case = Case { starts: &[Start::At(0.0), Start::At(50.0), Start::After(70.0)], ..CASES[0] };
        let good = [sent("a", 0, 3, Some(0)), sent("b", 0, 51, Some(50)), sent("a", 1, 95, None)];
        assert_eq!(starts(&case, &good), [""; 0]);
        let early = [sent("a", 0, 3, Some(0)), sent("b", 0, 49, Some(50)), sent("a", 1, 95, None)];
        assert_eq!(starts(&case, &early), ["b#0 leaves -1 ms late"]);
        let other = [sent("a", 0, 3, Some(0)), sent("b", 0, 51, Some(51)), sent("a", 1, 83, None)];
        assert_eq!(
            starts(&case, &other),
            ["starts: [0.0, 51.0] instead of [0.0, 50.0]", "waits: [60.0] instead of [70.0]",]
        );
    }
}
