//! What of a command line has no effect, or not the one that it says: each is told, by the name that was typed.

use aiperf_cli::flags::{self, Flag, Kind};

use crate::support::{effect, settle, settle_line, settled, words};

fn warnings(line: &str) -> Vec<String> {
    let notes = settle_line(line).unwrap_or_else(|error| panic!("{line}: {}", error.report())).notes;
    notes.into_iter().filter(|note| note.warning).map(|note| note.text).collect()
}

/// What is accepted and finds nothing to act on says so, by the name that was typed.
#[test]
fn options_with_nothing_to_act_on_are_told() {
    let raw = "--input-file @single_turn.jsonl --custom-dataset-type raw_payload --request-count 1";
    let texts = "--input-file @single_turn.jsonl --custom-dataset-type single_turn --request-count 1";
    for (line, flag) in [
        ("--endpoint-type completions --use-legacy-max-tokens".to_owned(), "--use-legacy-max-tokens"),
        ("--export-level summary --export-http-trace".to_owned(), "--export-http-trace"),
        ("--ui none --stats-interval 2".to_owned(), "--stats-interval"),
        ("--trace-idle-gap-cap-seconds 2".to_owned(), "--trace-idle-gap-cap-seconds"),
        ("--use-think-time-only".to_owned(), "--use-think-time-only"),
        ("--no-allow-dataset-wrap".to_owned(), "--no-allow-dataset-wrap"),
        ("--session-turn-delay-mean 5".to_owned(), "--session-turn-delay-mean"),
        ("--inter-turn-delay-cap-seconds 5".to_owned(), "--inter-turn-delay-cap-seconds"),
        ("--session-turns-mean 2 --session-delay-ratio 5".to_owned(), "--session-delay-ratio"),
        ("--use-legacy-max-tokens".to_owned(), "--use-legacy-max-tokens"),
        ("--endpoint-type completions --apply-chat-template".to_owned(), "--apply-chat-template"),
        ("--concurrency 1 --concurrency-ramp-duration 5".to_owned(), "--concurrency-ramp-duration"),
        (format!("{texts} --use-server-token-count --tokenizer builtin"), "--tokenizer"),
        ("--tokenizer builtin --tokenizer-revision v1".to_owned(), "--tokenizer-revision"),
        ("--tokenizer / --tokenizer-revision v1".to_owned(), "--tokenizer-revision"),
        (format!("{texts} --prompt-corpus coding"), "--prompt-corpus"),
        (format!("{raw} --osl 5"), "--osl"),
        (format!("{raw} --output-tokens-mean 5"), "--output-tokens-mean"),
        (format!("{raw} --extra-inputs temperature:0"), "--extra-inputs"),
        (format!("{raw} --system-prompt hi"), "--system-prompt"),
        (format!("{raw} --use-legacy-max-tokens"), "--use-legacy-max-tokens"),
        (format!("{raw} --inter-turn-delay-cap-seconds 2"), "--inter-turn-delay-cap-seconds"),
    ] {
        let notes = settle_line(&line).unwrap_or_else(|error| panic!("{}", error.report())).notes;
        let told = notes.iter().filter(|note| note.text.starts_with(&format!("{flag} changes nothing: ")));
        assert_eq!(told.filter(|note| note.warning).count(), 1, "{line}: {notes:?}");
    }
    for line in [
        "--use-legacy-max-tokens --export-http-trace --osl 5 --extra-inputs temperature:0 --prompt-corpus coding".to_owned(),
        format!("{texts} --osl 5 --extra-inputs temperature:0 --system-prompt hi --inter-turn-delay-cap-seconds 2"),
        "--tokenizer org/name --tokenizer-revision v1 --apply-chat-template".to_owned(),
        "--session-turns-mean 2 --session-turn-delay-mean 5 --session-delay-ratio 2 --inter-turn-delay-cap-seconds 1".to_owned(),
        "--use-legacy-max-tokens --seq-dist 8,4:100 --use-server-token-count --tokenizer builtin".to_owned(),
        "--concurrency 2 --concurrency-ramp-duration 5".to_owned(),
    ] {
        let notes = settle_line(&line).unwrap_or_else(|error| panic!("{}", error.report())).notes;
        assert!(!notes.iter().any(|note| note.text.contains("changes nothing")), "{line}: {notes:?}");
    }
}

