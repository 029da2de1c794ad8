//! From a configuration, a seed and a number of sessions to rows.

use std::collections::BTreeMap;
use std::io::{self, Write};

use aiperf_tokenize::seed::{Rng as _, Streams, below, stream, unit};

use super::cache::{Blocks, CacheStructure, Reuse};
use super::session::Model;
use super::{Config, End, Outcome, Session};

/// Restarts happen in this leading share of the sessions.
const RESTARTS_END: f64 = 0.75;

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum SynthesisError {
    /// The configuration contradicts itself.
    #[error("{0}")]
    Config(String),
    /// A session of a fixed number of turns outgrew the limit on every attempt.
    #[error(
        "session {session} outgrew max_prompt_tokens in each of {attempts} attempts; raise max_prompt_tokens (--max-isl) \
         or turns.max_session_attempts, lower turns.mean, or set turns.allow_truncation"
    )]
    Overflow {
        /// Counted from 1.
        session: u64,
        /// Attempts made.
        attempts: u32,
    },
    /// The rows cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// A trace to be made.
#[derive(Clone, Debug)]
pub struct Synthesis {
    config: Config,
    sessions: u64,
    seed: u64,
}

/// What was written.
#[derive(Debug)]
pub struct Written {
    /// Every figure about it.
    pub outcome: Outcome,
    /// The first sessions in blocks.
    pub structure: CacheStructure,
}

/// A session that takes up another, waiting for its place.
struct Restart {
    /// Number of the session that was cut off.
    of: u64,
    group: u32,
    /// Tokens it starts with.
    context: u64,
    /// The whole blocks that the session before had at its start, after those of the layers.
    first_own: u64,
    own_blocks: u64,
}

