//! What is sent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use aiperf_config::{
    CacheBust, Corpus, DatasetConfig, DatasetSource, EndpointConfig, EndpointKind, FileDataset, FileFormat,
    FixedSchedule, InputColumns, Normal, Sampling, Tuning, redact_reference,
};
use aiperf_source::Ask;

use super::endpoint::duration;
use super::{
    DatasetProbe, Note, agents, lengths, media, public, rankings, refuse_all, replay, schedule, synthesis,
    synthetic,
};
use crate::commands::common_names;
use crate::remote;
use crate::typed::Typed;
use crate::usage::UsageError;

/// Flags that shape generated text; a file says these things itself.
pub(super) const SYNTHETIC_ONLY: [&str; 14] = [
    "--isl",
    "--isl-stddev",
    "--seq-dist",
    "--random-range-ratio",
    "--random-corpus-style",
    "--num-prefix-prompts",
    "--prefix-prompt-length",
    "--shared-system-prompt-length",
    "--user-context-prompt-length",
    "--conversation-turn-mean",
    "--conversation-turn-stddev",
    "--conversation-turn-delay-mean",
    "--conversation-turn-delay-stddev",
    "--conversation-turn-delay-ratio",
];

/// The flag that says which columns hold which fields.
pub(super) const COLUMNS: &str = "--input-columns";

pub(super) const MEDIA_BATCHES: [&str; 3] =
    ["--image-batch-size", "--audio-batch-size", "--video-batch-size"];

pub(super) fn settle(
    typed: &Typed,
    endpoint: &EndpointConfig,
    tuning: &Tuning,
    probe: &dyn DatasetProbe,
    notes: &mut Vec<Note>,
) -> Result<(DatasetConfig, Option<FixedSchedule>), UsageError> {
    let sampling = match typed.text("--dataset-sampling-strategy") {
        Some("random") => Sampling::Random,
        Some("shuffle") => Sampling::Shuffle,
        _ => Sampling::Sequential,
    };
    let mut public = None;
    let (source, schedule) =
        if let Some(asked) = public::settle(typed, endpoint.kind, sampling, tuning, notes)? {
            public = Some(asked.public);
            (asked.source, asked.schedule)
        } else if let Some(path) = typed.text("--input-file") {
            let (file, schedule) = file(typed, path, sampling, tuning, probe, notes)?;
            (DatasetSource::File(file), schedule)
        } else {
            refuse_file_flags(typed)?;
            (DatasetSource::Synthetic(synthetic::settle(typed, endpoint.kind, notes)?), None)
        };
    let inter_turn_delay_cap: Option<Duration> = match typed.number("--inter-turn-delay-cap-seconds") {
        Some(seconds) => duration(typed, "--inter-turn-delay-cap-seconds", seconds)?,
        None => None,
    };
    let cache_bust = cache_bust(typed, endpoint.kind, &source)?;
    Ok((
        DatasetConfig {
            source,
            public,
            cache_bust,
            sampling,
            inter_turn_delay_cap,
            osl: osl(typed, endpoint.kind, notes)?,
            system_prompt: system_prompt(typed, endpoint.kind)?,
            corpus: match typed.text("--prompt-corpus") {
                Some("sonnet") => Some(Corpus::Sonnet),
                Some("coding") => Some(Corpus::Coding),
                Some("random") => Some(Corpus::Random),
                _ => None,
            },
        },
        schedule,
    ))
}

/// Where marks go, on endpoints and data that have a place for them.
fn cache_bust(
    typed: &Typed,
    endpoint: EndpointKind,
    source: &DatasetSource,
) -> Result<Option<CacheBust>, UsageError> {
    const FLAG: &str = "--cache-bust";
    let Some(target) = typed.text(FLAG).and_then(CacheBust::named) else { return Ok(None) };
    if endpoint.single_turn_only() {
        return Err(UsageError::combination(
            format!("{FLAG} marks messages, and --endpoint-type {} has none", endpoint.name()),
            "drop it, or use --endpoint-type chat",
        ));
    }
    if let DatasetSource::File(file) = source
        && matches!(file.format, FileFormat::RawPayload | FileFormat::InputsJson)
    {
        return Err(UsageError::combination(
            format!("{FLAG} changes requests, and those of {} are sent byte for byte", file.format.name()),
            "drop it, or use a format whose requests are built, as single_turn or multi_turn",
        ));
    }
    Ok(Some(target))
}

