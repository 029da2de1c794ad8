//! Which commands are compared.

use Start::{After, At};

/// When a request leaves.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    /// On a recorded schedule, ms after its first request.
    At(f64),
    /// So many ms after the answer to the turn before it, 0 for at once.
    After(f64),
}

/// What is compared of texts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Texts {
    /// Every character.
    Whole,
    /// Those that a run makes, of blocks of so many tokens: their lengths, and which blocks they share.
    Made { block: usize },
    /// Only that there is one: each client draws them in its own way.
    Drawn,
}

/// One command.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Below the folder of samples.
    pub(crate) file: &'static str,
    /// After the common ones.
    pub(crate) arguments: &'static str,
    /// The type, and what follows it, where `arguments` do not say it.
    pub(crate) kind: Option<&'static str>,
    pub(crate) texts: Texts,
    /// When our requests leave, in order; nothing where the case says nothing of it.
    pub(crate) starts: &'static [Start],
    /// Variables of the environment, `NAME=VALUE` each.
    pub(crate) environment: &'static str,
    /// Why the two differ on purpose.
    pub(crate) intended: Option<&'static str>,
    /// Conversations have other names; they are matched by the order in which they start.
    pub(crate) by_order: bool,
    /// One of the two refuses it, which then counts as no request.
    pub(crate) may_fail: bool,
}

const fn case(name: &'static str, file: &'static str, arguments: &'static str) -> Case {
    Case {
        name,
        file,
        arguments,
        kind: None,
        texts: Texts::Whole,
        starts: &[],
        environment: "",
        intended: None,
        by_order: false,
        may_fail: false,
    }
}

/// Prompts that are made, of blocks of so many tokens.
const fn made(block: usize, case: Case) -> Case {
    Case { texts: Texts::Made { block }, ..case }
}

const fn intended(why: &'static str, case: Case) -> Case {
    Case { intended: Some(why), ..case }
}

/// A changed trace of blocks.
const fn changed(name: &'static str, arguments: &'static str) -> Case {
    let case = made(512, case(name, "mooncake_hash.jsonl", arguments));
    intended("the reference fails where a shared row ends in a partial block", may_fail(case))
}

/// A columnar file of another format than `baseten_trace`: its type, and what follows it.
const fn columnar(name: &'static str, file: &'static str, kind: &'static str) -> Case {
    let case = Case { kind: Some(kind), ..case(name, file, "--endpoint-type chat") };
    intended("the reference reads Parquet for baseten_trace only", may_fail(case))
}

const fn drawn(case: Case) -> Case {
    Case { texts: Texts::Drawn, ..case }
}

const fn starts(starts: &'static [Start], case: Case) -> Case {
    Case { starts, ..case }
}

const fn with(environment: &'static str, case: Case) -> Case {
    Case { environment, ..case }
}

const fn by_order(case: Case) -> Case {
    Case { by_order: true, ..case }
}

const fn may_fail(case: Case) -> Case {
    Case { may_fail: true, ..case }
}

