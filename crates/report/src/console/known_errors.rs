//! What well-known errors of servers mean, and what to do about them.

use aiperf_config::RunConfig;
use aiperf_types::RequestError;

use super::table::panel;
use crate::results::RunResults;
use crate::style::{Palette, Style};

/// An error that many users have met.
struct Known {
    fits: fn(&RequestError, &str, &RunConfig) -> bool,
    means: &'static str,
    /// The way out.
    steps: &'static [&'static str],
}

/// Each with the message in lower case; the first that fits an error is the one.
const KNOWN: [Known; 8] = [
    Known {
        fits: |error, _, _| error.is_context_overflow(),
        means: "The input and the answer asked for are longer than the model's context.",
        steps: &[
            "--isl, --osl ask for less; --synthesis-max-isl leaves out long rows of a trace",
            "the server may have a limit of its own (vLLM --max-model-len)",
        ],
    },
    Known {
        fits: |error, message, config| {
            refused(error)
                && message.contains("max_completion_tokens")
                && !config.endpoint.use_legacy_max_tokens
        },
        means: "The server does not know max_completion_tokens.",
        steps: &["--use-legacy-max-tokens sends max_tokens instead"],
    },
    Known {
        fits: |error, message, _| refused(error) && message.contains("stream_options"),
        means: "The server does not know stream_options, which asks for the usage of a stream.",
        steps: &["drop --use-server-token-count: tokens are then counted by the client"],
    },
    Known {
        fits: |error, message, config| {
            let extras = &config.endpoint.extra_inputs;
            refused(error) && extras.keys().any(|key| names(message, &key.to_ascii_lowercase()))
        },
        means: "The server does not take a key of --extra-inputs that its answer names.",
        steps: &["drop that key, or give it another value"],
    },
    Known {
        fits: |error, _, config| matches!(error.code, Some(401 | 403)) && config.endpoint.api_key.is_some(),
        means: "The server refuses the key of --api-key.",
        steps: &[
            "it is sent as a bearer token; --header 'Name: value' sends any other credential",
            "a key that is known may still not be allowed to use this model",
        ],
    },
    Known {
        fits: |error, _, _| matches!(error.code, Some(401 | 403)),
        means: "The server does not let this client in.",
        steps: &["--api-key KEY sends a key as a bearer token, --header 'Name: value' any other credential"],
    },
    Known {
        fits: |error, message, _| error.code == Some(404) && message.contains("model"),
        means: "The server does not know this model.",
        steps: &["--model takes a name as GET /v1/models lists it"],
    },
    Known {
        fits: |error, _, _| error.code == Some(429),
        means: "The server turns requests away because they are too many.",
        steps: &[
            "--request-rate or --concurrency asks for less; Retry-After is in the details of each error",
        ],
    },
];

fn refused(error: &RequestError) -> bool {
    matches!(error.code, Some(400 | 422))
}

/// Whether a message has a key as a word of its own; short keys are words of any language.
fn names(message: &str, key: &str) -> bool {
    let mut words = message.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    key.len() >= 4 && words.any(|word| word == key)
}

/// A panel for the errors among those of the profiling phase that are known.
pub(super) fn explained(results: &RunResults<'_>, width: usize, palette: Palette, out: &mut String) {
    let groups = results.profiling().map_or(&[][..], |phase| phase.summary.error_groups.as_slice());
    let mut met = [false; KNOWN.len()];
    for group in groups {
        let message = group.error.message.to_ascii_lowercase();
        if let Some(at) = KNOWN.iter().position(|known| (known.fits)(&group.error, &message, results.config))
        {
            met[at] = true;
        }
    }
    let lines: Vec<String> = KNOWN
        .iter()
        .zip(met)
        .filter(|(_, met)| *met)
        .flat_map(|(known, _)| {
            let steps = known.steps.iter().map(|step| format!("  - {step}"));
            std::iter::once(known.means.to_owned()).chain(steps)
        })
        .collect();
    if !lines.is_empty() {
        panel("Known Errors", &lines, Style::Yellow, width, palette, out);
    }
}
