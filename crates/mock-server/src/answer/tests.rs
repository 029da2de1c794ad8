use std::sync::Arc;

use aiperf_clock::Mono;
use serde_json::Value;

use super::*;
use crate::draw::Distribution;

const MS: u64 = 1_000_000;

fn order() -> Order<'static> {
    Order {
        kind: Kind::Chat,
        index: 0,
        fault: Fault::Ok,
        stream: true,
        include_usage: true,
        continuous_usage: false,
        limit: Some(4),
        min_tokens: 0,
        model: "mock-model",
        prompt: Prompt::Known(32),
        inputs: 1,
        received: Mono(1_000 * MS),
        http11: true,
        keep_alive: true,
    }
}

/// Everything an answer writes, with the instants at which it was asked, each the one it asked for.
fn play(order: &Order<'_>, settings: &Settings) -> (Vec<(u64, Vec<u8>)>, Next) {
    let mut answer = Answer::new(settings);
    answer.start(order, settings, &Arc::from("[0.1]"));
    let (mut writes, mut at) = (Vec::new(), order.received);
    loop {
        let mut out = Vec::new();
        let next = answer.advance(at, &mut out);
        if !out.is_empty() {
            writes.push(((at.0 - order.received.0) / MS, out));
        }
        match next {
            Next::At(due) => {
                assert!(due > at, "an answer asks for an instant that has come");
                at = due;
            }
            Next::More => {}
            end => return (writes, end),
        }
    }
}

fn text(order: &Order<'_>, settings: &Settings) -> String {
    let (writes, _) = play(order, settings);
    writes.into_iter().map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned()).collect()
}

/// Head and body of a response, chunk framing removed.
fn dechunked(wire: &str) -> (String, String) {
    let (head, mut rest) = wire.split_once("\r\n\r\n").unwrap();
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body.push_str(&after[..size]);
        rest = after[size..].strip_prefix("\r\n").unwrap();
    }
    (head.to_owned(), body)
}

fn data(body: &str) -> Vec<&str> {
    body.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).collect()
}

fn times(order: &Order<'_>, settings: &Settings) -> Vec<u64> {
    play(order, settings).0.into_iter().map(|(at, _)| at).collect()
}

