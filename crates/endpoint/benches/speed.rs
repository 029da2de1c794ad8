//! What a request costs here: `cargo bench -p aiperf-endpoint`. Prints one line per figure.

#![expect(clippy::print_stdout, reason = "figures for a person")]

use std::hint::black_box;

use aiperf_clock::{Mono, now};
use aiperf_config::{EndpointConfig, EndpointKind, Target};
use aiperf_endpoint::{Format, History, ReadPlan, Reader};
use aiperf_types::{Content, Conversation, Turn};

/// The best round's time of one call, ns: other work on the machine only ever adds.
fn time(calls: u32, mut call: impl FnMut()) -> f64 {
    let rounds = (0..51).map(|_| {
        let start = now();
        for _ in 0..calls {
            call();
        }
        now().since(start) as f64 / f64::from(calls)
    });
    rounds.fold(f64::INFINITY, f64::min)
}

fn stream(tokens: usize) -> Vec<String> {
    let chunk = |delta: &str, finish: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-0000\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\
             \"model\":\"mock-model\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let mut events = vec![chunk("{\"role\":\"assistant\",\"content\":\"\"}", "null")];
    events.extend((0..tokens).map(|_| chunk("{\"content\":\" hello\"}", "null")));
    events.push(chunk("{}", "\"stop\""));
    events.push(
        "data: {\"id\":\"chatcmpl-0000\",\"object\":\"chat.completion.chunk\",\"choices\":[],\"usage\":\
         {\"prompt_tokens\":32,\"completion_tokens\":100,\"total_tokens\":132}}\n\n"
            .to_owned(),
    );
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn read(plan: ReadPlan, content_type: &str, reads: &[String]) {
    let mut reader = Reader::new(&plan, content_type);
    for (index, read) in reads.iter().enumerate() {
        reader.push(read.as_bytes(), Mono(1_000_000_000 + index as u64 * 9_731_000));
    }
    black_box(reader.finish(Mono(5_000_000_000)));
}

fn main() {
    let plan = ReadPlan::new(EndpointKind::Chat, true);
    let events = stream(100);
    let count = events.len() as f64;
    let each = time(200, || read(plan, "text/event-stream", &events));
    println!("stream, one event per read: {:.0} ns/event, {:.2} us for 100 tokens", each / count, each / 1e3);
    let joined = vec![events.concat()];
    let each = time(200, || read(plan, "text/event-stream", &joined));
    println!("stream, all in one read:    {:.0} ns/event, {:.2} us for 100 tokens", each / count, each / 1e3);
    let vllm: Vec<String> = events
        .iter()
        .map(|event| {
            event.replace(
                "\"finish_reason\":null",
                "\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null",
            )
        })
        .collect();
    let each = time(200, || read(plan, "text/event-stream", &vllm));
    println!("stream, more keys:          {:.0} ns/event", each / count);
    let mixed: Vec<String> = events
        .iter()
        .enumerate()
        .map(|(index, event)| event.replace("1700000000", &(1_700_000_000 + index).to_string()))
        .collect();
    let each = time(200, || read(plan, "text/event-stream", &mixed));
    println!("stream, no two chunks alike: {:.0} ns/event", each / count);

    let body = vec![format!(
        "{{\"id\": \"chatcmpl-0000\", \"object\": \"chat.completion\", \"created\": 1700000000, \"model\": \
         \"mock-model\", \"choices\": [{{\"index\": 0, \"message\": {{\"role\": \"assistant\", \"content\": \
         \"{}\"}}, \"finish_reason\": \"stop\"}}], \"usage\": {{\"prompt_tokens\": 64, \"completion_tokens\": 100, \
         \"total_tokens\": 164}}}}",
        " hello".repeat(100)
    )];
    let whole = ReadPlan::new(EndpointKind::Chat, false);
    println!(
        "whole body, 100 tokens:     {:.2} us",
        time(2000, || read(whole, "application/json", &body)) / 1e3
    );
    let numbers = vec!["-0.0123456789"; 1536].join(",");
    let vectors = vec![format!(
        "{{\"object\":\"list\",\"data\":[{{\"object\":\"embedding\",\"index\":0,\"embedding\":[{numbers}]}}],\
         \"usage\":{{\"prompt_tokens\":8,\"total_tokens\":8}}}}"
    )];
    let embeddings = ReadPlan::new(EndpointKind::Embeddings, false);
    println!(
        "embedding of 1536 numbers:  {:.2} us",
        time(200, || read(embeddings, "application/json", &vectors)) / 1e3
    );

    let endpoint = EndpointConfig {
        streaming: true,
        ..EndpointConfig::new(EndpointKind::Chat, Target::Mock(String::new()))
    };
    let format = Format::new(&endpoint, "mock-model");
    let text = " there and loud laments the cause".repeat(92);
    let turn = Turn {
        content: Content::text(text.as_str()),
        max_tokens: Some(100),
        text_tokens: Some(552),
        ..Turn::default()
    };
    let conversation =
        Conversation { id: "session_000000".into(), turns: vec![turn; 8], ..Conversation::default() };
    let history = History::default();
    let each = time(2000, || {
        black_box(format.render(&conversation, 0, &history));
    });
    println!("render, 550 tokens ({} bytes): {:.3} us", text.len(), each / 1e3);

    let mut history = History::default();
    let reply = {
        let mut reader = Reader::new(&ReadPlan { keep_history: true, ..plan }, "text/event-stream");
        for event in &events {
            reader.push(event.as_bytes(), Mono(1));
        }
        reader.finish(Mono(2)).reply
    };
    for turn in 0..7 {
        history.push_turn(&format.render(&conversation, turn, &history));
        if let Some(reply) = &reply {
            history.push_answer(reply);
        }
    }
    let each = time(2000, || {
        black_box(format.render(&conversation, 7, &history));
    });
    println!("render, eighth turn ({} bytes before): {:.3} us", history.len(), each / 1e3);
    println!("reader: {} bytes", size_of::<Reader>());
}
