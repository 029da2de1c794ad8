//! Draws conversations in the order they are to be started, and has them prepared ahead of their time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aiperf_clock::{nanos, now};
use aiperf_dataset::{Dataset, Sampler};
use aiperf_load::Ticket;
use aiperf_load::schedule::{Child, Draw, NewSession, SessionSource, TurnTiming};
use aiperf_types::{BranchPlan, PhaseKind};
use crossbeam_channel::Sender;

use crate::compute::PrepareJob;

/// Conversations prepared ahead, at the most.
const MOST_AHEAD: usize = 256;
/// … and at the least, however large they are.
const LEAST_AHEAD: usize = 4;
/// Conversations are asked for again when one in so many of them is gone: each time a thread has to be woken.
const REFILL: usize = 4;
/// Bytes of prepared requests that may wait, roughly.
const BYTES_AHEAD: u64 = 16 << 20;
/// No more are made ahead once the records of those that wait are as long as this: a request takes some copies of it.
const RECORDED_AHEAD: u64 = 64 << 20;

/// Number of the first run of a source that profiling begins with.
const PROFILING_RUNS: u64 = 1 << 32;

/// Requests due within so many ms of T0 are ready at T0 …
const PRIME_MS: f64 = 20.0;
/// … unless making them takes longer than this.
const PRIME_FOR: Duration = Duration::from_millis(250);
const PRIME_STEP: Duration = Duration::from_micros(200);
/// Requests of an open loop that are due within so many seconds of T0 are ready at T0 …
const PRIME_SECONDS: f64 = 0.1;
/// … unless making them takes longer than this: the first ones find the corpus cold.
const PRIME_RATE_FOR: Duration = Duration::from_millis(100);

/// How large prepared conversations have been so far.
#[derive(Debug, Default)]
pub(crate) struct PreparedSize {
    count: AtomicU64,
    bytes: AtomicU64,
}

impl PreparedSize {
    pub(crate) fn note(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// How many may wait.
    fn ahead(&self) -> usize {
        let count = self.count.load(Ordering::Relaxed);
        if count == 0 {
            return LEAST_AHEAD;
        }
        let mean = (self.bytes.load(Ordering::Relaxed) / count).max(1);
        usize::try_from(BYTES_AHEAD / mean).map_or(MOST_AHEAD, |n| n.clamp(LEAST_AHEAD, MOST_AHEAD))
    }
}

/// In which order conversations start.
pub(crate) enum Order {
    /// As the sampler draws them, for ever.
    Sampled(Box<Sampler>),
    /// Each once, by its recorded time: (ms, index), sorted.
    Scheduled {
        /// First times and indexes, sorted by time; equal times keep the order of the file.
        conversations: Vec<(f64, u32)>,
        /// The next one.
        next: usize,
    },
}

/// The source of sessions.
pub(crate) struct Feed {
    dataset: Arc<dyn Dataset>,
    order: Order,
    jobs: Sender<PrepareJob>,
    size: Arc<PreparedSize>,
    /// The turn that a drawn conversation is made with, where turns are made one by one.
    first_turn: Option<u32>,
    /// Runs drawn so far.
    runs: u64,
    phase: PhaseKind,
    /// What is made depends on the phase it is for.
    by_phase: bool,
    ahead: VecDeque<Waiting>,
    /// Bytes of the records that those ahead are made of.
    recorded_ahead: u64,
    /// Conversations that are still to be drawn, at the most; no more are made ahead.
    expected: u64,
}

/// A conversation made ahead.
struct Waiting {
    index: u64,
    first_ms: Option<f64>,
    run: u64,
    /// Bytes of the records that it is made of.
    recorded: u64,
    ticket: Ticket,
}

impl Feed {
    pub(crate) fn new(
        dataset: Arc<dyn Dataset>,
        order: Order,
        jobs: Sender<PrepareJob>,
        size: Arc<PreparedSize>,
        phase: PhaseKind,
        by_phase: bool,
    ) -> Feed {
        let first_turn = dataset.makes_single_turns().then_some(0);
        let ahead = VecDeque::new();
        // Where profiling has a source of its own, its runs have numbers of their own.
        let runs = if phase == PhaseKind::Warmup { 0 } else { PROFILING_RUNS };
        let mut feed = Feed {
            dataset,
            order,
            jobs,
            size,
            first_turn,
            runs,
            phase,
            by_phase,
            ahead,
            recorded_ahead: 0,
            expected: u64::MAX,
        };
        // The first conversations are made while the sockets are being set up.
        feed.fill();
        feed
    }

