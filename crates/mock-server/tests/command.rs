//! The server as a process of its own.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use aiperf_mock_server::{CommandError, Settings, StartError, run_command};
use rustix::process::{Pid, Signal, kill_process};

const ROLE: &str = "AIPERF_TEST_SERVES";

/// Not a test by itself: what the child processes below run.
#[test]
fn child() {
    if std::env::var_os(ROLE).is_some() {
        run_command(&Settings::default(), "127.0.0.1", 0).unwrap();
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
