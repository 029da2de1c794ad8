//! `docs/other-tools.md` says how to get the figures of other tools from ours. Here those figures are worked out from
//! the raw events of streams the way each tool does it, and the formulas of the page are held against them.
//! <https://github.com/modelscope/evalscope/issues/1101>, <https://github.com/modelscope/evalscope/issues/708>: results
//! differed from those of other tools, and nobody could say why.

use std::path::Path;

use serde_json::Value;

use crate::support::Place;

/// One stream as a client reads it.
struct Stream {
    /// Events with a choice, ms after the send: the text they bring.
    choices: Vec<(f64, String)>,
    /// The last event of all, ms after the send.
    end: f64,
    /// Instants of the send and of the last text, ms on the monotonic clock.
    sent: f64,
    prompt_tokens: f64,
    output_tokens: f64,
}

impl Stream {
    fn read(line: &Value) -> Stream {
        let sent = line["start_perf_ns"].as_f64().unwrap() / 1e6;
        let mut stream =
            Stream { choices: Vec::new(), end: 0.0, sent, prompt_tokens: 0.0, output_tokens: 0.0 };
        for event in line["responses"].as_array().unwrap() {
            stream.end = event["perf_ns"].as_f64().unwrap() / 1e6 - sent;
            let data = event["packets"][0]["value"].as_str().unwrap();
            let Ok(data) = serde_json::from_str::<Value>(data) else { continue };
            if let Some(choice) = data["choices"].get(0) {
                stream.choices.push((stream.end, choice["text"].as_str().unwrap().to_owned()));
            } else {
                stream.prompt_tokens = data["usage"]["prompt_tokens"].as_f64().unwrap();
                stream.output_tokens = data["usage"]["completion_tokens"].as_f64().unwrap();
            }
        }
        stream
    }

    /// When text came, ms after the send.
    fn texts(&self) -> Vec<f64> {
        self.choices.iter().filter(|(_, text)| !text.is_empty()).map(|(at, _)| *at).collect()
    }

    /// The time from the last text to the end, as a share of the time the texts took.
    fn tail(&self) -> f64 {
        let texts = self.texts();
        let last = texts[texts.len() - 1];
        (self.end - last) / (last - texts[0])
    }

    fn any(&self) -> Vec<f64> {
        self.choices.iter().map(|(at, _)| *at).collect()
    }
}

fn gaps(times: &[f64]) -> impl Iterator<Item = f64> {
    times.windows(2).map(|pair| pair[1] - pair[0])
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn percentile(values: impl Iterator<Item = f64>, q: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let rank = q * (values.len() - 1) as f64;
    let below = values[rank as usize];
    below + (values[(rank as usize + 1).min(values.len() - 1)] - below) * rank.fract()
}

/// The figure `name` of a tool; `window` is the length of the run in seconds as a tool sees it that times itself.
fn theirs(tool: &str, name: &str, streams: &[Stream], window: f64) -> f64 {
    let each = |figure: fn(&Stream) -> f64| mean(streams.iter().map(figure));
    let sum = |figure: fn(&Stream) -> f64| streams.iter().map(figure).sum::<f64>();
    let count = streams.len() as f64;
    // The tools' own words: time per token without the first one, time per token with it.
    let without_first = |last: f64, first: f64, tokens: f64| (last - first) / (tokens - 1.0);
    let run = || {
        let first = streams.iter().map(|stream| stream.sent).fold(f64::MAX, f64::min);
        let last =
            streams.iter().map(|stream| stream.sent + stream.texts().last().unwrap()).fold(0.0, f64::max);
        (last - first) / 1e3
    };
    match (tool, name) {
        ("vLLM", "mean_ttft_ms") => each(|stream| stream.any()[0]),
        ("vLLM", "p99_ttft_ms") => percentile(streams.iter().map(|stream| stream.any()[0]), 0.99),
        ("vLLM", "mean_tpot_ms") => mean(streams.iter().map(|stream| {
            without_first(*stream.any().last().unwrap(), stream.any()[0], stream.output_tokens)
        })),
        ("vLLM", "mean_itl_ms") => {
            mean(streams.iter().flat_map(|stream| gaps(&stream.any()).collect::<Vec<_>>()))
        }
        ("vLLM", "mean_e2el_ms") => each(|stream| *stream.any().last().unwrap()),
        ("vLLM", "request_throughput") => count / window,
        ("vLLM" | "SGLang", "output_throughput") => sum(|stream| stream.output_tokens) / window,
        ("vLLM", "total_token_throughput") => {
            sum(|stream| stream.prompt_tokens + stream.output_tokens) / window
        }
        ("SGLang", "mean_ttft_ms")
        | ("GenAI-Perf", "time_to_first_token")
        | ("GuideLLM", "time_to_first_token_ms") => each(|stream| stream.texts()[0]),
        ("SGLang", "median_ttft_ms") => percentile(streams.iter().map(|stream| stream.texts()[0]), 0.5),
        ("SGLang", "mean_tpot_ms") => mean(
            streams.iter().map(|stream| without_first(stream.end, stream.texts()[0], stream.output_tokens)),
        ),
        ("SGLang", "mean_itl_ms") => {
            mean(streams.iter().flat_map(|stream| gaps(&stream.texts()).collect::<Vec<_>>()))
        }
        ("SGLang", "max_itl_ms") => {
            streams.iter().flat_map(|stream| gaps(&stream.texts()).collect::<Vec<_>>()).fold(0.0, f64::max)
        }
        ("SGLang", "mean_e2e_latency_ms") => each(|stream| stream.end),
        ("SGLang", "concurrency") => sum(|stream| stream.end) / 1e3 / window,
        ("GenAI-Perf", "time_to_second_token") => each(|stream| stream.texts()[1] - stream.texts()[0]),
        ("GenAI-Perf", "inter_token_latency") | ("GuideLLM", "inter_token_latency_ms") => {
            mean(streams.iter().map(|stream| {
                without_first(*stream.texts().last().unwrap(), stream.texts()[0], stream.output_tokens)
            }))
        }
        ("GenAI-Perf", "request_latency") => each(|stream| *stream.texts().last().unwrap()),
        ("GenAI-Perf", "output_token_throughput_per_request") => {
            each(|stream| stream.output_tokens / (stream.texts().last().unwrap() / 1e3))
        }
        ("GenAI-Perf", "output_token_throughput") => sum(|stream| stream.output_tokens) / run(),
        ("GenAI-Perf", "request_throughput") => count / run(),
        ("GuideLLM", "time_per_output_token_ms") => {
            each(|stream| stream.texts().last().unwrap() / stream.output_tokens)
        }
        ("GuideLLM", "request_latency") => each(|stream| stream.end / 1e3),
        ("GuideLLM", "output_tokens_per_second") => each(|stream| stream.output_tokens / (stream.end / 1e3)),
        _ => panic!("the test does not know {name} of {tool}"),
    }
}

/// The value of a formula of the page: figures, numbers, `+ * /` from left to right, brackets.
fn value(formula: &str, figure: &dyn Fn(&str) -> f64) -> f64 {
    fn operand<'a>(words: &mut impl Iterator<Item = &'a str>, figure: &dyn Fn(&str) -> f64) -> f64 {
        match words.next().unwrap() {
            "(" => chain(words, figure),
            word => word.parse().unwrap_or_else(|_| figure(word)),
        }
    }
    fn chain<'a>(words: &mut impl Iterator<Item = &'a str>, figure: &dyn Fn(&str) -> f64) -> f64 {
        let mut sum = operand(words, figure);
        while let Some(operator) = words.next().filter(|word| *word != ")") {
            let right = operand(words, figure);
            match operator {
                "+" => sum += right,
                "*" => sum *= right,
                "/" => sum /= right,
                other => panic!("{other}"),
            }
        }
        sum
    }
    chain(&mut formula.split_whitespace(), figure)
}

