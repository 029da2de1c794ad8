//! A run replaces or deletes the results of an earlier run in its folder. What it reads itself is never among them.

use std::path::Path;

use aiperf_report::{FileNames, files_of_run};

use crate::support::{Live, Place, Ran, aiperf};

const MOCK: &str = "mock://?ttft=1ms&itl=0&tokens=2&usage=estimate";
const ROW: &str = "{\"text\": \"hi\"}\n";
const BODY: &str = "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}\n";

/// Checks that the run was refused for `flag` and that `file` is as it was.
#[track_caller]
fn refused(ran: &Ran, flag: &str, file: &Path, text: &str) {
    assert_eq!(ran.code, Some(2), "{}{}", ran.out, ran.err);
    for part in [format!("error: {flag}: ").as_str(), "would be replaced or deleted", "--artifact-dir"] {
        assert!(ran.err.contains(part), "no {part:?} in {}", ran.err);
    }
    assert!(ran.out.is_empty(), "{}", ran.out);
    assert_eq!(std::fs::read_to_string(file).unwrap(), text);
}

#[test]
fn the_inputs_of_a_run_are_sent_again_into_another_folder_only() {
    let place = Place::new();
    let run = |line: &str| {
        let mut command = aiperf();
        command.current_dir(place.root()).args(["profile", "--model", "demo", "--url", MOCK, "--ui", "none"]);
        Live::start(command.args(line.split_whitespace())).end()
    };
    run("--request-count 2 --isl 16").with_code(0);
    let name = "artifacts/demo-openai-chat-concurrency1/inputs.json";
    let text = std::fs::read_to_string(place.path(name)).unwrap();
    let again = format!("--request-count 2 --input-file {name}");
    refused(&run(&again), &format!("--input-file {name}"), &place.path(name), &text);
    assert!(place.path("artifacts/demo-openai-chat-concurrency1/.aiperf_results_ready.json").exists());
    run(&format!("{again} --artifact-dir again")).with_code(0);
    assert_eq!(std::fs::read_to_string(place.path(name)).unwrap(), text);
}

#[test]
fn a_run_that_would_replace_or_delete_what_it_reads_is_refused() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("out/phases/warmup")).unwrap();
    for (name, line) in [
        ("mine.jsonl", "--profile-export-prefix mine"),
        ("profile_export_raw.jsonl", "--export-level raw"),
        // It is not written, and deleted for that reason.
        ("profile_export_raw.jsonl", "--export-level summary"),
        ("phases/warmup/server_metrics.json", ""),
    ] {
        let name = format!("out/{name}");
        place.write(&name, ROW);
        let ran = place.run(
            MOCK,
            &format!("--request-count 2 --input-file {name} --custom-dataset-type single_turn {line}"),
        );
        refused(&ran, &format!("--input-file {name}"), &place.path(&name), ROW);
        std::fs::remove_file(place.path(&name)).unwrap();
        assert!(place.results().files().is_empty(), "{name}: {:?}", place.results().files());
    }
}

/// A run with another prefix goes whole when one of its files has the name of one of the new run.
#[test]
fn a_file_of_a_run_that_is_replaced_is_not_read() {
    let place = Place::new();
    place.run(MOCK, "--request-count 2 --isl 16 --export-level raw --profile-export-prefix foo").with_code(0);
    let file = place.write("out/foo.jsonl", ROW);
    let line = "--request-count 2 --input-file out/foo.jsonl --custom-dataset-type single_turn";
    let ran = place.run(MOCK, &format!("{line} --profile-export-prefix foo_raw"));
    refused(&ran, "--input-file out/foo.jsonl", Path::new(&file), ROW);
    place.run(MOCK, &format!("{line} --profile-export-prefix bar")).with_code(0);
    assert_eq!(std::fs::read_to_string(file).unwrap(), ROW);
}

#[test]
fn another_name_of_the_file_does_not_hide_it() {
    let place = Place::new();
    std::fs::create_dir(place.path("out")).unwrap();
    place.write("data.jsonl", ROW);
    let result = place.path("out/profile_export.jsonl");
    let run = |file: &str| {
        place.run(MOCK, &format!("--request-count 2 --input-file {file} --custom-dataset-type single_turn"))
    };
    std::os::unix::fs::symlink("../data.jsonl", &result).unwrap();
    refused(&run("data.jsonl"), "--input-file data.jsonl", &result, ROW);
    std::fs::remove_file(&result).unwrap();
    std::fs::hard_link(place.path("data.jsonl"), &result).unwrap();
    refused(&run("./out/../data.jsonl"), "--input-file ./out/../data.jsonl", &result, ROW);
}

#[test]
fn a_file_of_a_folder_that_is_read_counts_and_the_others_do_not() {
    let place = Place::new();
    std::fs::create_dir(place.path("out")).unwrap();
    place.write("out/a.jsonl", BODY);
    // A result that the format does not read.
    place.write("out/profile_export_aiperf.csv", "old");
    let line = "--request-count 2 --input-file out --custom-dataset-type raw_payload";
    let results = place.write("out/profile_export.jsonl", BODY);
    let ran = place.run(MOCK, line);
    refused(&ran, "--input-file out", Path::new(&results), BODY);
    assert!(ran.err.contains("out/profile_export.jsonl, which is read,"), "{}", ran.err);
    std::fs::remove_file(results).unwrap();
    place.run(MOCK, line).with_code(0);
    assert_eq!(std::fs::read_to_string(place.path("out/a.jsonl")).unwrap(), BODY);
}

#[test]
fn a_system_prompt_counts_too() {
    let place = Place::new();
    std::fs::create_dir(place.path("out")).unwrap();
    let file = place.write("out/outputs.json", "Be brief.");
    let ran = place.run(MOCK, "--request-count 2 --isl 16 --system-prompt-file out/outputs.json");
    refused(&ran, "--system-prompt-file out/outputs.json", Path::new(&file), "Be brief.");
}

/// The list that the refusals go by has every file in it that a run leaves.
#[test]
fn what_a_run_leaves_is_on_the_list() {
    for (prefix, line) in [(None, ""), (Some("mine"), "--profile-export-prefix mine")] {
        let place = Place::new();
        place
            .run(
                MOCK,
                &format!("--request-count 2 --warmup-request-count 1 --isl 16 --export-level raw {line}"),
            )
            .with_code(0);
        let listed = files_of_run(&place.path("out"), &FileNames::new(prefix));
        let files = place.results().files();
        assert!(files.len() > 8, "{files:?}");
        for file in files {
            assert!(listed.contains(&place.path("out").join(&file)), "{file}");
        }
    }
}
