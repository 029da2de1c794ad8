//! A share of the sessions, each kept or dropped as a whole.

use aiperf_tokenize::seed::{Stream, below, unit};

use super::row::Row;

/// Keeps each session with probability `ratio`, one of them at least. Sessions are drawn with one draw each: the
/// `recorded` ones in the order of their first row (and id), then those of single rows in file order, so that the
/// same seed keeps the same sessions.
pub(super) fn sample(
    rows: &mut Vec<Row>,
    ids: &[impl AsRef<str>],
    recorded: usize,
    ratio: f64,
    stream: &mut Stream,
) {
    if ratio >= 1.0 || rows.is_empty() {
        return;
    }
    let mut first = vec![f64::INFINITY; ids.len()];
    for row in &*rows {
        let time = &mut first[row.session[0] as usize];
        *time = time.min(row.time);
    }
    let mut sessions: Vec<u32> = (0..ids.len() as u32).filter(|&id| first[id as usize].is_finite()).collect();
    let single = sessions.partition_point(|&id| (id as usize) < recorded);
    sessions[..single].sort_by(|&a, &b| {
        let (a, b) = (a as usize, b as usize);
        first[a].total_cmp(&first[b]).then_with(|| ids[a].as_ref().cmp(ids[b].as_ref()))
    });
    let mut kept = vec![false; ids.len()];
    let mut any = false;
    for &session in &sessions {
        let keep = unit(stream) < ratio;
        kept[session as usize] = keep;
        any |= keep;
    }
    if !any {
        kept[sessions[below(stream, sessions.len() as u64) as usize] as usize] = true;
    }
    rows.retain(|row| kept[row.session[0] as usize]);
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use aiperf_tokenize::seed::stream;
    use proptest::prelude::*;

    use super::super::row::testing::row;
    use super::*;

    const RECORDED: [&str; 6] = ["f", "a", "c", "b", "e", "d"];

    /// Rows of these sessions; from 6 on a row has one of its own.
    fn rows(sessions: &[u8]) -> (Vec<Row>, Vec<String>) {
        let mut ids: Vec<String> = RECORDED.iter().map(ToString::to_string).collect();
        let mut rows = Vec::new();
        for (of, number) in sessions.iter().zip(0..) {
            let mut session = u32::from(*of);
            if usize::from(*of) >= RECORDED.len() {
                session = ids.len() as u32;
                ids.push(format!("single {number}"));
            }
            rows.push(row(number, f64::from(number * 7 % 5), session));
        }
        (rows, ids)
    }

    fn sampled((rows, ids): &(Vec<Row>, Vec<String>), ratio: f64, seed: u64) -> Vec<u32> {
        let mut rows = rows.clone();
        sample(&mut rows, ids, RECORDED.len(), ratio, &mut stream(seed, "sample"));
        rows.iter().map(|row| row.number).collect()
    }

    #[test]
    fn a_share_of_one_keeps_all_without_a_draw() {
        let (rows, ids) = rows(&[0, 1, 9, 0]);
        let mut stream = stream(3, "sample");
        let mut kept = rows.clone();
        sample(&mut kept, &ids, RECORDED.len(), 1.0, &mut stream);
        assert_eq!(kept.len(), rows.len());
        let mut fresh = aiperf_tokenize::seed::stream(3, "sample");
        assert_eq!(unit(&mut stream).to_bits(), unit(&mut fresh).to_bits());
    }

    #[test]
    fn about_the_share_is_kept() {
        let single = vec![9; 4000];
        let kept = sampled(&rows(&single), 0.25, 5).len();
        assert!((900..1100).contains(&kept), "{kept}");
    }

    proptest! {
        #[test]
        fn sessions_are_kept_whole_one_at_least_and_the_same_for_a_seed(
            sessions in prop::collection::vec(0u8..9, 1..40),
            ratio in 0.01f64..1.0,
            seed in 0u64..1000,
        ) {
            let rows = rows(&sessions);
            let kept: BTreeSet<u32> = sampled(&rows, ratio, seed).into_iter().collect();
            prop_assert!(!kept.is_empty());
            prop_assert_eq!(&kept, &sampled(&rows, ratio, seed).into_iter().collect::<BTreeSet<u32>>());
            let mut by_session: BTreeMap<u32, BTreeSet<bool>> = BTreeMap::new();
            for row in &rows.0 {
                by_session.entry(row.session[0]).or_default().insert(kept.contains(&row.number));
            }
            prop_assert!(by_session.values().all(|fates| fates.len() == 1));
        }
    }
}
