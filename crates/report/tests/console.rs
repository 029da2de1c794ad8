//! What people read after a run.
#![allow(clippy::unwrap_used, reason = "test code")]

mod support;

use std::io;
use std::path::PathBuf;

use aiperf_config::Arrival;
use aiperf_metrics::delivery::{
    ClientFacts, ConcurrencyFacts, DeliveryFacts, LoadMode, Reason, Spread, Verdict,
};
use aiperf_metrics::{
    Block, ErrorGroup, Latencies, LoadDelivery, Metric, ObservationWindow, OslMismatch, SendLag, Summary,
    UsageDiscrepancy,
};
use aiperf_report::{Palette, RunResults, WrittenFile, console};
use aiperf_types::{PhaseKind, RequestError};
use support::{config, golden_json, phase, results, summary_of};

const WIDTH: usize = 140;

fn spread(p50: f64, p99: f64, max: f64) -> Spread {
    Spread { avg: p50, p50, p90: p99, p99, max, count: 100 }
}

fn latencies(p50: f64, p99: f64) -> Latencies {
    let block = |scale: f64| {
        Some(Block { unit: "ms", p50: Some(p50 * scale), p99: Some(p99 * scale), ..Block::default() })
    };
    Latencies { request_latency: block(1.0), time_to_first_token: block(0.5) }
}

fn facts(mode: LoadMode) -> DeliveryFacts {
    DeliveryFacts {
        mode,
        intended_rate: (mode == LoadMode::Rate).then_some(500.0),
        delivered_rate: Some(499.98),
        planned_count: 15_000,
        sent_count: 15_000,
        lateness: Some(spread(20_000.0, 110_000.0, 800_000.0)),
        concurrency: (mode == LoadMode::Concurrency).then_some(ConcurrencyFacts {
            limit: 16,
            max_in_flight: 16,
            lost_share: Some(0.002),
            ..ConcurrencyFacts::default()
        }),
        phase_ns: 3_000_000_000,
        record_count: 15_000,
        service: latencies(21.3, 24.1),
        from_intended: latencies(21.32, 24.19),
        client: ClientFacts {
            cores: Some(2.0),
            cpu_sec: Some(1.23),
            cpu_span_ns: Some(3_000_000_000),
            busiest_worker_cpu_pct: Some(35.0),
            peak_rss_bytes: Some(64 << 20),
            loop_delay: Some(spread(1e5, 5e5, 1.2e6)),
            ..ClientFacts::default()
        },
        ..DeliveryFacts::default()
    }
}

