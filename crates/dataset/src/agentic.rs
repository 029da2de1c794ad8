//! Recorded sessions of agents: a main conversation and the agents it started, replayed as such. Flattening them into
//! one conversation would change what a server's prefix cache sees.

mod chains;
mod ids;
mod maker;
mod plan;
mod segments;
mod times;
mod trace;

use std::sync::Arc;

use aiperf_config::EndpointKind;

pub(crate) use ids::BlockIds;
pub(crate) use trace::{Agent, Item, Request, Trace};

use self::maker::Maker;
use self::plan::{Counts, Options, Planned};
use crate::graph::Graph;
use crate::open::Opening;
use crate::prompt::Prompts;
use crate::{Dataset, DatasetError, Note};

/// No model takes more tokens; a prompt beyond this is a slip that would fill the memory.
pub(crate) const LONGEST_INPUT: i64 = 20_000_000;

/// Delays beyond this are worth a word, ms.
const LONG_DELAY_MS: f64 = 60_000.0;

/// Refuses what no trace of agents can follow.
pub(crate) fn check(opening: &Opening<'_>) -> Result<(), DatasetError> {
    let endpoint = opening.context.endpoint;
    if endpoint != EndpointKind::Chat {
        return Err(DatasetError::Unsuitable(format!(
            "{} traces are replayed as chat messages, which the {} endpoint cannot carry; use --endpoint-type chat",
            opening.format.name(),
            endpoint.name()
        )));
    }
    Ok(())
}

/// Makes a dataset of the traces, in their order, as many as are wanted; `of_reading` is what there is to say of reading them.
pub(crate) fn open(
    opening: Opening<'_>,
    traces: impl IntoIterator<Item = Result<Trace, DatasetError>>,
    of_reading: Vec<Note>,
) -> Result<Arc<dyn Dataset>, DatasetError> {
    let survey = opening.context.survey;
    let prompts = if survey.is_some() {
        None
    } else {
        let prompts = Prompts::new(opening.corpus(), opening.context)?;
        Prompts::required(prompts.as_ref())?;
        prompts
    };
    let path = opening.file.path.display().to_string();
    let options = Options::of(&opening);
    let mut counts = Counts::default();
    let mut planned = Planned::default();
    let mut traces = traces.into_iter();
    while (planned.roots.len() as u64) < opening.limit() {
        let Some(trace) = traces.next() else { break };
        match trace.and_then(|trace| planned.add(trace, &options, &mut counts)) {
            Ok(()) => {}
            Err(fault) => match survey {
                Some(survey) => survey.take(fault),
                None => return Err(fault),
            },
        }
    }
    if planned.roots.is_empty() {
        return Err(counts.nothing_left(&path));
    }
    let mut notes = counts.notes();
    notes.extend(of_reading);
    if counts.longest_delay_ms > LONG_DELAY_MS && !options.caps_delays() {
        notes.push(Note::LongDelay { longest_ms: counts.longest_delay_ms });
    }
    let roots = planned.roots.len();
    let (conversations, lines) = planned.finish();
    let maker = Maker { prompts, lines };
    let rows = Some(counts.traces);
    Ok(Arc::new(Graph { nodes: conversations, roots, maker, finish: opening.finish, notes, rows }))
}
