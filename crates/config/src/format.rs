//! The names of the file formats.

/// Makes the list of formats: one line each.
macro_rules! file_formats {
    ($($format:ident = $name:literal: $about:literal,)*) => {
        /// A file format. What it is and how it is read is said once, by the table of the dataset room.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum FileFormat {
            $(#[doc = $about] $format,)*
        }

        impl FileFormat {
            /// Every format.
            pub const ALL: &[FileFormat] = &[$(FileFormat::$format,)*];

            /// The name on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(FileFormat::$format => $name,)*
                }
            }
        }
    };
}

file_formats! {
    SingleTurn = "single_turn": "One request per line.",
    MultiTurn = "multi_turn": "One conversation per line.",
    RandomPool = "random_pool": "A pool to draw from.",
    MooncakeTrace = "mooncake_trace": "Lengths, hash ids, texts, messages or payloads with recorded times.",
    RawPayload = "raw_payload": "Whole bodies, one per line.",
    InputsJson = "inputs_json": "The layout of `inputs.json`.",
    BailianTrace = "bailian_trace": "Lengths and hash ids of chats that follow each other.",
    BurstGptTrace = "burst_gpt_trace": "Times and lengths, as CSV.",
    AzureLlmTrace = "azure_llm_trace": "Times and lengths of the public Azure traces, as CSV.",
    BasetenTrace = "baseten_trace": "Completions with prompts and sessions, as Parquet.",
    SagemakerDataCapture = "sagemaker_data_capture": "Captured calls.",
    Tracelab = "tracelab": "Rounds of coding agents.",
    WekaTrace = "weka_trace": "Sessions of coding agents with hash ids.",
    DagJsonl = "dag_jsonl": "Nodes of a branch graph.",
    SpeedBenchQualitative = "speed_bench_qualitative": "SPEED-Bench: questions of all categories.",
    SpeedBenchCoding = "speed_bench_coding": "SPEED-Bench: questions of one category.",
    SpeedBenchHumanities = "speed_bench_humanities": "SPEED-Bench: questions of one category.",
    SpeedBenchMath = "speed_bench_math": "SPEED-Bench: questions of one category.",
    SpeedBenchMultilingual = "speed_bench_multilingual": "SPEED-Bench: questions of one category.",
    SpeedBenchQa = "speed_bench_qa": "SPEED-Bench: questions of one category.",
    SpeedBenchRag = "speed_bench_rag": "SPEED-Bench: questions of one category.",
    SpeedBenchReasoning = "speed_bench_reasoning": "SPEED-Bench: questions of one category.",
    SpeedBenchRoleplay = "speed_bench_roleplay": "SPEED-Bench: questions of one category.",
    SpeedBenchStem = "speed_bench_stem": "SPEED-Bench: questions of one category.",
    SpeedBenchSummarization = "speed_bench_summarization": "SPEED-Bench: questions of one category.",
    SpeedBenchWriting = "speed_bench_writing": "SPEED-Bench: questions of one category.",
    SpeedBenchThroughput1k = "speed_bench_throughput_1k": "SPEED-Bench: prompts of 1k tokens.",
    SpeedBenchThroughput1kLowEntropy = "speed_bench_throughput_1k_low_entropy": "SPEED-Bench: those of low entropy.",
    SpeedBenchThroughput1kMixed = "speed_bench_throughput_1k_mixed": "SPEED-Bench: those of mixed entropy.",
    SpeedBenchThroughput1kHighEntropy = "speed_bench_throughput_1k_high_entropy": "SPEED-Bench: those of high entropy.",
    SpeedBenchThroughput2k = "speed_bench_throughput_2k": "SPEED-Bench: prompts of 2k tokens.",
    SpeedBenchThroughput2kLowEntropy = "speed_bench_throughput_2k_low_entropy": "SPEED-Bench: those of low entropy.",
    SpeedBenchThroughput2kMixed = "speed_bench_throughput_2k_mixed": "SPEED-Bench: those of mixed entropy.",
    SpeedBenchThroughput2kHighEntropy = "speed_bench_throughput_2k_high_entropy": "SPEED-Bench: those of high entropy.",
    SpeedBenchThroughput8k = "speed_bench_throughput_8k": "SPEED-Bench: prompts of 8k tokens.",
    SpeedBenchThroughput8kLowEntropy = "speed_bench_throughput_8k_low_entropy": "SPEED-Bench: those of low entropy.",
    SpeedBenchThroughput8kMixed = "speed_bench_throughput_8k_mixed": "SPEED-Bench: those of mixed entropy.",
    SpeedBenchThroughput8kHighEntropy = "speed_bench_throughput_8k_high_entropy": "SPEED-Bench: those of high entropy.",
    SpeedBenchThroughput16k = "speed_bench_throughput_16k": "SPEED-Bench: prompts of 16k tokens.",
    SpeedBenchThroughput16kLowEntropy = "speed_bench_throughput_16k_low_entropy": "SPEED-Bench: those of low entropy.",
    SpeedBenchThroughput16kMixed = "speed_bench_throughput_16k_mixed": "SPEED-Bench: those of mixed entropy.",
    SpeedBenchThroughput16kHighEntropy = "speed_bench_throughput_16k_high_entropy": "SPEED-Bench: those of high entropy.",
    SpeedBenchThroughput32k = "speed_bench_throughput_32k": "SPEED-Bench: prompts of 32k tokens.",
    SpeedBenchThroughput32kLowEntropy = "speed_bench_throughput_32k_low_entropy": "SPEED-Bench: those of low entropy.",
    SpeedBenchThroughput32kMixed = "speed_bench_throughput_32k_mixed": "SPEED-Bench: those of mixed entropy.",
    SpeedBenchThroughput32kHighEntropy = "speed_bench_throughput_32k_high_entropy": "SPEED-Bench: those of high entropy.",
}
