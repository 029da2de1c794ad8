//! Which commands are compared.

/// One command.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Below the folder of samples.
    pub(crate) file: &'static str,
    /// After the common ones.
    pub(crate) arguments: &'static str,
    /// Tokens of the blocks that prompts are made of; the prompts themselves are made differently on purpose.
    pub(crate) block: Option<usize>,
    /// Why the two differ on purpose.
    pub(crate) intended: Option<&'static str>,
    /// Conversations have other names; they are matched by the order in which they start.
    pub(crate) by_order: bool,
    /// One of the two refuses it, which then counts as no request.
    pub(crate) may_fail: bool,
}

const fn case(name: &'static str, file: &'static str, arguments: &'static str) -> Case {
    Case { name, file, arguments, block: None, intended: None, by_order: false, may_fail: false }
}

/// Prompts that are made, of blocks of so many tokens.
const fn made(block: usize, case: Case) -> Case {
    Case { block: Some(block), ..case }
}

const fn intended(why: &'static str, case: Case) -> Case {
    Case { intended: Some(why), ..case }
}

/// A changed trace of blocks.
const fn changed(name: &'static str, arguments: &'static str) -> Case {
    let case = made(512, case(name, "mooncake_hash.jsonl", arguments));
    intended("the reference fails where a shared row ends in a partial block", may_fail(case))
}

const fn by_order(case: Case) -> Case {
    Case { by_order: true, ..case }
}

const fn may_fail(case: Case) -> Case {
    Case { may_fail: true, ..case }
}

pub(crate) const CASES: &[Case] = &[
    case(
        "single_turn-chat",
        "single_turn.jsonl",
        "--endpoint-type chat --custom-dataset-type single_turn --concurrency 1 --request-count 6",
    ),
    case(
        "single_turn-completions",
        "single_turn.jsonl",
        "--endpoint-type completions --custom-dataset-type single_turn --concurrency 1 --request-count 6",
    ),
    case(
        "single_turn-schedule",
        "single_turn_schedule.jsonl",
        "--endpoint-type chat --custom-dataset-type single_turn --fixed-schedule --streaming",
    ),
    case(
        "single_turn-media",
        "single_turn_media.jsonl",
        "--endpoint-type chat --custom-dataset-type single_turn --concurrency 1 --request-count 3",
    ),
    case(
        "multi_turn-chat",
        "multi_turn.jsonl",
        "--endpoint-type chat --custom-dataset-type multi_turn --concurrency 1 --num-conversations 2",
    ),
    made(
        512,
        case(
            "mooncake-hash-chat",
            "mooncake_hash.jsonl",
            "--endpoint-type chat --custom-dataset-type mooncake_trace",
        ),
    ),
    made(
        512,
        case(
            "mooncake-hash-completions",
            "mooncake_hash.jsonl",
            "--endpoint-type completions --custom-dataset-type mooncake_trace",
        ),
    ),
    made(
        512,
        case(
            "mooncake-sessions",
            "mooncake_sessions.jsonl",
            "--endpoint-type chat --custom-dataset-type mooncake_trace",
        ),
    ),
    case(
        "mooncake-messages",
        "mooncake_messages.jsonl",
        "--endpoint-type chat --custom-dataset-type mooncake_trace",
    ),
    case(
        "mooncake-payload",
        "mooncake_payload.jsonl",
        "--endpoint-type chat --custom-dataset-type mooncake_trace --streaming",
    ),
    intended(
        "prompts that repeat what was said before are sent alone",
        made(
            16,
            case("bailian", "bailian.jsonl", "--endpoint-type chat --custom-dataset-type bailian_trace"),
        ),
    ),
    made(
        1 << 20,
        case(
            "burst_gpt",
            "burst_gpt.csv",
            "--endpoint-type chat --custom-dataset-type burst_gpt_trace --fixed-schedule --request-count 4",
        ),
    ),
    case(
        "raw_payload-file",
        "raw_payload.jsonl",
        "--endpoint-type chat --custom-dataset-type raw_payload --concurrency 1 --request-count 4",
    ),
    by_order(case(
        "raw_payload-folder",
        "raw_payload_dir",
        "--endpoint-type chat --custom-dataset-type raw_payload --concurrency 1 --num-conversations 2",
    )),
    case(
        "inputs_json",
        "inputs.json",
        "--endpoint-type chat --custom-dataset-type inputs_json --concurrency 1 --num-conversations 2",
    ),
    intended(
        "captured parameters are sent again",
        case(
            "sagemaker",
            "sagemaker_capture.jsonl",
            "--endpoint-type chat --custom-dataset-type sagemaker_data_capture --fixed-schedule",
        ),
    ),
    case(
        "speed_bench-coding",
        "speed_bench/qualitative.jsonl",
        "--endpoint-type chat --custom-dataset-type speed_bench_coding --concurrency 1 --num-conversations 2",
    ),
    case(
        "speed_bench-qualitative",
        "speed_bench/qualitative.jsonl",
        "--endpoint-type chat --custom-dataset-type speed_bench_qualitative --concurrency 1 --num-conversations 3",
    ),
    made(
        512,
        case(
            "synthesis-output-and-cap",
            "mooncake_sessions.jsonl",
            "--endpoint-type chat --custom-dataset-type mooncake_trace --synthesis-output-len-multiplier 0.5 \
             --synthesis-max-osl 9",
        ),
    ),
    changed(
        "synthesis-speedup",
        "--endpoint-type chat --custom-dataset-type mooncake_trace --synthesis-speedup-ratio 2",
    ),
    changed(
        "synthesis-prompt-len",
        "--endpoint-type chat --custom-dataset-type mooncake_trace --synthesis-prompt-len-multiplier 1.5",
    ),
    changed(
        "synthesis-prefix-longer",
        "--endpoint-type chat --custom-dataset-type mooncake_trace --synthesis-prefix-len-multiplier 2.5",
    ),
    changed(
        "synthesis-prefix-shorter",
        "--endpoint-type chat --custom-dataset-type mooncake_trace --synthesis-prefix-len-multiplier 0.5",
    ),
    case("dag", "dag.jsonl", "--endpoint-type chat --custom-dataset-type dag_jsonl --concurrency 1"),
    may_fail(case(
        "baseten",
        "baseten.parquet",
        "--endpoint-type completions --custom-dataset-type baseten_trace --streaming --extra-inputs min_p:0.1",
    )),
];