#[test]
fn a_switch_that_is_off_asks_for_nothing() {
    assert_eq!(warnings("--use-legacy-max-tokens=false --use-think-time-only=false"), [""; 0]);
}

#[test]
fn what_grows_and_is_never_reached_is_told() {
    for (line, parts) in [
        (
            "--request-rate 1000 --request-rate-ramp-duration 10 --benchmark-duration 0.5",
            ["--request-rate 1000 is never reached", "--benchmark-duration ends", "about 50 requests/s"],
        ),
        (
            "--request-rate 100 --request-rate-ramp-duration 10 --request-count 5",
            ["--request-rate 100 is never reached", "--request-count ends", "about 10 requests/s"],
        ),
        (
            "--request-rate 100 --request-rate-ramp-duration 20",
            [
                "--request-rate 100 is never reached",
                "the 10 requests of the default end the phase",
                "requests/s; give --request-count or --benchmark-duration, or shorten",
            ],
        ),
        (
            "--concurrency 11 --concurrency-ramp-duration 10 --benchmark-duration 5",
            ["--concurrency 11 is never reached", "--benchmark-duration ends", "at 6; raise it"],
        ),
        (
            "--warmup-concurrency 11 --warmup-concurrency-ramp-duration 10 --warmup-duration 5",
            ["--warmup-concurrency 11 is never reached", "--warmup-duration ends", "at 6; raise it"],
        ),
    ] {
        let told = warnings(line);
        assert_eq!(told.len(), 1, "{line}: {told:?}");
        assert!(parts.iter().all(|part| told[0].contains(part)), "{line}: {told:?}");
    }
    for line in [
        "--request-rate 100 --request-rate-ramp-duration 2 --benchmark-duration 2",
        "--request-rate 100 --request-rate-ramp-duration 2 --request-count 100",
        "--concurrency 11 --concurrency-ramp-duration 2 --benchmark-duration 5",
        "--concurrency 11 --concurrency-ramp-duration 2 --request-count 50",
    ] {
        assert_eq!(warnings(line), [""; 0], "{line}");
    }
}

#[test]
fn a_cancellation_that_no_request_lives_to_see_is_told() {
    let told = warnings("--request-cancellation-rate 100 --request-cancellation-delay 1e9");
    assert!(
        told.len() == 1 && told[0].starts_with("--request-cancellation-rate changes nothing"),
        "{told:?}"
    );
    assert_eq!(warnings("--request-cancellation-rate 100 --request-cancellation-delay 5"), [""; 0]);
}

#[test]
fn a_spread_of_no_pause_is_told() {
    let notes = settled(&["--session-turn-delay-stddev", "2"]).notes;
    assert!(
        notes[0].warning && notes[0].text.starts_with("--session-turn-delay-stddev changes nothing"),
        "{notes:?}"
    );
}

/// Values for flags that the plainest run may have, by what they look like.
fn value(flag: &Flag) -> Option<String> {
    Some(match flag.kind {
        Kind::Switch => return None,
        Kind::Number(bounds) if bounds.max < 2.0 => "0.7".to_owned(),
        Kind::Count { .. } | Kind::Number(_) | Kind::Seconds(_) | Kind::SecondsOrForever => "7".to_owned(),
        Kind::Choice => {
            let other = flag.values().find(|value| Some(*value) != flag.default);
            other.or(flag.default).unwrap_or_default().to_owned()
        }
        Kind::Text if !flag.one_of.is_empty() => flag.values().next().unwrap_or_default().to_owned(),
        Kind::Texts if flag.shown == "--bind-address" => "127.0.0.1".to_owned(),
        Kind::Text | Kind::Texts | Kind::Path => "key:value".to_owned(),
    })
}