    /// Tells how many conversations are drawn, at the most.
    pub(crate) fn expect(mut self, conversations: Option<u64>) -> Feed {
        self.expected = conversations.unwrap_or(u64::MAX);
        self
    }

    fn fill(&mut self) {
        let wanted = self.size.ahead().min(usize::try_from(self.expected).unwrap_or(usize::MAX)).max(1);
        if self.ahead.len() <= wanted - wanted / REFILL {
            self.fill_to(wanted);
        }
    }

    fn fill_to(&mut self, wanted: usize) {
        while self.ahead.len() < wanted && self.recorded_ahead < RECORDED_AHEAD {
            let Some((index, first_ms)) = self.next_index() else { return };
            let run = self.runs;
            self.runs += 1;
            let Some(ticket) = self.ask(index, self.first_turn, false, run) else { return };
            let recorded = self.dataset.recorded_bytes(index);
            self.recorded_ahead += recorded;
            self.ahead.push_back(Waiting { index, first_ms, run, recorded, ticket });
        }
    }

    /// Has something made ready.
    fn ask(&self, index: u64, turn: Option<u32>, inherits: bool, run: u64) -> Option<Ticket> {
        let (fulfil, ticket) = Ticket::new();
        let phase = self.phase;
        self.jobs.send(PrepareJob { index, turn, inherits, run, phase, fulfil }).ok()?;
        Some(ticket)
    }

    /// Waits, for a moment at the most, until what is due as good as at once is ready: T0 is ours to choose, and a
    /// trace whose first rows share their time would otherwise start late.
    pub(crate) fn prime(&mut self, zero_ms: f64) {
        let give_up = now().plus(nanos(PRIME_FOR));
        loop {
            let soon = |ms: Option<f64>| ms.is_some_and(|ms| ms - zero_ms <= PRIME_MS);
            let all_soon = self.ahead.back().is_none_or(|waiting| soon(waiting.first_ms));
            if all_soon && self.ahead.len() < MOST_AHEAD {
                let before = self.ahead.len();
                self.fill_to(before + 1);
                if self.ahead.len() > before && now() < give_up {
                    continue;
                }
            }
            let ready = self
                .ahead
                .iter_mut()
                .filter(|waiting| soon(waiting.first_ms))
                .all(|waiting| waiting.ticket.is_ready());
            if ready || now() >= give_up {
                return;
            }
            std::thread::sleep(PRIME_STEP);
        }
    }

    /// The same for an open loop of `rate` requests per second, of which at most `most` are sent.
    pub(crate) fn prime_rate(&mut self, rate: f64, most: u64) {
        let wanted = ((rate * PRIME_SECONDS).ceil() as u64).min(most).clamp(1, MOST_AHEAD as u64) as usize;
        let give_up = now().plus(nanos(PRIME_RATE_FOR));
        let mut before = 0;
        loop {
            let allowed = wanted.min(self.size.ahead());
            self.fill_to(allowed);
            let ready = self.ahead.iter_mut().all(|waiting| waiting.ticket.is_ready());
            // What is ready tells how large the next ones are, and so how many may wait.
            if (ready && (allowed == wanted || allowed == before)) || now() >= give_up {
                return;
            }
            before = if ready { allowed } else { 0 };
            std::thread::sleep(PRIME_STEP);
        }
    }

