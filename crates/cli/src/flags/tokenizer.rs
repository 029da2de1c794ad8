//! Flags of the group "Tokenizer".

use super::{Flag, Group, Kind};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new("--tokenizer", &["--tokenizer"], Group::Tokenizer, Kind::Text)
        .value("NAME")
        .shown_default("the model name; builtin with mock://")
        .help("builtin (o200k_base, in the binary), a hub repository, a folder, or a tokenizer.json"),
    Flag::new("--tokenizer-revision", &["--tokenizer-revision"], Group::Tokenizer, Kind::Text)
        .value("REV")
        .default("main")
        .help("Branch, tag or commit of the hub repository"),
    Flag::new(
        "--tokenizer-trust-remote-code",
        &["--tokenizer-trust-remote-code"],
        Group::Tokenizer,
        Kind::Switch,
    )
    .default("False")
    .help("Accepted with a warning: code of a repository is never run"),
    Flag::new("--apply-chat-template", &["--apply-chat-template"], Group::Tokenizer, Kind::Switch)
        .default("False")
        .help("Count inputs as the chat template renders them"),
];
