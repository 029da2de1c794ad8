//! What counts tokens, and that lengths are those a server sees.

use crate::support::{Live, Place, Ran, aiperf};

const QUICK: &str = "mock://?ttft=0&itl=0&tokens=2";

fn folder(name: &str) -> String {
    format!("{}/../tokenize/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn run(place: &Place, line: &str) -> Ran {
    let mut command = aiperf();
    command.current_dir(place.root());
    command.args(["profile", "--model", "demo", "--artifact-dir", "out", "--ui", "none", "--url", QUICK]);
    Live::start(command.args(line.split_whitespace())).end()
}

/// With the template the input length that is reported is that of the messages as the model reads them, and it is the
/// one that was asked for.
#[test]
fn a_chat_template_is_part_of_the_length_that_is_asked_for_and_reported() {
    let tokenizer = folder("byte-bpe");
    let reported = |more: &str| {
        let place = Place::new();
        run(&place, &format!("--request-count 9 --isl 60 --tokenizer {tokenizer} {more}")).with_code(0);
        place.results().summary()["input_sequence_length"]["avg"].as_f64().unwrap()
    };
    // The server will add one to the bare text; the template has it already.
    assert!((reported("") - 59.0).abs() < 1e-9);
    let templated = reported("--apply-chat-template");
    assert!((templated - 60.0).abs() <= 1.5, "{templated}");
}

#[test]
fn without_a_template_the_option_has_no_effect_and_says_so() {
    for tokenizer in ["builtin".to_owned(), folder("sentencepiece-bpe")] {
        let place = Place::new();
        run(&place, &format!("--request-count 2 --isl 30 --tokenizer {tokenizer} --apply-chat-template"))
            .with_code(0);
        let log = place.results().text("logs/aiperf.log");
        let told: Vec<_> =
            log.lines().filter(|line| line.contains("--apply-chat-template changes nothing")).collect();
        assert!(told.len() == 1 && told[0].contains("INFO"), "{log}");
        assert!(!log.contains("counts the template as well"), "{log}");
    }
}

/// What needs no tokens needs no tokenizer: a model name that is none is no mistake then.
#[test]
fn a_tokenizer_is_not_opened_where_nothing_needs_it() {
    let place = Place::new();
    let file = place.write("rows.jsonl", r#"{"text":"how deep is it"}"#);
    let line = format!("--input-file {file} --request-count 1 --tokenizer /nowhere");
    let ran = run(&place, &line).with_code(2);
    assert!(ran.err.contains("/nowhere"), "{}", ran.err);
    assert!(place.is_untouched());
    run(&place, &format!("{line} --use-server-token-count")).with_code(0);
}