/// Beside nothing but the data each accepted flag acts, is refused, or is told: none is dropped in silence.
#[test]
fn in_the_plainest_runs_no_flag_is_dropped_in_silence() {
    // What is so anyway: they say what the run is, or ask for what there is without them.
    let apart = [
        "--model",
        "--url",
        "--endpoint-type",
        "--no-server-metrics",
        "--no-gpu-telemetry",
        "--allow-dataset-wrap",
        "--arrival-pattern",
        "--request-rate-mode",
        "--fixed-schedule-auto-offset",
        "--no-fixed-schedule",
        "--open-loop-replay",
        "--force-min-tokens",
    ];
    let is_only_choice = |flag: &Flag| flag.values().count() == 1;
    for line in [
        "",
        "--endpoint-type nim-rankings",
        "--input-file @single_turn.jsonl --custom-dataset-type single_turn",
        "--input-file @single_turn.jsonl --custom-dataset-type raw_payload",
        "--input-file @mooncake_hash.jsonl --custom-dataset-type mooncake_trace",
        "--input-file @baseten.parquet --custom-dataset-type baseten_trace --endpoint-type completions",
        "--input-file @weka_trace.json --custom-dataset-type weka_trace",
        "--public-dataset exgentic",
    ] {
        let words = words(line);
        let seen = |more: &[&str]| {
            let plain = words.iter().map(String::as_str);
            effect(&plain.chain(["--url", "http://h:1"]).chain(more.iter().copied()).collect::<Vec<_>>())
        };
        let (plain, said) = seen(&[]).unwrap();
        let flags = flags::all().filter(|flag| flag.acts() && !is_only_choice(flag));
        // Other names mean the same, but for those of opposites.
        let is_own = |flag: &Flag, name: &str| name == flag.shown || name.starts_with("--no-");
        let names = flags
            .flat_map(|flag| flag.names.iter().map(move |name| (flag, *name)))
            .filter(|(flag, name)| is_own(flag, name));
        let is_dropped = |(flag, name): &(&Flag, &str)| {
            let value = value(flag);
            let words: Vec<&str> = std::iter::once(*name).chain(value.as_deref()).collect();
            seen(&words).is_ok_and(|(run, notes)| run == plain && notes == said)
        };
        let dropped: Vec<_> = names
            .filter(|(_, name)| !apart.contains(name))
            .filter(is_dropped)
            .map(|(_, name)| name)
            .collect();
        assert!(dropped.is_empty(), "{line}: {dropped:?}");
    }
}

#[test]
fn a_pattern_that_means_no_pacing_is_told_beside_a_rate() {
    let told = warnings("--request-rate 5 --request-rate-mode concurrency-burst");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("--request-rate-mode concurrency-burst changes nothing: ")
            && told[0].contains("Poisson")
    );
    assert_eq!(warnings("--arrival-pattern concurrency-burst"), [""; 0]);
    let warmup = "--request-rate 5 --warmup-duration 1 --warmup-arrival-pattern concurrency-burst";
    assert!(warnings(warmup)[0].starts_with("--warmup-arrival-pattern concurrency-burst"));
}

#[test]
fn generated_text_is_not_chosen_by_a_context_length() {
    let error = settle_line("--max-context-length 5").unwrap_err().report();
    assert!(
        error.contains("--max-context-length chooses recorded traces") && error.contains("--isl"),
        "{error}"
    );
}

#[test]
fn credentials_in_two_places_say_which_are_sent() {
    let told = |arguments: &[&str]| {
        let notes = settle(arguments).unwrap_or_else(|error| panic!("{}", error.report())).notes;
        let told = notes.into_iter().filter(|note| note.warning && note.text.contains("credentials"));
        told.map(|note| note.text).collect::<Vec<_>>()
    };
    let header = ["-H", "authorization: Bearer planted"];
    let both = told(&[&["--api-key", "planted"][..], &header].concat());
    assert_eq!(
        both,
        [
            "credentials are given in more than one place: those of --api-key are sent, those of -H Authorization are \
          not; keep one of them"
        ]
    );
    let url = ["--url", "http://planted:planted@h"];
    for (one, sent, dropped) in [
        (&["--api-key", "planted"][..], "those of --api-key are sent", "in --url are not"),
        (&header[..], "those of -H Authorization are sent", "in --url are not"),
    ] {
        let both = told(&[one, &url[..]].concat());
        assert!(both.len() == 1 && both[0].contains(sent) && both[0].contains(dropped), "{both:?}");
        assert!(!both[0].contains("planted"), "{both:?}");
        assert!(told(one).is_empty());
    }
    assert!(told(&url).is_empty());
}

