//! Flags of the group "Prefix Prompt".

use super::{Flag, Group, Kind};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new("--system-prompt", &["--system-prompt"], Group::PrefixPrompt, Kind::Text)
        .value("TEXT")
        .help("System message of every request"),
    Flag::new("--system-prompt-file", &["--system-prompt-file"], Group::PrefixPrompt, Kind::Path)
        .value("FILE")
        .help("The same, read from a file"),
    Flag::new(
        "--num-prefix-prompts",
        &["--prompt-prefix-pool-size", "--prefix-prompt-pool-size", "--num-prefix-prompts"],
        Group::PrefixPrompt,
        Kind::Count { min: 0 },
    )
    .value("N")
    .default("0")
    .help("Prefixes to choose from; each conversation starts with one"),
    Flag::new(
        "--prefix-prompt-length",
        &["--prompt-prefix-length", "--prefix-prompt-length"],
        Group::PrefixPrompt,
        Kind::Count { min: 0 },
    )
    .value("TOKENS")
    .default("0")
    .help("Length of those prefixes, on top of --isl"),
    Flag::new(
        "--shared-system-prompt-length",
        &["--shared-system-prompt-length"],
        Group::PrefixPrompt,
        Kind::Count { min: 1 },
    )
    .value("TOKENS")
    .help("Length of one generated system message shared by all conversations"),
    Flag::new(
        "--user-context-prompt-length",
        &["--user-context-prompt-length"],
        Group::PrefixPrompt,
        Kind::Count { min: 1 },
    )
    .value("TOKENS")
    .help("Length of a generated user message put before each conversation"),
];