fn whole(order: Order<'_>) -> Value {
    let wire = text(&Order { stream: false, ..order }, &Settings::default());
    serde_json::from_str(wire.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn streams_are_in_the_dialect_of_the_recorded_runs() {
    let recorded: Vec<Value> =
        serde_json::from_str(include_str!("../../tests/data/golden_streams.json")).unwrap();
    for case in recorded {
        let settings = Settings {
            cached_tokens: case["cached_tokens"].as_u64(),
            spec_decode: case["spec_decode"].as_bool().unwrap(),
            ..Settings::default()
        };
        let limit = case["limit"].as_u64();
        let fault = Fault::parse(case["fault"].as_str().unwrap()).unwrap();
        let order = Order {
            kind: if case["chat"] == true { Kind::Chat } else { Kind::Completions },
            index: case["index"].as_u64().unwrap(),
            fault,
            limit,
            continuous_usage: case["continuous"] == true,
            prompt: Prompt::Known(case["prompt_tokens"].as_u64().unwrap_or(0)),
            ..order()
        };
        let wire = text(&order, &settings);
        // A connection that drops has no final chunk.
        let wire = if fault == Fault::EarlyClose { wire + "0\r\n\r\n" } else { wire };
        let (_, body) = dechunked(&wire);
        let mut recorded: Vec<String> =
            case["data"].as_array().unwrap().iter().map(|d| d.as_str().unwrap().to_owned()).collect();
        if !matches!(fault, Fault::One | Fault::Empty | Fault::Tools) {
            for event in &mut recorded {
                *event = event.replace("\"finish_reason\":\"stop\"", "\"finish_reason\":\"length\"");
            }
        }
        let ours = data(&body);
        if fault == Fault::Reasoning && order.continuous_usage {
            // The recording server left reasoning out of its running counts; all else is equal.
            assert_eq!(ours.len(), recorded.len());
            assert_eq!(ours[ours.len() - 3..], recorded[recorded.len() - 3..]);
            continue;
        }
        assert_eq!(ours, recorded, "{} {}", case["case"], case["fault"]);
    }
}

#[test]
fn tokens_come_at_ttft_and_then_every_itl() {
    let settings = Settings::default();
    assert_eq!(times(&order(), &settings), [0, 20, 25, 30, 35]);
    assert_eq!(times(&Order { stream: false, ..order() }, &settings), [35]);
    let embeddings = Order { kind: Kind::Embeddings, stream: false, ..order() };
    assert_eq!(times(&embeddings, &settings), [20]);
    let one = Order { fault: Fault::One, ..order() };
    assert_eq!(times(&one, &settings), [0, 20]);
    let bundle = Order { fault: Fault::Bundle, limit: Some(9), ..order() };
    assert_eq!(times(&bundle, &settings), [0, 20, 25, 30]);
    assert_eq!(times(&Order { stream: false, ..bundle }, &settings), [30]);
    let completions = Order { kind: Kind::Completions, ..order() };
    assert_eq!(times(&completions, &settings), [0, 20, 25, 30, 35]);
}

#[test]
fn an_answer_asked_late_keeps_its_absolute_deadlines() {
    let settings = Settings::default();
    let mut answer = Answer::new(&settings);
    answer.start(&order(), &settings, &Arc::from("[]"));
    let mut out = Vec::new();
    let late = Mono(1_000 * MS + 26 * MS);
    assert_eq!(answer.advance(late, &mut out), Next::At(Mono(1_030 * MS)));
    assert_eq!(data(&dechunked(&(String::from_utf8(out).unwrap() + "0\r\n\r\n")).1).len(), 3);
    assert_eq!(answer.worst_lateness_ns, 6 * MS);
    assert_eq!((answer.first_token, answer.last_token), (Some(late), Some(late)));
}

#[test]
fn nothing_is_early_by_even_a_nanosecond() {
    let settings = Settings::default();
    let mut answer = Answer::new(&settings);
    answer.start(&order(), &settings, &Arc::from("[]"));
    answer.advance(Mono(1_000 * MS), &mut Vec::new());
    let (due, mut out) = (Mono(1_020 * MS), Vec::new());
    assert_eq!(answer.advance(due.minus(1), &mut out), Next::At(due));
    assert!(out.is_empty());
    answer.advance(due, &mut out);
    assert!(!out.is_empty());
}

#[test]
fn pauses_move_everything_after_them() {
    let settings = Settings { stall_ns: 100 * MS, ..Settings::default() };
    let with = |fault, limit| Order { fault, limit: Some(limit), ..order() };
    assert_eq!(times(&with(Fault::Stall, 4), &settings), [0, 20, 25, 130, 135]);
    assert_eq!(times(&with(Fault::Stall, 1), &settings), [0, 20, 120]);
    assert_eq!(times(&with(Fault::SlowHeaders, 2), &settings), [100, 120, 125]);
    assert_eq!(times(&Order { stream: false, ..with(Fault::Stall, 4) }, &settings), [135]);
    assert_eq!(times(&Order { stream: false, ..with(Fault::SlowHeaders, 4) }, &settings), [135]);
    let (writes, end) = play(&with(Fault::Hang, 4), &settings);
    assert_eq!((writes.len(), end), (3, Next::Never));
    assert_eq!(play(&Order { stream: false, ..with(Fault::Hang, 4) }, &settings), (vec![], Next::Never));
}

#[test]
fn times_and_lengths_depend_on_seed_and_request_only() {
    let settings = |seed| Settings {
        seed,
        ttft: Distribution::Exponential(50e6),
        itl: Distribution::LogNormal(10e6, 0.5),
        tokens: Distribution::Uniform(1.0, 50.0),
        ..Settings::default()
    };
    let run = |seed, index| play(&Order { index, limit: None, ..order() }, &settings(seed)).0;
    assert_eq!(run(1, 5), run(1, 5));
    assert_ne!(run(1, 5), run(2, 5));
    assert_ne!(run(1, 5), run(1, 6));
    // The full answer comes when the stream's last token would.
    let last = run(1, 5).last().unwrap().0;
    let order = Order { index: 5, limit: None, stream: false, ..order() };
    assert_eq!(play(&order, &settings(1)).0[0].0, last);
}

#[test]
fn the_length_is_the_limit_or_the_setting_or_the_minimum() {
    let settings = Settings { tokens: Distribution::Fixed(3.0), ..Settings::default() };
    let count = |limit, min_tokens| {
        let wire = text(&Order { limit, min_tokens, ..order() }, &settings);
        (wire.matches("hello").count(), wire.contains("\"finish_reason\":\"length\""))
    };
    assert_eq!(count(None, 0), (3, false));
    assert_eq!(count(None, 7), (7, false));
    assert_eq!(count(Some(2), 7), (2, true));
}

#[test]
fn a_share_of_answers_reasons() {
    let settings = Settings { reasoning: 30, ..Settings::default() };
    let reasons = (0..2_000)
        .filter(|index| text(&Order { index: *index, ..order() }, &settings).contains("reasoning_content"))
        .count();
    assert!((540..660).contains(&reasons), "{reasons}");
    let completions = Order { kind: Kind::Completions, ..order() };
    let all = Settings { reasoning: 100, ..Settings::default() };
    assert!(!text(&completions, &all).contains("reasoning"));
    assert!(text(&order(), &all).contains("\"completion_tokens_details\":{\"reasoning_tokens\":2}"));
}

#[test]
fn usage_waits_for_the_count_and_only_where_it_is_needed() {
    let settings = Settings::default();
    let start = |order: Order<'_>| {
        let mut answer = Answer::new(&settings);
        answer.start(&Order { prompt: Prompt::Pending, ..order }, &settings, &Arc::from("[]"));
        answer
    };
    let end = Mono(2_000 * MS);
    let mut answer = start(order());
    let mut out = Vec::new();
    assert_eq!(answer.advance(end, &mut out), Next::Count);
    assert_eq!(String::from_utf8(out.clone()).unwrap().matches("hello").count(), 4);
    assert!(answer.counted(7) && !answer.counted(7));
    assert_eq!(answer.advance(end, &mut out), Next::End(Ending::KeepAlive));
    assert!(String::from_utf8(out).unwrap().contains("\"prompt_tokens\":7"));

    let without = Order { include_usage: false, ..order() };
    assert_eq!(start(without).advance(end, &mut Vec::new()), Next::End(Ending::KeepAlive));
    let mut out = Vec::new();
    let continuous = Order { continuous_usage: true, ..order() };
    assert_eq!(start(continuous).advance(end, &mut out), Next::Count);
    assert!(!String::from_utf8(out).unwrap().contains("hello"));
    assert_eq!(start(Order { stream: false, ..order() }).advance(end, &mut Vec::new()), Next::Count);
    let off = Order { fault: Fault::NoUsage, ..order() };
    assert_eq!(start(off).advance(end, &mut Vec::new()), Next::End(Ending::KeepAlive));
}

#[test]
fn full_answers() {
    let answer = whole(order());
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["id"], "chatcmpl-0000");
    assert_eq!(answer["created"], 1_700_000_000);
    assert_eq!(answer["choices"][0]["message"]["content"], "hello hello hello hello");
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    let usage = serde_json::json!({"prompt_tokens": 32, "completion_tokens": 4, "total_tokens": 36});
    assert_eq!(answer["usage"], usage);
    let completion = whole(Order { kind: Kind::Completions, include_usage: false, ..order() });
    assert_eq!(completion["object"], "text_completion");
    assert_eq!(completion["choices"][0]["text"], "hello hello hello hello");
    assert_eq!(completion["usage"], usage);
}

