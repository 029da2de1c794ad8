//! Options that are accepted and find nothing to act on beside the others: each is said.

use std::path::Path;

use aiperf_config::{DatasetSource, EndpointKind, ExportLevel, FileFormat, RunConfig, TokenizerSource};

use super::Note;
use crate::typed::Typed;

const LEGACY: &str = "--use-legacy-max-tokens";

/// Options that shape bodies which are built, and pauses between them.
const OF_BODIES: [&str; 6] = [
    "--osl",
    "--extra-inputs",
    "--system-prompt",
    "--system-prompt-file",
    LEGACY,
    "--inter-turn-delay-cap-seconds",
];

/// What of the command line changes nothing in `config`, and why.
pub(super) fn notes(typed: &Typed, config: &RunConfig) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut idle = |flag: &str, why: &str| {
        if typed.has(flag) {
            notes.push(Note::warning(format!("{} changes nothing: {why}", typed.name(flag))));
        }
    };
    let kind = config.endpoint.kind;
    if kind != EndpointKind::Chat {
        idle(LEGACY, &format!("it names the limit of chat requests, and --endpoint-type is {}", kind.name()));
    }
    if config.output.level == ExportLevel::Summary {
        idle("--export-http-trace", "it adds to the records, and --export-level summary writes none");
    }
    match &config.tokenizer.source {
        TokenizerSource::Builtin => {
            idle("--tokenizer-revision", "the builtin tokenizer is in the binary");
        }
        TokenizerSource::Named(name) if Path::new(name).exists() => {
            idle("--tokenizer-revision", "the tokenizer is a file or a folder, which has no revisions");
        }
        TokenizerSource::Named(_) => {}
    }
    let DatasetSource::File(file) = &config.dataset.source else { return notes };
    let format = aiperf_dataset::format(file.format);
    if !format.takes("--prompt-corpus") {
        idle("--prompt-corpus", &format!("the texts are those of the file ({})", format.name()));
    }
    if matches!(file.format, FileFormat::RawPayload | FileFormat::InputsJson) {
        // The limit of other endpoints was told above.
        let of_bodies = OF_BODIES.iter().filter(|flag| kind == EndpointKind::Chat || **flag != LEGACY);
        for flag in of_bodies {
            idle(flag, &format!("the requests of the file ({}) are sent as they are", format.name()));
        }
    }
    notes
}
