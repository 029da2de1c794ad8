//! Flags of the group "Prompt".

use super::{Flag, Group, Kind};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "--batch-size",
        &["--prompt-batch-size", "--batch-size-text", "--batch-size", "-b"],
        Group::Prompt,
        Kind::Count { min: 0 },
    )
    .value("N")
    .default("1")
    .help("Texts in one request: embeddings and completions; with random_pool, texts drawn per request"),
    Flag::new("--prompt-corpus", &["--prompt-corpus"], Group::Prompt, Kind::Choice)
        .value("NAME")
        .shown_default("sonnet")
        .choices(&["sonnet", "coding", "random"])
        .help("Text that prompts are cut from: Shakespeare, code and logs, or random tokens"),
];