#[test]
fn full_answers_with_faults() {
    let with = |fault| whole(Order { fault, ..order() });
    let choice = |fault| with(fault)["choices"][0].clone();
    assert_eq!(choice(Fault::Empty)["message"]["content"], "");
    assert_eq!(with(Fault::Empty)["usage"]["completion_tokens"], 0);
    assert_eq!(choice(Fault::One)["message"]["content"], "hello");
    assert_eq!(choice(Fault::Reasoning)["message"]["reasoning_content"], "hello hello");
    assert_eq!(choice(Fault::Reasoning)["message"]["content"], "hello hello");
    assert_eq!(choice(Fault::Refusal)["message"]["refusal"], "hello hello hello hello");
    assert_eq!(choice(Fault::Refusal)["message"]["content"], Value::Null);
    let call = &choice(Fault::Tools)["message"]["tool_calls"][0]["function"];
    assert_eq!(call["name"], "lookup");
    assert_eq!(call["arguments"], "{\"q\":\"hello\"}");
    assert_eq!(with(Fault::Tools)["usage"]["completion_tokens"], 8);
    assert_eq!(choice(Fault::NoDone)["finish_reason"], Value::Null);
    assert_eq!(with(Fault::NoUsage)["usage"], Value::Null);
    assert_eq!(with(Fault::MidstreamError)["error"]["message"], "mock engine died");
}

