//! What is shown while a run goes on.

use std::net::TcpListener;

use rustix::process::{Pid, Signal};

use crate::support::{Live, Mock, Place, aiperf, shell};

/// Runs `aiperf profile` on a terminal of its own; what the terminal was sent, stdout and stderr together.
fn on_a_terminal(place: &Place, environment: &str, flags: &str) -> String {
    on_a_terminal_of("xterm", place, environment, flags)
}

fn on_a_terminal_of(terminal: &str, place: &Place, environment: &str, flags: &str) -> String {
    let command = format!(
        "{environment} $AIPERF profile --model demo --tokenizer builtin --artifact-dir out --isl 16 \
         --url \"mock://?ttft=5ms&itl=1ms&tokens=4\" {flags}"
    );
    let mut command = shell(&format!("script -qec '{command}' /dev/null"));
    command.env("TERM", terminal).current_dir(place.root());
    Live::start(&mut command).end().with_code(0).out
}

/// What is left on the bar's line at the end: text after the last clearing of it, up to the line's end.
fn leftovers(shown: &str) -> Vec<String> {
    shown
        .split('\n')
        .filter_map(|line| {
            line.rsplit_once("\r\x1b[K").map(|(_, rest)| rest.trim_end_matches('\r').to_owned())
        })
        .filter(|rest| {
            rest.contains("Profiling:") || rest.contains("Processing Records:") || rest.contains("Warmup:")
        })
        .collect()
}

#[test]
fn a_terminal_has_one_bar_and_is_left_clean() {
    for flags in ["--ui simple", ""] {
        let place = Place::new();
        let shown = on_a_terminal(
            &place,
            "",
            &format!("--concurrency 4 --request-count 300 --warmup-request-count 200 {flags}"),
        );
        assert!(shown.contains("\r\x1b[K"), "no bar: {shown:?}");
        assert!(shown.contains("Profiling: ") && shown.contains("/300 |"), "{shown:?}");
        assert!(shown.contains("Warmup"), "{shown:?}");
        assert_eq!(leftovers(&shown), Vec::<String>::new(), "a bar was left standing");
        assert_eq!(
            shown.matches("\x1b[?25l").count(),
            shown.matches("\x1b[?25h").count(),
            "the cursor stays hidden"
        );
        assert!(shown.contains("\x1b["), "colour on a terminal");
        assert!(shown.contains("Load Delivery"));
    }
}

#[test]
fn no_color_turns_colour_off_and_keeps_the_bar() {
    let place = Place::new();
    let shown = on_a_terminal(&place, "NO_COLOR=1", "--concurrency 4 --request-count 200 --ui simple");
    assert!(shown.contains("Profiling: "));
    let styles = shown.split("\x1b[").skip(1).filter(|rest| {
        rest.find(|c: char| c.is_ascii_alphabetic()).is_some_and(|end| rest.as_bytes()[end] == b'm')
    });
    assert_eq!(styles.count(), 0, "{shown:?}");
}

#[test]
fn a_dumb_terminal_is_sent_no_control_sequences() {
    for flags in ["--ui simple", ""] {
        let place = Place::new();
        let flags = format!("--concurrency 4 --request-count 200 {flags}");
        let shown = on_a_terminal_of("dumb", &place, "", &flags);
        assert!(shown.contains("LLM Metrics") && !shown.contains('\x1b'), "{shown:?}");
    }
}

/// Who waits is told for what on a line that is drawn anew, and the words of a signal take its place.
#[test]
fn the_words_of_a_signal_do_not_stand_behind_the_bar() {
    let place = Place::new();
    // A pipe that nobody writes into: reading waits.
    std::fs::create_dir(place.path("words")).unwrap();
    assert!(shell("mkfifo words/tokenizer.json").current_dir(place.root()).status().unwrap().success());
    let command =
        "echo pid $$; exec \"$AIPERF\" profile --model demo --tokenizer ./words --url mock:// --isl 16";
    let mut command = shell(&format!("script -qec '{command}' /dev/null"));
    command.env("TERM", "xterm").current_dir(place.root());
    let live = Live::start(&mut command);
    let shown = live.await_out("\r\x1b[Kopening the tokenizer: ");
    let pid = shown.lines().find_map(|line| line.strip_prefix("pid ")?.trim().parse().ok()).unwrap();
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::INT).unwrap();
    let shown = live.end().out;
    let (bars, words) = shown.rsplit_once("\r\x1b[K").unwrap();
    assert!(bars.ends_with(" s"), "{shown:?}");
    assert_eq!(words.trim_end(), "Ctrl-C: ended before the first request; nothing was written", "{shown:?}");
}