    fn next_index(&mut self) -> Option<(u64, Option<f64>)> {
        match &mut self.order {
            Order::Sampled(sampler) => {
                if let Some(index) = sampler.next() {
                    return Some((index, None));
                }
                sampler.grow(self.dataset.len());
                sampler.next().map(|index| (index, None))
            }
            Order::Scheduled { conversations, next } => {
                let &(ms, index) = conversations.get(*next)?;
                *next += 1;
                Some((u64::from(index), Some(ms)))
            }
        }
    }
}

impl SessionSource for Feed {
    type Ticket = Ticket;

    fn phase_begins(&mut self, kind: PhaseKind) {
        if std::mem::replace(&mut self.phase, kind) == kind || !self.by_phase {
            return;
        }
        for mut waiting in std::mem::take(&mut self.ahead) {
            let Some(ticket) = self.ask(waiting.index, self.first_turn, false, waiting.run) else { return };
            waiting.ticket = ticket;
            self.ahead.push_back(waiting);
        }
    }

    fn draw(&mut self) -> Draw<Ticket> {
        self.fill();
        self.expected = self.expected.saturating_sub(1);
        match self.ahead.pop_front() {
            Some(Waiting { index, first_ms, run, recorded, ticket }) => {
                self.recorded_ahead -= recorded;
                Draw::Session(NewSession {
                    conversation: index,
                    turns: self.dataset.outline(index).turns(),
                    first_ms,
                    run,
                    ticket,
                })
            }
            None if self.dataset.len().is_growing() => Draw::NotYet,
            None => Draw::Exhausted,
        }
    }

    fn timing(&self, conversation: u64, turn: u32) -> TurnTiming {
        let outline = self.dataset.outline(conversation).turn(turn).unwrap_or_default();
        TurnTiming { timestamp_ms: outline.timestamp_ms, delay_ms: outline.delay_ms }
    }

    fn makes_turns_ahead(&self) -> bool {
        self.first_turn.is_some()
    }

    fn turn_ahead(&mut self, conversation: u64, turn: u32, run: u64) -> Option<Ticket> {
        self.ask(conversation, Some(turn), false, run)
    }

    fn branches(&self, conversation: u64) -> Option<Arc<BranchPlan>> {
        self.dataset.branches(conversation)
    }

    fn child(&mut self, conversation: u64, inherits: bool, run: u64) -> Option<Child<Ticket>> {
        let turns = self.dataset.outline(conversation).turns();
        if self.dataset.branches(conversation).is_some_and(|plan| plan.spine.is_some()) {
            return Some(Child { turns, ticket: None });
        }
        let ticket = self.ask(conversation, None, inherits, run)?;
        Some(Child { turns, ticket: Some(ticket) })
    }
}

#[cfg(test)]
mod tests {
    use aiperf_dataset::{DatasetError, Len, Outline};
    use aiperf_types::Conversation;
    use crossbeam_channel::unbounded;

    use super::*;

    #[derive(Default)]
    struct Nothing {
        recorded: u64,
    }

    impl Dataset for Nothing {
        fn len(&self) -> Len {
            Len::Exact(0)
        }

        fn outline(&self, _: u64) -> Outline {
            Outline::one(aiperf_dataset::TurnOutline::default())
        }

        fn build(&self, _: u64) -> Result<Conversation, DatasetError> {
            unreachable!("built elsewhere")
        }

        fn recorded_bytes(&self, _: u64) -> u64 {
            self.recorded
        }

        fn total_turns(&self) -> Option<u64> {
            None
        }
    }

    /// Primes a schedule of these times whose conversations are given up at once, which makes them ready; how many
    /// were asked for.
    fn primed(times: &[f64]) -> usize {
        let (jobs, asked) = unbounded::<PrepareJob>();
        let conversations = times.iter().zip(0..).map(|(ms, index)| (*ms, index)).collect();
        let order = Order::Scheduled { conversations, next: 0 };
        let mut feed =
            Feed::new(Arc::new(Nothing::default()), order, jobs, Arc::default(), PhaseKind::Profiling, false);
        let maker = std::thread::spawn(move || asked.iter().map(|job| drop(job.fulfil)).count());
        feed.prime(0.0);
        drop(feed);
        maker.join().unwrap()
    }