#[test]
fn an_answer_without_keep_alive_or_chunks_closes() {
    let settings = Settings::default();
    let old = Order { http11: false, keep_alive: false, ..order() };
    let (writes, end) = play(&old, &settings);
    assert_eq!(end, Next::End(Ending::Close));
    let wire: Vec<u8> = writes.into_iter().flat_map(|(_, bytes)| bytes).collect();
    let wire = String::from_utf8(wire).unwrap();
    assert!(!wire.contains("chunked") && wire.ends_with("data: [DONE]\n\n"), "{wire}");
    let closing = Order { keep_alive: false, ..order() };
    assert!(text(&closing, &settings).contains("Connection: close\r\n"));
    assert_eq!(play(&closing, &settings).1, Next::End(Ending::Close));
}

#[test]
fn a_reused_answer_has_nothing_of_the_one_before() {
    let settings =
        Settings { ttft: Distribution::Fixed(0.0), itl: Distribution::Fixed(0.0), ..Settings::default() };
    let faults = ["reasoning", "gzip", "bundle", "tools", "crlf", "comments", "ok"];
    let mut reused = Answer::new(&settings);
    for name in faults.into_iter().chain(["ok"]) {
        let order = Order { fault: Fault::parse(name).unwrap(), limit: Some(12), ..order() };
        reused.start(&order, &settings, &Arc::from("[]"));
        let mut out = Vec::new();
        reused.advance(order.received, &mut out);
        let fresh: Vec<u8> = play(&order, &settings).0.into_iter().flat_map(|(_, bytes)| bytes).collect();
        assert_eq!(out, fresh, "{name}");
    }
}

#[test]
fn a_long_answer_is_handed_over_in_portions() {
    let settings =
        Settings { ttft: Distribution::Fixed(0.0), itl: Distribution::Fixed(0.0), ..Settings::default() };
    let mut answer = Answer::new(&settings);
    let order = Order { limit: Some(20_000), ..order() };
    answer.start(&order, &settings, &Arc::from("[]"));
    let (mut portions, mut tokens) = (0, 0);
    loop {
        let mut out = Vec::new();
        let next = answer.advance(order.received, &mut out);
        assert!(out.len() < PORTION + 1_024);
        tokens += String::from_utf8(out).unwrap().matches("hello").count();
        portions += 1;
        if next != Next::More {
            assert_eq!(next, Next::End(Ending::KeepAlive));
            break;
        }
    }
    assert!(portions > 10);
    assert_eq!(tokens, 20_000);
}