/// Tool, their name, our formula: the rows of the page.
fn rows() -> Vec<(String, String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/other-tools.md");
    let page = std::fs::read_to_string(path).unwrap();
    let mut rows = Vec::new();
    let mut tool = String::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            title.split(':').next().unwrap().clone_into(&mut tool);
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [_, theirs, ours, ..] = cells[..]
            && let (Some(theirs), Some(ours)) = (theirs.strip_prefix('`'), ours.strip_prefix('`'))
        {
            rows.push((
                tool.clone(),
                theirs.trim_end_matches('`').to_owned(),
                ours.trim_end_matches('`').to_owned(),
            ));
        }
    }
    rows
}

#[test]
fn evalscope_1101_the_formulas_of_the_page_give_the_figures_of_other_tools() {
    let place = Place::new();
    let line = "--endpoint-type completions --streaming --concurrency 4 --request-count 40 --isl 16 --osl 12 \
                --osl-stddev 2 --random-seed 7 --export-level raw";
    place.run("mock://?ttft=4ms&itl=lognormal:2ms:0.5", line).with_code(0);
    let summary = place.results().summary();
    let lines = place.results().records();
    let streams: Vec<Stream> =
        place.results().lines("profile_export_raw.jsonl").iter().map(Stream::read).collect();
    assert_eq!(streams.len(), 40);
    let window = summary["observation_window"]["duration_sec"].as_f64().unwrap();
    let rows = rows();
    assert!(rows.len() > 25, "{}", rows.len());
    // Some tools stop their clock at an event behind the last text. It came with that text, unless the host was busy.
    let tail = streams.iter().map(Stream::tail).fold(0.0, f64::max);
    for (tool, name, formula) in rows {
        let of_run = |word: &str| {
            let (tag, stat) = word.split_once('.').unwrap();
            summary[tag][stat].as_f64().unwrap_or_else(|| panic!("{word}"))
        };
        let ours = if formula.contains('.') {
            value(&formula, &of_run)
        } else {
            mean(lines.iter().map(|line| {
                value(&formula, &|tag| {
                    line["metrics"][tag]["value"].as_f64().unwrap_or_else(|| panic!("{tag}"))
                })
            }))
        };
        let theirs = theirs(&tool, &name, &streams, window);
        assert!(
            (ours - theirs).abs() <= (1e-6 + tail) * theirs.abs(),
            "{tool} {name}: {theirs}, but {formula} is {ours}"
        );
    }
}
