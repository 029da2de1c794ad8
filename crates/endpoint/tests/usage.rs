//! Token usage, under whatever names servers give it.

#![allow(clippy::unwrap_used, clippy::trivially_copy_pass_by_ref, reason = "tests")]

mod common;

use aiperf_config::EndpointKind;
use aiperf_endpoint::ReadPlan;
use aiperf_types::Usage;
use common::{delta, read};
use serde_json::{Value, json};

/// What is read of this usage object at the end of a stream.
fn usage(json: &str) -> Usage {
    let last = format!("data: {{\"object\":\"chat.completion.chunk\",\"choices\":[],\"usage\":{json}}}\n\n");
    let first = delta(r#"{"content":"a"}"#);
    let events = [(first.as_str(), 10), (last.as_str(), 20)];
    read(&ReadPlan::new(EndpointKind::Chat, true), &events).answer.usage.unwrap()
}

/// The names of a figure, the preferred one first, as paths into the usage object.
type Names = (fn(&Usage) -> Option<u64>, &'static [&'static str]);

const USAGE_NAMES: [Names; 11] = [
    (
        |usage| usage.prompt_tokens,
        &["prompt_tokens", "input_tokens", "promptTokenCount", "inputTokens", "input_token_count"],
    ),
    (
        |usage| usage.completion_tokens,
        &[
            "completion_tokens",
            "output_tokens",
            "candidatesTokenCount",
            "outputTokens",
            "generated_token_count",
        ],
    ),
    (|usage| usage.total_tokens, &["total_tokens", "totalTokenCount", "totalTokens"]),
    (
        |usage| usage.reasoning_tokens,
        &[
            "completion_tokens_details.reasoning_tokens",
            "output_tokens_details.reasoning_tokens",
            "thoughtsTokenCount",
        ],
    ),
    (
        |usage| usage.prompt_cache_read_tokens,
        &[
            "prompt_tokens_details.cached_tokens",
            "input_tokens_details.cached_tokens",
            "cache_read_input_tokens",
            "prompt_cache_hit_tokens",
            "cachedContentTokenCount",
            "cacheReadInputTokens",
            "cached_tokens",
        ],
    ),
    (|usage| usage.prompt_cache_write_tokens, &["cache_creation_input_tokens", "cacheWriteInputTokens"]),
    (|usage| usage.prompt_cache_miss_tokens, &["prompt_cache_miss_tokens"]),
    (|usage| usage.tool_use_prompt_tokens, &["toolUsePromptTokenCount"]),
    (
        |usage| usage.prompt_audio_tokens,
        &["prompt_tokens_details.audio_tokens", "input_tokens_details.audio_tokens"],
    ),
    (
        |usage| usage.completion_audio_tokens,
        &["completion_tokens_details.audio_tokens", "output_tokens_details.audio_tokens"],
    ),
    (|usage| usage.accepted_prediction_tokens, &["completion_tokens_details.accepted_prediction_tokens"]),
];

#[test]
fn usage_is_read_under_every_name() {
    let gemini = usage(
        r#"{"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":6,"totalTokenCount":11,"thoughtsTokenCount":2,"cachedContentTokenCount":3,"toolUsePromptTokenCount":1}}"#,
    );
    assert_eq!(
        (gemini.prompt_tokens, gemini.completion_tokens, gemini.total_tokens),
        (Some(5), Some(6), Some(11))
    );
    assert_eq!(
        (gemini.reasoning_tokens, gemini.prompt_cache_read_tokens, gemini.tool_use_prompt_tokens),
        (Some(2), Some(3), Some(1))
    );
    let cohere = usage(r#"{"output_tokens":4,"meta":{"tokens":{"input_tokens":3,"output_tokens":9}}}"#);
    assert_eq!(
        (cohere.prompt_tokens, cohere.completion_tokens),
        (Some(3), Some(4)),
        "what stands outside wins"
    );
    let anthropic = usage(
        r#"{"input_tokens":10,"cache_read_input_tokens":4,"cache_creation_input_tokens":2,"output_tokens":1}"#,
    );
    assert_eq!(anthropic.prompt_tokens, Some(16));
    assert_eq!((anthropic.prompt_cache_read_tokens, anthropic.prompt_cache_write_tokens), (Some(4), Some(2)));
    let openai = usage(
        r#"{"prompt_tokens":20,"input_tokens":1,"cache_read_input_tokens":5,"completion_tokens":8.0,"prompt_cache_miss_tokens":12,"prompt_tokens_details":{"cached_tokens":8,"audio_tokens":2},"completion_tokens_details":{"reasoning_tokens":3,"audio_tokens":1,"accepted_prediction_tokens":4,"rejected_prediction_tokens":5},"prompt_audio_seconds":1.5}"#,
    );
    assert_eq!((openai.prompt_tokens, openai.completion_tokens), (Some(20), Some(8)));
    assert_eq!((openai.prompt_cache_read_tokens, openai.prompt_cache_miss_tokens), (Some(8), Some(12)));
    assert_eq!((openai.prompt_audio_tokens, openai.completion_audio_tokens), (Some(2), Some(1)));
    assert_eq!((openai.accepted_prediction_tokens, openai.rejected_prediction_tokens), (Some(4), Some(5)));
    assert_eq!((openai.reasoning_tokens, openai.prompt_audio_seconds), (Some(3), Some(1.5)));
    let odd = usage(
        r#"{"prompt_tokens":null,"inputTokens":-1,"input_token_count":3,"completion_tokens":"7","prompt_audio_seconds":"2"}"#,
    );
    assert_eq!((odd.prompt_tokens, odd.completion_tokens, odd.prompt_audio_seconds), (Some(3), None, None));
}

#[test]
fn every_name_of_a_usage_figure_is_read_and_the_first_present_wins() {
    let put = |object: &mut Value, path: &str, value: u64| match path.split_once('.') {
        Some((outer, inner)) => object[outer][inner] = value.into(),
        None => object[path] = value.into(),
    };
    for (figure, names) in USAGE_NAMES {
        for (index, name) in names.iter().enumerate() {
            let mut alone = json!({});
            put(&mut alone, name, 7);
            assert_eq!(figure(&usage(&alone.to_string())), Some(7), "{name}");
            // All that come after it say something else, and 0 is a value.
            let mut together = json!({});
            for (number, other) in (100..).zip(&names[index + 1..]) {
                put(&mut together, other, number);
            }
            put(&mut together, name, 0);
            let found = figure(&usage(&together.to_string())).unwrap();
            // Prompts of vendors that count caches apart are sums, of which none is here.
            assert_eq!(found, 0, "{name}");
        }
    }
}