    #[test]
    fn no_more_is_made_than_will_be_drawn() {
        for (expected, asked_in_all) in [(Some(6), 6), (Some(2), LEAST_AHEAD), (None, MOST_AHEAD)] {
            let (jobs, asked) = unbounded::<PrepareJob>();
            let order =
                Order::Scheduled { conversations: (0..500).map(|index| (0.0, index)).collect(), next: 0 };
            let size = Arc::<PreparedSize>::default();
            let mut feed = Feed::new(
                Arc::new(Nothing::default()),
                order,
                jobs,
                Arc::clone(&size),
                PhaseKind::Profiling,
                false,
            )
            .expect(expected);
            size.note(1000);
            for _ in 0..expected.unwrap_or(1) {
                assert!(matches!(feed.draw(), Draw::Session(_)));
            }
            assert_eq!(asked.try_iter().count(), asked_in_all, "{expected:?}");
            // One that comes unexpectedly is made all the same.
            assert!(matches!(feed.draw(), Draw::Session(_)));
        }
    }

    #[test]
    fn requests_of_long_records_are_not_all_made_ahead() {
        for (recorded, first, second) in
            [(1 << 20, LEAST_AHEAD, 0), (RECORDED_AHEAD / 2, 2, 0), (RECORDED_AHEAD, 1, 0), (u64::MAX, 1, 0)]
        {
            let (jobs, asked) = unbounded::<PrepareJob>();
            let order =
                Order::Scheduled { conversations: (0..500).map(|index| (0.0, index)).collect(), next: 0 };
            let dataset = Arc::new(Nothing { recorded });
            let mut feed = Feed::new(dataset, order, jobs, Arc::default(), PhaseKind::Profiling, false);
            assert_eq!(asked.try_iter().count(), first, "{recorded}");
            assert!(matches!(feed.draw(), Draw::Session(_)));
            assert_eq!(asked.try_iter().count(), second, "{recorded}");
            // One is made whenever one is drawn.
            for _ in 0..4 {
                assert!(matches!(feed.draw(), Draw::Session(_)));
            }
        }
    }

    #[test]
    fn a_schedule_that_is_over_within_the_first_moments_starts() {
        assert_eq!(primed(&[]), 0);
        assert_eq!(primed(&[0.0]), 1);
        assert_eq!(primed(&[0.0, 5.0, 5.0, 19.0, 20.0, 20.0]), 6);
    }

    #[test]
    fn an_open_loop_has_its_first_tenth_of_a_second_ready() {
        for (rate, most, wanted) in [
            (60.0, u64::MAX, 6),
            (60.0, 1, LEAST_AHEAD),
            (0.1, u64::MAX, LEAST_AHEAD),
            (1000.0, u64::MAX, 100),
        ] {
            let (jobs, asked) = unbounded::<PrepareJob>();
            let order =
                Order::Scheduled { conversations: (0..500).map(|index| (0.0, index)).collect(), next: 0 };
            let size = Arc::<PreparedSize>::default();
            let mut feed = Feed::new(
                Arc::new(Nothing::default()),
                order,
                jobs,
                Arc::clone(&size),
                PhaseKind::Profiling,
                false,
            );
            let maker = std::thread::spawn(move || {
                asked
                    .iter()
                    .map(|job| {
                        size.note(1000);
                        drop(job.fulfil);
                    })
                    .count()
            });
            feed.prime_rate(rate, most);
            drop(feed);
            assert_eq!(maker.join().unwrap(), wanted, "{rate} {most}");
        }
    }

    #[test]
    fn what_is_due_at_once_is_asked_for_and_one_more() {
        let mut times = vec![0.0; 40];
        times.extend([500.0; 40]);
        assert_eq!(primed(&times), 41);
        assert_eq!(primed(&vec![0.0; 2 * MOST_AHEAD]), MOST_AHEAD);
    }
}
