//! What a terminal is sent while data come, and names that would act on it.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::disk::Gate;
use crate::machine::{Machine, TRACE};

/// Shorter than this a bar stays as it was drawn.
const REDRAW: Duration = Duration::from_millis(100);

#[test]
fn a_download_has_one_bar_that_goes_at_the_end() {
    let gate = Gate::new();
    let mut machine = Machine::bare();
    machine.set("TERM", "xterm");
    let command = format!("'{}' dataset fetch '{}'", env!("CARGO_BIN_EXE_aiperf"), gate.url());
    let mut child = machine
        .through(Command::new("script"), &["-qec", &command, "/dev/null"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let terminal = child.stdout.as_mut().unwrap();
    let (mut shown, mut byte) = (Vec::new(), [0]);
    while !String::from_utf8_lossy(&shown).contains("info: downloading 1 file(s)") {
        terminal.read_exact(&mut byte).unwrap();
        shown.push(byte[0]);
    }
    // It began before this line was seen: once this time is over, the first bytes are shown.
    std::thread::sleep(REDRAW);
    gate.open();
    terminal.read_to_end(&mut shown).unwrap();
    assert!(child.wait().unwrap().success());
    let shown = String::from_utf8(shown).unwrap();
    let bars: Vec<&str> = shown.split("\r\x1b[K").skip(1).collect();
    let [bar, rest] = bars[..] else { panic!("{shown:?}") };
    assert!(bar.starts_with("downloading: |████") && bar.contains("| 100% of "), "{shown:?}");
    assert!(!rest.contains("downloading") && !shown.contains("\\u{"), "{shown:?}");
}

#[test]
fn a_name_with_control_characters_is_whole_in_json_and_escaped_in_text() {
    const NAME: &str = "n\u{7f}\u{9b}31m\u{1b}\r.jsonl";
    let machine = Machine::bare();
    std::fs::create_dir(machine.home.path().join("set")).unwrap();
    std::fs::write(machine.home.path().join("set").join(NAME), TRACE).unwrap();
    let json = machine.aiperf(&["dataset", "publish-check", "set", "--json"]).stdout;
    let told: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(told["suggested"]["path"], NAME, "{told}");
    let text = machine.aiperf(&["dataset", "publish-check", "set"]).stdout;
    let text = String::from_utf8(text).unwrap();
    let (_, manifest) = text.split_once("\n\n").unwrap();
    let (manifest, _) = manifest.rsplit_once('}').unwrap();
    let pasted: Value = serde_json::from_str(&format!("{manifest}}}")).unwrap();
    assert_eq!(pasted["path"], NAME, "{text}");
    for text in [String::from_utf8(json).unwrap(), text] {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
}
