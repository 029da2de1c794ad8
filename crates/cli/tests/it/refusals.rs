//! What is refused, and in which words: both flags, and what to do.

use aiperf_cli::environment::Environment;
use aiperf_cli::flags::{self, Kind, Status};
use aiperf_cli::typed::Typed;
use aiperf_config::FileFormat;

use crate::support::{Told, data, settle_line, settle_with, words};

/// Each command line, and what its message and tip must contain.
const REFUSED: &[(&str, &[&str])] = &[
    // Endpoint.
    ("--model ,", &["--model: one of the 3 names is empty", "drop it"]),
    ("--model n", &["error: --model with several models (m, n) is not supported yet: it comes with "]),
    ("-m n,o", &["error: -m with several models (m, n, o) is not supported yet: it comes with "]),
    ("--max-context-length 5", &["--max-context-length", "generated text", "--isl"]),
    ("--url http://a --url http://b", &["--url", "not supported yet", "several servers"]),
    ("--url http://a,http://b", &["--url", "not supported yet", "several servers"]),
    ("--url http://h:99999", &["--url", "port"]),
    ("--url ftp://h", &["--url", "http://, https:// or mock://"]),
    ("--url http://u:planted@planted/x@127.0.0.1:1", &["--url", "'http://<redacted>@127.0.0.1:1'", "%2F"]),
    ("--url http//u:planted@h", &["--url", "'http//<redacted>@h'", ":// after the scheme"]),
    // Names that another file of a run has.
    ("--profile-export-prefix inputs", &["--profile-export-prefix inputs", "inputs.json", "another prefix"]),
    ("--profile-export-prefix outputs.json", &["outputs.json", "another prefix"]),
    ("--profile-export-prefix .aiperf_results_ready", &[".aiperf_results_ready.json", "another prefix"]),
    ("--warmup-request-count 2 --profile-export-prefix phase_manifest", &["phase_manifest.json"]),
    ("--url mock://host", &["--url", "mock:", "host"]),
    ("--url mock:", &["--url", "mock:"]),
    ("--url mock://?nothing=1", &["--url", "nothing"]),
    ("--url mock://?ttft=1ms&ttft=2ms", &["--url", "ttft", "more than once"]),
    ("--url mock://?ttft=soon", &["--url", "ttft", "soon"]),
    ("--endpoint http://h/x", &["--endpoint", "path", "--url"]),
    ("--endpoint-type responses", &["--endpoint-type responses", "not supported yet"]),
    (
        "--endpoint-type nonsense",
        &["--endpoint-type", "one of chat, cohere-rankings, completions, embeddings, hf-tei-rankings"],
    ),
    ("--connection-reuse-strategy never", &["--connection-reuse-strategy never", "not supported yet"]),
    ("--connection-reuse-strategy sticky-user-sessions", &["sticky-user-sessions", "not supported yet"]),
    ("--request-content-type multipart-form-data", &["multipart-form-data", "not supported yet"]),
    ("--model-selection-strategy weighted", &["weighted", "not supported yet"]),
    ("--transport grpc", &["--transport", "one of http"]),
    ("--request-timeout-seconds -1", &["--request-timeout-seconds", "0 or more"]),
    ("--request-timeout-seconds 1e300", &["--request-timeout-seconds", "clock", "got '1e300'"]),
    ("--benchmark-duration 10e299", &["--benchmark-duration", "clock", "got '10e299'"]),
    ("--isl 1e9", &["--isl", "20000000"]),
    // What no memory holds.
    ("--osl 4294967296000", &["--osl", "0 to 20000000"]),
    ("--osl 5 --osl-stddev 1e9", &["--osl-stddev", "0 to 20000000"]),
    ("--isl-stddev 2e7", &["--isl-stddev comes to 80000550 tokens in one conversation", "20000000 at most"]),
    (
        "--isl 1e6 --conversation-turn-mean 1e5",
        &["--conversation-turn-mean, --isl come to 100000000000 tokens", "20000000 at most"],
    ),
    ("--conversation-turn-mean 1e5", &["--conversation-turn-mean comes to 55000000 tokens"]),
    (
        "--seq-dist 20000000,4:100 --conversation-turn-mean 2",
        &["--conversation-turn-mean, --seq-dist come to"],
    ),
    ("--endpoint-type embeddings --batch-size 100000000", &["--batch-size", "10000 at most"]),
    ("--endpoint-type embeddings -b 10000 --isl 10000", &["--isl, -b come to 100000000 tokens"]),
    ("--endpoint-type embeddings -b 3000000 --isl 1", &["-b", "10000 at most"]),
    (
        "--num-prefix-prompts 1000000 --prefix-prompt-length 1000000",
        &["--num-prefix-prompts, --prefix-prompt-length come to 1000000000000 tokens of prefixes"],
    ),
    (
        "--num-prefix-prompts 1000000 --prefix-prompt-length 100 --isl 5 --osl 5 --random-range-ratio 0.5 \
         --prompt-corpus random",
        &["--num-prefix-prompts, --prefix-prompt-length come to 100000000 tokens", "10000000 at most"],
    ),
    (
        "--endpoint-type nim-rankings --rankings-passages-mean 1e5 --rankings-passages-prompt-token-mean 1e4",
        &["--rankings-passages-mean, --rankings-passages-prompt-token-mean come to", "tokens in one request"],
    ),
    (
        "--endpoint-type nim-rankings --rankings-passages-stddev 1e5",
        &["--rankings-passages-stddev comes to", "20000000 at most"],
    ),
    ("--num-dataset-entries 1e12", &["--num-dataset-entries 1000000000000", "100000000 at most"]),
    ("--request-count 1e12", &["--request-count 1000000000000", "add --num-dataset-entries N"]),
    ("--num-conversations 1e12", &["--num-conversations", "add --num-dataset-entries N"]),
    (
        "--input-file @random_pool.jsonl --custom-dataset-type random_pool -b 4000000000",
        &["-b", "10000 at most"],
    ),
    (
        "--conversation-turn-mean 2 --conversation-turn-delay-mean 1e300",
        &["--conversation-turn-delay-mean", "0 to 604800000"],
    ),
    (
        "--conversation-turn-mean 2 --conversation-turn-delay-mean 1000 --conversation-turn-delay-ratio 1e300",
        &["--conversation-turn-delay-mean, --conversation-turn-delay-ratio come to", "604800000 at most"],
    ),
    ("--request-rate 1e300", &["--request-rate", "up to 1000000"]),
    (
        "--request-rate 5 --warmup-request-rate 1e9 --warmup-request-count 1",
        &["--warmup-request-rate", "up to 1000000"],
    ),
    ("--request-rate 5 --arrival-smoothness 1e-300", &["--arrival-smoothness", "0.001 to 1000000"]),
    (
        "--seq-dist 256,128:0.4;512,256:0.6",
        &[
            "--seq-dist '256,128:0.4;512,256:0.6': the shares add up to 1, not to 100",
            "ISL[|STDDEV],OSL[|STDDEV]:PERCENT",
        ],
    ),
    (
        "--sequence-distribution [(256,128):40,junk,(512,256):60]",
        &["--sequence-distribution '[(256,128):40,junk,(512,256):60]': pair 2, 'junk'"],
    ),
    ("--seq-dist 8,4:100 --random-range-ratio 0.5 --isl 8 --osl 4", &["--seq-dist", "--random-range-ratio"]),
    ("--random-range-ratio 0.5 --osl 4", &["--random-range-ratio needs --isl", "add --isl TOKENS"]),
    ("--random-range-ratio 0.5 --isl 4", &["--random-range-ratio needs --osl"]),
    ("--random-range-ratio 0.5 --isl 4.5 --osl 4", &["--isl 4.5", "whole number"]),
    ("--random-range-ratio 0.5 --isl 4 --osl 0", &["--osl 0", "1 or more"]),
    ("--random-range-ratio 0.5 --isl 4 --osl 4 --osl-stddev 1", &["--random-range-ratio", "--osl-stddev"]),
    ("--random-range-ratio 0.5 --isl 4 --osl 4 --isl-stddev 1", &["--random-range-ratio", "--isl-stddev"]),
    (
        "--random-range-ratio 1 --isl 4 --osl 4",
        &["--random-range-ratio", "from 0 up to but not including 1", "'1'"],
    ),
    ("--random-range-ratio nan --isl 4 --osl 4", &["--random-range-ratio", "a ratio from 0"]),
    ("--random-range-ratio {\"input\":0.5} --isl 4 --osl 4", &["{\"input\":RATIO,\"output\":RATIO}"]),
    (
        "--random-range-ratio {\"input\":0.5,\"output\":0.5} --isl 4 --osl 4 --random-corpus-style sglang",
        &["--random-range-ratio", "one ratio", "--random-corpus-style sglang"],
    ),
    ("--random-range-ratio 1.1 --isl 4 --osl 4 --random-corpus-style sglang", &["from 0 to 1", "'1.1'"]),
    ("--seq-dist 8,4:100 --input-file @mooncake_hash.jsonl", &["--seq-dist", "--input-file"]),
    ("--isl-stddev 1e18", &["--isl-stddev", "20000000"]),
    ("--conversation-turn-mean 1e12", &["--conversation-turn-mean", "1 to 100000"]),
    ("--conversation-turn-stddev 1e12", &["--conversation-turn-stddev", "0 to 100000"]),
    (
        "--endpoint-type nim-rankings --rankings-passages-mean 1e9",
        &["--rankings-passages-mean", "0 to 100000"],
    ),
    ("--endpoint-type embeddings -b 4000000000", &["-b", "10000 at most"]),
    ("--shared-system-prompt-length 4000000000", &["--shared-system-prompt-length", "20000000 at most"]),
    (
        "--num-prefix-prompts 4000000000 --prefix-prompt-length 1",
        &["--num-prefix-prompts", "1000000 at most", "4000000000"],
    ),
    ("--rankings-passages-mean 2", &["--rankings-passages-mean", "chat does not", "nim-rankings"]),
    (
        "--endpoint-type nim-rankings --isl 5",
        &["--isl", "nim-rankings", "--rankings-query-prompt-token-mean"],
    ),
    ("--endpoint-type hf-tei-rankings -b 2", &["-b", "hf-tei-rankings", "--rankings-passages-mean"]),
    (
        "--endpoint-type cohere-rankings --num-prefix-prompts 1 --prefix-prompt-length 2",
        &["--num-prefix-prompts", "cohere-rankings"],
    ),
    ("--endpoint-type nim-rankings --rankings-passages-mean 0", &["--rankings-passages-mean 0"]),
    (
        "--endpoint-type nim-rankings --conversation-turn-mean 2",
        &["--conversation-turn-mean", "nim-rankings", "one turn"],
    ),
    ("--endpoint-type nim-rankings --system-prompt x", &["--system-prompt", "nim-rankings"]),
    (
        "--rankings-passages-mean 2 --endpoint-type nim-rankings --input-file @single_turn.jsonl",
        &["--rankings-passages-mean", "--input-file"],
    ),
    ("--workers-max 1000000", &["--workers-max", "1000000", "1 to 1024"]),
    ("--record-processors 2000", &["--record-processors", "1 to 1024"]),
    ("--input-columns text=a", &["--input-columns", "--input-file"]),
    ("--input-columns text=a --public-dataset spec_al_gsm8k", &["--input-columns", "--public-dataset"]),
    (
        "--input-columns text --input-file @single_turn.jsonl --custom-dataset-type single_turn",
        &["--input-columns", "FIELD=COLUMN", "'text'"],
    ),
    (
        "--input-columns reply=a --input-file @single_turn.jsonl --custom-dataset-type single_turn",
        &["--input-columns reply=a", "single_turn has no field `reply`", "text, texts"],
    ),
    (
        "--input-columns text=a --input-file @single_turn.jsonl --custom-dataset-type raw_payload",
        &["--input-columns", "raw_payload", "leave it out"],
    ),
    ("--uuid-and-strip", &["--uuid-and-strip", "--input-file"]),
    (
        "--uuid-and-strip --input-file @multi_turn.jsonl --custom-dataset-type multi_turn",
        &["--uuid-and-strip", "single_turn"],
    ),
    ("--per-chunk-usage --streaming", &["--per-chunk-usage", "--use-server-token-count"]),
    ("--per-chunk-usage --use-server-token-count", &["--per-chunk-usage", "--streaming"]),
    (
        "--per-chunk-usage --use-server-token-count --streaming --endpoint-type completions",
        &["--per-chunk-usage", "--endpoint-type chat"],
    ),
    ("--extra-inputs nocolon", &["--extra-inputs", "key:value"]),
    ("--header nocolon", &["--header", "Name: value"]),
    ("--bind-address here", &["--bind-address", "IP address", "here"]),
    ("--ui dashboard", &["--ui dashboard", "not supported yet", "live view"]),
    // Stop conditions and phases.
    ("--benchmark-grace-period 3", &["--benchmark-grace-period", "--benchmark-duration"]),
    ("--request-cancellation-delay 1", &["--request-cancellation-delay", "--request-cancellation-rate"]),
    ("--request-cancellation-rate 101", &["--request-cancellation-rate", "100"]),
    ("--request-rate 1e-300", &["--request-rate", "days", "requests per second"]),
    ("--request-rate 1e-6", &["--request-rate", "days"]),
    (
        "--request-rate 5 --warmup-request-count 1 --warmup-request-rate 1e-9",
        &["--warmup-request-rate", "days", "requests per second"],
    ),
    ("--request-rate 10 --request-rate-ramp-duration 1e9", &["--request-rate-ramp-duration", "604800"]),
    ("--concurrency 10 --concurrency-ramp-duration 1e9", &["--concurrency-ramp-duration", "604800"]),
    ("--warmup-request-count 18446744073709551615", &["--warmup-request-count", "at most 4294967295"]),
    ("--num-warmup-sessions 18446744073709551615", &["--num-warmup-sessions", "at most 4294967295"]),
    ("--request-rate-ramp-duration 2", &["--request-rate-ramp-duration", "--request-rate"]),
    ("--concurrency-ramp-duration 2", &["--concurrency-ramp-duration", "--concurrency"]),
    ("--arrival-smoothness 2", &["--arrival-smoothness", "--request-rate"]),
    ("--vllm-burstiness 2", &["--vllm-burstiness", "--request-rate"]),
    ("--arrival-pattern constant", &["--arrival-pattern", "--request-rate"]),
    ("--request-rate 3 --arrival-pattern poisson --arrival-smoothness 2", &["--arrival-smoothness", "gamma"]),
    ("--concurrency 5000000000", &["--concurrency", "at most"]),
    ("--warmup-grace-period 3", &["--warmup-grace-period", "--warmup-duration"]),
    ("--warmup-request-count 2 --warmup-grace-period 3", &["--warmup-grace-period", "--warmup-duration"]),
    ("--warmup-concurrency 3", &["--warmup-concurrency", "--warmup-request-count"]),
    ("--warmup-request-rate 3", &["--warmup-request-rate", "--warmup-request-count"]),
    ("--warmup-arrival-pattern constant", &["--warmup-arrival-pattern", "--warmup-request-count"]),
    (
        "--warmup-request-count 1 --warmup-request-rate-ramp-duration 1",
        &["--warmup-request-rate-ramp-duration", "--warmup-request-rate"],
    ),
    (
        "--warmup-request-count 1 --warmup-arrival-pattern constant",
        &["--warmup-arrival-pattern", "--warmup-request-rate"],
    ),
    (
        "--warmup-request-count 1 --warmup-concurrency-ramp-duration 1",
        &["--warmup-concurrency-ramp-duration", "--warmup-concurrency"],
    ),
    // Fixed schedule.
    ("--fixed-schedule", &["--fixed-schedule", "--input-file"]),
    ("--no-fixed-schedule", &["--no-fixed-schedule", "--input-file"]),
    ("--fixed-schedule-start-offset 5", &["--fixed-schedule-start-offset", "fixed schedule"]),
    (
        "--input-file @mooncake_hash.jsonl --no-fixed-schedule --fixed-schedule-end-offset 5",
        &["--fixed-schedule-end-offset", "--fixed-schedule"],
    ),
    (
        "--input-file @mooncake_hash.jsonl --fixed-schedule --no-fixed-schedule",
        &["--fixed-schedule", "--no-fixed-schedule"],
    ),
    (
        "--input-file @mooncake_hash.jsonl --fixed-schedule --ignore-trace-delays",
        &["--fixed-schedule", "--ignore-trace-delays"],
    ),
    (
        "--input-file @mooncake_hash.jsonl --fixed-schedule-auto-offset --fixed-schedule-start-offset 5",
        &["--fixed-schedule-auto-offset", "--fixed-schedule-start-offset"],
    ),
    (
        "--input-file @mooncake_hash.jsonl --fixed-schedule-start-offset 20 --fixed-schedule-end-offset 10",
        &["--fixed-schedule-start-offset 20", "--fixed-schedule-end-offset 10"],
    ),
    ("--input-file @mooncake_hash.jsonl --fixed-schedule-start-offset 1.5", &["whole number"]),
    (
        "--input-file @mooncake_hash.jsonl --request-rate 3",
        &["--request-rate", "--no-fixed-schedule", "recorded times"],
    ),
    (
        "--input-file @mooncake_hash.jsonl --fixed-schedule --request-rate 3",
        &["--request-rate", "--fixed-schedule"],
    ),
    (
        "--input-file @mooncake_hash.jsonl --custom-dataset-type mooncake_trace --arrival-smoothness 3",
        &["--arrival-smoothness", "--no-fixed-schedule"],
    ),
    (
        "--input-file @mooncake_hash.jsonl --dataset-sampling-strategy random",
        &["--dataset-sampling-strategy", "--no-fixed-schedule"],
    ),
    // Before anything is fetched.
    (
        "--public-dataset librispeech --endpoint-type embeddings",
        &["librispeech sends images, audio or video", "--endpoint-type embeddings", "--endpoint-type chat"],
    ),
    ("--public-dataset mmstar --endpoint-type completions", &["mmstar sends images", "takes one text"]),
    ("--public-dataset aimo --endpoint-type nim-rankings", &["aimo has no query and passages"]),
    (
        "--public-dataset semianalysis_cc_traces_weka --endpoint-type completions",
        &["sends lists of messages", "--endpoint-type completions takes one text"],
    ),
    // Data.
    ("--custom-dataset-type mooncake_trace", &["--custom-dataset-type", "--input-file"]),
    ("--ignore-trace-delays", &["--ignore-trace-delays", "--input-file"]),
    ("--isl-block-size 16", &["--isl-block-size", "--input-file"]),
    ("--input-file /no/such/file", &["--input-file", "/no/such/file", "does not exist", "check the path"]),
    ("--input-file hf://owner", &["Cannot use hf://owner: ", "<org>/<repo>"]),
    ("--input-file s3://b/key", &["Cannot use s3://b/key: ", "bucket name"]),
    ("--input-file https://u:planted@h/x?sig=planted", &["<redacted>", "user name"]),
    ("--input-file gopher://x", &["Cannot use gopher://x: ", "hf://, s3://, https://, http://"]),
    (
        "--input-file @weka_trace.json --custom-dataset-type weka_trace --use-think-time-only --ignore-trace-delays",
        &["--use-think-time-only", "--ignore-trace-delays"],
    ),
    (
        "--input-file @weka_trace.json --custom-dataset-type weka_trace --use-think-time-only --fixed-schedule",
        &["--use-think-time-only", "--fixed-schedule"],
    ),
    (
        "--cache-bust system-prefix --input-file @single_turn.jsonl --custom-dataset-type raw_payload",
        &["--cache-bust", "raw_payload", "byte for byte"],
    ),
    (
        "--cache-bust system-prefix --endpoint-type completions",
        &["--cache-bust", "--endpoint-type completions", "--endpoint-type chat"],
    ),
    ("--cache-bust everywhere", &["--cache-bust", "one of none, system-prefix"]),
    ("--synthesis-speedup-ratio 2", &["--synthesis-speedup-ratio", "--input-file"]),
    (
        "--input-file @mooncake_hash.jsonl --synthesis-speedup-ratio 0",
        &["--synthesis-speedup-ratio", "above 0"],
    ),
    (
        "--input-file @mooncake_hash.jsonl --synthesis-prefix-root-multiplier 0",
        &["--synthesis-prefix-root-multiplier", "1"],
    ),
    ("--input-file @mooncake_hash.jsonl --synthesis-max-isl 0", &["--synthesis-max-isl", "1"]),
    (
        "--input-file @single_turn.jsonl --custom-dataset-type single_turn --synthesis-max-osl 5",
        &[
            "single_turn",
            "--synthesis-speedup-ratio",
            "--synthesis-prefix-len-multiplier",
            "--synthesis-prefix-root-multiplier",
            "--synthesis-prompt-len-multiplier",
            "--synthesis-output-len-multiplier",
            "--synthesis-max-isl",
            "--synthesis-max-osl",
        ],
    ),
    (
        "--input-file @single_turn.jsonl --custom-dataset-type burst_gpt_trace --isl-block-size 16",
        &["--isl-block-size", "burst_gpt_trace"],
    ),
    (
        "--input-file @single_turn.jsonl --custom-dataset-type sagemaker_data_capture --request-rate 5",
        &["--request-rate", "sagemaker_data_capture", "--no-fixed-schedule"],
    ),
    (
        "--input-file @weka_trace.json --custom-dataset-type weka_trace --isl-block-size 64",
        &["--isl-block-size", "weka_trace"],
    ),
    (
        "--input-file @mooncake_hash.jsonl --custom-dataset-type mooncake_trace --max-context-length 9",
        &["--max-context-length", "mooncake_trace", "weka_trace"],
    ),
    (
        "--input-file @weka_trace.json --custom-dataset-type weka_trace --synthesis-speedup-ratio 2",
        &["--synthesis-speedup-ratio", "weka_trace", "--synthesis-max-osl"],
    ),
    ("--input-file @single_turn.jsonl --custom-dataset-type single_trun", &["did you mean 'single_turn'?"]),
    ("--input-file @single_turn.jsonl --custom-dataset-type single_turn --isl 5", &["--isl", "--input-file"]),
    ("--input-file @mooncake_hash.jsonl --num-prefix-prompts 5", &["--num-prefix-prompts", "--input-file"]),
    ("--input-file @mooncake_hash.jsonl --shared-system-prompt-length 5", &["--shared-system-prompt-length"]),
    ("--input-file @mooncake_hash.jsonl --session-turns-mean 2", &["--session-turns-mean", "--input-file"]),
    ("--input-file @mooncake_hash.jsonl --session-delay-ratio 2", &["--session-delay-ratio", "--input-file"]),
    (
        "--input-file @single_turn.jsonl --custom-dataset-type single_turn --isl-block-size 16",
        &["--isl-block-size", "single_turn"],
    ),
    (
        "--input-file @single_turn.jsonl --custom-dataset-type single_turn --prompt-batch-size 2",
        &["--prompt-batch-size", "random_pool", "single_turn"],
    ),
    (
        "--input-file @random_pool_dir --custom-dataset-type random_pool --image-batch-size 2",
        &["--image-batch-size 2", "folder"],
    ),
    (
        "--input-file @random_pool.jsonl --custom-dataset-type random_pool --batch-size 0 --image-batch-size 0 \
         --audio-batch-size 0 --video-batch-size 0",
        &["--batch-size", "--image-batch-size", "--audio-batch-size", "--video-batch-size"],
    ),
    (
        "--input-file @mooncake_hash.jsonl --prompt-corpus random",
        &["--prompt-corpus random", "mooncake_trace"],
    ),
    ("--video-batch-size 2", &["--video-batch-size", "--video-width"]),
    ("--osl-stddev 1", &["--osl-stddev", "--osl"]),
    ("--isl 0", &["--isl 0 leaves nothing to send", "--image-width-mean", "--video-width"]),
    ("--batch-size 0", &["--batch-size 0 leaves nothing to send", "--audio-length-mean"]),
    ("--isl 0 --image-width-mean 0 --image-height-mean 8", &["--isl 0 leaves nothing to send"]),
    ("--endpoint-type embeddings -b 0", &["-b 0 leaves nothing to send"]),
    (
        "--isl 0 --num-prefix-prompts 2 --prefix-prompt-length 5 --audio-length-mean 1",
        &["--num-prefix-prompts shapes the text", "--isl 0", "drop it, or drop --isl"],
    ),
    ("--batch-size 0 --isl 5 --audio-length-mean 1", &["--isl shapes the text", "--batch-size 0"]),
    ("--batch-size 2", &["--batch-size 2", "--endpoint-type chat"]),
    ("--session-turns-mean 0.5", &["--session-turns-mean", "1 to 100000"]),
    (
        "--endpoint-type completions --session-turns-mean 2",
        &["--session-turns-mean", "--endpoint-type completions"],
    ),
    (
        "--endpoint-type embeddings --conversation-turn-stddev 2",
        &["--conversation-turn-stddev", "embeddings"],
    ),
    ("--endpoint-type completions --system-prompt hi", &["--system-prompt", "completions"]),
    (
        "--endpoint-type embeddings --shared-system-prompt-length 5",
        &["--shared-system-prompt-length", "embeddings"],
    ),
    (
        "--endpoint-type completions --user-context-prompt-length 5 --num-dataset-entries 3",
        &["--user-context-prompt-length", "completions"],
    ),
    ("--num-prefix-prompts 2", &["--num-prefix-prompts", "--prefix-prompt-length"]),
    ("--prefix-prompt-length 2", &["--prefix-prompt-length", "--num-prefix-prompts"]),
    (
        "--num-prefix-prompts 2 --prefix-prompt-length 2 --shared-system-prompt-length 3",
        &["--num-prefix-prompts", "--shared-system-prompt-length"],
    ),
    (
        "--num-prefix-prompts 2 --prefix-prompt-length 2 --user-context-prompt-length 3 --num-dataset-entries 4",
        &["--num-prefix-prompts", "--user-context-prompt-length"],
    ),
    ("--user-context-prompt-length 3", &["--user-context-prompt-length", "--num-dataset-entries"]),
    ("--system-prompt a --system-prompt-file @sys.txt", &["--system-prompt", "--system-prompt-file"]),
    (
        "--system-prompt a --shared-system-prompt-length 3",
        &["--system-prompt", "--shared-system-prompt-length"],
    ),
    ("--system-prompt-file /no/such/file", &["--system-prompt-file", "/no/such/file"]),
    // Output.
    ("--profile-export-prefix a/b", &["--profile-export-prefix", "--artifact-dir"]),
    ("--profile-export-file .json", &["--profile-export-file", "name"]),
];