pub(crate) const CASES: &[Case] = &[
    starts(
        &[After(40.0)],
        case(
            "single_turn-chat",
            "single_turn.jsonl",
            "--endpoint-type chat --custom-dataset-type single_turn --concurrency 1 --request-count 6",
        ),
    ),
    starts(
        &[After(40.0)],
        case(
            "single_turn-completions",
            "single_turn.jsonl",
            "--endpoint-type completions --custom-dataset-type single_turn --concurrency 1 --request-count 6",
        ),
    ),
    starts(
        &[At(0.0), At(120.5), At(300.0), At(450.0)],
        case(
            "single_turn-schedule",
            "single_turn_schedule.jsonl",
            "--endpoint-type chat --custom-dataset-type single_turn --fixed-schedule --streaming",
        ),
    ),
    case(
        "single_turn-media",
        "single_turn_media.jsonl",
        "--endpoint-type chat --custom-dataset-type single_turn --concurrency 1 --request-count 3",
    ),
    starts(
        &[After(60.0), After(30.0), After(0.0)],
        case(
            "multi_turn-chat",
            "multi_turn.jsonl",
            "--endpoint-type chat --custom-dataset-type multi_turn --concurrency 1 --num-conversations 2",
        ),
    ),
    starts(
        &[At(0.0), At(90.0), At(180.0), At(260.0), At(330.0)],
        made(
            512,
            case(
                "mooncake-hash-chat",
                "mooncake_hash.jsonl",
                "--endpoint-type chat --custom-dataset-type mooncake_trace",
            ),
        ),
    ),
    starts(
        &[At(0.0), At(90.0), At(180.0), At(260.0), At(330.0)],
        made(
            512,
            case(
                "mooncake-hash-completions",
                "mooncake_hash.jsonl",
                "--endpoint-type completions --custom-dataset-type mooncake_trace",
            ),
        ),
    ),
    starts(
        &[At(0.0), At(50.0), After(70.0), At(150.0), At(400.0)],
        made(
            512,
            case(
                "mooncake-sessions",
                "mooncake_sessions.jsonl",
                "--endpoint-type chat --custom-dataset-type mooncake_trace",
            ),
        ),
    ),
    starts(
        &[At(0.0), At(100.0), At(200.0)],
        case(
            "mooncake-messages",
            "mooncake_messages.jsonl",
            "--endpoint-type chat --custom-dataset-type mooncake_trace",
        ),
    ),
    starts(
        &[At(0.0), At(80.0), At(160.0)],
        case(
            "mooncake-payload",
            "mooncake_payload.jsonl",
            "--endpoint-type chat --custom-dataset-type mooncake_trace --streaming",
        ),
    ),
    starts(
        &[At(0.0), At(80.0), At(200.0), At(300.0), At(500.0)],
        intended(
            "prompts that repeat what was said before are sent alone",
            made(
                16,
                case("bailian", "bailian.jsonl", "--endpoint-type chat --custom-dataset-type bailian_trace"),
            ),
        ),
    ),
    starts(
        &[At(0.0), At(120.0), At(120.0), At(450.0)],
        made(
            1 << 20,
            case(
                "burst_gpt",
                "burst_gpt.csv",
                "--endpoint-type chat --custom-dataset-type burst_gpt_trace --fixed-schedule --request-count 4",
            ),
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
    starts(
        &[At(0.0), At(250.0), At(400.0)],
        intended(
            "captured parameters are sent again",
            case(
                "sagemaker",
                "sagemaker_capture.jsonl",
                "--endpoint-type chat --custom-dataset-type sagemaker_data_capture --fixed-schedule",
            ),
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
    intended(
        "each client draws other entries, some of which have two texts",
        drawn(case(
            "random_pool-folder",
            "random_pool_dir",
            "--endpoint-type chat --custom-dataset-type random_pool --concurrency 1 --num-conversations 4",
        )),
    ),
    intended(
        "each client draws other entries, and an entry of two texts is a list of prompts",
        drawn(case(
            "random_pool-completions",
            "random_pool.jsonl",
            "--endpoint-type completions --custom-dataset-type random_pool --concurrency 1 --num-conversations 4",
        )),
    ),
    intended(
        "several turns on an endpoint that takes one are refused at start",
        may_fail(case(
            "multi_turn-completions",
            "multi_turn.jsonl",
            "--endpoint-type completions --custom-dataset-type multi_turn --concurrency 1 --num-conversations 2",
        )),
    ),
    intended(
        "messages on an endpoint of prompts are refused at start",
        may_fail(case(
            "mooncake-messages-completions",
            "mooncake_messages.jsonl",
            "--endpoint-type completions --custom-dataset-type mooncake_trace",
        )),
    ),
    starts(
        &[At(0.0), At(100.0), At(260.0), At(300.0), At(420.0), At(700.0), At(3900.0)],
        with(
            "AIPERF_DATASET_BASETEN_SESSION_COLUMN=poor_man_session_id",
            case(
                "baseten",
                "baseten.parquet",
                "--endpoint-type completions --custom-dataset-type baseten_trace --streaming --extra-inputs min_p:0.1",
            ),
        ),
    ),
    intended(
        "sessions come from the column whose values repeat more",
        by_order(case(
            "baseten-session-column",
            "baseten.parquet",
            "--endpoint-type completions --custom-dataset-type baseten_trace --streaming",
        )),
    ),
    starts(
        &[At(0.0), At(100.0), At(300.0)],
        case(
            "baseten-minimal",
            "baseten_minimal.parquet",
            "--endpoint-type completions --custom-dataset-type baseten_trace --streaming",
        ),
    ),
    starts(
        &[At(0.0), At(50.0), At(100.0), At(150.0)],
        case(
            "baseten-tie",
            "baseten_tie.parquet",
            "--endpoint-type completions --custom-dataset-type baseten_trace --streaming",
        ),
    ),
    by_order(case(
        "baseten-no-repeat",
        "baseten_no_repeat.parquet",
        "--endpoint-type completions --custom-dataset-type baseten_trace --streaming",
    )),
    columnar(
        "parquet-multi_turn",
        "parquet/multi_turn.parquet",
        "multi_turn --concurrency 1 --num-conversations 2",
    ),
    columnar("parquet-mooncake-shards", "parquet/mooncake_shards", "mooncake_trace --isl-block-size 32"),
    columnar("parquet-timestamp", "parquet/bad_timestamp.parquet", "single_turn"),
    columnar("parquet-binary", "parquet/bad_binary.parquet", "single_turn"),
    columnar("parquet-decimal", "parquet/bad_decimal.parquet", "single_turn"),
    columnar("parquet-map", "parquet/bad_map.parquet", "single_turn"),
    columnar("parquet-nan", "parquet/bad_nan.parquet", "single_turn"),
    starts(
        &[At(0.0), At(100.0), After(150.0), At(420.0), After(340.0), After(230.0), At(3900.0)],
        with(
            "AIPERF_DATASET_BASETEN_SESSION_COLUMN=poor_man_session_id",
            case(
                "baseten-closed-loop",
                "baseten.parquet",
                "--endpoint-type completions --custom-dataset-type baseten_trace --streaming --no-open-loop-replay",
            ),
        ),
    ),
    starts(
        &[At(0.0), At(10.0), At(26.0), At(30.0), At(42.0), At(70.0), At(390.0)],
        with(
            "AIPERF_DATASET_BASETEN_SESSION_COLUMN=poor_man_session_id",
            by_order(case(
                "baseten-strict",
                "baseten.parquet",
                "--endpoint-type completions --custom-dataset-type baseten_trace --streaming --open-loop-strict \
                 --replay-speedup 10 --omit-kv-hints --no-force-min-tokens --extra-inputs min_tokens:1",
            )),
        ),
    ),
    intended(
        "blocks have the size that the trace says, and are sent on its times",
        made(
            16,
            case(
                "weka",
                "weka_trace.json",
                "--endpoint-type chat --custom-dataset-type weka_trace --concurrency 1 --num-conversations 1",
            ),
        ),
    ),
    made(
        64,
        case(
            "tracelab",
            "tracelab.jsonl",
            "--endpoint-type chat --custom-dataset-type tracelab --no-fixed-schedule --concurrency 1 \
             --num-conversations 1 --inter-turn-delay-cap-seconds 0.3",
        ),
    ),
];
