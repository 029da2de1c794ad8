//! The program, as the shell sees it.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::data;

fn aiperf() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aiperf"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

fn run(arguments: &[&str], directory: &Path) -> Output {
    aiperf().args(arguments).current_dir(directory).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn version_and_help_are_data_and_success() {
    let directory = tempfile::tempdir().unwrap();
    let version = run(&["--version"], directory.path());
    assert_eq!(text(&version.stdout), format!("aiperf {}\n", env!("CARGO_PKG_VERSION")));
    for arguments in [&["--help"][..], &["profile", "--help"], &["profile", "-h"], &["profile", "--help-all"]]
    {
        let help = run(arguments, directory.path());
        assert_eq!(help.status.code(), Some(0));
        assert!(text(&help.stdout).contains("Usage: aiperf"), "{arguments:?}");
        assert!(help.stderr.is_empty());
    }
    for (asked, same) in [(&["help", "profile"][..], &["profile", "--help"][..]), (&["help"], &["--help"])] {
        assert_eq!(run(asked, directory.path()).stdout, run(same, directory.path()).stdout);
    }
    let help = run(&["mock-server", "--help"], directory.path());
    let help = text(&help.stdout);
    assert!(help.contains("--ttft"));
    assert_eq!(help.matches("joined by `:`").count(), 2, "of models and of faults: {help}");
    // In any width of the help.
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "TIME is a time (`20ms`, `1.5s`, `300us`, a bare number of milliseconds",
        "`lognormal:MEDIAN:SIGMA`",
        "COUNT is a whole number from 1",
        "except --log, --tls-cert and --tls-key, go into a mock:// URL",
    ] {
        assert!(words.contains(part), "{part}: {help}");
    }
    for (name, meaning) in aiperf_mock_server::faults() {
        let line = help.lines().find(|line| line.split_whitespace().next() == Some(name));
        assert!(line.is_some_and(|line| line.ends_with(meaning)), "{name}: {help}");
    }
}

#[test]
fn no_command_is_a_usage_error() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [&[][..], &["profle"], &["profile", "stray"]] {
        let output = run(arguments, directory.path());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
    assert!(text(&run(&["profle"], directory.path()).stderr).contains("profile"));
}

/// <https://github.com/ai-dynamo/aiperf#known-issues>: a wrong setting at start can hang for ever.
#[test]
fn aiperf_known_issue_wrong_settings_end_at_once_with_2_and_leave_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing.jsonl").display().to_string();
    let bad = data("sys.txt");
    for arguments in [
        &["--requst-count", "2"][..],
        &["--goodput", "a:1"],
        &["--zmq-host", "h"],
        &["--ui", "dashboard"],
        &["--benchmark-grace-period", "3"],
        &["--input-file", &missing],
        &["--input-file", &bad],
        &["--input-file", &bad, "--custom-dataset-type", "dag_json"],
        &["--url", "http://h:99999"],
        &["--url", "mock://?ttft=never"],
        &["--concurrency", "many"],
        &["--concurrency", "1", "--concurrency", "2"],
    ] {
        let begin = aiperf_clock::now();
        let output = run(&[&["profile", "--model", "demo"], arguments].concat(), directory.path());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
        assert!(aiperf_clock::now().saturating_since(begin) < 5_000_000_000, "{arguments:?}");
        assert!(output.stdout.is_empty());
        let report = text(&output.stderr);
        assert!(report.starts_with("error: "), "{report}");
        assert!(report.contains(arguments[0]) || arguments[0] == "--input-file", "{report}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing may be left behind");
}

#[test]
fn the_first_words_of_a_refusal_are_these() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(&["profile", "-m", "demo", "--goodput", "x:1"], directory.path());
    assert_eq!(
        text(&output.stderr),
        "error: --goodput is not supported yet: it comes with goodput and time slices\n\n  tip: 'aiperf profile \
         --help' lists what is supported\n"
    );
}