#[test]
fn each_contradiction_is_refused_naming_the_flags_and_the_fix() {
    for (line, parts) in REFUSED {
        let Err(error) = settle_line(line) else { panic!("accepted: {line}") };
        let report = error.report();
        for part in *parts {
            assert!(report.contains(part), "{line}\n  misses {part:?} in:\n{report}");
        }
        assert!(!report.contains("planted"), "{report}");
        let first = report.lines().next().unwrap_or_default();
        // The errors of sources are whole sentences.
        let ends = !first.ends_with('.') || first.starts_with("error: Cannot use ");
        assert!(first.starts_with("error: ") && ends, "{report}");
    }
}

/// Every flag that takes a number says what it takes when the number is below all that it could be.
#[test]
fn numbers_below_0_are_refused_with_the_flag_and_what_it_takes() {
    let numeric = |flag: &&flags::Flag| {
        flag.acts()
            && matches!(
                flag.kind,
                Kind::Count { .. } | Kind::Number(_) | Kind::Seconds(_) | Kind::SecondsOrForever
            )
    };
    let all: Vec<_> = flags::all().filter(numeric).collect();
    assert!(all.len() > 50, "{}", all.len());
    for flag in all {
        for name in flag.names {
            let report = settle_line(&format!("{name} -8")).err().map(|error| error.report());
            let Some(report) = report else { panic!("accepted: {name} -8") };
            let (start, end) = (format!("error: {name}: expected "), ", got '-8'\n");
            assert!(report.starts_with(&start) && report.ends_with(end), "{report}");
        }
    }
    for (line, parts) in [
        ("--random-range-ratio -0.1 --isl 8 --osl 4", &["--random-range-ratio", "from 0", "'-0.1'"][..]),
        ("--audio-length-mean 1 --audio-sample-rates -8", &["--audio-sample-rates -8", "1 to 96 kHz"]),
        ("--audio-length-mean 1 --audio-sample-rates 8 -8", &["--audio-sample-rates -8", "1 to 96 kHz"]),
        ("--audio-length-mean 1 --audio-depths -16", &["--audio-depths -16", "8, 16, 24 or 32"]),
        (
            "--video-width 8 --video-height 8 --video-audio-depth -8",
            &["--video-audio-depth", "one of 8", "'-8'"],
        ),
        ("--seq-dist --artifact-dir y", &["a value is required for '--seq-dist", "but none was supplied"]),
        ("--isl 5 --seq-dist", &["a value is required for '--seq-dist"]),
        ("--seq-dist -5,3:100", &["--seq-dist '-5,3:100'", "pair 1"]),
        ("--isl 5 --seq-dist -5", &["--seq-dist '-5'", "pair 1"]),
        ("--bind-address -1", &["--bind-address", "IP address", "'-1'"]),
    ] {
        let Err(error) = settle_line(line) else { panic!("accepted: {line}") };
        let report = error.report();
        for part in parts {
            assert!(report.contains(part), "{line}\n  misses {part:?} in:\n{report}");
        }
    }
}

