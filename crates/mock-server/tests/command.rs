//! The server as a process of its own.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use aiperf_mock_server::{CommandError, Settings, StartError, run_command};
use rustix::process::{Pid, Signal, kill_process};

const ROLE: &str = "AIPERF_TEST_SERVES";

const FULL_DISK: &str = "logs to a full disk";

/// Not a test by itself: what the child processes below run.
#[test]
fn child() {
    match std::env::var_os(ROLE) {
        Some(role) if role == FULL_DISK => {
            let settings = Settings::from_pairs([("log", "/dev/full")]).unwrap();
            let error = run_command(&settings, "127.0.0.1", 0).unwrap_err();
            assert!(matches!(error, CommandError::Log(_)), "{error}");
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
        let reached = std::net::TcpStream::connect(address(&mut stdout));
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        reached.unwrap();
    }
}

/// It is told when it happens, not hours later.
#[test]
fn a_log_on_a_full_disk_is_told_while_the_server_goes_on() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(ROLE, FULL_DISK)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let address = address(&mut stdout);
    let ask = || {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        stream.write_all(b"GET /nowhere HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    };
    ask();
    let mut line = String::new();
    while !line.contains("timing log") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "nothing is said");
    }
    assert!(line.contains("No space left") && line.contains("goes on"), "{line}");
    ask();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
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