fn refuse_file_flags(typed: &Typed) -> Result<(), UsageError> {
    refuse_all(
        typed,
        &[
            "--custom-dataset-type",
            COLUMNS,
            "--ignore-trace-delays",
            "--isl-block-size",
            "--fixed-schedule",
            "--no-fixed-schedule",
        ],
        "needs a data file",
        "add --input-file PATH, or drop it",
    )?;
    refuse_all(
        typed,
        &[agents::CONTEXT],
        "chooses recorded traces by the context they need, and generated text is as long as it is asked to be",
        "bound it with --isl and --osl, or drop it",
    )?;
    synthesis::refuse(typed)?;
    refuse_all(
        typed,
        &replay::FLAGS,
        "shapes the replay of a trace of completions",
        "add --input-file with a baseten_trace, or drop it",
    )?;
    refuse_all(
        typed,
        &schedule::OFFSETS,
        "needs a fixed schedule",
        "add --input-file with a trace that has times, or drop it",
    )?;
    Ok(())
}

fn file(
    typed: &Typed,
    text: &str,
    sampling: Sampling,
    tuning: &Tuning,
    probe: &dyn DatasetProbe,
    notes: &mut Vec<Note>,
) -> Result<(FileDataset, Option<FixedSchedule>), UsageError> {
    refuse_all(
        typed,
        &SYNTHETIC_ONLY,
        "shapes generated text, and --input-file brings its own",
        "drop it, or drop --input-file to generate text",
    )?;
    media::refuse(typed, "--input-file")?;
    rankings::refuse(typed, "--input-file")?;
    let asked = columns(typed)?;
    let Input { path, declared, block_size, is_folder } = input(typed, text, probe)?;
    let (format, detected, columns) = if let Some(format) = declared {
        (format, None, asked.clone())
    } else {
        let found = probe.detect(&path, &asked).map_err(|what| of_file(typed, &what))?;
        (found.format, Some(found.promotes), found.columns)
    };
    let entry = aiperf_dataset::format(format);
    entry.check_columns(&columns).map_err(|what| {
        UsageError::combination(what, "see aiperf datasets for the types and their fields")
    })?;
    if columns != asked {
        notes.push(Note::info(common_names(format, &columns)));
    }
    check_options(typed, entry, declared.is_some(), notes)?;
    let synthesis = synthesis::settle(typed, entry)?;
    let pool_batch = pool_batch(typed, format, &path, is_folder)?;
    let replay = replay::settle(typed, format, declared.is_some(), tuning, notes)?;
    let agents = agents::settle(typed, format, declared.is_some(), tuning, notes)?;
    let looked = schedule::Looked { path: &path, format, columns: &columns, detected, probe };
    let mut schedule = schedule::settle(typed, looked, agents.think_time_only, notes)?;
    if schedule.is_none() {
        replay::without_schedule(typed, &replay, notes);
    }
    if let Some((schedule, promoted)) = &mut schedule {
        // The offset is recorded time, the schedule is that of the replay.
        schedule.zero_ms = schedule.zero_ms.map(|zero| synthesis.scaled(zero) / replay.speedup);
        let promoted = *promoted;
        schedule::refuse_sampling(typed, sampling)?;
        // Where the format was found by looking, the run says the same.
        if promoted && declared.is_some() {
            notes.push(Note::info(format!(
                "{} ({}) has recorded times: requests are sent on them; --no-fixed-schedule ignores the times",
                redact_reference(text),
                format.name()
            )));
        }
    }
    let window = if schedule.is_some() { schedule::window(typed) } else { (None, None) };
    let file = FileDataset {
        path,
        format,
        detected: declared.is_none(),
        columns,
        entries: entries(typed, format)?,
        block_size: typed
            .count("--isl-block-size")
            .or(block_size)
            .filter(|_| entry.takes("--isl-block-size"))
            .map(to_u32(typed, "--isl-block-size"))
            .transpose()?,
        ignore_trace_delays: typed.is_on("--ignore-trace-delays"),
        no_schedule: typed.is_on("--no-fixed-schedule"),
        uuid_and_strip: typed.is_on("--uuid-and-strip"),
        window,
        pool_batch,
        replay,
        synthesis,
        agents,
    };
    Ok((file, schedule.map(|(schedule, _)| schedule)))
}