#[test]
fn a_key_of_blanks_is_no_key() {
    let error = crate::support::settle(&["--api-key", "  "]).unwrap_err().report();
    assert!(error.contains("--api-key: expected a key of visible ASCII characters"), "{error}");
}

#[test]
fn a_missing_model_is_named() {
    let typed = Typed::parse(["profile", "--url", "mock://"]).unwrap();
    let error = aiperf_cli::settle::settle(&typed, &Environment::default(), &Told::default()).unwrap_err();
    assert!(error.report().contains("add --model NAME"), "{}", error.report());
    // A variable of a script that was not set.
    let error = crate::support::settle(&["--model", ""]).unwrap_err().report();
    assert!(error.contains("--model: one of the 2 names is empty"), "{error}");
}

#[test]
fn each_flag_that_is_not_there_yet_or_means_nothing_is_refused_by_name() {
    for flag in flags::all().filter(|flag| !flag.acts()) {
        for name in flag.names {
            // Before a value of another flag is even looked at.
            let mut arguments = vec!["profile", "--isl", "x", name];
            if !flag.value.is_empty() {
                arguments.push("1");
            }
            let error = Typed::parse(&arguments).unwrap_err().to_string();
            let reason = match flag.status {
                Status::NoMeaning(_) => "has no meaning here",
                _ => "is not supported yet: it comes with ",
            };
            assert!(error.starts_with(&format!("{name} {reason}")), "{arguments:?}: {error}");
        }
    }
}