#[test]
fn keys_and_headers_that_two_places_set_say_which_are_sent() {
    for (line, parts) in [
        (
            "--extra-inputs max_tokens:3 --osl 4",
            &["max_completion_tokens of --osl", "max_tokens of --extra-inputs", "keep one"][..],
        ),
        (
            "--extra-inputs max_completion_tokens:3 --osl 4",
            &["of --extra-inputs, and not the lengths of --osl"],
        ),
        (
            "--extra-inputs max_tokens:3 --seq-dist 8,4:100 --use-legacy-max-tokens",
            &["not the lengths of --seq-dist"],
        ),
        ("--endpoint-type completions --extra-inputs max_tokens:3 --osl 4", &["not the lengths of --osl"]),
        ("--extra-inputs model:other", &["the model of --extra-inputs, and not that of --model"]),
        (
            "--extra-inputs stream:false --streaming",
            &["the stream of --extra-inputs, and not that of --streaming"],
        ),
        ("--extra-inputs {\"messages\":[]}", &["the messages of --extra-inputs in place of its own"]),
        ("--endpoint-type completions --extra-inputs prompt:x", &["the prompt of --extra-inputs"]),
        ("--endpoint-type embeddings --extra-inputs input:x", &["the input of --extra-inputs"]),
        ("--endpoint-type nim-rankings --extra-inputs query:x", &["the query of --extra-inputs"]),
        ("--endpoint-type nim-rankings --extra-inputs passages:x", &["the passages of --extra-inputs"]),
        ("--endpoint-type cohere-rankings --extra-inputs documents:x", &["the documents of --extra-inputs"]),
        ("--endpoint-type hf-tei-rankings --extra-inputs texts:x", &["the texts of --extra-inputs"]),
        ("--extra-inputs a:1 a:2", &["--extra-inputs gives a more than once: the last"]),
        ("--header A:b -H a:c", &["gives a more than once: the last"]),
        ("--header Content-Type:text/plain", &["--header Content-Type changes nothing"]),
        (
            "--header x-session-affinity:a",
            &["X-Session-Affinity changes nothing", "AIPERF_HTTP_X_SESSION_AFFINITY_FROM_CORRELATION_ID=0"],
        ),
    ] {
        let told = warnings(line);
        assert_eq!(told.len(), 1, "{line}: {told:?}");
        assert!(parts.iter().all(|part| told[0].contains(part)), "{line}: {told:?}");
    }
    for line in [
        "--extra-inputs max_tokens:3",
        "--extra-inputs a:1 b:2 a:1 --header A:b --header A:b",
        "--endpoint-type embeddings --extra-inputs messages:x",
        "--extra-inputs max_tokens:3 --osl 0",
        "--extra-inputs temperature:0 --osl 4",
        "--extra-inputs model:m --header X-Session-ID:a",
        "--endpoint-type embeddings --extra-inputs max_tokens:3",
    ] {
        assert_eq!(warnings(line), [""; 0], "{line}");
    }
}

#[test]
fn a_quoted_word_of_several_pairs_is_told() {
    let told = settled(&["--extra-inputs", "temperature:0 top_p:planted"]).notes;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].warning && told[0].text.starts_with("--extra-inputs temperature: top_p, and what"),
        "{told:?}"
    );
    assert!(!told[0].text.contains("planted"), "{told:?}");
}

/// A time above 0 that rounds to none must not come to mean "no limit".
#[test]
fn a_time_too_short_to_tell_is_the_shortest_there_is() {
    let limit =
        |seconds: &str| settled(&["--request-timeout-seconds", seconds]).config.endpoint.request_timeout;
    assert_eq!(limit("1e-10"), Some(std::time::Duration::from_nanos(1)));
    assert_eq!(limit("0"), None);
    assert_eq!(limit("1.5"), Some(std::time::Duration::from_millis(1500)));
}
