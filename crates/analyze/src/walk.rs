//! The turns of a dataset in an order, without their texts.

use aiperf_dataset::{Dataset, DatasetError, TurnFacts, TurnOutline};

/// A turn and where it stands: 32 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    pub(crate) conversation: u64,
    pub(crate) turn: u32,
    position: u64,
    /// Recorded time, ms, or that of the last turn before it with one.
    time: Option<f64>,
}

/// Conversations that send something, those that only others start included.
pub(crate) fn senders(dataset: &dyn Dataset) -> Vec<u64> {
    let all = dataset.wait_for(u64::MAX).known() + dataset.children();
    let sends = |index: &u64| dataset.branches(*index).is_none_or(|plan| plan.spine.is_none());
    (0..all).filter(sends).collect()
}

/// Most conversations that start each other, one below the other; 0 where none starts another.
pub(crate) fn depth(dataset: &dyn Dataset) -> u32 {
    let roots = dataset.wait_for(u64::MAX).known();
    let mut depths = vec![0; (roots + dataset.children()) as usize];
    let mut left: Vec<u64> = (0..roots).collect();
    while let Some(index) = left.pop() {
        let below = depths[index as usize] + 1;
        let Some(plan) = dataset.branches(index) else { continue };
        for child in plan.groups.iter().flat_map(|group| &group.children) {
            // Loading refuses circles; were there one, this would still end.
            let depth = &mut depths[child.conversation as usize];
            if *depth < below && u64::from(below) <= dataset.children() {
                *depth = below;
                left.push(child.conversation);
            }
        }
    }
    depths.into_iter().max().unwrap_or(0)
}

/// Every turn in the order of the file.
pub(crate) fn in_file_order(dataset: &dyn Dataset) -> Vec<Stop> {
    let senders = senders(dataset);
    let mut stops = Vec::with_capacity(senders.len());
    for conversation in senders {
        let outline = dataset.outline(conversation);
        let mut time = None;
        for turn in 0..outline.turns() {
            time = outline.turn(turn).and_then(|turn| turn.timestamp_ms).or(time);
            let position = dataset.position(conversation, turn);
            stops.push(Stop { conversation, turn, position, time });
        }
    }
    stops.sort_by_key(|stop| stop.position);
    stops
}

/// The same turns in the order of their times, where all have one that is known; whether that is another order.
pub(crate) fn in_time_order(stops: &mut [Stop]) -> bool {
    if stops.iter().any(|stop| stop.time.is_none()) {
        return false;
    }
    let time = |stop: &Stop| stop.time.unwrap_or_default();
    if stops.is_sorted_by(|one, other| time(one) <= time(other)) {
        return false;
    }
    stops.sort_by(|one, other| time(one).total_cmp(&time(other)));
    true
}

/// Hands every turn to `visit`, in the order of `stops`.
pub(crate) fn walk(
    dataset: &dyn Dataset,
    stops: &[Stop],
    mut visit: impl FnMut(Stop, TurnOutline, TurnFacts),
) -> Result<(), DatasetError> {
    // Turns that stand side by side in one record are taken from it together.
    let together = |one: &Stop, other: &Stop| {
        one.position == other.position && one.conversation == other.conversation && one.turn + 1 == other.turn
    };
    for stops in stops.chunk_by(together) {
        let (first, last) = (stops[0], stops[stops.len() - 1]);
        let outline = dataset.outline(first.conversation);
        let facts = dataset.facts(first.conversation, first.turn..last.turn + 1)?;
        for (stop, facts) in stops.iter().zip(facts) {
            visit(*stop, outline.turn(stop.turn).unwrap_or_default(), facts);
        }
    }
    Ok(())
}