/// A name of which a part would act on the terminal is shown with that part escaped.
#[test]
fn what_was_typed_does_not_act_on_the_terminal() {
    let place = Place::new();
    let mut command = aiperf();
    command.current_dir(place.root()).args([
        "profile",
        "--model",
        "a\u{1b}[31mb",
        "--url",
        "mock://?tokens=2",
    ]);
    command
        .args("--tokenizer builtin --request-count 2 --isl 8 --ui none --profile-export-prefix".split(' '));
    command.arg("x\u{1b}y");
    let ran = Live::start(&mut command).end().with_code(0);
    assert!(!ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'), "{} {}", ran.out, ran.err);
    assert!(ran.out.contains(r"--model $'a\x1b[31mb'") && ran.out.contains(r"x\u{1b}y"), "{}", ran.out);
    let mut command = place.profile("mock://", "");
    command.args(["--input-file", "no\u{1b}[31msuch"]);
    let ran = Live::start(&mut command).end().with_code(2);
    assert!(ran.err.contains(r"--input-file no\u{1b}[31msuch: it does not exist"), "{}", ran.err);
}

#[test]
fn ui_none_is_silent_on_a_terminal() {
    let place = Place::new();
    let shown = on_a_terminal(&place, "", "--concurrency 4 --request-count 100 --ui none");
    assert!(!shown.contains("Profiling:") && !shown.contains("\x1b[K"), "{shown:?}");
}

/// <https://github.com/gpustack/gpustack/issues/6205>: live figures were there while the final ones were 0.
#[test]
fn gpustack_6205_live_figures_on_a_pipe_and_the_final_ones_agree() {
    let place = Place::new();
    let mut command = crate::support::aiperf();
    command.current_dir(place.root()).args([
        "profile",
        "--model",
        "demo",
        "--tokenizer",
        "builtin",
        "--artifact-dir",
        "out",
    ]);
    command.args(["--url", "mock://?ttft=20ms&itl=2ms&tokens=6&reasoning=100", "--streaming", "--isl", "16"]);
    command.args(["--concurrency", "2", "--benchmark-duration", "2.6", "--stats-interval", "1"]);
    let ran = Live::start(&mut command).end().with_code(0);
    assert!(
        ran.err.contains("[realtime 00:01 profiling]") && ran.err.contains("[realtime 00:02 profiling]"),
        "{}",
        ran.err
    );
    let block = ran.err.split("[realtime 00:02 profiling]").nth(1).unwrap();
    for part in
        ["rps=", "tput_in=", "tput_out=", "done=", "ok=", "err=0", "ttft", "itl", "e2e", "isl", "osl", "tot"]
    {
        assert!(block.contains(part), "no {part} in {block}");
    }
    // The live median of TTFT is one the final distribution has, too.
    let row = block.lines().find(|line| line.trim_start().starts_with("ttft")).unwrap();
    let median: f64 = row
        .split_whitespace()
        .skip(1)
        .find_map(|word| word.trim_start_matches("p50=").trim_end_matches("ms").parse().ok())
        .unwrap_or_else(|| panic!("{row}"));
    let ttft = &place.results().summary()["time_to_first_token"];
    assert!(median >= 20.0 * 0.9, "{row}");
    assert!(median <= ttft["max"].as_f64().unwrap() * 1.1, "{row}: {ttft}");
    assert!(!ran.err.contains('\x1b') && !ran.err.contains('\r'), "a pipe is no terminal");
}

#[test]
fn an_interval_of_0_and_ui_none_print_no_live_blocks() {
    for flags in ["--stats-interval 0", "--stats-interval 1 --ui none"] {
        let place = Place::new();
        let mut command = crate::support::aiperf();
        command.current_dir(place.root()).args([
            "profile",
            "--model",
            "demo",
            "--artifact-dir",
            "out",
            "--isl",
            "16",
        ]);
        command.args([
            "--url",
            "mock://?ttft=5ms&tokens=2",
            "--concurrency",
            "1",
            "--benchmark-duration",
            "1.2",
        ]);
        let ran = Live::start(command.args(flags.split(' '))).end().with_code(0);
        assert!(!ran.err.contains("[realtime"), "{flags}: {}", ran.err);
    }
}

/// A server that takes connections and says nothing leaves nobody guessing: the lines say at which step requests are.
#[test]
fn what_is_waited_for_is_said_while_nothing_has_come_back() {
    // Connections wait in the queue of the listener, and nobody takes them.
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let silent = listener.local_addr().unwrap();
    let hanging = Mock::start(&[("ttft", "0"), ("plan", "hang")]);
    for (url, step) in [
        (format!("https://{silent}"), "2 in the TLS handshake"),
        (format!("http://{silent}"), "2 waiting for the first byte of an answer"),
        (hanging.url(), "2 being answered"),
    ] {
        let place = Place::new();
        let flags = "--streaming --concurrency 2 --request-count 3 --isl 16 --stats-interval 0.2 --ui simple";
        let live = Live::start(&mut place.profile(&url, flags));
        live.await_err(&format!("profiling] no request of 3 is back yet: {step}\n"));
        live.signal(Signal::INT);
        let ran = live.end().with_code(1);
        assert!(ran.err.contains("[waiting 00:0"), "{}", ran.err);
    }
}

/// Lines on a pipe begin with the time and the level; those of the file name their source, too.
#[test]
fn log_lines_have_their_form() {
    let place = Place::new();
    let ran = place.run("mock://?ttft=1ms&plan=ok:http500", "--request-count 4 --isl 16").with_code(0);
    let line = ran.err.lines().find(|line| line.contains("first failed request")).unwrap();
    let shape: String = line.chars().take(21).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "00:00:00.000 ERROR   ", "{line}");
    let log = place.results().text("logs/aiperf.log");
    let line = log.lines().find(|line| line.contains("first failed request")).unwrap();
    let shape: String = line.chars().take(26).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00 00:00:00.000 - ", "{line}");
    assert!(line.contains(" - ERROR - "), "{line}");
}