#[test]
fn a_closed_stdout_is_no_failure() {
    let directory = tempfile::tempdir().unwrap();
    let script =
        format!("'{}' profile --help-all | true; exit ${{PIPESTATUS[0]}}", env!("CARGO_BIN_EXE_aiperf"));
    let output = Command::new("bash").arg("-c").arg(&script).current_dir(directory.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let script = format!("'{}' --help >&- 2>&-", env!("CARGO_BIN_EXE_aiperf"));
    let output = Command::new("bash").arg("-c").arg(&script).current_dir(directory.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn completions_offer_what_can_be_used() {
    let directory = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell], directory.path());
        assert_eq!(output.status.code(), Some(0), "{shell}");
        let script = text(&output.stdout);
        assert!(script.contains("request-count") && script.contains("num-requests"), "{shell}");
        assert!(!script.contains("goodput") && !script.contains("zmq"), "{shell}");
        assert!(script.contains("embeddings"), "{shell}");
    }
    assert_eq!(run(&["completions", "tcsh"], directory.path()).status.code(), Some(2));
}

#[test]
fn the_mock_server_says_where_it_listens_and_ends_on_a_signal() {
    let mut server = aiperf()
        .args(["mock-server", "--port", "0", "--ttft", "1ms", "--usage", "estimate"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on http://").unwrap_or_else(|| panic!("{line}"));
    let port = address.rsplit_once(':').unwrap().1.to_owned();
    let taken = aiperf().args(["mock-server", "--port", &port]).output().unwrap();
    assert_eq!(taken.status.code(), Some(1), "{}", text(&taken.stderr));
    assert!(text(&taken.stderr).contains("taken"));
    let killed = Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(server.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    server.stdout.unwrap().read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

#[test]
fn a_wrong_setting_of_the_mock_server_is_a_usage_error() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in
        [&["--ttft", "soon"][..], &["--plan", "nonsense"], &["--tls-cert", "x"], &["--port", "70000"]]
    {
        let output = run(&[&["mock-server"], arguments].concat(), directory.path());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn what_is_wrong_with_the_mock_server_is_laid_to_a_flag() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, said) in [
        (&["--ttft", "soon"][..], "error: --ttft cannot be `soon`: it takes a time"),
        (&["--ttft", "ttft"], "error: --ttft cannot be `ttft`: it takes a time"),
        (&["--tls-cert", "x"], "error: --tls-cert needs --tls-key beside it"),
        (&["--plan", "nonsense"], "error: --plan has the element `nonsense`"),
        (&["--itl", "-5"], "error: --itl cannot be `-5`: it takes a time"),
        (&["--ttft", "--itl", "5"], "a value is required for '--ttft"),
        (&["--host", ""], "a value is required for '--host"),
        (&["--port", "abc"], "expected a whole number, 0 or more"),
        (&["--port", "70000"], "expected a whole number, 0 or more and at most 65535"),
        (&["--nothing"], "Usage: aiperf mock-server [FLAGS]\n"),
    ] {
        let output = run(&[&["mock-server"], arguments].concat(), directory.path());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(said), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn an_argument_that_is_no_text_is_laid_to_its_flag() {
    use std::os::unix::ffi::OsStrExt as _;

    for (before, bad, said) in [
        (&["--artifact-dir"][..], &b"bad\xff"[..], "the value of --artifact-dir is not valid UTF-8"),
        (&[], b"--artifact-dir=bad\xff", "the value of --artifact-dir is not valid UTF-8"),
        (&[], b"bad\xff", "argument 2 is not valid UTF-8"),
        (&["--header"], b"A=bad\xff", "the value of --header is not valid UTF-8"),
        (&["-H"], b"A=bad\xff", "the value of -H is not valid UTF-8"),
        (&[], b"-HAuthorization: Basic CANARY=\xff", "the value of -H is not valid UTF-8"),
        (&["--header"], b"--CANARY=\xff", "argument 3 is not valid UTF-8"),
        (&["--api-key", "-CANARY"], b"bad\xff", "argument 4 is not valid UTF-8"),
        // A switch takes no word behind it.
        (&["--streaming"], b"bad\xff", "argument 3 is not valid UTF-8"),
        (&[], b"--streaming=bad\xff", "the value of --streaming is not valid UTF-8"),
    ] {
        let output =
            aiperf().arg("profile").args(before).arg(std::ffi::OsStr::from_bytes(bad)).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let told = text(&output.stderr);
        assert!(told.contains(said) && !told.contains("CANARY"), "{told}");
    }
    let bad = std::ffi::OsStr::from_bytes(b"bad\xff");
    for (arguments, said, usage) in [
        (&["profile"][..], "argument 2 is not valid UTF-8", "aiperf profile --model NAME [FLAGS]"),
        (
            &["dataset", "resolve", "--endpoint-type"],
            "the value of --endpoint-type is not valid UTF-8",
            "aiperf dataset resolve",
        ),
        (&["dataset", "resolve"], "argument 3 is not valid UTF-8", "aiperf dataset resolve"),
        (&["mock-server", "--ttft"], "the value of --ttft is not valid UTF-8", "aiperf mock-server"),
    ] {
        let output = aiperf().args(arguments).arg(bad).output().unwrap();
        assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(&format!("Usage: {usage}")), "{}", text(&output.stderr));
    }
}

#[test]
fn numbers_of_hundreds_of_digits_are_shown_short() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [
        &["profile", "-m", "m", "--audio-length-mean", "1e-320"][..],
        &["profile", "-m", "m", "--network-latency-mean", "1e300"],
        &["synthesize", "trace", "--output", "-", "--rate", "1e300"],
        &["synthesize", "trace", "--output", "-", "--isl", "1e300"],
    ] {
        let output = run(arguments, directory.path());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stderr.len() < 250, "{}", text(&output.stderr));
    }
}

#[test]
fn nothing_is_near_to_an_empty_name() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [&["datasets", ""][..], &["profile", "-m", "m", "--video-audio-depth", ""]] {
        let output = run(arguments, directory.path());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(!said.contains("near names") && !said.contains("did you mean"), "{said}");
    }
}

/// <https://github.com/ai-dynamo/aiperf/issues/1196>: an exception leaves the screen up and the output frozen.
#[test]
fn a_damaged_file_that_makes_its_decoder_panic_is_one_error_and_no_fault_of_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataset/tests/data/parquet/decoder_gives_up.parquet");
    let file = file.to_str().unwrap();
    let line =
        "profile -m m --url mock:// --tokenizer builtin --custom-dataset-type single_turn --input-file";
    let arguments: Vec<&str> = line.split(' ').chain([file]).collect();
    let output = run(&arguments, directory.path());
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("decoder_gives_up.parquet") && stderr.contains("damaged"), "{stderr}");
    assert!(!stderr.contains("panicked") && !stderr.contains("internal error"), "{stderr}");
}

#[test]
fn aiperf_1196_a_panic_on_any_thread_ends_the_program_with_101() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "program::child_that_panics", "--nocapture"])
        .env("AIPERF_TEST_PANIC", "1")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(101));
    let report = text(&output.stderr);
    assert!(report.contains("on purpose") && report.contains("internal error"), "{report}");
}

/// Not a test by itself: the child of the one above.
#[test]
fn child_that_panics() {
    if std::env::var_os("AIPERF_TEST_PANIC").is_none() {
        return;
    }
    aiperf_cli::panic::install();
    // The thread dies; the program must not go on without it.
    _ = std::thread::spawn(|| panic!("on purpose")).join();
    std::process::exit(0);
}

#[test]
fn a_mistyped_secret_is_not_repeated() {
    let directory = tempfile::tempdir().unwrap();
    let output =
        run(&["profile", "-m", "m", "--ulr=http://me:planted@h", "http://me:planted@h"], directory.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(!text(&output.stderr).contains("planted"), "{}", text(&output.stderr));
}