/// What is wrong with the data file, by its name and line, under the flag that names it.
pub(super) fn of_file(typed: &Typed, what: &str) -> UsageError {
    // A reference that cannot be used has a sentence of its own, the same under every command.
    let is_of_source = what.starts_with("Cannot use ");
    let what = if is_of_source { what.to_owned() } else { format!("{}: {what}", typed.name("--input-file")) };
    UsageError::Input { what, fix: None }
}

/// Where the fields of the format are, as far as it was said.
fn columns(typed: &Typed) -> Result<InputColumns, UsageError> {
    InputColumns::parse(typed.texts(COLUMNS)).map_err(|what| {
        UsageError::combination(
            format!("{COLUMNS}: {what}"),
            format!("write {COLUMNS} FIELD=COLUMN,FIELD=COLUMN, each field and each column once"),
        )
    })
}

/// Refuses the options that a format cannot follow, and says which have no effect.
pub(super) fn check_options(
    typed: &Typed,
    entry: &aiperf_dataset::Format,
    declared: bool,
    notes: &mut Vec<Note>,
) -> Result<(), UsageError> {
    if declared && !entry.takes("--isl-block-size") {
        refuse_all(
            typed,
            &["--isl-block-size"],
            &format!("needs a trace with hash ids; {} has none", entry.name()),
            "drop it, or use --custom-dataset-type mooncake_trace",
        )?;
    }
    if typed.is_on("--ignore-trace-delays") && !entry.takes("--ignore-trace-delays") {
        notes.push(Note::warning(format!(
            "--ignore-trace-delays changes nothing: {} is no trace format",
            entry.name()
        )));
    }
    if typed.text("--prompt-corpus") == Some("random") && entry.takes("--prompt-corpus") {
        return Err(UsageError::combination(
            format!(
                "--prompt-corpus random does not go with {}: its blocks are cut from a text",
                entry.name()
            ),
            "use --prompt-corpus sonnet or coding, or drop it",
        ));
    }
    if typed.is_on("--uuid-and-strip") && !entry.takes("--uuid-and-strip") {
        return Err(UsageError::combination(
            format!(
                "--uuid-and-strip needs rows of single_turn grouped by session id, and the file is {}",
                entry.name()
            ),
            "drop it, or use --custom-dataset-type single_turn",
        ));
    }
    Ok(())
}

/// Draws of a random pool; conversations to load otherwise.
fn entries(typed: &Typed, format: FileFormat) -> Result<Option<u64>, UsageError> {
    match format {
        FileFormat::RandomPool => synthetic::entries(typed).map(Some),
        _ => Ok(typed.count("--num-dataset-entries")),
    }
}

/// Fits a count into 32 bits, or says which flag is too large.
pub(super) fn to_u32<'a>(typed: &'a Typed, flag: &'a str) -> impl Fn(u64) -> Result<u32, UsageError> + 'a {
    move |count| {
        u32::try_from(count).map_err(|_| UsageError::Value {
            flag: typed.name(flag).into(),
            value: count.to_string(),
            rule: format!("at most {}", u32::MAX),
            similar: None,
        })
    }
}

/// What `--input-file` names.
struct Input {
    /// The path, or the reference with its credentials hidden.
    path: PathBuf,
    /// The format, by the flag or by the publisher.
    declared: Option<FileFormat>,
    /// The publisher's block size.
    block_size: Option<u64>,
    is_folder: bool,
}

fn input(typed: &Typed, text: &str, probe: &dyn DatasetProbe) -> Result<Input, UsageError> {
    let flag = typed.text("--custom-dataset-type");
    let declared = flag.and_then(|name| FileFormat::ALL.iter().copied().find(|format| format.name() == name));
    let Some(reference) = remote::reference(text) else {
        let path = local_path(typed, text, declared)?;
        let is_folder = path.is_dir();
        return Ok(Input { path, declared, block_size: None, is_folder });
    };
    let reference = reference.map_err(UsageError::Source)?;
    let stops = ["--num-conversations", "--request-count", "--benchmark-duration"];
    let access = probe.access(
        &reference,
        &Ask {
            format: flag,
            endpoint_type: Some(typed.text("--endpoint-type").unwrap_or("chat")),
            has_stop: stops.iter().any(|flag| typed.has(flag)),
            max_context_length: typed.count("--max-context-length"),
            formats: &remote::Table,
            own_version: remote::VERSION,
        },
    )?;
    Ok(Input {
        path: reference.redacted().into(),
        declared: access.format,
        block_size: access.block_size,
        is_folder: access.is_folder,
    })
}