impl Synthesis {
    /// Checks that the values of a configuration go together.
    pub fn new(config: Config, sessions: u64, seed: u64) -> Result<Synthesis, SynthesisError> {
        match config.contradiction() {
            Some(rule) => Err(SynthesisError::Config(rule)),
            None => Ok(Synthesis { config, sessions, seed }),
        }
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Writes the rows, session by session. `progress` is told the sessions that are done.
    pub fn write(
        &self,
        rows: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Written, SynthesisError> {
        let mut writer = Writer::new(self, rows);
        let model = Model::new(&self.config);
        let growth = Streams::new(self.seed, "agentic-code.sessions");
        let splits = Streams::new(self.seed, "agentic-code.restarts");
        let resumed = Streams::new(self.seed, "agentic-code.resumed");
        let names = Names::new(self.seed);
        let last = self.sessions.saturating_sub(1);
        let mut waiting: BTreeMap<u64, Vec<Restart>> = BTreeMap::new();
        for number in 0..self.sessions {
            let (group, turns, end) =
                model.primary(&mut growth.at(number)).map_err(|_| SynthesisError::Overflow {
                    session: number + 1,
                    attempts: self.config.turns.map_or(1, |turns| turns.max_session_attempts),
                })?;
            let mut session = Session { id: names.id(number), group, is_restart: false, turns, end };
            let mut split = splits.at(number);
            let chance = self.restart_chance(number);
            let mut cut = None;
            if chance > 0.0 && unit(&mut split) < chance {
                let after = model.split_after(&mut split);
                if after < session.turns.len() as u64 {
                    session.turns.truncate(after as usize);
                    session.end = End::RestartSplit;
                    let earliest = number + (self.sessions / 4).max(1);
                    let place = earliest + below(&mut split, (last + 1).saturating_sub(earliest).max(1));
                    cut = Some(place.min(last));
                }
            }
            let first_own = writer.primary(&session)?;
            if let (Some(place), Some(turn)) = (cut, session.turns.last()) {
                let shared = self.config.layer1_blocks() + self.config.layer1_5_blocks();
                let whole = session.turns[0].context / u64::from(self.config.block_size);
                waiting.entry(place).or_default().push(Restart {
                    of: number,
                    group,
                    context: turn.context + turn.output,
                    first_own,
                    own_blocks: whole.saturating_sub(shared),
                });
            }
            for restart in waiting.remove(&number).unwrap_or_default() {
                let mut stream = resumed.at(restart.of);
                let (turns, end) = model.resume(restart.context, &mut stream);
                let id = names.id(self.sessions + restart.of);
                let session = Session { id, group: restart.group, is_restart: true, turns, end };
                writer.restart(&session, &restart)?;
            }
            progress(number + 1);
        }
        writer.rows.flush()?;
        Ok(Written { outcome: writer.outcome, structure: writer.structure })
    }

    fn restart_chance(&self, number: u64) -> f64 {
        let before = number as f64 / self.sessions.saturating_sub(1).max(1) as f64;
        (self.config.restart_initial_probability * (1.0 - before / RESTARTS_END)).max(0.0)
    }
}

/// Gives sessions ids: 48 bits that look random, none twice.
struct Names {
    add: u64,
    multiply: [u64; 3],
}

const ID_BITS: u64 = 48;
const ID_MASK: u64 = (1 << ID_BITS) - 1;

impl Names {
    fn new(seed: u64) -> Names {
        let mut stream = stream(seed, "agentic-code.names");
        Names { add: stream.next_u64(), multiply: std::array::from_fn(|_| stream.next_u64() | 1) }
    }

    /// Each step can be undone, so no two numbers meet.
    fn id(&self, number: u64) -> u64 {
        self.multiply.iter().fold(number.wrapping_add(self.add) & ID_MASK, |id, factor| {
            let id = id.wrapping_mul(*factor) & ID_MASK;
            id ^ id >> (ID_BITS / 2)
        })
    }
}

fn name_of(session: &Session) -> String {
    format!("sess-{:012x}", session.id)
}

/// Numbers the blocks, writes the rows and counts.
struct Writer<'a> {
    rows: &'a mut dyn Write,
    outcome: Outcome,
    structure: CacheStructure,
    reuse: Reuse,
    blocks: Vec<Blocks>,
    block_size: u64,
    layer1: u64,
    layer1_5: u64,
    /// The next block that nobody has.
    fresh: u64,
    line: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn new(synthesis: &Synthesis, rows: &'a mut dyn Write) -> Writer<'a> {
        let config = &synthesis.config;
        let (layer1, layer1_5) = (config.layer1_blocks(), config.layer1_5_blocks());
        Writer {
            rows,
            outcome: Outcome::new(config),
            structure: CacheStructure::new(config),
            reuse: Reuse::new(config),
            blocks: Vec::new(),
            block_size: u64::from(config.block_size),
            layer1,
            layer1_5,
            fresh: layer1 + layer1_5 * u64::from(config.cache.groups),
            line: Vec::with_capacity(1 << 16),
        }
    }

    /// Writes a session that starts from nothing; the number of its first own block comes back.
    fn primary(&mut self, session: &Session) -> io::Result<u64> {
        let first_own = self.fresh;
        self.session(session, None)?;
        Ok(first_own)
    }

    fn restart(&mut self, session: &Session, restart: &Restart) -> io::Result<()> {
        self.session(session, Some(restart))
    }

    fn session(&mut self, session: &Session, restart: Option<&Restart>) -> io::Result<()> {
        let shared = self.layer1 + self.layer1_5;
        let resumed = restart.map(|restart| shared + restart.own_blocks);
        self.reuse.session(session, resumed, &mut self.blocks);
        let name = name_of(session);
        self.structure.session(&name, session, &self.blocks);
        self.outcome.session(session, &self.blocks);
        let mut numbers = itoa::Buffer::new();
        for (index, turn) in session.turns.iter().enumerate() {
            let line = &mut self.line;
            line.clear();
            line.extend_from_slice(b"{\"session_id\":\"");
            line.extend_from_slice(name.as_bytes());
            line.extend_from_slice(b"\",\"input_length\":");
            line.extend_from_slice(numbers.format(turn.new).as_bytes());
            line.extend_from_slice(b",\"output_length\":");
            line.extend_from_slice(numbers.format(turn.output).as_bytes());
            line.extend_from_slice(b",\"hash_ids\":[");
            let mut left = turn.new.div_ceil(self.block_size);
            let mut ids = |from: u64, count: u64| {
                let count = count.min(left);
                left -= count;
                for id in from..from + count {
                    line.extend_from_slice(numbers.format(id).as_bytes());
                    line.push(b',');
                }
                count
            };
            if index == 0 {
                ids(0, self.layer1);
                ids(self.layer1 + u64::from(session.group) * self.layer1_5, self.layer1_5);
                if let Some(restart) = restart {
                    ids(restart.first_own, restart.own_blocks);
                }
            }
            self.fresh += ids(self.fresh, u64::MAX - self.fresh);
            // There is at least one block; its comma gives way to the bracket.
            line.pop();
            if index == 0 {
                line.extend_from_slice(b"],\"timestamp\":0.0,\"group_id\":");
                line.extend_from_slice(numbers.format(session.group).as_bytes());
                if session.is_restart {
                    line.extend_from_slice(b",\"is_restart\":true");
                }
            } else {
                write!(line, "],\"delay\":{:.1}", turn.delay_ms)?;
            }
            line.extend_from_slice(b"}\n");
            self.rows.write_all(line)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use serde_json::Value;

    use super::super::bundled;
    use super::*;

    fn rows(config: Config, sessions: u64, seed: u64) -> (Vec<Value>, Written) {
        let mut bytes = Vec::new();
        let synthesis = Synthesis::new(config, sessions, seed).unwrap();
        let written = synthesis.write(&mut bytes, &mut |_| {}).unwrap();
        let rows = String::from_utf8(bytes).unwrap();
        (rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), written)
    }

    fn ids(row: &Value) -> Vec<u64> {
        row["hash_ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect()
    }

    fn with(json: &str) -> Config {
        super::super::read(json).unwrap().config
    }

    /// Every row has the fields of its place, a block for each started 512 tokens, and every id one size.
    fn check(rows: &[Value], block_size: u64) {
        let mut sizes: HashMap<u64, u64> = HashMap::new();
        let mut before = "";
        let mut finished = HashSet::new();
        for row in rows {
            let session = row["session_id"].as_str().unwrap();
            assert!(session.len() == 17 && session.starts_with("sess-"), "{session}");
            let first = session != before;
            if first {
                assert!(finished.insert(session), "{session} is not contiguous");
                before = session;
                assert_eq!(row["timestamp"].as_f64(), Some(0.0));
                assert!(row["group_id"].is_u64() && row.get("delay").is_none());
            } else {
                assert!(row["delay"].as_f64().unwrap() >= 0.0);
                assert!(row.get("timestamp").is_none() && row.get("group_id").is_none());
            }
            let length = row["input_length"].as_u64().unwrap();
            assert!(length >= 1 && row["output_length"].as_u64().unwrap() >= 1);
            let ids = ids(row);
            assert_eq!(ids.len() as u64, length.div_ceil(block_size));
            for (index, id) in ids.iter().enumerate() {
                let size = (length - index as u64 * block_size).min(block_size);
                assert_eq!(*sizes.entry(*id).or_insert(size), size, "block {id} has two sizes");
            }
        }
    }

    #[test]
    fn no_block_has_two_sizes_in_the_published_shape_with_restarts() {
        let (rows, written) = rows(bundled("agentic-200k").unwrap(), 1000, 42);
        check(&rows, 512);
        let restarts = rows.iter().filter(|row| row["is_restart"] == true).count() as u64;
        assert!((40..=90).contains(&restarts), "{restarts}");
        assert_eq!(written.outcome.sessions(), 1000 + restarts);
        assert_eq!(written.outcome.ended(End::RestartSplit), restarts);
    }

    #[test]
    fn every_block_size_works() {
        for size in [1, 16, 100, 512, 40_000] {
            let config = Config { block_size: size, ..Config::default() };
            check(&rows(config, 20, 42).0, u64::from(size));
        }
    }

    #[test]
    fn sessions_share_the_layers_and_nothing_else() {
        let (rows, _) = rows(Config::default(), 100, 42);
        let firsts: Vec<&Value> = rows.iter().filter(|row| row.get("timestamp").is_some()).collect();
        assert_eq!(firsts.len(), 100);
        let mut by_group: HashMap<u64, Vec<u64>> = HashMap::new();
        let mut own = HashSet::new();
        for row in &firsts {
            let ids = ids(row);
            assert_eq!(ids[..63], (0..63).collect::<Vec<_>>());
            let group =
                by_group.entry(row["group_id"].as_u64().unwrap()).or_insert_with(|| ids[63..103].to_vec());
            assert_eq!(ids[63..103], group[..]);
            assert!(ids[103..].iter().all(|id| own.insert(*id)));
        }
        let groups: HashSet<&Vec<u64>> = by_group.values().collect();
        assert_eq!(groups.len(), by_group.len());
        for row in rows.iter().filter(|row| row.get("timestamp").is_none()) {
            assert!(ids(row).into_iter().all(|id| own.insert(id)));
        }
    }

    #[test]
    fn a_restart_takes_up_the_whole_blocks_that_its_session_began_with() {
        let (rows, _) = rows(bundled("agentic-200k").unwrap(), 400, 7);
        let (shared, mut found) = (63 + 20, 0);
        for row in rows.iter().filter(|row| row["is_restart"] == true) {
            let ids = ids(row);
            let first_own = ids[shared];
            let of = rows.iter().find(|row| row["hash_ids"][shared] == first_own).unwrap();
            if of["is_restart"] == true {
                // The session before had no whole block of its own.
                continue;
            }
            found += 1;
            assert_eq!(of["group_id"], row["group_id"]);
            let whole = of["input_length"].as_u64().unwrap() as usize / 512;
            assert_eq!(self::ids(of)[..whole], ids[..whole]);
            let session: Vec<&Value> =
                rows.iter().filter(|row| row["session_id"] == of["session_id"]).collect();
            assert!((5..15).contains(&session.len()));
            let total: u64 = session
                .iter()
                .map(|row| row["input_length"].as_u64().unwrap() + row["output_length"].as_u64().unwrap())
                .sum();
            assert_eq!(row["input_length"].as_u64().unwrap(), total.min(199_999));
            let place = |id: &Value| {
                let firsts =
                    rows.iter().filter(|row| row.get("timestamp").is_some() && row["is_restart"] != true);
                firsts.take_while(|row| row["session_id"] != *id).count()
            };
            let order: Vec<&Value> = rows.iter().map(|row| &row["session_id"]).collect();
            let at = order.iter().position(|id| **id == row["session_id"]).unwrap();
            let primaries_before = rows[..at]
                .iter()
                .filter(|row| row.get("timestamp").is_some() && row["is_restart"] != true)
                .count();
            assert!(primaries_before > place(&of["session_id"]) + 100, "{primaries_before}");
        }
        assert!(found >= 10, "{found}");
    }

    #[test]
    fn the_context_stays_below_the_limit() {
        for config in [bundled("default").unwrap(), with(r#"{"max_prompt_tokens": 60000}"#)] {
            let limit = config.max_prompt_tokens;
            let (rows, _) = rows(config, 50, 1);
            let mut context = 0;
            for row in rows {
                context = if row.get("timestamp").is_some() { 0 } else { context };
                context += row["input_length"].as_u64().unwrap();
                assert!(context < limit);
                context += row["output_length"].as_u64().unwrap();
            }
        }
    }

    #[test]
    fn sessions_of_a_fixed_number_of_turns_have_it() {
        let turns = r#"{"turns": {"mean": 10, "median": 8, "min": 3, "max": 40}}"#;
        let (rows, mut written) = rows(with(turns), 400, 42);
        check(&rows, 512);
        assert_eq!(written.outcome.ended(End::TargetTurnCount), 400);
        let summary = written.outcome.turns.summary().unwrap();
        assert!((9.5..=11.5).contains(&summary.mean), "{}", summary.mean);
        assert!((7.0..=9.0).contains(&summary.median));
    }

    #[test]
    fn a_session_that_never_fits_is_an_error_and_with_truncation_it_ends_early() {
        let json = |rest: &str| {
            format!(
                r#"{{"max_prompt_tokens": 70000, "turns": {{"mean": 90, "median": 90, "min": 90, "max": 90{rest}}}}}"#
            )
        };
        let synthesis = Synthesis::new(with(&json(r#", "max_session_attempts": 3"#)), 2, 1).unwrap();
        let error = synthesis.write(&mut io::sink(), &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("in each of 3 attempts"), "{error}");
        let (_, written) = rows(with(&json(r#", "allow_truncation": true"#)), 2, 1);
        assert_eq!(written.outcome.ended(End::ForcedRetire), 2);
    }

    #[test]
    fn the_same_arguments_give_the_same_bytes_and_more_sessions_leave_the_first_as_they_are() {
        let bytes = |sessions, seed| {
            let mut bytes = Vec::new();
            let synthesis = Synthesis::new(Config::default(), sessions, seed).unwrap();
            synthesis.write(&mut bytes, &mut |_| {}).unwrap();
            bytes
        };
        let (few, many) = (bytes(10, 42), bytes(30, 42));
        assert_eq!(few, bytes(10, 42));
        assert_eq!(many[..few.len()], few);
        assert_ne!(few, bytes(10, 43));
    }

    #[test]
    fn names_are_unique() {
        let names = Names::new(42);
        let ids: HashSet<u64> = (0..200_000).map(|number| names.id(number)).collect();
        assert_eq!(ids.len(), 200_000);
        assert!(ids.iter().all(|id| *id <= ID_MASK));
    }

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn one_session_and_a_full_disk() {
        assert_eq!(rows(bundled("agentic-200k").unwrap(), 1, 42).1.outcome.sessions(), 1);
        let synthesis = Synthesis::new(Config::default(), 1, 1).unwrap();
        assert!(matches!(synthesis.write(&mut Full, &mut |_| {}), Err(SynthesisError::Write(_))));
    }
}
