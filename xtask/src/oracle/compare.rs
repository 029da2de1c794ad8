//! Two lists of request bodies beside each other.

use std::collections::BTreeMap;

use aiperf_tokenize::Tokenizer;
use serde_json::{Map, Value};

use super::cases::Case;

/// One request that was sent.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) conversation: String,
    pub(crate) turn: u64,
    /// Wall clock, ns.
    pub(crate) start: u64,
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
    if order(theirs) != order(ours) && case.name != "burst_gpt" {
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
    if let Some(block) = case.block
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
        if case.block.is_some() {
            measure(&mut body, tokenizer, prompts);
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
}
