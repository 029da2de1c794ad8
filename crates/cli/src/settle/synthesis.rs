//! How a trace is changed before it is played.

use aiperf_config::Synthesis;
use aiperf_dataset::Format;

use super::refuse_all;
use crate::typed::Typed;
use crate::usage::UsageError;

/// The flags, in the order of the help.
pub(super) const FLAGS: [&str; 7] = [
    "--synthesis-speedup-ratio",
    "--synthesis-prefix-len-multiplier",
    "--synthesis-prefix-root-multiplier",
    "--synthesis-prompt-len-multiplier",
    "--synthesis-output-len-multiplier",
    "--synthesis-max-isl",
    "--synthesis-max-osl",
];

pub(super) fn settle(typed: &Typed, format: &Format) -> Result<Synthesis, UsageError> {
    let given: Vec<&str> = FLAGS.into_iter().filter(|flag| typed.has(flag)).collect();
    if let Some(first) = given.first()
        && !format.trace
    {
        return Err(UsageError::combination(
            format!(
                "{} changes traces, and {} is none; that holds for {}",
                typed.name(first),
                format.name(),
                FLAGS.join(", ")
            ),
            format!("drop {}, or name a trace with --custom-dataset-type", given.join(", ")),
        ));
    }
    if let Some(flag) = given.into_iter().find(|flag| !format.takes(flag)) {
        let acting: Vec<&str> = FLAGS.into_iter().filter(|flag| format.takes(flag)).collect();
        let name = format.name();
        let acting = match acting.as_slice() {
            [] => format!("none of these flags acts on {name}"),
            flags => format!("of these flags {} act on {name}", flags.join(", ")),
        };
        let replayed = format.takes("--replay-speedup");
        let (reason, fix) = match flag {
            "--synthesis-speedup-ratio" if replayed => ("", "use --replay-speedup".to_owned()),
            _ if replayed => {
                ("its prompts are sent as they were recorded, and ", format!("drop {}", typed.name(flag)))
            }
            _ => ("", format!("drop {}", typed.name(flag))),
        };
        return Err(UsageError::combination(
            format!("{} does not act on {name}: {reason}{acting}", typed.name(flag)),
            fix,
        ));
    }
    let factor = |flag| typed.number(flag).unwrap_or(1.0);
    Ok(Synthesis {
        speedup: factor("--synthesis-speedup-ratio"),
        prefix_len: factor("--synthesis-prefix-len-multiplier"),
        prefix_root: typed.count("--synthesis-prefix-root-multiplier").unwrap_or(1),
        prompt_len: factor("--synthesis-prompt-len-multiplier"),
        output_len: factor("--synthesis-output-len-multiplier"),
        max_isl: typed.count("--synthesis-max-isl"),
        max_osl: typed.count("--synthesis-max-osl"),
    })
}

/// Refuses the flags where there is no file.
pub(super) fn refuse(typed: &Typed) -> Result<(), UsageError> {
    refuse_all(typed, &FLAGS, "changes a trace", "add --input-file with a trace, or drop it")
}
