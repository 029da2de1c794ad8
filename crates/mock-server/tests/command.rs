//! The server as a process of its own.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};

use aiperf_mock_server::{CommandError, Settings, StartError, run_command};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit};

const ROLE: &str = "AIPERF_TEST_SERVES";

const FULL_DISK: &str = "logs to a full disk";
const FEW_FILES: &str = "may open few files";

/// Not a test by itself: what the child processes below run.
#[test]
fn child() {
    match std::env::var_os(ROLE) {
        Some(role) if role == FULL_DISK => {
            let settings = Settings::from_pairs([("log", "/dev/full")]).unwrap();
            let error = run_command(&settings, "127.0.0.1", 0).unwrap_err();
            assert!(matches!(error, CommandError::Log(_)), "{error}");
        }
        Some(role) if role == FEW_FILES => {
            setrlimit(Resource::Nofile, Rlimit { current: Some(30), maximum: Some(40) }).unwrap();
            run_command(&Settings::default(), "127.0.0.1", 0).unwrap();
        }
        Some(_) => run_command(&Settings::default(), "127.0.0.1", 0).unwrap(),
        None => {}
    }
}

/// Where the child listens, from its first line.
fn address(stdout: &mut impl BufRead) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        assert!(stdout.read_line(&mut line).unwrap() > 0, "the child says nothing");
        // The test harness talks on the same stream, without a line end before the child's first line.
        if let Some((_, address)) = line.trim_end().split_once("listening on http://") {
            return address.to_owned();
        }
    }
}

#[test]
fn the_first_line_says_where_and_a_signal_ends_it_with_0() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(ROLE, "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let reached = TcpStream::connect(address(&mut stdout));
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        reached.unwrap();
    }
}

/// A child in `role`, what it says on stderr, and where it listens.
fn in_role(role: &str) -> (Child, BufReader<ChildStderr>, String) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(ROLE, role)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let address = address(&mut BufReader::new(child.stdout.as_mut().unwrap()));
    (child, stderr, address)
}

fn is_answered(address: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /nowhere HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
}

/// The first line on stderr with `words` in it.
fn said(stderr: &mut impl BufRead, words: &str) -> String {
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "nothing is said");
    }
    line
}

/// It is told when it happens, not hours later.
#[test]
fn a_log_on_a_full_disk_is_told_while_the_server_goes_on() {
    let (mut child, mut stderr, address) = in_role(FULL_DISK);
    is_answered(&address);
    let line = said(&mut stderr, "timing log");
    assert!(line.contains("No space left") && line.contains("goes on"), "{line}");
    is_answered(&address);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Who waits for an answer has to know why none comes.
#[test]
fn connections_that_wait_for_an_open_file_are_told_once_and_accepted_when_one_is_free() {
    let (mut child, mut stderr, address) = in_role(FEW_FILES);
    let open = || (0..60).map(|_| TcpStream::connect(&address).unwrap()).collect::<Vec<_>>();
    let held = open();
    // The limit is the hard one.
    let line = said(&mut stderr, "open files are used up");
    assert!(line.contains("(ulimit -n 40): new connections wait"), "{line}");
    drop(held);
    is_answered(&address);
    let held = open();
    drop(held);
    is_answered(&address);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("used up"), "{rest}");
}

#[test]
fn a_taken_port_and_an_unknown_host_are_errors() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = run_command(&Settings::default(), "127.0.0.1", port).unwrap_err();
    assert!(matches!(error, CommandError::Start(StartError::PortTaken(_))));
    assert!(error.to_string().contains(&port.to_string()) && error.to_string().contains("--port"));
    let error = run_command(&Settings::default(), "no such host", 0).unwrap_err();
    assert!(error.to_string().contains("no such host"));
}
