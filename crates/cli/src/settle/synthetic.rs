//! Generated text.

use aiperf_config::{EndpointKind, Normal, SyntheticDataset, SyntheticMedia};

use super::{Note, lengths, media, rankings, refuse_all, sizes};
use crate::typed::Typed;
use crate::usage::UsageError;

const DEFAULT_ENTRIES: u64 = 100;
const MOST_TOKENS: u32 = 20_000_000;
/// Texts of one request. The vectors of as many fit in an answer that is read.
pub(super) const MOST_TEXTS: u32 = 10_000;
const MOST_PREFIXES: u32 = 1_000_000;
/// Conversations, of which some things are kept for each.
const MOST_ENTRIES: u64 = 100_000_000;
const BATCH: &str = "--batch-size";
/// Flags that shape the text of turns.
const OF_TEXTS: [&str; 8] = [
    BATCH,
    "--isl",
    "--isl-stddev",
    "--seq-dist",
    "--random-range-ratio",
    "--random-corpus-style",
    "--num-prefix-prompts",
    "--prefix-prompt-length",
];

pub(super) fn settle(
    typed: &Typed,
    kind: EndpointKind,
    notes: &mut Vec<Note>,
) -> Result<SyntheticDataset, UsageError> {
    let rankings = rankings::settle(typed, kind)?;
    let (lengths, random_style) = lengths::settle(typed, notes)?;
    let media = media::settle(typed, kind, notes)?;
    let without_text = without_text(typed, &media)?;
    let turns = Normal {
        mean: typed.number("--conversation-turn-mean").unwrap_or(1.0),
        stddev: typed.number("--conversation-turn-stddev").unwrap_or(0.0),
    };
    if kind.single_turn_only() && (turns.mean > 1.0 || turns.stddev > 0.0) {
        let flag = if typed.has("--conversation-turn-mean") {
            "--conversation-turn-mean"
        } else {
            "--conversation-turn-stddev"
        };
        return Err(UsageError::combination(
            format!(
                "{} makes conversations of several turns, and --endpoint-type {} takes one turn per request",
                typed.name(flag),
                kind.name()
            ),
            "use --endpoint-type chat, or drop it",
        ));
    }
    if kind != EndpointKind::Chat {
        refuse_all(
            typed,
            &["--shared-system-prompt-length", "--user-context-prompt-length"],
            &format!("needs an endpoint with messages; {} has no place for it", kind.name()),
            "use --endpoint-type chat, or drop it",
        )?;
    }
    let shared_system_prompt_length = at_most(typed, "--shared-system-prompt-length", MOST_TOKENS)?;
    let user_context_prompt_length = at_most(typed, "--user-context-prompt-length", MOST_TOKENS)?;
    let shape = SyntheticDataset {
        entries: entries(typed)?,
        lengths,
        random_style,
        turns,
        turn_delay: Normal {
            mean: typed.number("--conversation-turn-delay-mean").unwrap_or(0.0),
            stddev: typed.number("--conversation-turn-delay-stddev").unwrap_or(0.0),
        },
        turn_delay_ratio: typed.number("--conversation-turn-delay-ratio").unwrap_or(1.0),
        batch_size: if without_text { 0 } else { batch_size(typed, kind)? },
        prefix_pool: prefix_pool(typed)?,
        shared_system_prompt_length,
        user_context_prompt_length,
        media,
        rankings,
    };
    sizes::check(typed, &shape)?;
    Ok(shape)
}

/// How many conversations are made or drawn.
pub(super) fn entries(typed: &Typed) -> Result<u64, UsageError> {
    const ENTRIES: &str = "--num-dataset-entries";
    let flags = [ENTRIES, "--num-conversations", "--request-count"];
    let asked = flags.into_iter().find_map(|flag| Some((flag, typed.count(flag)?)));
    let Some((flag, count)) = asked else { return Ok(DEFAULT_ENTRIES) };
    if count <= MOST_ENTRIES {
        return Ok(count);
    }
    Err(UsageError::combination(
        format!(
            "{} {count} asks for as many conversations, and {MOST_ENTRIES} at most are made",
            typed.name(flag)
        ),
        if flag == ENTRIES {
            "give fewer: they are sent again and again".into()
        } else {
            format!("add {ENTRIES} N: so many are made, and sent again and again")
        },
    ))
}