#[test]
fn who_wants_more_is_told_of_each_failed_request_and_then_of_every_one() {
    let lines = |flag: &str| {
        let place = Place::new();
        let flags = format!("--streaming --request-count 10 --concurrency 1 --isl 16 {flag}");
        let ran = place.run("mock://?ttft=1ms&tokens=2&plan=ok*9:http500", &flags).with_code(0);
        let log = place.results().text("logs/aiperf.log");
        let of = |part: &str| {
            let count = log.lines().filter(|line| line.contains(part)).count();
            assert_eq!(ran.err.lines().filter(|line| line.contains(part)).count(), count, "{}", ran.err);
            count
        };
        [
            of("connections go to 127.0.0.1:"),
            of(": 500 Internal Server Error after "),
            of(": 200, first content after "),
        ]
    };
    assert_eq!(lines(""), [0, 0, 0]);
    assert_eq!(lines("-v"), [1, 1, 0]);
    assert_eq!(lines("--log-level debug"), [1, 1, 0]);
    assert_eq!(lines("--extra-verbose"), [1, 1, 9]);
}

/// The log of a run without a blemish tells what was run, when, how it ended and where the results lie; the screen stays
/// as quiet as it was.
#[test]
fn the_log_tells_the_story_of_the_run() {
    let place = Place::new();
    let line = "--request-rate 300 --concurrency 5 --request-count 12 --warmup-request-count 2 --isl 16 --api-key sk-canary-1";
    let ran = place.run("mock://?ttft=1ms&tokens=2", line).with_code(0);
    let log = place.results().text("logs/aiperf.log");
    let lines: Vec<&str> = log.lines().map(|line| line.split_once(" - ").unwrap().1).collect();
    assert!((8..16).contains(&lines.len()), "{log}");
    let mut rest = lines.iter();
    for part in [
        "run - INFO - aiperf 0.",
        "chat of demo at mock://?ttft=1ms&tokens=2, not streaming, seed ",
        "1 network and ",
        "dataset - INFO - generated, ",
        "warmup begins: 300 requests/s, poisson, concurrency 5, until 2 requests",
        "load - INFO - warmup ended after ",
        "profiling begins: 300 requests/s, poisson, concurrency 5, until 12 requests",
        " s: 12 sent, 12 back, 0 cut off, ",
        "records - INFO - 12 valid, 0 failed",
        "verdict - INFO - load delivery ",
        "profile_export_aiperf.json, ",
        "run - INFO - done",
    ] {
        assert!(rest.any(|line| line.contains(part)), "{part} is missing or out of order in {log}");
    }
    assert!(!log.contains("sk-canary-1"), "{log}");
    assert!(!ran.err.contains("warmup ended"), "{}", ran.err);
    // Who asks for warnings only gets no story.
    let place = Place::new();
    place.run("mock://?ttft=1ms&tokens=2", "--request-count 2 --isl 16 --log-level warning").with_code(0);
    assert_eq!(place.results().text("logs/aiperf.log"), "");
}