#[test]
fn each_value_that_is_not_there_yet_is_refused_by_name() {
    for flag in flags::all() {
        for value in flag.later.iter().flat_map(|(_, values)| *values) {
            let error = Typed::parse(["profile", flag.shown, value]).unwrap_err().to_string();
            let expected = format!("{} {value} is not supported yet: it comes with ", flag.shown);
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}

#[test]
fn a_schedule_needs_a_timestamp_and_a_delay_is_none() {
    let path = data("multi_turn.jsonl");
    let arguments = ["--input-file", &path, "--custom-dataset-type", "multi_turn", "--fixed-schedule"];
    for (delay, words) in [(false, "no timestamp"), (true, "only a delay")] {
        let probe = Told {
            detected: FileFormat::MultiTurn,
            timing: aiperf_cli::settle::Timing { timestamp: false, delay, promotes: false },
        };
        let error = settle_with(&arguments, &Environment::default(), &probe).unwrap_err().report();
        assert!(error.contains(words) && error.contains("--fixed-schedule"), "{error}");
    }
}

#[test]
fn an_unknown_flag_is_named_with_the_one_that_was_meant() {
    let error = Typed::parse(["profile", "--requst-count", "2"]).unwrap_err().report();
    assert!(error.contains("--requst-count") && error.contains("--request-count"), "{error}");
    // One that is far from all is like none; one that is refused helps nobody.
    for (typed, refused) in [("--foo", ""), ("--goodputt", "--goodput")] {
        let error = Typed::parse(["profile", typed, "2"]).unwrap_err().report();
        assert!(error.contains(&format!("unexpected argument '{typed}'")), "{error}");
        assert!(!error.contains("similar"), "{error}");
        assert!(refused.is_empty() || flags::find(refused).is_some_and(|flag| !flag.acts()));
    }
}

#[test]
fn a_variable_with_a_senseless_value_is_named() {
    let mut environment = Environment::default();
    environment.variables.insert("AIPERF_HTTP_IP_VERSION".into(), "5".into());
    let error = settle_with(&[], &environment, &Told::default()).unwrap_err().report();
    assert!(error.contains("AIPERF_HTTP_IP_VERSION: expected 4, 6 or auto, got '5'"), "{error}");
}

#[test]
fn refusals_are_instant() {
    // The slowest path there is: all flags known, nothing read.
    let begin = aiperf_clock::now();
    for _ in 0..4 {
        let words = words("--concurrency 3 --benchmark-grace-period 3");
        assert!(crate::support::settle(&words.iter().map(String::as_str).collect::<Vec<_>>()).is_err());
    }
    assert!(aiperf_clock::now().saturating_since(begin) < 4_000_000_000);
}
