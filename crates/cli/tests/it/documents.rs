//! The documents in the root say what is so.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use aiperf_cli::environment::{Environment, VARIABLES};
use aiperf_cli::exit::ExitStatus;
use aiperf_cli::settle::{Files, settle};
use aiperf_cli::typed::Typed;
use aiperf_config::LoadMode;

use crate::support::path;

fn root() -> PathBuf {
    path("../..")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The commands in the `sh` blocks of a document, continued lines joined.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for block in text.split("```sh\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let block = block.replace("\\\n", " ");
        commands.extend(block.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned));
    }
    commands
}

/// Splits a command as a shell would: white space, double quotes.
fn split(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in command.split('"').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

const FIRST: &str = "cargo run --release -- profile --model demo --url mock:// --streaming --concurrency 16 --request-count 500";
const TESTS: &str = "cargo test --workspace";

#[test]
fn the_readme_has_the_two_commands_first() {
    let commands = commands(&read("README.md"));
    assert_eq!(commands[..2], [FIRST, TESTS]);
}

#[test]
fn every_profile_command_of_the_readme_settles() {
    let mut seen = 0;
    for command in commands(&read("README.md")) {
        let words = split(&command);
        let Some(at) = words.iter().position(|word| word == "profile") else { continue };
        let words: Vec<String> = words[at..]
            .iter()
            .map(|word| match word.strip_prefix("examples/") {
                Some(_) => root().join(word).display().to_string(),
                None => word.clone(),
            })
            .collect();
        let settled = Typed::parse(&words)
            .and_then(|typed| settle(&typed, &Environment::default(), &Files))
            .unwrap_or_else(|error| panic!("{command}\n{}", error.report()));
        if command.contains("examples/mooncake.jsonl") {
            assert!(matches!(settled.config.profiling().mode, LoadMode::FixedSchedule(_)), "{command}");
        }
        seen += 1;
    }
    assert!(seen >= 5, "{seen}");
}

#[test]
fn the_help_shows_the_first_command_and_the_trace() {
    let help = aiperf_cli::help::profile(aiperf_cli::help::Detail::Supported);
    // An installed program has no files of the source: what is read is made by the line before.
    assert!(help.contains("--output trace.jsonl") && help.contains("--input-file trace.jsonl"));
    assert!(!help.contains("examples/"), "{help}");
    assert!(help.replace(" \\\n     ", "").contains(FIRST.strip_prefix("cargo run --release -- ").unwrap()));
}

#[test]
fn the_exit_codes_of_the_readme_are_those_of_the_program() {
    let readme = read("README.md");
    let section = readme.split("## Exit codes").nth(1).unwrap().split("\n## ").next().unwrap();
    let codes: Vec<u8> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" |").next()?.parse().ok())
        .collect();
    let mut expected = ExitStatus::ALL.map(ExitStatus::code);
    expected.sort_unstable();
    assert_eq!(codes, expected);
}

#[test]
fn the_variables_of_the_readme_are_those_that_are_read() {
    let readme = read("README.md");
    let section = readme.split("## Environment variables").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = VARIABLES
        .iter()
        .map(|variable| format!("| `{}` | {} | {} |", variable.name, variable.default, variable.help))
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn every_crate_is_in_the_architecture_and_nothing_else() {
    let text = read("ARCHITECTURE.md");
    let table = text.split("## The crates").nth(1).unwrap().split("\n## ").next().unwrap();
    let named: BTreeSet<String> = table
        .lines()
        .filter_map(|line| Some(line.strip_prefix("| `")?.split('`').next()?.to_owned()))
        .collect();
    let mut there: BTreeSet<String> = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    there.insert("xtask".into());
    assert_eq!(named, there);
}

/// What the table of crates says a crate may use is what its manifest says it uses.
#[test]
fn crates_use_what_the_architecture_allows() {
    let text = read("ARCHITECTURE.md");
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if cells.len() < 5 || !cells[3].starts_with('`') {
            continue;
        }
        let name = cells[1].split('`').nth(1).unwrap();
        let allowed: BTreeSet<&str> =
            cells[3].split('`').skip(1).step_by(2).chain(["clock", "types"]).collect();
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let dependencies = dependencies.split("\n[").next().unwrap_or_default();
        for used in
            dependencies.lines().filter_map(|line| line.strip_prefix("aiperf-")?.split(['.', ' ']).next())
        {
            assert!(allowed.contains(used), "{name} uses {used}");
        }
    }
}

#[test]
fn ci_runs_the_command_of_the_readme() {
    let script = read(".ci/run");
    assert!(script.lines().any(|line| line == TESTS));
    for step in
        ["cargo fmt --all --check", "-D warnings", "cargo doc --workspace --no-deps", "set -euo pipefail"]
    {
        assert!(script.contains(step), "{step}");
    }
}

#[test]
fn each_difference_fills_its_columns() {
    let text = read("docs/differences.md");
    let mut rows = 0;
    for line in text.lines().filter(|line| line.starts_with('|')) {
        let cells = line.replace("\\|", "").matches('|').count() - 1;
        assert_eq!(cells, 5, "{line}");
        rows += 1;
    }
    assert!(rows > 80, "{rows}");
}

#[test]
fn links_between_documents_lead_somewhere() {
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/differences.md"] {
        let folder = root().join(name);
        let folder = folder.parent().unwrap_or(Path::new("."));
        for link in read(name).split("](").skip(1) {
            let target = link.split(')').next().unwrap_or_default();
            if !target.contains("://") {
                assert!(folder.join(target).exists(), "{name}: {target}");
            }
        }
    }
}

#[test]
fn the_changelog_knows_this_version() {
    assert!(read("CHANGELOG.md").contains(&format!("## {}", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn the_licence_is_whole() {
    let text = read("LICENSE");
    assert!(text.contains("Apache License") && text.contains("END OF TERMS AND CONDITIONS"));
    assert!(read("NOTICE").contains("shakespeare"));
}