fn reported(change: impl FnOnce(&mut RunResults<'_>), width: usize) -> String {
    let config = config(&PathBuf::from("out"));
    let mut summary = summary_of(&golden_json("chat_nonstreaming/profile_export_aiperf.json"));
    summary.window = Some(ObservationWindow { start_ns: 0, end_ns: 467_851_000, duration_sec: 0.467_851 });
    summary.send_lag = Some(SendLag { p50: 0.01, p90: 0.02, p99: 0.114, max: 0.2 });
    let mut run = results(&config, vec![phase(PhaseKind::Profiling, 0, summary)]);
    change(&mut run);
    console::tables(&run, width, Palette::plain())
}

fn delivery_of(delivery: LoadDelivery) -> String {
    let text = reported(|run| run.phases[0].load_delivery = Some(delivery), WIDTH);
    text[text.find("Load Delivery").unwrap()..].to_owned()
}

#[test]
fn load_delivery_of_an_open_loop() {
    let delivery =
        LoadDelivery { verdict: Verdict::Valid, reasons: Vec::new(), facts: facts(LoadMode::Rate) };
    assert_eq!(
        delivery_of(delivery),
        "\
Load Delivery: VALID
  Rate      intended 500.00 requests/sec, delivered 499.98 (100.0 %)
  Sends     15,000 planned, 15,000 sent, 0 skipped by a cap, 0 unsent
  Lateness  p50 0.02 ms, p99 0.11 ms, max 0.80 ms (from due to sent; the send lag above is the last part of it)
  Client    0.41 of 2 cores, 82 us per request, busiest worker 35 %, peak memory 64 MiB, loop delay max 1.20 ms
  Latency   from send p50 21.30 ms p99 24.10 ms; from intended start p50 21.32 ms p99 24.19 ms
  TTFT      from send p50 10.65 ms p99 12.05 ms; from intended start p50 10.66 ms p99 12.10 ms
"
    );
}

#[test]
fn what_the_cap_held_back_has_a_line_of_its_own() {
    let shown = |wait: Spread| {
        let mut facts = facts(LoadMode::FixedSchedule);
        facts.concurrency =
            Some(ConcurrencyFacts { limit: 1, max_in_flight: 1, ..ConcurrencyFacts::default() });
        facts.cap_wait = Some(wait);
        delivery_of(LoadDelivery { verdict: Verdict::Valid, reasons: Vec::new(), facts })
    };
    let text = shown(spread(1_157e6, 2_080e6, 2_090e6));
    let line =
        "\n  Held      requests waited p50 1,157.00 ms, max 2,090.00 ms for a place under --concurrency 1\n";
    assert!(text.contains(line), "{text}");
    assert!(!shown(spread(0.0, 0.0, 0.0)).contains("Held"));
}

/// What is printed of a run at `rate`.
fn at_a_rate(rate: f64, arrival: Arrival, facts: DeliveryFacts) -> String {
    let mut config = config(&PathBuf::from("out"));
    config.phases.last_mut().unwrap().mode = aiperf_config::LoadMode::Rate { rate, arrival };
    let mut run = results(&config, vec![phase(PhaseKind::Profiling, 0, Summary::default())]);
    run.phases[0].load_delivery = Some(LoadDelivery { verdict: Verdict::Valid, reasons: Vec::new(), facts });
    console::tables(&run, WIDTH, Palette::plain())
}

#[test]
fn arrivals_that_a_cap_skipped_stand_beside_the_rate_that_was_asked_for() {
    for arrival in [Arrival::Poisson, Arrival::Constant] {
        let mut facts = facts(LoadMode::Rate);
        (facts.planned_count, facts.sent_count, facts.skipped_count) = (182, 65, 117);
        facts.concurrency =
            Some(ConcurrencyFacts { limit: 1, max_in_flight: 1, ..ConcurrencyFacts::default() });
        let text = at_a_rate(40.0, arrival, facts);
        let line = "  Asked     40.00 requests/sec: 117 of 182 arrivals found no place under --concurrency 1 and were skipped\n";
        assert!(text.contains(line), "{text}");
        assert!(!text.contains("drawn at random"), "{text}");
    }
}

#[test]
fn an_intended_rate_that_is_not_the_one_asked_for_is_explained() {
    let shown = |rate, arrival| at_a_rate(rate, arrival, facts(LoadMode::Rate));
    let text = shown(480.0, Arrival::Poisson);
    let lines: Vec<&str> = text.lines().skip_while(|line| !line.contains("Load Delivery")).collect();
    assert!(lines[1].starts_with("  Rate      intended 500.00 requests/sec"), "{text}");
    assert!(
        lines[2].starts_with(
            "  Asked     480.00 requests/sec: the 15,000 arrivals drawn at random came to 500.00 (+4.2 %); the "
        ),
        "{text}"
    );
    let bursts = shown(1_000.0, Arrival::Gamma(0.1));
    let said =
        "drawn at random in the bursts of --arrival-smoothness 0.1 came to 500.00 (-50.0 %); the longer";
    // Two lines at this width.
    let words: Vec<&str> = bursts.split_whitespace().collect();
    assert!(words.join(" ").contains(said), "{bursts}");
    assert!(!shown(1_000.0, Arrival::Gamma(4.0)).contains("--arrival-smoothness"));
    assert!(!shown(499.0, Arrival::Poisson).contains("Asked"));
    assert!(!shown(480.0, Arrival::Constant).contains("Asked"));
}

#[test]
fn load_delivery_of_a_closed_loop_with_a_reason() {
    let reason = Reason {
        code: "late_sends",
        message: "99 % of the sends were late by up to".into(),
        value: 2.5,
        limit: 1.0,
        unit: "ms",
        next_step: "Raise --workers-max".into(),
    };
    let mut facts = facts(LoadMode::Concurrency);
    facts.client = ClientFacts::default();
    facts.service = Latencies::default();
    facts.from_intended = Latencies::default();
    facts.lateness = None;
    facts.record_count = 0;
    let text = delivery_of(LoadDelivery { verdict: Verdict::Suspect, reasons: vec![reason], facts });
    assert_eq!(
        text,
        "\
Load Delivery: SUSPECT
  Loop      concurrency 16 held 99.8 %, produced 499.98 requests/sec up to the last send (the table's rate includes the drain)
  Sends     15,000 planned, 15,000 sent, 0 skipped by a cap, 0 unsent
  ! 99 % of the sends were late by up to (2.50 ms, limit 1 ms). Raise --workers-max
"
    );
}

#[test]
fn a_loop_that_never_turned_or_only_failed_produced_no_rate() {
    let shown = |spoil: fn(&mut DeliveryFacts)| {
        let mut facts = facts(LoadMode::Concurrency);
        spoil(&mut facts);
        delivery_of(LoadDelivery { verdict: Verdict::Valid, reasons: Vec::new(), facts })
    };
    assert!(shown(|_| ()).contains("produced 499.98"));
    let first_fill = shown(|facts| (facts.sent_count, facts.record_count) = (16, 0));
    assert!(first_fill.contains("  Loop      concurrency 16 held 99.8 %\n"), "{first_fill}");
    let failed = shown(|facts| facts.service = Latencies::default());
    assert!(failed.contains("  Loop      concurrency 16 held 99.8 %\n"), "{failed}");
}

/// What a closed loop says of itself after `change`.
fn of_a_loop(change: impl FnOnce(&mut DeliveryFacts)) -> String {
    let mut facts = facts(LoadMode::Concurrency);
    change(&mut facts);
    delivery_of(LoadDelivery { verdict: Verdict::Valid, reasons: Vec::new(), facts })
}

#[test]
fn lateness_that_leaves_the_first_fill_out_is_no_sum_that_the_send_lag_is_part_of() {
    let text = of_a_loop(|facts| facts.initial_fill_ns = Some(1_000));
    let line = "max 0.80 ms (from due to sent, without the first fill, which the send lag above includes)\n";
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("last part of it"), "{text}");
}

#[test]
fn slots_that_nothing_was_there_to_fill_are_not_said_to_be_held() {
    let loop_line = |sent, max_in_flight| {
        let text = of_a_loop(|facts| {
            facts.sent_count = sent;
            facts.concurrency.as_mut().unwrap().max_in_flight = max_in_flight;
        });
        text.lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(loop_line(3, 3), "  Loop      concurrency 16, never more than 3 at once");
    // Enough to fill them, and answers came back too fast.
    let fast = loop_line(500, 12);
    assert!(
        fast.starts_with("  Loop      concurrency 16 held 99.8 %, never more than 12 at once, produced "),
        "{fast}"
    );
    assert!(!loop_line(16, 16).contains("at once"));
}

#[test]
fn slots_that_failed_connections_kept_are_told_beside_the_share_that_was_held() {
    let text = of_a_loop(|facts| {
        facts.service = Latencies::default();
        let cap = facts.concurrency.as_mut().unwrap();
        (cap.failed_connections, cap.longest_pause_ns) = (1_200, 50_000_000);
    });
    let line = "  Loop      concurrency 16 held 99.8 %, 1,200 failed connections kept their slots for up to 50.00 ms each\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_limit_of_connections_that_requests_waited_for_has_a_line() {
    let shown = |limit, waited: f64| {
        let mut config = config(&PathBuf::from("out"));
        config.tuning.connection_limit = limit;
        let wait = Block { unit: "ms", p50: Some(waited), max: Some(2.0 * waited), ..Block::default() };
        let summary = Summary { blocks: vec![(Metric::HttpReqBlocked, wait)], ..Summary::default() };
        let mut run = results(&config, vec![phase(PhaseKind::Profiling, 0, summary)]);
        let facts = facts(LoadMode::Rate);
        run.phases[0].load_delivery =
            Some(LoadDelivery { verdict: Verdict::Valid, reasons: Vec::new(), facts });
        console::tables(&run, WIDTH, Palette::plain())
    };
    let line = "\n  Blocked   requests waited p50 572.00 ms, max 1,144.00 ms for a connection (AIPERF_HTTP_CONNECTION_LIMIT)";
    let text = shown(Some(1), 572.0);
    assert!(text.contains(line), "{text}");
    for text in [shown(None, 572.0), shown(Some(1), 0.2)] {
        assert!(!text.contains("Blocked   "), "{text}");
    }
}

/// A phase that was over at once: the CPU of the whole process was measured over more than it.
#[test]
fn the_cores_that_were_used_are_those_of_the_time_they_were_measured_in() {
    let shown = |cpu_span_ns| {
        let mut facts = facts(LoadMode::Rate);
        facts.phase_ns = 1_000_000;
        facts.client.cpu_span_ns = cpu_span_ns;
        delivery_of(LoadDelivery { verdict: Verdict::Valid, reasons: Vec::new(), facts })
    };
    assert!(shown(Some(1_500_000_000)).contains("  Client    0.82 of 2 cores, "));
    let unknown = shown(None);
    assert!(unknown.contains("  Client    busiest worker 35 %"), "{unknown}");
}

#[test]
fn one_line_says_what_the_tables_are_about() {
    let text = reported(|run| run.phases[0].in_flight_cancelled_count = 2, WIDTH);
    let line = text.lines().nth(1).unwrap();
    assert!(line.starts_with("Started 20"), "{line}");
    assert!(
        line.ends_with(
            "Z | tokens by builtin | window 0.47 sec | 8 sent: 8 succeeded, 0 failed, 2 cut off | send lag p99 0.11 ms"
        ),
        "{line}"
    );
    // Unlike the lateness below.
    let text = reported(
        |run| {
            let facts = DeliveryFacts { initial_fill_ns: Some(1_000), ..facts(LoadMode::Concurrency) };
            let delivery = LoadDelivery { verdict: Verdict::Valid, reasons: Vec::new(), facts };
            run.phases[0].load_delivery = Some(delivery);
        },
        WIDTH,
    );
    assert!(text.contains("send lag p99 0.11 ms\n(with the first fill)\n"), "{text}");
}

#[test]
fn an_interrupted_run_says_so_first() {
    let text =
        reported(|run| run.incomplete_reason = Some("Interrupted after 3 of 8 requests".into()), WIDTH);
    assert!(text.starts_with("\nAIPerf | INCOMPLETE RESULTS\nInterrupted after 3 of 8 requests\n"), "{text}");
}

#[test]
fn warnings_say_what_to_do_next() {
    let text = reported(
        |run| {
            let summary = &mut run.phases[0].summary;
            summary.usage_discrepancy = Some(UsageDiscrepancy { compared: 6, count: 1 });
            summary.osl_mismatch = Some(OslMismatch { compared: 6, count: 4, mean_diff_pct: -38.888 });
            summary.usage_without_cache_reads = true;
        },
        WIDTH,
    );
    for part in [
        "1 of 6 requests (16.7%)",
        "--use-server-token-count",
        "4 of 6 requests (66.7%)",
        "-38.9%",
        "ignore_eos:true",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(text.matches("--enable-cache-report").count(), 1);
    let quiet = reported(
        |run| {
            let summary = &mut run.phases[0].summary;
            summary.usage_discrepancy = Some(UsageDiscrepancy { compared: 6, count: 0 });
            summary.osl_mismatch = Some(OslMismatch { compared: 6, count: 0, mean_diff_pct: 0.0 });
        },
        WIDTH,
    );
    assert!(!quiet.contains('╭'), "{quiet}");
}

#[test]
fn a_long_error_message_wraps_inside_its_column() {
    let text = reported(
        |run| {
            let published = golden_json("errors_mix/profile_export_aiperf.json");
            run.phases[0].summary.error_groups = summary_of(&published).error_groups;
            run.phases[0].summary.error_groups[0].error.message =
                format!("{} \x1b[31mred", "word ".repeat(60));
        },
        WIDTH,
    );
    let table: Vec<&str> = text.lines().skip_while(|line| !line.contains("Error Summary")).skip(1).collect();
    let rows = &table[..table.iter().position(|line| line.starts_with('└')).unwrap()];
    assert!(rows.iter().all(|line| line.chars().count() == WIDTH), "{}", rows.join("\n"));
    assert!(!text.contains('\x1b'));
}

#[test]
fn a_narrow_terminal_loses_columns_and_says_which() {
    for width in [100, 80, 60] {
        let text = reported(|_| (), width);
        let main =
            &text[text.find("AIPerf | LLM Metrics\n").or_else(|| text.find("| LLM Metrics  ")).unwrap()..];
        let widest = main
            .lines()
            .skip(1)
            .take_while(|line| !line.starts_with("  "))
            .map(|line| line.chars().count())
            .max();
        assert!(widest <= Some(width), "{width} {widest:?}\n{text}");
    }
    let text = reported(|_| (), 80);
    assert!(text.contains("no room here for: min, std"), "{text}");
    assert!(!reported(|_| (), WIDTH).contains("no room"));
}

#[test]
fn errors_that_many_have_met_are_explained_once_with_the_way_out() {
    let shown = |errors: &[(i64, &str)], extras: &str| {
        let mut config = config(&PathBuf::from("out"));
        config.endpoint.extra_inputs = serde_json::from_str(extras).unwrap();
        let groups = errors.iter().map(|(code, message)| ErrorGroup {
            error: RequestError::new(*code, "Bad Request", *message),
            count: 1,
        });
        let summary = Summary { error_groups: groups.collect(), ..Summary::default() };
        console::tables(
            &results(&config, vec![phase(PhaseKind::Profiling, 0, summary)]),
            WIDTH,
            Palette::plain(),
        )
    };
    for (code, message, step) in [
        (400, "Unrecognized request argument: Max_Completion_Tokens", "--use-legacy-max-tokens"),
        (422, "extra fields not permitted: stream_options", "--use-server-token-count"),
        (400, "unknown field `ignore_eos`", "a key of --extra-inputs"),
        (400, "This model's maximum context length is 4096 tokens", "--isl, --osl"),
        (401, "Unauthorized", "--api-key KEY"),
        (404, "The model `x` does not exist", "--model takes a name"),
        (429, "slow down", "--concurrency asks for less"),
    ] {
        let text = shown(&[(code, message), (code, message)], r#"{"ignore_eos": true, "n": 1}"#);
        let panel = text.find("Known Errors").unwrap_or_else(|| panic!("{message}: {text}"));
        assert!(panel < text.find("Error Summary").unwrap(), "{text}");
        assert_eq!(text.matches(step).count(), 1, "{message}: {text}");
    }
    for (code, message) in
        [(500, "max_completion_tokens"), (400, "an n that is not known"), (404, "no such path")]
    {
        let text = shown(&[(code, message)], r#"{"n": 1}"#);
        assert!(!text.contains("Known Errors"), "{message}: {text}");
    }
}

#[test]
fn the_tail_lists_every_file_by_its_absolute_path() {
    let config = config(&PathBuf::from("out"));
    let summary = summary_of(&golden_json("chat_nonstreaming/profile_export_aiperf.json"));
    let mut run = results(&config, vec![phase(PhaseKind::Profiling, 0, summary)]);
    run.written = vec![
        WrittenFile::whole("CSV Export", "/tmp/out/profile_export_aiperf.csv"),
        WrittenFile::whole("Records JSONL", "out/profile_export.jsonl"),
    ];
    run.log_file = Some("/tmp/out/logs/aiperf.log".into());
    let here = std::env::current_dir().unwrap();
    let expected = format!(
        "\nCLI Command: aiperf profile --model 'mock-model'\nBenchmark Duration: 0.43 sec\nCSV Export: \
         /tmp/out/profile_export_aiperf.csv\nRecords JSONL: {}/out/profile_export.jsonl\nLog File: \
         /tmp/out/logs/aiperf.log\n",
        here.display()
    );
    assert_eq!(console::tail(&run, WIDTH, Palette::plain()), expected);
    run.written[1].ends_after = Some((101, "records"));
    let text = console::tail(&run, WIDTH, Palette::plain());
    assert!(text.contains("/out/profile_export.jsonl (incomplete: it ends after 101 records)\n"), "{text}");
    run.has_log_gaps = true;
    let text = console::tail(&run, WIDTH, Palette::plain());
    assert!(text.ends_with("logs/aiperf.log (incomplete: lines of it could not be written)\n"), "{text}");
    run.was_cancelled = true;
    let text = console::tail(&run, WIDTH, Palette::plain());
    assert!(
        text.contains("0.43 sec (cancelled early)\n") && text.ends_with("only a part of it.\n"),
        "{text}"
    );
    // Data that turn out to be bad are not what anybody wanted.
    run.was_cancelled = false;
    run.incomplete_reason = Some("a bad record was met".into());
    let text = console::tail(&run, WIDTH, Palette::plain());
    assert!(text.contains("0.43 sec (ended early)\n") && text.contains("The run ended early: "), "{text}");
}

#[test]
fn colour_changes_nothing_but_colour() {
    let config = config(&PathBuf::from("out"));
    let summary = summary_of(&golden_json("errors_mix/profile_export_aiperf.json"));
    let run = results(&config, vec![phase(PhaseKind::Profiling, 0, summary)]);
    let plain = console::tables(&run, WIDTH, Palette::plain());
    let coloured = console::tables(&run, WIDTH, Palette::coloured());
    assert!(!plain.contains('\x1b'));
    assert!(coloured.contains("\x1b[31m") && coloured.contains("\x1b[36m") && coloured.contains("\x1b[2m"));
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some(at) = rest.find("\x1b[") {
        stripped.push_str(&rest[..at]);
        rest = &rest[at + rest[at..].find('m').unwrap() + 1..];
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
}

#[test]
fn a_closed_standard_output_is_no_failure() {
    struct Closed(io::ErrorKind);
    impl io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    assert!(console::print(&mut Closed(io::ErrorKind::BrokenPipe), "text").is_ok());
    assert!(console::print(&mut Closed(io::ErrorKind::StorageFull), "text").is_err());
}
