//! Public data sets: what their preparation holds in memory.

use aiperf_test_servers::{StubHub, StubRepo, rows};
use anyhow::Result;
use serde_json::{Value, json};

use super::remote::{MIB, aiperf, well};
use crate::bench::Bench;
use crate::bench::client;
use crate::bench::figure::{Figure, Limit};
use crate::bench::mock::Mock;
use crate::bench::process::Running;
use crate::bench::progress::say;

/// The longest context that was recorded, tokens, at four characters each.
const CONTEXT: usize = 178_000;
const CALLS: usize = 8;
/// Sessions of a shard, and of one row group of it.
const OF_SHARD: usize = 8;
const OF_GROUP: usize = 2;
/// Where the second version is read, and at which commit.
const SET: (&str, &str) = ("Exgentic/agent-llm-traces-v2", "4b8ad4ab198438e5a170f9171c19c6a2cf7c1814");

/// Few and many recorded sessions that end with the longest context, read from a stub of the Hub; one request is sent.
pub(crate) fn memory(bench: &Bench) -> Result<Vec<Figure>> {
    let row = "memory-public";
    // Few are still more than are converted at once, which is by their bytes.
    let (few, many) = (3 * OF_SHARD, bench.size(10, 5) as usize * OF_SHARD);
    let hub = hub(many);
    let (mut peaks, mut kept) = (Vec::new(), Vec::new());
    for run in 1..=bench.runs {
        let mut pair = [0.0; 2];
        for (peak, count) in pair.iter_mut().zip([few, many]) {
            let folder = bench.fresh_folder(row)?;
            let mock = Mock::start(bench, &folder, &[("ttft", "0"), ("itl", "0")])?;
            let mut command = aiperf(bench, &folder);
            client::common(&mut command, &mock.url(), &folder.join("artifacts"));
            command.env("HF_ENDPOINT", hub.endpoint());
            command.args(["--public-dataset", "exgentic_v2", "--request-count", "1"]);
            command.args(["--num-conversations", &count.to_string()]);
            let used = well(Running::start(command, &folder)?, &folder)?;
            *peak = used.peak_bytes as f64 / MIB;
            say(format_args!("  run {run} {count:>3} sessions: {peak:.1} MiB, {:.1} s", used.wall_sec));
        }
        bench.fresh_folder(row)?;
        peaks.push(pair[1]);
        kept.push((pair[1] - pair[0]) / (many - few) as f64 / session_mib());
    }
    Ok(vec![
        Figure::new(row, format!("peak memory, {many} sessions of {CONTEXT} tokens"), "MiB", peaks)
            .must(Limit::AtMost(400.0)),
        Figure::new(row, "what of a further session stays, in parts of its size", "", kept)
            .must(Limit::AtMost(0.25)),
    ])
}

/// Bytes of the messages of a session: each call says again what was said before.
fn session_mib() -> f64 {
    (CONTEXT * 4 * (CALLS + 1) / 2) as f64 / MIB
}

fn hub(sessions: usize) -> StubHub {
    let shards: Vec<(String, Vec<u8>)> = (0..sessions / OF_SHARD)
        .map(|shard| {
            let rows: Vec<Value> = (0..OF_SHARD).map(|number| session(shard * OF_SHARD + number)).collect();
            (
                format!("lfs:data/train-{shard:05}-of-{:05}.parquet", sessions / OF_SHARD),
                rows::parquet(&rows, OF_GROUP),
            )
        })
        .collect();
    let files: Vec<(&str, &[u8])> =
        shards.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let mut repo = StubRepo::new(&files);
    // Read at the commit that belongs to the set, whatever `main` is.
    if let Some(tree) = repo.refs.remove("main").and_then(|commit| repo.commits.remove(&commit)) {
        repo.commits.insert(SET.1.to_owned(), tree);
    }
    StubHub::start(&[(SET.0, repo)])
}

fn session(number: usize) -> Value {
    let words = format!("session {number} said the quick brown fox jumps over the lazy dog ");
    let of_call = CONTEXT * 4 / CALLS;
    let said = words.repeat(of_call / words.len());
    let call = |call: usize| {
        let message = |_| json!({"role": "user", "parts": [{"type": "text", "content": said}]});
        let messages: Vec<Value> = (0..=call).map(message).collect();
        json!({
            "type": "llm_call",
            "start_time": format!("2026-03-01T10:00:{call:02}.000+00:00"),
            "end_time": format!("2026-03-01T10:00:{call:02}.500+00:00"),
            "status": {"code": 1},
            "attributes": {
                "gen_ai.operation.name": "chat",
                "gen_ai.usage.input_tokens": CONTEXT * (call + 1) / CALLS,
                "gen_ai.usage.output_tokens": 3,
                "gen_ai.input.messages": Value::from(messages).to_string(),
            },
        })
    };
    json!({
        "session_id": format!("s{number}"), "harness": "tool_calling", "benchmark": "swebench", "models": ["Kimi-K2.5"],
        "spans": (0..CALLS).map(call).collect::<Vec<_>>(),
    })
}
