//! `aiperf synthesize trace`, as the shell sees it.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::interrupted;

fn aiperf(arguments: &[&str], directory: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_aiperf"))
        .env_clear()
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn trace(arguments: &[&str], directory: &Path) -> Output {
    aiperf(&[&["synthesize", "trace"], arguments].concat(), directory)
}

#[test]
fn a_trace_replays_on_its_schedule_and_another_seed_gives_another() {
    let directory = tempfile::tempdir().unwrap();
    let shape = ["--num-requests", "40", "--rate", "100", "--isl", "1500,900", "--prefix-groups", "2"];
    let shape = [&shape[..], &["--block-size", "64"]].concat();
    let arguments = [&["--output", "t.jsonl"], &shape[..]].concat();
    let made = trace(&arguments, directory.path());
    let said = String::from_utf8(made.stderr).unwrap();
    assert_eq!(made.status.code(), Some(0), "{said}");
    assert!(
        made.stdout.is_empty() && said.starts_with("t.jsonl: 40 rows in 0.390 s, 100.0000 requests/s"),
        "{said}"
    );
    let file = std::fs::read(directory.path().join("t.jsonl")).unwrap();

    let stdout =
        |rest: &[&str]| trace(&[&["--output", "-"], &arguments[2..], rest].concat(), directory.path()).stdout;
    assert_eq!(stdout(&[]), file);
    assert_ne!(stdout(&["--seed", "43"]), file);

    let run = aiperf(
        &[
            &["profile", "--model", "m", "--url", "mock://?ttft=0ms&itl=0ms", "--tokenizer", "builtin"][..],
            &["--input-file", "t.jsonl", "--custom-dataset-type", "mooncake_trace", "--ui", "none"],
            &["--artifact-dir", "run", "--isl-block-size", "64"],
        ]
        .concat(),
        directory.path(),
    );
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    let summary = std::fs::read(directory.path().join("run/profile_export_aiperf.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary["request_count"]["avg"].as_f64(), Some(40.0));
}

#[test]
fn whole_numbers_are_read_as_those_of_a_run() {
    let directory = tempfile::tempdir().unwrap();
    let rows = |count: &str, size: &str| {
        let shape = ["--num-requests", count, "--block-size", size, "--prefix-reuse", "0"];
        let made = trace(&[&["--output", "-"][..], &shape].concat(), directory.path());
        assert_eq!(made.status.code(), Some(0), "{}", String::from_utf8_lossy(&made.stderr));
        made.stdout
    };
    let made = rows("1e1", "1.28e2");
    assert_eq!(made.split(|byte| *byte == b'\n').count(), 11);
    assert_eq!(made, rows("10", "128"));
}

/// The other commands find the trace valid, and the reuse that was asked for and said.
#[test]
fn the_trace_is_valid_and_its_analysis_finds_the_reuse() {
    let directory = tempfile::tempdir().unwrap();
    let made = trace(
        &["--output", "t.jsonl", "--num-requests", "2000", "--prefix-reuse", "0.6", "--isl", "4096"],
        directory.path(),
    );
    let said = String::from_utf8(made.stderr).unwrap();
    let reuse: f64 = said.trim_end().rsplit(' ').next().unwrap().parse().unwrap();
    assert!((reuse - 0.6).abs() <= 0.02, "{said}");
    let valid = aiperf(&["validate", "mooncake-trace", "t.jsonl"], directory.path());
    assert_eq!(valid.status.code(), Some(0), "{}", String::from_utf8_lossy(&valid.stdout));
    let analyzed = aiperf(&["analyze-trace", "t.jsonl", "--format", "json"], directory.path());
    let analyzed: Value = serde_json::from_slice(&analyzed.stdout).unwrap();
    let found = analyzed["infinite_cache_hit_ratio"]["by_block"].as_f64().unwrap();
    assert!((found - reuse).abs() < 1e-4, "{found} was found, {reuse} was said: {analyzed}");
    assert_eq!(analyzed["total_requests"], 2000);
}

#[test]
fn a_file_that_is_there_is_replaced_only_with_force() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.jsonl");
    std::fs::write(&path, "mine").unwrap();
    let refused = trace(&["--output", "t.jsonl"], directory.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("--force"));
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    assert_eq!(trace(&["--output", "t.jsonl", "--force"], directory.path()).status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1000);
}

#[test]
fn an_interrupt_leaves_nothing_and_the_file_that_was_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.jsonl");
    std::fs::write(&path, "mine").unwrap();
    interrupted(
        &["synthesize", "trace", "--num-requests", "2e6", "--output", "t.jsonl", "--force"],
        directory.path(),
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

#[test]
fn an_interrupt_is_told_whatever_the_command_does() {
    let directory = tempfile::tempdir().unwrap();
    // While it looks at draws, which is told after a while; and while it writes more to stdout than a pipe holds.
    for (rows, output) in [("1e8", "t.jsonl"), ("20000", "-")] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_aiperf"))
            .env_clear()
            .args(["synthesize", "trace", "--num-requests", rows, "--output", output])
            .current_dir(directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let first: &mut dyn Read = if output == "-" { &mut out } else { &mut err };
        first.read_exact(&mut [0]).unwrap();
        rustix::process::kill_process(
            rustix::process::Pid::from_child(&child),
            rustix::process::Signal::TERM,
        )
        .unwrap();
        let mut said = String::new();
        err.read_to_string(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
        assert!(said.ends_with("error: interrupted; nothing was left behind\n"), "{said}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn what_does_not_fit_is_refused_by_its_flag_and_nothing_is_written() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, part) in [
        (&["--isl", "many"][..], "--isl"),
        (&["--isl", "1,2,3"], "--isl"),
        (&["--isl", "100,200"], "--isl"),
        (&["--isl", "200,100", "--isl-stddev", "3"], "--isl-stddev"),
        (&["--osl", "0"], "--osl"),
        (&["--osl-stddev", "-1"], "--osl"),
        (&["--rate", "0"], "--rate"),
        (&["--rate", "-1"], "--rate"),
        (&["--rate", "1e300"], "--rate must be from 0.000002 to 1000000 requests a second, is 1e300"),
        (&["--rate", "1e-300"], "--rate must be from"),
        (&["--rate", "inf"], "--rate"),
        (&["--num-requests", "18446744073709551615"], "--num-requests must be from 1 to 100000000"),
        (&["--num-requests", "1e12"], "--num-requests must be from 1 to 100000000"),
        (&["--num-requests", "1.5"], "'--num-requests <N>': expected a whole number, 0 or more"),
        (
            &["--block-size", "1e10"],
            "'--block-size <N>': expected a whole number, 0 or more and at most 4294967295",
        ),
        (&["--prefix-reuse", "1"], "--prefix-reuse must be from 0 to below 1, is 1"),
        (&["--prefix-reuse", "0.99"], "the highest is 0.9"),
        (&["--isl", "500", "--prefix-reuse", "0.5"], "the highest is 0;"),
        (&["--prefix-groups", "0"], "--prefix-groups"),
        (&["--block-size", "0"], "--block-size"),
        (&["--num-requests", "0"], "--num-requests"),
        (&["--arrival", "uniform"], "--arrival"),
        (&["--arrival", "poisson", "--arrival-smoothness", "2"], "--arrival-smoothness"),
        (&["--seed", "-1"], "--seed"),
    ] {
        let output = trace(&[&["--output", "t.jsonl"], arguments].concat(), directory.path());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.starts_with("error: ") && said.contains(part), "{arguments:?}: {said}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "{arguments:?}");
    }
    let output = trace(&["--output", "missing/t.jsonl"], directory.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--output"));
}

#[test]
fn a_default_reuse_that_few_requests_cannot_reach_is_lowered_and_said() {
    let directory = tempfile::tempdir().unwrap();
    let output = trace(&["--output", "t.jsonl", "--num-requests", "10"], directory.path());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.starts_with("info: --prefix-reuse is 0.") && said.contains("0.5, the default"), "{said}");
    assert!(directory.path().join("t.jsonl").exists());
}
