//! The documents tell people what to type; it works.
//! <https://github.com/ai-dynamo/aiperf/pull/695>: documents taught a flag that was gone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::support::{Live, Place, Ran, aiperf, shell};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The commands in the `sh` blocks of the README.
fn commands() -> Vec<String> {
    let readme = read("README.md");
    let blocks = readme.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    blocks
        .flat_map(|block| {
            block.replace("\\\n", " ").lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
        })
        .filter(|line| !line.is_empty())
        .collect()
}

/// Types a command of the README in a folder that has the examples, as a shell does.
fn typed(place: &Place, command: &str) -> Ran {
    let command = command
        .strip_prefix("cargo run --release -- ")
        .or_else(|| command.strip_prefix("aiperf "))
        .unwrap_or_else(|| panic!("{command}"));
    std::fs::create_dir(place.path("examples")).unwrap();
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), place.path("examples").join(entry.file_name())).unwrap();
    }
    Live::start(shell(&format!("\"$AIPERF\" {command}")).current_dir(place.root())).end().with_code(0)
}

#[test]
fn the_first_command_of_the_readme_ends_with_a_report() {
    let place = Place::new();
    let ran = typed(&place, &commands()[0]);
    assert!(
        ran.out.contains("AIPerf | LLM Metrics") && ran.out.contains("Time to First Token"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("500 sent: 500 succeeded"), "{}", ran.out);
    assert!(place.path("artifacts/demo-openai-chat-concurrency16/profile_export_aiperf.json").is_file());
}

#[test]
fn the_trace_of_the_readme_is_replayed_on_its_schedule() {
    let place = Place::new();
    let command = commands().into_iter().find(|line| line.contains("examples/mooncake.jsonl")).unwrap();
    let ran = typed(&place, &command);
    let rows = read("examples/mooncake.jsonl").lines().count();
    assert!(ran.out.contains(&format!("{rows} sent: {rows} succeeded")), "{}", ran.out);
    assert!(place.path("artifacts/demo-openai-chat-fixed_schedule/profile_export.jsonl").is_file());
}

#[test]
fn the_conversations_of_the_readme_are_held() {
    let place = Place::new();
    let command = commands().into_iter().find(|line| line.contains("--num-conversations")).unwrap();
    let ran = typed(&place, &command);
    assert!(ran.out.contains(" 0 failed, 0 cut off"), "{}", ran.out);
}

/// The server of the README that fails on purpose, on a port of its own.
#[test]
fn the_mock_server_of_the_readme_fails_one_request_in_ten() {
    let command = commands().into_iter().find(|line| line.starts_with("aiperf mock-server")).unwrap();
    let command = command.strip_prefix("aiperf ").unwrap().replace("--port 8000", "--port 0");
    let server = Live::start(&mut shell(&format!("exec \"$AIPERF\" {command}")));
    let said = server.await_out("\n");
    let url = said.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{said}"));
    let place = Place::new();
    place.run(url, "--request-count 20 --concurrency 4 --isl 16 --osl 4").with_code(0);
    assert_eq!(place.results().summary()["error_request_count"]["avg"], 2.0);
    server.signal(rustix::process::Signal::INT);
    server.end().with_code(0);
}

/// The files that the README lists are those that a run leaves.
#[test]
fn the_files_of_the_readme_are_those_of_a_run() {
    let place = Place::new();
    place.run("mock://?ttft=1ms&tokens=2", "--request-count 2 --isl 16 --export-level raw").with_code(0);
    let readme = read("README.md");
    for name in place.results().files() {
        let shown =
            name.strip_prefix("profile_export_aiperf").map_or(name.clone(), |ending| format!("`{ending}`"));
        assert!(
            readme.contains(&name) || readme.contains(&shown) || name.starts_with('.'),
            "{name} is not in the README"
        );
    }
}

/// The help of a command and of the commands below it.
fn help_of_all_commands(path: &mut Vec<String>) -> String {
    let mut text = Live::start(aiperf().args(&*path).arg("--help")).end().with_code(0).out;
    let below: Vec<String> = text
        .split_once("\nCommands:\n")
        .map_or("", |(_, list)| list.split("\n\n").next().unwrap())
        .lines()
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        // It takes the name of a command, and no flags.
        .filter(|command| command != "help")
        .collect();
    for command in below {
        path.push(command);
        text.push_str(&help_of_all_commands(path));
        path.pop();
    }
    text
}

#[test]
fn aiperf_695_documents_name_only_flags_that_exist() {
    let help = |arguments: &[&str]| Live::start(aiperf().args(arguments)).end().with_code(0).out;
    let supported = help(&["profile", "--help"]);
    let all = help(&["profile", "--help-all"]);
    let others_help = help_of_all_commands(&mut Vec::new());
    let flags = |text: &str| -> BTreeSet<String> {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
            .filter(|word| {
                word.starts_with("--") && word.len() > 3 && word.as_bytes()[2].is_ascii_alphanumeric()
            })
            .map(|word| word.trim_end_matches('-').to_owned())
            .collect()
    };
    let usable: BTreeSet<String> = flags(&supported).into_iter().chain(flags(&others_help)).collect();
    // Flags of cargo and of the servers that are mentioned.
    let others = [
        "--release",
        "--workspace",
        "--path",
        "--all",
        "--check",
        "--no-deps",
        "--locked",
        "--bin",
        "--test",
        "--all-targets",
        "--help-all",
        "--profile",
        "--offline",
        "--example",
        "--bench",
        "--doc",
    ];
    let mut seen = 0;
    for name in ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"] {
        for flag in flags(&read(name)) {
            let known = usable.contains(&flag) || others.contains(&flag.as_str());
            assert!(
                known,
                "{name} names {flag}, which cannot be used{}",
                if flags(&all).contains(&flag) { " yet" } else { "" }
            );
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}
