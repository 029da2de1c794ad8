//! The same seed gives the same load, however many threads make it.

use crate::support::{Place, Results};

fn bodies(results: &Results) -> Vec<String> {
    let mut bodies: Vec<String> =
        results.lines("profile_export_raw.jsonl").iter().map(|line| line["payload"].to_string()).collect();
    bodies.sort();
    bodies
}

#[test]
fn inputs_and_bodies_do_not_depend_on_threads() {
    let mut seen: Option<(String, Vec<String>)> = None;
    for threads in ["--workers-max 1 --record-processors 1", "--workers-max 3 --record-processors 3"] {
        let place = Place::new();
        place
            .run(
                "mock://?ttft=1ms&itl=0&tokens=3",
                &format!(
                    "--random-seed 11 --concurrency 5 --num-conversations 12 --conversation-turn-mean 2 \
                     --conversation-turn-stddev 1 --isl 30 --isl-stddev 8 --osl 6 --osl-stddev 2 \
                     --num-prefix-prompts 2 --prefix-prompt-length 10 --export-level raw {threads}"
                ),
            )
            .with_code(0);
        let found = (place.results().text("inputs.json"), bodies(&place.results()));
        match &seen {
            None => seen = Some(found),
            Some(seen) => {
                assert_eq!(seen.0, found.0, "inputs.json");
                assert_eq!(seen.1, found.1, "bodies");
            }
        }
    }
    assert!(seen.unwrap().1.len() >= 12);
}

#[test]
fn lengths_random_prompts_and_rankings_do_not_depend_on_threads() {
    for line in [
        "--seq-dist 8|3,4|2:40;30|9,6:60 --conversation-turn-mean 2 --num-prefix-prompts 2 --prefix-prompt-length 9",
        "--isl 20 --osl 5 --random-range-ratio 0.5 --prompt-corpus random",
        "--isl 20 --osl 5 --random-range-ratio 0.5 --random-corpus-style sglang --prompt-corpus random \
         --num-prefix-prompts 2 --prefix-prompt-length 9",
        "--endpoint-type nim-rankings --rankings-passages-mean 3 --rankings-passages-stddev 1 \
         --rankings-passages-prompt-token-mean 9 --rankings-query-prompt-token-mean 5",
    ] {
        let run = |threads: u32| {
            let place = Place::new();
            let line = format!(
                "{line} --random-seed 11 --concurrency 5 --num-conversations 12 --export-level raw \
                 --workers-max {threads} --record-processors {threads}"
            );
            place.run("mock://?ttft=1ms&itl=0&tokens=3", &line).with_code(0);
            (place.results().text("inputs.json"), bodies(&place.results()))
        };
        let one = run(1);
        assert!(one.1.len() >= 12, "{line}");
        assert_eq!(one, run(3), "{line}");
    }
}

#[test]
fn another_seed_gives_another_load() {
    let inputs = |seed: &str| {
        let place = Place::new();
        place
            .run("mock://?ttft=1ms&tokens=2", &format!("--random-seed {seed} --request-count 3 --isl 30"))
            .with_code(0);
        place.results().text("inputs.json")
    };
    let first = inputs("1");
    assert_eq!(first, inputs("1"));
    assert_ne!(first, inputs("2"));
}

/// A seed that was not given is drawn and recorded, so that the run can be repeated.
#[test]
fn a_seed_that_was_drawn_is_recorded_and_repeats_the_run() {
    for line in ["--isl 30", "--isl 30 --osl 4 --prompt-corpus random --random-range-ratio 0.5"] {
        seed_repeats(line);
    }
}

fn seed_repeats(line: &str) {
    let place = Place::new();
    place.run("mock://?ttft=1ms&tokens=2", &format!("--request-count 3 {line}")).with_code(0);
    let results = place.results();
    let seed = results.summary()["run_info"]["random_seed"].as_u64().unwrap();
    let again = Place::new();
    again
        .run("mock://?ttft=1ms&tokens=2", &format!("--request-count 3 {line} --random-seed {seed}"))
        .with_code(0);
    // The ids are new: without a seed they tell runs apart.
    let payloads = |results: &Results| -> Vec<String> {
        let inputs = results.json("inputs.json");
        inputs["data"].as_array().unwrap().iter().map(|entry| entry["payloads"].to_string()).collect()
    };
    assert_eq!(payloads(&again.results()), payloads(&results));
}

/// The plan of a random arrival process is the seed's, not that of the threads.
#[test]
fn arrival_times_do_not_depend_on_threads() {
    for pattern in ["poisson", "gamma --arrival-smoothness 0.5", "constant"] {
        let gaps = |threads: &str| {
            let place = Place::new();
            place
                .run(
                    "mock://?ttft=1ms&itl=0&tokens=2",
                    &format!(
                        "--random-seed 4 --request-rate 300 --arrival-pattern {pattern} --request-count 40 --isl 16 \
                         --workers-max {threads}"
                    ),
                )
                .with_code(0);
            let mut times: Vec<u64> = place
                .results()
                .records()
                .iter()
                .map(|record| record["metadata"]["scheduled_ns"].as_u64().unwrap())
                .collect();
            times.sort_unstable();
            times.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>()
        };
        assert_eq!(gaps("1"), gaps("3"), "{pattern}");
    }
}