fn local_path(typed: &Typed, text: &str, declared: Option<FileFormat>) -> Result<PathBuf, UsageError> {
    let path = PathBuf::from(text);
    let readable = std::fs::metadata(&path).and_then(|found| {
        if found.is_dir() {
            std::fs::read_dir(&path).map(|_| ())
        } else if found.is_file() {
            std::fs::File::open(&path).map(|_| ())
        } else {
            // Not opened: that may wait for ever. The loader says what is wrong with it.
            Ok(())
        }
    });
    let name = typed.name("--input-file");
    let text = redact_reference(text);
    readable.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => UsageError::Input {
            what: match declared {
                Some(format) => format!("{name} {text} ({}): it does not exist", format.name()),
                None => format!("{name} {text}: it does not exist"),
            },
            fix: Some(aiperf_dataset::check_the_path(&path)),
        },
        _ => UsageError::Input { what: format!("{name} {text}: cannot read it: {error}"), fix: None },
    })?;
    Ok(path)
}

fn pool_batch(
    typed: &Typed,
    format: FileFormat,
    path: &Path,
    is_folder: bool,
) -> Result<[u32; 4], UsageError> {
    let mut batch = [1; 4];
    for (slot, flag) in batch.iter_mut().zip(["--batch-size"].into_iter().chain(MEDIA_BATCHES)) {
        let Some(count) = synthetic::at_most(typed, flag, synthetic::MOST_TEXTS)? else { continue };
        let name = typed.name(flag);
        if !aiperf_dataset::format(format).takes("--prompt-batch-size") {
            return Err(UsageError::combination(
                format!(
                    "{name} with --input-file needs the format random_pool, and this is {}",
                    format.name()
                ),
                format!("drop {name}, or use --custom-dataset-type random_pool"),
            ));
        }
        if count != 1 && is_folder {
            return Err(UsageError::combination(
                format!(
                    "{name} {count} needs one pool, and --input-file {} is a folder of pools",
                    path.display()
                ),
                format!("name one file of it, or drop {name}"),
            ));
        }
        *slot = count;
    }
    if batch == [0; 4] {
        return Err(UsageError::combination(
            "--batch-size, --image-batch-size, --audio-batch-size and --video-batch-size are all 0: nothing is left to send",
            "raise one of them",
        ));
    }
    Ok(batch)
}

fn osl(typed: &Typed, kind: EndpointKind, notes: &mut Vec<Note>) -> Result<Option<Normal>, UsageError> {
    let Some(mean) = typed.number("--osl") else {
        return match typed.get("--osl-stddev") {
            None => Ok(None),
            Some(given) => Err(UsageError::combination(
                format!("{} needs --osl: a spread without a mean", given.name),
                format!("add --osl TOKENS, or drop {}", given.name),
            )),
        };
    };
    if !kind.produces_tokens() && mean > 0.0 {
        notes.push(Note::warning(format!(
            "{} changes nothing: {} answers have no length to limit",
            typed.name("--osl"),
            kind.name()
        )));
    }
    if lengths::has_outputs(typed) {
        return Ok(None);
    }
    let stddev = typed.number("--osl-stddev").unwrap_or(0.0);
    Ok((mean > 0.0).then_some(Normal { mean, stddev }))
}

fn system_prompt(typed: &Typed, kind: EndpointKind) -> Result<Option<String>, UsageError> {
    let flags = ["--system-prompt", "--system-prompt-file"];
    if kind != EndpointKind::Chat {
        refuse_all(
            typed,
            &flags,
            &format!("needs an endpoint with messages; {} has no place for it", kind.name()),
            "use --endpoint-type chat, or drop it",
        )?;
    }
    match (typed.text(flags[0]), typed.text(flags[1])) {
        (Some(_), Some(_)) => Err(UsageError::combination(
            "--system-prompt and --system-prompt-file exclude each other: both are the system message",
            "keep one of them",
        )),
        (Some(text), None) => Ok(Some(text.to_owned())),
        (None, Some(path)) => std::fs::read_to_string(path).map(Some).map_err(|error| UsageError::Input {
            what: format!("--system-prompt-file {path}: cannot read it: {error}"),
            fix: None,
        }),
        (None, None) => Ok(None),
    }
}
