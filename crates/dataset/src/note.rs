//! What the user should know about a dataset that is usable. The caller prints notes; each is one line.

use std::fmt;
use std::path::Path;

use crate::Place;

/// How loud a note is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteLevel {
    /// For whoever looks closely.
    Debug,
    /// A fact.
    Info,
    /// Something was changed or left out.
    Warning,
}

/// Something worth saying about a dataset.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// Recorded input lengths of 0 became 1.
    InputLengthRaised {
        /// Turns concerned.
        turns: u64,
    },
    /// Recorded output lengths below 1 became 1.
    OutputLengthRaised {
        /// Turns concerned.
        turns: u64,
    },
    /// Recorded output lengths above the cap became the cap.
    OutputLengthCapped {
        /// Turns concerned.
        turns: u64,
    },
    /// Inputs longer than asked for.
    LongerThanAsked {
        /// Rows left out.
        rows: u64,
    },
    /// Rows of a table, some of which may not be what its columns say.
    RowsOfTable {
        /// Rows below the header.
        read: u64,
        /// Rows that are requests.
        kept: u64,
        /// Rows left out.
        skipped: u64,
        /// Line of the first of these; 0 where there is none.
        first: u64,
    },
    /// Conversations of requests that follow each other, by whether their prompts repeat what was said before.
    Histories {
        /// Those that do.
        repeated: u64,
        /// Those that do not.
        added: u64,
    },
    /// Parameters of captured requests that are sent again.
    ParametersReplayed {
        /// Their names.
        names: Vec<String>,
    },
    /// Multipliers of prefixes and prompts are given, and no record has blocks.
    NothingToReshape,
    /// Delays that are not finite were dropped.
    DelayNotFinite {
        /// Turns concerned.
        turns: u64,
    },
    /// The longest delay is above a minute and no cap was set.
    LongDelay {
        /// The longest delay, ms.
        longest_ms: f64,
    },
    /// Rows outside the window of the fixed schedule.
    OutsideWindow {
        /// Rows left out.
        rows: u64,
    },
    /// Sessions whose first kept row has no timestamp, because the window removed the one before.
    SessionsCutByWindow {
        /// Sessions left out.
        sessions: u64,
    },
    /// Rows with both `payload` and `extra`.
    ExtraBesidePayload {
        /// Rows concerned.
        rows: u64,
    },
    /// Streaming was asked for and authored bodies do not ask for it.
    PayloadNotStreaming,
    /// Splits of a folder of shards that are not read, because one is named `train`.
    SplitsDropped {
        /// Their names.
        dropped: Vec<String>,
    },
    /// Files beside shards that are neither data nor known to be none.
    FilesSkipped {
        /// Their names.
        names: Vec<String>,
    },
    /// Keys of the first record that are not read, and would be under the names of fields.
    KeysNotRead {
        /// Each with the field that is lacking.
        keys: Vec<(&'static str, &'static str)>,
    },
    /// Keys of the first record that are not read, and are keys of request bodies.
    KeysOfBodies {
        /// Their names.
        keys: Vec<&'static str>,
    },
    /// Rows whose recorded client gave up.
    CanceledRows {
        /// Rows concerned.
        rows: u64,
    },
    /// Rows of sessions that were not drawn.
    NotSampled {
        /// Rows left out.
        rows: u64,
    },
    /// Traces that need more context than was allowed.
    ContextTooLong {
        /// Traces left out.
        traces: u64,
    },
    /// Agents that nobody starts: no request comes before them.
    AgentsWithoutParent {
        /// Agents left out.
        agents: u64,
    },
    /// Requests of agents that lie before the one that is listed before them.
    TimesGoBack {
        /// Such requests.
        requests: u64,
        /// Where the first of them is.
        first: String,
    },
    /// Rounds without a time.
    Undated {
        /// Rounds left out.
        rounds: u64,
        /// File and line of the first of these.
        first: String,
    },
    /// Events without a time, in rounds that have one by others.
    EventsWithoutTime {
        /// Events passed over.
        events: u64,
        /// File and line of the first of these.
        first: String,
    },
    /// The first record, which decides whether a run goes by recorded times, has none, and others have.
    FirstWithoutTime {
        /// File and line, or row, of the record.
        at: String,
        /// Where its time belongs.
        field: &'static str,
    },
    /// Files of `--image-source` that cannot be read as pictures.
    PicturesRetired {
        /// Their names, and why.
        files: Vec<String>,
    },
    /// A key that the user sets is set by rows of the trace, too.
    ExtraInputOverwritten {
        /// The key.
        key: &'static str,
        /// The flag that leaves it to the user.
        flag: &'static str,
    },
    /// Not all random prompts are those of the benchmark that is imitated, which draws one for each conversation.
    ImitatedUpTo {
        /// The benchmark.
        benchmark: &'static str,
        /// How many are, counted over all conversations.
        texts: u64,
    },
    /// The seed is more than the imitated benchmark takes.
    SeedFolded {
        /// The seed.
        seed: u64,
        /// The seed that gives the same prompts there.
        folded: u32,
    },
    /// Rows that are wanted in another order than that of their file could not be copied to where that is cheap.
    RowsNotCopied {
        /// Why.
        reason: String,
    },
}

