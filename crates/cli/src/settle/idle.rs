//! Options that are accepted and find nothing to act on beside the others: each is said.

use std::path::Path;

use aiperf_config::{
    DatasetSource, EndpointKind, ExportLevel, FileDataset, FileFormat, Lengths, LoadMode, RunConfig,
    SyntheticDataset, TokenizerSource, Ui,
};

use super::Note;
use crate::typed::Typed;

const LEGACY: &str = "--use-legacy-max-tokens";
const TEMPLATE: &str = "--apply-chat-template";
const DELAY_CAP: &str = "--inter-turn-delay-cap-seconds";
const DELAY: &str = "--conversation-turn-delay-mean";

/// The arrival pattern that is none.
const UNPACED: &str = "concurrency-burst";

/// Options that shape bodies which are built, and pauses between them.
const OF_BODIES: [&str; 6] =
    ["--osl", "--extra-inputs", "--system-prompt", "--system-prompt-file", LEGACY, DELAY_CAP];

/// What of the command line changes nothing in `config`, and why.
pub(super) fn notes(typed: &Typed, config: &RunConfig) -> Vec<Note> {
    let mut idle = Idle { typed, notes: Vec::new() };
    let kind = config.endpoint.kind;
    if kind != EndpointKind::Chat {
        idle.say(
            LEGACY,
            &format!("it names the limit of chat requests, and --endpoint-type is {}", kind.name()),
        );
        idle.say(TEMPLATE, &format!("--endpoint-type {} has no messages to render", kind.name()));
    }
    if config.output.level == ExportLevel::Summary {
        idle.say("--export-http-trace", "it adds to the records, and --export-level summary writes none");
    }
    if config.runtime.ui == Ui::None {
        idle.say("--stats-interval", "--ui none shows nothing while a run goes on");
    }
    tokenizer(&mut idle, config);
    pacing(&mut idle, config);
    cancellation(&mut idle, config);
    match &config.dataset.source {
        DatasetSource::File(file) => of_file(&mut idle, file, kind),
        DatasetSource::Synthetic(shape) => generated(&mut idle, shape, config),
        DatasetSource::Stored(_) => {}
    }
    idle.notes
}

struct Idle<'a> {
    typed: &'a Typed,
    notes: Vec<Note>,
}

impl Idle<'_> {
    /// Notes that `flag` changes nothing, where it was given; a switch, where it was given and is not off.
    fn say(&mut self, flag: &str, why: &str) {
        if self.typed.has(flag) && self.typed.switch(flag) != Some(false) {
            self.tell(self.typed.name(flag), why);
        }
    }

    /// Notes that what is called `name` changes nothing.
    fn tell(&mut self, name: &str, why: &str) {
        self.notes.push(Note::warning(format!("{name} changes nothing: {why}")));
    }
}

fn tokenizer(idle: &mut Idle<'_>, config: &RunConfig) {
    if !aiperf_run::needs_tokenizer(config) {
        let why = "nothing is counted here: with --use-server-token-count the server does";
        for flag in ["--tokenizer", "--tokenizer-revision", TEMPLATE] {
            idle.say(flag, why);
        }
        return;
    }
    match &config.tokenizer.source {
        TokenizerSource::Builtin => {
            idle.say("--tokenizer-revision", "the builtin tokenizer is in the binary");
        }
        TokenizerSource::Named(name) if Path::new(name).exists() => {
            idle.say("--tokenizer-revision", "the tokenizer is a file or a folder, which has no revisions");
        }
        TokenizerSource::Named(_) => {}
    }
}

fn pacing(idle: &mut Idle<'_>, config: &RunConfig) {
    let flags = [
        ("--concurrency-ramp-duration", "--arrival-pattern"),
        ("--warmup-concurrency-ramp-duration", "--warmup-arrival-pattern"),
    ];
    for (phase, (ramp, pattern)) in config.phases.iter().rev().zip(flags) {
        if phase.concurrency == Some(1) {
            idle.say(ramp, "it raises the concurrency from 1, which is all that is asked for");
        }
        let is_paced = matches!(phase.mode, LoadMode::Rate { .. });
        if is_paced && idle.typed.text(pattern) == Some(UNPACED) {
            let what = format!("{} {UNPACED}", idle.typed.name(pattern));
            idle.tell(&what, "beside a rate arrivals are Poisson");
        }
    }
}

fn cancellation(idle: &mut Idle<'_>, config: &RunConfig) {
    let Some(cancellation) = config.profiling().cancellation else { return };
    let timeout = config.endpoint.request_timeout;
    if timeout.is_some_and(|timeout| cancellation.delay >= timeout) {
        idle.say(
            "--request-cancellation-rate",
            "no request lasts as long as --request-cancellation-delay, for --request-timeout-seconds ends it before",
        );
    }
}

fn of_file(idle: &mut Idle<'_>, file: &FileDataset, kind: EndpointKind) {
    let format = aiperf_dataset::format(file.format);
    if !format.takes("--prompt-corpus") {
        idle.say("--prompt-corpus", &format!("the texts are those of the file ({})", format.name()));
    }
    if sent_as_it_is(file) {
        // The limit of other endpoints was told above.
        let of_bodies = OF_BODIES.iter().filter(|flag| kind == EndpointKind::Chat || **flag != LEGACY);
        for flag in of_bodies {
            idle.say(flag, &format!("the requests of the file ({}) are sent as they are", format.name()));
        }
    }
}

/// Whether requests are those of the file, to the byte.
pub(super) fn sent_as_it_is(file: &FileDataset) -> bool {
    matches!(file.format, FileFormat::RawPayload | FileFormat::InputsJson)
}

fn generated(idle: &mut Idle<'_>, shape: &SyntheticDataset, config: &RunConfig) {
    const OF_AGENTS: &str = "it is for traces of agents (weka_trace, tracelab), and this text is generated";
    for flag in ["--use-think-time-only", "--trace-idle-gap-cap-seconds"] {
        idle.say(flag, OF_AGENTS);
    }
    if idle.typed.switch("--allow-dataset-wrap") == Some(false) {
        idle.tell(idle.typed.name("--allow-dataset-wrap"), OF_AGENTS);
    }
    if shape.turns.mean <= 1.0 && shape.turns.stddev <= 0.0 {
        for flag in [DELAY, "--conversation-turn-delay-stddev", "--conversation-turn-delay-ratio", DELAY_CAP]
        {
            idle.say(
                flag,
                "conversations of one turn have no pauses; --conversation-turn-mean asks for more turns",
            );
        }
    } else if shape.turn_delay.mean <= 0.0 {
        for flag in ["--conversation-turn-delay-stddev", "--conversation-turn-delay-ratio", DELAY_CAP] {
            idle.say(flag, &format!("there are no pauses without {DELAY}"));
        }
    }
    if config.endpoint.kind == EndpointKind::Chat
        && config.dataset.osl.is_none()
        && matches!(shape.lengths, Lengths::Normal(_))
    {
        idle.say(LEGACY, "no limit is sent; --osl TOKENS sets one");
    }
}