/// Whether turns have no text, which is asked for by a length or a number of texts of 0. Then something else must be sent,
/// and nothing may shape the text that is not there.
fn without_text(typed: &Typed, media: &SyntheticMedia) -> Result<bool, UsageError> {
    let flag = if typed.count(BATCH) == Some(0) {
        BATCH
    } else if lengths::is_none(typed) {
        "--isl"
    } else {
        return Ok(false);
    };
    let name = typed.name(flag);
    if *media == SyntheticMedia::default() {
        return Err(UsageError::combination(
            format!("{name} 0 leaves nothing to send: neither text nor images, audio or video are asked for"),
            "give 1 or more, or add --image-width-mean and --image-height-mean, --audio-length-mean, or --video-width and \
             --video-height",
        ));
    }
    let shaping = OF_TEXTS.iter().copied().filter(|other| *other != flag).collect::<Vec<_>>();
    let needs = format!("shapes the text of turns, and {name} 0 means they have none");
    refuse_all(typed, &shaping, &needs, &format!("drop it, or drop {name}"))?;
    Ok(true)
}

fn batch_size(typed: &Typed, kind: EndpointKind) -> Result<u32, UsageError> {
    let Some(count) = at_most(typed, BATCH, MOST_TEXTS)? else { return Ok(1) };
    let name = typed.name(BATCH);
    if count > 1 && kind == EndpointKind::Chat {
        return Err(UsageError::combination(
            format!("{name} {count} puts several texts in one turn, and --endpoint-type chat takes one"),
            format!("use --endpoint-type embeddings or completions, or drop {name}"),
        ));
    }
    Ok(count)
}

/// A count that more than `most` of would fill the memory.
pub(super) fn at_most(typed: &Typed, flag: &'static str, most: u32) -> Result<Option<u32>, UsageError> {
    let fits = |count: u64| u32::try_from(count).ok().filter(|count| *count <= most);
    typed
        .count(flag)
        .map(|count| {
            fits(count).ok_or_else(|| UsageError::Value {
                flag: typed.name(flag).into(),
                value: count.to_string(),
                rule: format!("{most} at most"),
                similar: None,
            })
        })
        .transpose()
}

fn prefix_pool(typed: &Typed) -> Result<Option<(u32, u32)>, UsageError> {
    const PREFIXES: &str = "--num-prefix-prompts";
    const LENGTH: &str = "--prefix-prompt-length";
    const SYSTEM: &str = "--shared-system-prompt-length";
    let exclusive = |one: &str, other: &str, why: &str| {
        UsageError::combination(
            format!("{} and {} exclude each other: {why}", typed.name(one), typed.name(other)),
            "keep one of them",
        )
    };
    for verbatim in ["--system-prompt", "--system-prompt-file"] {
        if typed.has(SYSTEM) && typed.has(verbatim) {
            return Err(exclusive(verbatim, SYSTEM, "both are the system message"));
        }
    }
    let count = at_most(typed, PREFIXES, MOST_PREFIXES)?.unwrap_or(0);
    let length = at_most(typed, LENGTH, MOST_TOKENS)?.unwrap_or(0);
    let pool = match (count, length) {
        (0, 0) => None,
        (_, 0) | (0, _) => {
            let (given, missing) = if length == 0 { (PREFIXES, LENGTH) } else { (LENGTH, PREFIXES) };
            return Err(UsageError::combination(
                format!(
                    "{} needs {}: prefixes have a number and a length",
                    typed.name(given),
                    typed.name(missing)
                ),
                format!("add {missing}, or drop {}", typed.name(given)),
            ));
        }
        (count, length) => Some((count, length)),
    };
    for other in [SYSTEM, "--user-context-prompt-length"] {
        if pool.is_some() && typed.has(other) {
            return Err(exclusive(PREFIXES, other, "both put text before a conversation"));
        }
    }
    if typed.has("--user-context-prompt-length")
        && !typed.has("--num-dataset-entries")
        && !typed.has("--num-conversations")
    {
        return Err(UsageError::combination(
            "--user-context-prompt-length needs the number of conversations: each has a context of its own",
            "add --num-dataset-entries N or --num-conversations N",
        ));
    }
    Ok(pool)
}
