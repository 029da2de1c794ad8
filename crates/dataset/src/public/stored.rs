//! The conversations of a store as a dataset.

use std::path::Path;
use std::sync::Arc;

use aiperf_config::EndpointKind;
use aiperf_types::Conversation;

use super::store::Store;
use crate::file::Finish;
use crate::{Dataset, DatasetError, Len, OpenContext, Outline};

/// A store, and what is done to every turn.
struct Stored {
    store: Store,
    finish: Finish,
    /// Every turn is whole by itself, so that one can be made without the others.
    single_turns: bool,
}

/// Opens what [`super::read`] kept at `path`; delays are no longer than `delay_cap_ms`.
pub(crate) fn open(
    path: &Path,
    context: &OpenContext<'_>,
    delay_cap_ms: Option<f64>,
    finish: Finish,
) -> Result<Arc<dyn Dataset>, DatasetError> {
    let store = Store::open(path, delay_cap_ms.unwrap_or(f64::INFINITY))?;
    for index in 0..store.len() {
        check_endpoint(&store, index, context.endpoint)?;
    }
    let single_turns = store.stands_alone();
    Ok(Arc::new(Stored { store, finish, single_turns }))
}

/// Conversations need an endpoint that takes them.
fn check_endpoint(store: &Store, index: u64, endpoint: EndpointKind) -> Result<(), DatasetError> {
    if endpoint.ranks() {
        return Err(DatasetError::Unsuitable(format!(
            "--public-dataset: the set has no query and passages, which the {} endpoint takes; use --endpoint-type chat",
            endpoint.name()
        )));
    }
    let (_, mode, turns) = store.session(index);
    if endpoint.single_turn_only() && (turns > 1 || !mode.accumulates()) {
        return Err(DatasetError::Unsuitable(format!(
            "--public-dataset: conversation {} has {turns} turn(s) of messages, and the {} endpoint takes one text; use \
             --endpoint-type chat",
            index + 1,
            endpoint.name()
        )));
    }
    Ok(())
}

impl Stored {
    fn conversation(&self, index: u64, turns: std::ops::Range<u32>) -> Result<Conversation, DatasetError> {
        let (id, context_mode, _) = self.store.session(index);
        let turns = turns.map(|number| self.store.turn(index, number)).collect::<Result<Vec<_>, _>>()?;
        let mut conversation = Conversation {
            id: id.unwrap_or_else(|| self.finish.names().generate(index)),
            turns,
            context_mode,
            system_message: None,
            user_context_message: None,
            source_session: self.store.source_session(index),
        };
        self.finish.apply(index, &mut conversation);
        Ok(conversation)
    }
}

impl Dataset for Stored {
    fn len(&self) -> Len {
        Len::Exact(self.store.len())
    }

    fn outline(&self, index: u64) -> Outline {
        self.store.outline(index)
    }

    fn build(&self, index: u64) -> Result<Conversation, DatasetError> {
        let (_, _, turns) = self.store.session(index);
        self.conversation(index, 0..turns)
    }

    fn makes_single_turns(&self) -> bool {
        self.single_turns
    }

    fn build_turn(&self, index: u64, turn: u32) -> Result<Conversation, DatasetError> {
        self.conversation(index, turn..turn + 1)
    }

    fn total_turns(&self) -> Option<u64> {
        Some(self.store.turns())
    }
}