impl Note {
    /// The first record of `file`, which is at `place`, has no time in `field`, and others have one.
    pub(crate) fn first_without_time(file: &Path, place: &Place, field: &'static str) -> Note {
        Note::FirstWithoutTime { at: place.of(file), field }
    }

    /// Whether it tells of records, or of keys in them, that are passed over because something is wrong with them.
    pub fn is_of_faults(&self) -> bool {
        matches!(
            self,
            Note::RowsOfTable { skipped: 1.., .. }
                | Note::KeysNotRead { .. }
                | Note::KeysOfBodies { .. }
                | Note::Undated { .. }
                | Note::EventsWithoutTime { .. }
                | Note::TimesGoBack { .. }
                | Note::FirstWithoutTime { .. }
                | Note::AgentsWithoutParent { .. }
        )
    }

    /// How loud it is.
    pub fn level(&self) -> NoteLevel {
        match self {
            Note::PicturesRetired { .. } => NoteLevel::Debug,
            Note::OutsideWindow { .. }
            | Note::LongerThanAsked { .. }
            | Note::OutputLengthCapped { .. }
            | Note::RowsOfTable { skipped: 0, .. }
            | Note::Histories { .. }
            | Note::SplitsDropped { .. }
            | Note::FilesSkipped { .. }
            | Note::CanceledRows { .. }
            | Note::NotSampled { .. }
            | Note::ParametersReplayed { .. }
            | Note::ContextTooLong { .. } => NoteLevel::Info,
            _ => NoteLevel::Warning,
        }
    }
}

impl Note {
    /// What is to be said of times that are missing or out of order.
    fn of_times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::TimesGoBack { requests, first } => write!(
                f,
                "{requests} request(s) lie before the one that is listed before them (the first: {first}) and are taken for \
                 those of other agents; list the requests of a trace in the order of their times"
            ),
            Note::EventsWithoutTime { events, first } => write!(
                f,
                "{events} event(s) have no time and were passed over (the first at {first}); their rounds go by the times of \
                 their other events, which may be later ones: give each of timing_events a timestamp"
            ),
            Note::FirstWithoutTime { at, field } => write!(
                f,
                "{at}: field `{field}`: the first record has no time, and it decides for all: they are sent without their \
                 recorded schedule, though others have times; add the time, or say with --no-fixed-schedule that this is \
                 meant"
            ),
            Note::Undated { rounds, first } => write!(
                f,
                "{rounds} round(s) have no time and were left out (the first at {first}); give one of their timing_events a \
                 timestamp to keep them"
            ),
            _ => Ok(()),
        }
    }
}

