//! Which passage fits a query best: what is asked, in the words of three servers, and what is reported.

use serde_json::Value;

use crate::support::Place;

const LINE: &str = "--request-count 4 --random-seed 1 --rankings-passages-mean 3 --rankings-passages-prompt-token-mean 7 \
                    --rankings-query-prompt-token-mean 5 --export-level raw";

/// The query and the passages of a body.
fn texts(body: &Value, passages: &str) -> (String, Vec<String>) {
    let text = |value: &Value| value.get("text").unwrap_or(value).as_str().unwrap().to_owned();
    (text(&body["query"]), body[passages].as_array().unwrap().iter().map(text).collect())
}

#[test]
fn one_query_and_its_passages_are_asked_in_the_words_of_each_server() {
    let mut asked = Vec::new();
    for (kind, path, passages) in [
        ("cohere-rankings", "/v2/rerank", "documents"),
        ("hf-tei-rankings", "/rerank", "texts"),
        ("nim-rankings", "/v1/ranking", "passages"),
    ] {
        let place = Place::new();
        place.run("mock://?ttft=1ms", &format!("{LINE} --endpoint-type {kind} --streaming")).with_code(0);
        let results = place.results();
        results.assert_complete(false);
        let raw = results.lines("profile_export_raw.jsonl");
        assert_eq!(raw.len(), 4);
        let mut bodies: Vec<_> = raw.iter().map(|record| texts(&record["payload"], passages)).collect();
        bodies.sort();
        asked.push(bodies);
        let first = raw[0]["payload"].as_object().unwrap();
        assert_eq!(first.contains_key("model"), kind != "hf-tei-rankings");
        assert!(!first.contains_key("stream") && !first.contains_key("max_tokens"), "{first:?}");
        for record in results.records() {
            let metrics = &record["metrics"];
            // Query and passages are the input; nothing that is made of tokens is reported.
            assert_eq!(metrics["input_sequence_length"]["value"], 5 + 3 * 7, "{kind}");
            assert!(metrics["request_latency"]["value"].as_f64().unwrap() >= 1.0);
            for absent in ["output_sequence_length", "time_to_first_token", "inter_token_latency"] {
                assert!(metrics.get(absent).is_none(), "{kind}: {absent}");
            }
            let usage = metrics.get("usage_prompt_tokens").map(|usage| &usage["value"]);
            assert_eq!(usage.is_some(), kind != "hf-tei-rankings", "{kind} at {path}");
        }
        let config = results.summary()["input_config"].clone();
        assert_eq!(config["endpoint"]["type"], kind.replace('-', "_"));
        assert_eq!(config["datasets"][0]["rankings"]["passages"]["mean"], 3.0);
        assert!(results.text("profile_export_console.txt").contains("Rankings Metrics"));
    }
    assert_eq!(asked[0], asked[1], "the texts do not depend on who is asked");
    assert_eq!(asked[0], asked[2]);
}

#[test]
fn rows_of_named_texts_are_ranked_and_others_are_refused_before_anything_is_sent() {
    let place = Place::new();
    let good = place.write(
        "good.jsonl",
        r#"{"texts":[{"name":"query","contents":["what is it"]},{"name":"passages","contents":["a b","c"]}]}"#,
    );
    let line = |file: &str| {
        format!(
            "--endpoint-type nim-rankings --input-file {file} --custom-dataset-type single_turn --request-count 1"
        )
    };
    place.run("mock://?ttft=1ms", &line(&good)).with_code(0);
    let bad = place.write("bad.jsonl", r#"{"text":"what is it"}"#);
    let told = Place::new().run("mock://?ttft=1ms", &line(&bad)).with_code(2);
    for part in ["bad.jsonl:1", "texts without a name", "`query`"] {
        assert!(told.err.contains(part), "{}", told.err);
    }
}
