//! `inputs.json`, written beside the run: conversations are made anyway to be sent, mostly in the order of the
//! file; what was not sent is made at the end.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use aiperf_dataset::Dataset;
use aiperf_endpoint::Format;
use aiperf_report::{InputsWriter, holds_signed_url};
use aiperf_types::Body;

/// Conversations that came before their turn, at the most.
const MOST_PENDING: usize = 64;

/// The bodies of one conversation.
pub(crate) struct InputEntry {
    pub(crate) id: Arc<str>,
    pub(crate) bodies: Vec<Body>,
}

/// The closed file.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) path: PathBuf,
    /// Conversations that are in it.
    pub(crate) holds: u64,
    /// Those that there are; absent when the data were not read to their end.
    pub(crate) of: Option<u64>,
}

impl Finished {
    /// Whether conversations are missing.
    pub(crate) fn is_cut(&self) -> bool {
        self.of != Some(self.holds)
    }
}

struct State {
    /// Taken when the file is closed.
    writer: Option<InputsWriter>,
    next: u64,
    pending: BTreeMap<u64, InputEntry>,
    failure: Option<io::Error>,
    /// A body holds a URL with a credential in it.
    signed: bool,
}

impl State {
    fn write(&mut self, entry: &InputEntry) {
        self.next += 1;
        // A conversation that only starts others sends nothing.
        if self.failure.is_some() || entry.bodies.is_empty() {
            return;
        }
        let Some(writer) = &mut self.writer else { return };
        self.signed = self.signed || entry.bodies.iter().any(holds_signed_url);
        let written = writer
            .session(&entry.id)
            .and_then(|()| entry.bodies.iter().try_for_each(|body| writer.payload(body)));
        self.failure = written.err();
    }

    fn catch_up(&mut self) {
        while let Some(entry) = self.pending.remove(&self.next) {
            self.write(&entry);
        }
    }
}

/// The file in the making.
pub(crate) struct Inputs {
    state: Mutex<State>,
}

impl Inputs {
    pub(crate) fn create(path: PathBuf) -> io::Result<Inputs> {
        let state = State {
            writer: Some(InputsWriter::create(path)?),
            next: 0,
            pending: BTreeMap::new(),
            failure: None,
            signed: false,
        };
        Ok(Inputs { state: Mutex::new(state) })
    }

    /// Whether conversation `index` is still to be written.
    pub(crate) fn wants(&self, index: u64) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        index >= state.next && state.pending.len() < MOST_PENDING
    }

    /// Writes conversation `index` when its turn has come.
    pub(crate) fn offer(&self, index: u64, entry: InputEntry) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if index == state.next {
            state.write(&entry);
            state.catch_up();
        } else if index > state.next {
            state.pending.insert(index, entry);
        }
    }

    /// Whether a body so far holds a URL with a credential in it.
    pub(crate) fn is_signed(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).signed
    }

    /// Makes and writes what is missing, for as long as that is `wanted`, and closes the file: the whole dataset, however
    /// much of it had been read when the run ended. `progress` is told how many conversations it holds, of how many (0
    /// while that is not known).
    pub(crate) fn finish(
        &self,
        dataset: &dyn Dataset,
        format: &Format,
        wanted: impl Fn() -> bool,
        mut progress: impl FnMut(u64, u64),
    ) -> io::Result<Finished> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = None;
        while wanted() && state.failure.is_none() {
            state.catch_up();
            let index = state.next;
            let len = dataset.wait_for(index);
            all = (!len.is_growing()).then(|| len.known() + dataset.children());
            if all.is_some_and(|all| index >= all) {
                break;
            }
            // A conversation that cannot be made ended the run already.
            let Ok(conversation) = dataset.build(index) else { break };
            let bodies =
                (0..conversation.turns.len()).map(|turn| format.render_alone(&conversation, turn)).collect();
            state.write(&InputEntry { id: conversation.id, bodies });
            progress(state.next, all.unwrap_or(0));
        }
        // A run that was ended may have written them all.
        let len = dataset.len();
        let all = all.or_else(|| (!len.is_growing()).then(|| len.known() + dataset.children()));
        // What was read until a bad record is not all there is.
        let of = all.filter(|_| dataset.fault().is_none());
        match (state.failure.take(), state.writer.take()) {
            (Some(error), _) => Err(error),
            (None, Some(writer)) => Ok(Finished { path: writer.finish()?, holds: state.next, of }),
            (None, None) => Err(io::Error::other("the file was closed before")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use aiperf_config::{EndpointConfig, EndpointKind, Target};
    use aiperf_dataset::{DatasetError, Len, Outline, TurnOutline};
    use aiperf_types::{Content, Conversation, Turn};

    use super::*;

    struct Thousand;

    impl Dataset for Thousand {
        fn len(&self) -> Len {
            Len::Exact(1000)
        }

        fn outline(&self, _: u64) -> Outline {
            Outline::one(TurnOutline::default())
        }

        fn build(&self, index: u64) -> Result<Conversation, DatasetError> {
            let turn = Turn { content: Content::text(format!("text {index}")), ..Turn::default() };
            Ok(Conversation { turns: vec![turn], ..Conversation::default() })
        }

        fn total_turns(&self) -> Option<u64> {
            Some(1000)
        }
    }

    #[test]
    fn a_file_that_holds_everything_is_whole_however_the_run_ended() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = Inputs::create(folder.path().join("inputs.json")).unwrap();
        let format =
            Format::new(&EndpointConfig::new(EndpointKind::Chat, Target::Mock("mock://".into())), "m");
        for index in 0..1000 {
            inputs.offer(index, InputEntry { id: "s".into(), bodies: Vec::new() });
        }
        let finished = inputs.finish(&Thousand, &format, || false, |_, _| {}).unwrap();
        assert_eq!((finished.holds, finished.of, finished.is_cut()), (1000, Some(1000), false));
    }

    #[test]
    fn an_interrupt_ends_the_making_of_what_was_not_sent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("inputs.json");
        let inputs = Inputs::create(path.clone()).unwrap();
        let format =
            Format::new(&EndpointConfig::new(EndpointKind::Chat, Target::Mock("mock://".into())), "m");
        let asked = Cell::new(0);
        let wanted = || asked.replace(asked.get() + 1) < 3;
        let mut told = Vec::new();
        let finished = inputs.finish(&Thousand, &format, wanted, |done, all| told.push((done, all))).unwrap();
        assert_eq!((finished.holds, finished.of, finished.is_cut()), (3, Some(1000), true));
        assert_eq!(told, [(1, 1000), (2, 1000), (3, 1000)]);
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains("text 2") && !text.contains("text 3"), "{text}");
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }
}
