//! Agents that a recording has flattened into one list, told apart by what their prompts begin with.

use super::trace::Request;

/// Fewer agents from one fork are no group.
const SMALLEST_GROUP: usize = 3;
/// A later state of the context after a longer pause is another session, unless it shares …
const LONG_PAUSE_S: f64 = 3600.0;
/// … this part of its blocks.
const SHARED_PART: f64 = 0.5;
/// A prompt shorter than this is that of a helper …
const SMALL_INPUT: u64 = 16_384;
/// … as is one shorter than this part of the longest of the main agent.
const SMALL_PART: f64 = 0.1;
/// A helper that reads much and says little: no more than one token for so many.
const SHORT_ANSWER: u64 = 64;

/// What an agent was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// An agent of its own.
    Agent,
    /// One of several that were started together.
    Group(usize, usize),
    /// A helper of one request.
    Helper,
}

/// An agent found in a list, by places in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) role: Role,
    pub(crate) requests: Vec<usize>,
}

/// The main agent of a list, and the others in the order of their first request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Split {
    pub(crate) main: Vec<usize>,
    pub(crate) others: Vec<Found>,
}

struct Chain {
    requests: Vec<usize>,
    /// The request it forks from, and how many blocks they share.
    fork: Option<(usize, usize)>,
}

impl Chain {
    fn last(&self) -> usize {
        // Invariant: a chain is made with its first request.
        self.requests.last().copied().unwrap_or(0)
    }
}

/// Tells the agents of a list apart.
pub(crate) fn split(requests: &[Request]) -> Split {
    let leading = leading_helpers(requests);
    let mut chains: Vec<Chain> = Vec::new();
    for (at, request) in requests.iter().enumerate().skip(leading) {
        if let Some(chain) = extends(&chains, requests, request) {
            chains[chain].requests.push(at);
        } else {
            let fork = forked_from(&chains, requests, request);
            chains.push(Chain { requests: vec![at], fork });
        }
    }
    splice(&mut chains, requests);
    let mut chains = chains.into_iter();
    let mut main: Vec<usize> = (0..leading).collect();
    main.extend(chains.next().into_iter().flat_map(|chain| chain.requests));
    let rest: Vec<Chain> = chains.collect();
    let peak = main.iter().map(|at| requests[*at].input).max().unwrap_or(0);
    let main_model = main.last().map(|at| requests[*at].model);
    let groups = groups(&rest, requests);
    let others = rest
        .into_iter()
        .zip(groups)
        .map(|(chain, group)| {
            let role = match group {
                Some((number, member)) => Role::Group(number, member),
                None if is_helper(&chain, requests, main_model, peak) => Role::Helper,
                None => Role::Agent,
            };
            Found { role, requests: chain.requests }
        })
        .collect();
    Split { main, others }
}

/// Small requests in front whose prompts have nothing in common with any later one: they belong to the main agent and
/// found nothing.
fn leading_helpers(requests: &[Request]) -> usize {
    let peak = requests.iter().map(|request| request.input).max().unwrap_or(0);
    requests
        .iter()
        .enumerate()
        .take_while(|(at, request)| {
            let rest = &requests[at + 1..];
            !rest.is_empty()
                && is_small(request.input, peak)
                && rest.iter().all(|later| later.ids.common(&request.ids) == 0)
        })
        .count()
}

fn is_small(input: u64, peak: u64) -> bool {
    input < SMALL_INPUT.max((peak as f64 * SMALL_PART) as u64)
}

/// The chain that a request goes on with: its last prompt is all of the beginning, and it has been answered.
fn extends(chains: &[Chain], requests: &[Request], request: &Request) -> Option<usize> {
    chains
        .iter()
        .enumerate()
        .filter(|(_, chain)| {
            let last = &requests[chain.last()];
            last.model == request.model
                && last.end() <= request.at
                && last.ids.common(&request.ids) == last.ids.len()
        })
        .max_by_key(|(number, chain)| (requests[chain.last()].ids.len(), std::cmp::Reverse(*number)))
        .map(|(number, _)| number)
}

/// The earlier request that shares most with one that goes on with none; of several the first agent's, and its last.
fn forked_from(chains: &[Chain], requests: &[Request], request: &Request) -> Option<(usize, usize)> {
    chains
        .iter()
        .enumerate()
        .flat_map(|(chain, known)| known.requests.iter().map(move |at| (chain, *at)))
        .map(|(chain, at)| (requests[at].ids.common(&request.ids), std::cmp::Reverse(chain), at))
        .filter(|(shared, ..)| *shared > 0)
        .max()
        .map(|(shared, _, at)| (at, shared))
}

/// Puts forks back that go on in place of what they fork from: a context that was compacted.
fn splice(chains: &mut Vec<Chain>, requests: &[Request]) {
    let mut at = 1;
    while at < chains.len() {
        let first = chains[at].requests[0];
        let target = chains[at].fork.and_then(|(from, shared)| {
            let parent = (0..at).find(|parent| chains[*parent].requests.contains(&from))?;
            let (last, next) = (&requests[chains[parent].last()], &requests[first]);
            let unused = chains[parent].last() < first;
            let pause = next.at - last.end();
            let part = shared as f64 / last.ids.len().max(1) as f64;
            let stranger = pause > LONG_PAUSE_S && part < SHARED_PART;
            (unused && last.model == next.model && pause >= 0.0 && !stranger).then_some(parent)
        });
        match target {
            None => at += 1,
            Some(parent) => {
                let spliced = chains.remove(at);
                chains[parent].requests.extend(spliced.requests);
            }
        }
    }
}