impl Note {
    /// What is to be said of keys that are not read.
    fn of_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::KeysNotRead { keys } => f.write_str(&not_read(keys)),
            Note::KeysOfBodies { keys } => write!(
                f,
                "the first record has keys that are not used: {}; a record sends what its `extra` holds: \"extra\": {{\"{}\": \
                 …}}",
                keys.join(", "),
                keys.first().unwrap_or(&"")
            ),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::OutputLengthRaised { turns } => {
                write!(f, "{turns} turn(s) record an output length below 1; 1 is sent instead")
            }
            Note::InputLengthRaised { turns } => {
                write!(f, "{turns} turn(s) record an input of 0 tokens and no blocks; 1 token is sent instead")
            }
            Note::OutputLengthCapped { turns } => {
                write!(f, "{turns} turn(s) record an output longer than --synthesis-max-osl; the cap is sent instead")
            }
            Note::LongerThanAsked { rows } => {
                write!(f, "{rows} row(s) with an input longer than --synthesis-max-isl were left out")
            }
            Note::RowsOfTable { read, skipped: 0, .. } => write!(f, "{read} row(s) read, all kept, 0 skipped"),
            Note::Histories { repeated, added } => write!(
                f,
                "prompts of {repeated} session(s) repeat what was said before and are sent alone; those of {added} session(s) \
                 go on from it"
            ),
            Note::ParametersReplayed { names } => {
                write!(f, "sent as captured, besides messages, tools and limit: {}", names.join(", "))
            }
            Note::RowsOfTable { read, kept, skipped, first } => write!(
                f,
                "{read} row(s) read, {kept} kept, {skipped} skipped because a value is missing or no number (the first in \
                 line {first})"
            ),
            Note::NothingToReshape => f.write_str(
                "the multipliers of prefixes and prompts change nothing: no row has hash_ids",
            ),
            Note::DelayNotFinite { turns } => {
                write!(f, "{turns} turn(s) have a delay that is not a finite number; it is left out")
            }
            Note::LongDelay { longest_ms } => write!(
                f,
                "the longest delay between turns is {:.1} s; --inter-turn-delay-cap-seconds shortens such waits",
                longest_ms / 1000.0
            ),
            Note::OutsideWindow { rows } => write!(f, "{rows} row(s) outside the window of the schedule were left out"),
            Note::SessionsCutByWindow { sessions } => write!(
                f,
                "{sessions} session(s) were left out: the window removed their first row and the next has no timestamp"
            ),
            Note::ExtraBesidePayload { rows } => {
                write!(f, "{rows} row(s) have `payload` and `extra`; the payload is sent alone, `extra` is not")
            }
            Note::RowsNotCopied { reason } => write!(
                f,
                "rows are wanted in another order than the file has them in, and could not be copied to a temporary file \
                 ({reason}): they were read from the file itself, which takes longer; set TMPDIR to a folder with room for \
                 the columns that are sent"
            ),
            Note::SplitsDropped { dropped } => {
                write!(f, "the folder holds several splits; train is read, left out: {}", some(dropped))
            }
            Note::FilesSkipped { names } => write!(f, "skipped beside the parquet shards: {}", some(names)),
            Note::KeysNotRead { .. } | Note::KeysOfBodies { .. } => self.of_keys(f),
            Note::CanceledRows { rows } => {
                write!(f, "{rows} row(s) record a request that its client canceled; they are sent like the others")
            }
            Note::NotSampled { rows } => {
                write!(f, "{rows} row(s) are of sessions that --trace-session-sample-ratio left out")
            }
            Note::ContextTooLong { traces } => {
                write!(f, "{traces} trace(s) need more context than --max-context-length and were left out")
            }
            Note::AgentsWithoutParent { agents } => {
                write!(f, "{agents} subagent(s) were left out: no kept request comes before them, or they have none")
            }
            Note::TimesGoBack { .. }
            | Note::EventsWithoutTime { .. }
            | Note::FirstWithoutTime { .. }
            | Note::Undated { .. } => self.of_times(f),
            Note::PicturesRetired { files } => {
                write!(f, "{} file(s) of --image-source are left out: {}", files.len(), some(files))
            }
            Note::ExtraInputOverwritten { key, flag } => write!(
                f,
                "--extra-inputs sets `{key}`, and the rows of the trace overwrite it; {flag} leaves it to --extra-inputs"
            ),
            Note::ImitatedUpTo { benchmark, texts: 0 } => write!(
                f,
                "so many conversations have random prompts of our own drawing, not those of the {benchmark} benchmark with \
                 this seed"
            ),
            Note::ImitatedUpTo { benchmark, texts } => write!(
                f,
                "the first {texts} texts are the random prompts of the {benchmark} benchmark with this seed, which has one for \
                 each conversation; the others are of our own drawing"
            ),
            Note::SeedFolded { seed, folded } => write!(
                f,
                "--random-seed {seed} is more than the sglang benchmark takes; its prompts are those of seed {folded}"
            ),
            Note::PayloadNotStreaming => f.write_str(
                "--streaming is set, but an authored body lacks \"stream\": true; such answers will not be streamed",
            ),
        }
    }
}

/// Keys that are not read, the fields that they may be, and how they are read.
fn not_read(keys: &[(&str, &str)]) -> String {
    let meant: Vec<String> =
        keys.iter().map(|(key, field)| format!("{key} (did you mean {field}?)")).collect();
    let columns: Vec<String> = keys.iter().map(|(key, field)| format!("{field}={key}")).collect();
    format!(
        "the first record has keys that are not used: {}; --input-columns {} reads them",
        meant.join(", "),
        columns.join(",")
    )
}

/// The first of some names, and how many more there are.
fn some(names: &[String]) -> String {
    const MOST: usize = 8;
    let more = names.len().saturating_sub(MOST);
    let first = names[..names.len() - more].join(", ");
    if more == 0 { first } else { format!("{first} and {more} more") }
}

#[cfg(test)]
mod tests;
