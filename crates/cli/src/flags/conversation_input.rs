//! Flags of the group "Conversation Input".

use super::{ABOVE_0, AT_LEAST_0, Flag, Group, Kind, PAUSE, SPREAD, TURNS};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "--num-conversations",
        &["--conversation-num", "--num-conversations", "--num-sessions"],
        Group::ConversationInput,
        Kind::Count { min: 1 },
    )
    .value("N")
    .help("Sessions to start; also the number of conversations to generate"),
    Flag::new(
        "--num-dataset-entries",
        &["--num-dataset-entries", "--num-prompts"],
        Group::ConversationInput,
        Kind::Count { min: 1 },
    )
    .value("N")
    .default("100")
    .shown_default("--num-conversations, else --request-count, else 100")
    .help("Conversations to generate; with a file, to read. All of them are written to inputs.json, sent or not"),
    Flag::new(
        "--conversation-turn-mean",
        &["--conversation-turn-mean", "--session-turns-mean"],
        Group::ConversationInput,
        Kind::Number(TURNS),
    )
    .value("N")
    .default("1")
    .help("Mean number of turns of a conversation"),
    Flag::new(
        "--conversation-turn-stddev",
        &["--conversation-turn-stddev", "--session-turns-stddev"],
        Group::ConversationInput,
        Kind::Number(SPREAD),
    )
    .value("N")
    .default("0")
    .help("Standard deviation of the number of turns"),
    Flag::new(
        "--conversation-turn-delay-mean",
        &["--conversation-turn-delay-mean", "--session-turn-delay-mean"],
        Group::ConversationInput,
        Kind::Number(PAUSE),
    )
    .value("MS")
    .default("0.0")
    .help("Mean pause between an answer and the next turn"),
    Flag::new(
        "--conversation-turn-delay-stddev",
        &["--conversation-turn-delay-stddev", "--session-turn-delay-stddev"],
        Group::ConversationInput,
        Kind::Number(PAUSE),
    )
    .value("MS")
    .default("0.0")
    .help("Standard deviation of that pause"),
    Flag::new(
        "--conversation-turn-delay-ratio",
        &["--conversation-turn-delay-ratio", "--session-delay-ratio"],
        Group::ConversationInput,
        Kind::Number(AT_LEAST_0),
    )
    .value("FACTOR")
    .default("1.0")
    .help("Factor on those pauses; 0 removes them"),
    Flag::new(
        "--inter-turn-delay-cap-seconds",
        &["--inter-turn-delay-cap-seconds"],
        Group::ConversationInput,
        Kind::Seconds(AT_LEAST_0),
    )
    .value("SECONDS")
    .help("Longest pause between turns, also of a recorded one"),
    Flag::new(
        "--max-idle-gap-cap-seconds",
        &["--max-idle-gap-cap-seconds"],
        Group::ConversationInput,
        Kind::Seconds(ABOVE_0),
    )
    .value("SECONDS")
    .help("Longest time without a request in the replay of a baseten_trace, after --replay-speedup"),
    Flag::new("--replay-speedup", &["--replay-speedup"], Group::ConversationInput, Kind::Number(ABOVE_0))
        .value("FACTOR")
        .shown_default("1")
        .help("Play a baseten_trace so many times as fast: times and delays are divided by it"),
    Flag::new(
        "--open-loop-replay",
        &["--open-loop-replay", "--no-open-loop-replay"],
        Group::ConversationInput,
        Kind::Switch,
    )
    .default("True")
    .help(
        "Send each turn of a baseten_trace at its recorded time; else after the answer before it and the recorded think \
         time",
    ),
    Flag::new("--open-loop-strict", &["--open-loop-strict"], Group::ConversationInput, Kind::Switch)
        .default("False")
        .help("Send each row of a baseten_trace at its recorded time, whether the turn before it was answered or not"),
    Flag::new("--omit-kv-hints", &["--omit-kv-hints"], Group::ConversationInput, Kind::Switch)
        .default("False")
        .help("Leave hash_ids and block_size of a baseten_trace out of bodies"),
    Flag::new(
        "--force-min-tokens",
        &["--force-min-tokens", "--no-force-min-tokens"],
        Group::ConversationInput,
        Kind::Switch,
    )
    .default("True")
    .help("Demand answers as long as a baseten_trace records, with min_tokens"),
];