/// Numbers of group and member of chains that run at the same time and fork from the same state.
fn groups(chains: &[Chain], requests: &[Request]) -> Vec<Option<(usize, usize)>> {
    let mut numbers = vec![None; chains.len()];
    let mut count = 0;
    for start in 0..chains.len() {
        if numbers[start].is_some() {
            continue;
        }
        let Some((from, shared)) = chains[start].fork else { continue };
        let members: Vec<usize> = (start..chains.len())
            .filter(|other| {
                numbers[*other].is_none()
                    && chains[*other].fork.is_some_and(|(other, common)| {
                        common == shared && requests[other].ids.common(&requests[from].ids) >= shared
                    })
                    && overlaps(&chains[start], &chains[*other], requests)
            })
            .collect();
        if members.len() >= SMALLEST_GROUP {
            for (member, chain) in members.into_iter().enumerate() {
                numbers[chain] = Some((count, member));
            }
            count += 1;
        }
    }
    numbers
}

fn overlaps(one: &Chain, other: &Chain, requests: &[Request]) -> bool {
    let span = |chain: &Chain| (requests[chain.requests[0]].at, requests[chain.last()].end());
    let ((start, end), (from, to)) = (span(one), span(other));
    start <= to && from <= end
}

fn is_helper(chain: &Chain, requests: &[Request], main_model: Option<u32>, peak: u64) -> bool {
    let [only] = chain.requests.as_slice() else { return false };
    let request = &requests[*only];
    let says_little = request.output.saturating_mul(SHORT_ANSWER) <= request.input;
    main_model != Some(request.model) || is_small(request.input, peak) || says_little
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request at `at` that takes a second, with these blocks.
    fn request(at: f64, ids: impl IntoIterator<Item = i64>) -> Request {
        let ids: super::super::ids::BlockIds = ids.into_iter().collect();
        Request { at, took: 1.0, input: ids.len() as u64 * 64, output: 500, ids, ..Request::default() }
    }

    fn ids(prefix: i64, from: i64, count: i64) -> impl Iterator<Item = i64> {
        (1..=prefix).chain(from..from + count)
    }

    #[test]
    fn one_agent_that_grows_or_is_compacted_is_one_agent() {
        let list = [
            request(0.0, 1..100),
            request(5.0, 1..120),
            // Compacted: the beginning stays, the rest is new.
            request(9.0, ids(40, 500, 30)),
            request(12.0, ids(40, 500, 50)),
            // Exactly the same again.
            request(15.0, ids(40, 500, 50)),
        ];
        assert_eq!(split(&list), Split { main: vec![0, 1, 2, 3, 4], others: vec![] });
    }

    #[test]
    fn a_state_that_is_used_again_was_no_compaction() {
        let list = [
            request(0.0, 1..400),
            request(5.0, ids(300, 5000, 50)),
            request(9.0, ids(300, 5000, 60)),
            request(12.0, 1..420),
        ];
        let found = split(&list);
        assert_eq!(found.main, [0, 3]);
        assert_eq!(found.others, [Found { role: Role::Agent, requests: vec![1, 2] }]);
    }

    #[test]
    fn agents_that_run_at_the_same_time_are_told_apart_and_three_are_a_group() {
        let fork = |at, from| request(at, ids(300, from, 20));
        let on = |at, from| request(at, ids(300, from, 30));
        let mut list = vec![request(0.0, 1..301), request(2.0, 1..303), fork(2.1, 1000), fork(2.2, 2000)];
        list.extend([on(6.0, 1000), on(6.1, 2000), request(20.0, 1..305)]);
        let roles = |list: &[Request]| split(list).others.iter().map(|found| found.role).collect::<Vec<_>>();
        assert_eq!(split(&list).main, [0, 1, 6]);
        assert_eq!(roles(&list), [Role::Agent, Role::Agent]);
        list.splice(4..4, [fork(2.3, 3000)]);
        list.splice(7..7, [on(6.2, 3000)]);
        assert_eq!(roles(&list), [Role::Group(0, 0), Role::Group(0, 1), Role::Group(0, 2)]);
        assert_eq!(split(&list).others[2].requests, [4, 7]);
    }

    #[test]
    fn a_lone_request_of_another_model_or_a_small_one_is_a_helper() {
        let list = [
            request(0.0, 1..400),
            Request { model: 1, ..request(2.0, ids(390, 800, 9)) },
            request(4.0, 9000..9003),
            request(6.0, 1..410),
        ];
        let found = split(&list);
        assert_eq!(found.main, [0, 3]);
        assert!(found.others.iter().all(|found| found.role == Role::Helper), "{found:?}");
    }

    #[test]
    fn a_small_request_in_front_stays_with_the_main_agent_and_founds_nothing() {
        let list = [request(0.0, 9000..9003), request(2.0, 1..400), request(4.0, 1..410)];
        assert_eq!(split(&list), Split { main: vec![0, 1, 2], others: vec![] });
        assert_eq!(split(&list[..1]).main, [0]);
        assert_eq!(split(&[]), Split::default());
    }

    #[test]
    fn a_far_later_context_with_little_in_common_is_another_agent() {
        let late = |at, shared| [request(0.0, 1..400), request(at, ids(shared, 5000, 300))];
        assert_eq!(split(&late(2000.0, 100)).main, [0, 1]);
        assert_eq!(split(&late(5000.0, 100)).main, [0]);
        assert_eq!(split(&late(5000.0, 300)).main, [0, 1]);
    }
}
