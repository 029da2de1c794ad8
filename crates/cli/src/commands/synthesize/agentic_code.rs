//! `aiperf synthesize agentic-code`: sessions of coding agents as a trace, and what they come to.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;

use aiperf_synthesize::agentic::{
    self, BUNDLED, Config, Manifest, Outcome, Synthesis, SynthesisError, Written,
};
use clap::{Arg, ArgMatches, Command};

use super::super::interrupt::{EndsAtOnce, Interrupt};
use super::super::{input, whole::whole};
use super::folder::{Folder, Place};

use crate::exit::{ExitStatus, Failure};
use crate::print;

/// More sessions than any replay takes up: their trace has some 100 GB.
const MOST_SESSIONS: u64 = 1_000_000;

const TRACE: &str = "dataset.jsonl";
const MANIFEST: &str = "manifest.json";
const QUALITY: &str = "quality.json";
const COMPARISON: &str = "comparison.txt";
const STRUCTURE: &str = "cache_structure.json";
const REPORT: &str = "report.html";
const EXPLORER: &str = "cache_explorer.html";
const SIMULATION: &str = "simulation.html";

pub(super) fn command() -> Command {
    let count = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("N")
            .value_parser(whole(1))
            .allow_negative_numbers(true)
            .help(help)
    };
    Command::new("agentic-code")
        .about("Sessions of coding agents: shared prompt layers, repositories, contexts that grow turn by turn")
        .long_about(
            "Sessions of coding agents as a mooncake_trace: shared prompt layers, a repository per group, contexts \
             that grow turn by turn. Writes a folder <config>_<N>s_seed<seed>_<time> with dataset.jsonl and what it \
             comes to: manifest, quality, comparison, cache structure and three pages to look at. Replay it with \
             aiperf profile --input-file .../dataset.jsonl --custom-dataset-type mooncake_trace",
        )
        .arg(count("num-sessions", "Sessions to make").default_value("1000"))
        .arg(
            Arg::new("output")
                .long("output")
                .value_name("DIR")
                .default_value(".")
                .help("Folder in which the folder of the run is made"),
        )
        .arg(Arg::new("config").long("config").value_name("NAME|FILE").help(format!(
            "A bundled configuration ({}), a JSON file, or the manifest of an earlier run [default: the built-in one]",
            bundled_names()
        )))
        .arg(
            Arg::new("seed")
                .long("seed")
                .value_name("N")
                .default_value("42")
                .value_parser(whole(0))
                .allow_negative_numbers(true)
                .help("The same seed gives the same trace"),
        )
        .arg(count("max-isl", "No context reaches so many tokens (max_prompt_tokens)"))
        .arg(count("max-osl", "No answer is longer (generation_length.max)"))
}

fn bundled_names() -> String {
    BUNDLED.map(|(name, ..)| name).join(", ")
}

pub(super) fn run(matches: &ArgMatches) -> ExitStatus {
    synthesize(matches).map_or_else(Failure::tell, |()| ExitStatus::Success)
}

/// A configuration and where it came from.
struct Chosen {
    config: Config,
    /// What the folder is called after.
    label: String,
    /// What the manifest says.
    name: String,
}

fn choose(given: Option<&String>) -> Result<Chosen, Failure> {
    let Some(given) = given else {
        return Ok(Chosen { config: Config::default(), label: "default".into(), name: "builtin".into() });
    };
    if let Some(config) = agentic::bundled(given) {
        return Ok(Chosen { config, label: given.clone(), name: given.clone() });
    }
    let text = fs::read_to_string(given).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::usage(format!(
            "--config {given}: neither a bundled configuration ({}) nor a file; check the name",
            bundled_names()
        )),
        _ => Failure::usage(format!("--config {given}: cannot be read: {error}")),
    })?;
    let read = agentic::read(&text).map_err(|error| Failure::usage(format!("--config {given}: {error}")))?;
    for key in &read.unknown {
        print::err(&format!("warning: --config {given}: key `{key}` is unknown and has no effect\n"));
    }
    let stem = Path::new(given).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Chosen { config: read.config, label: stem.clone(), name: stem })
}

fn synthesize(matches: &ArgMatches) -> Result<(), Failure> {
    let ends = EndsAtOnce::new(None);
    let number = |name: &str| matches.get_one::<u64>(name).copied();
    let Chosen { mut config, label, name } = choose(matches.get_one("config"))?;
    if let Some(limit) = number("max-isl") {
        config.max_prompt_tokens = limit;
    }
    if let Some(longest) = number("max-osl") {
        if config.generation.min.is_some_and(|min| min > longest as f64) {
            return Err(Failure::usage(format!(
                "--max-osl {longest} is below generation_length.min of the configuration; raise the one or lower the \
                 other"
            )));
        }
        config.generation.max = Some(longest as f64);
    }
    // Invariant: both have defaults.
    let (sessions, seed) = (number("num-sessions").unwrap_or(1000), number("seed").unwrap_or(42));
    if sessions > MOST_SESSIONS {
        return Err(Failure::usage(format!(
            "--num-sessions {sessions} is more than {MOST_SESSIONS}; lower it, or make several traces, each with a --seed \
             of its own"
        )));
    }
    let synthesis =
        Synthesis::new(config, sessions, seed).map_err(|error| Failure::usage(error.to_string()))?;
    let parent = Path::new(matches.get_one::<String>("output").map_or(".", String::as_str));
    let place = Place::of_run(parent, &format!("{label}_{sessions}s_seed{seed}"));
    // From now on there is something to take away.
    let interrupt = Interrupt::new(place.unfinished());
    drop(ends);
    let folder = place.make()?;

    let mut written = write_trace(&synthesis, sessions, &folder, &interrupt)?;
    interrupt.check()?;
    let outcome = &mut written.outcome;
    let manifest = Manifest {
        seed,
        requested_sessions: sessions,
        emitted_sessions: outcome.sessions(),
        config_name: &name,
        config: synthesis.config(),
    };
    let comparison = agentic::comparison(synthesis.config(), outcome);
    folder.json(MANIFEST, &manifest.to_json())?;
    folder.json(QUALITY, &agentic::quality(synthesis.config(), outcome))?;
    folder.text(COMPARISON, &comparison)?;
    folder.json(STRUCTURE, &written.structure.to_json())?;
    folder.text(EXPLORER, &agentic::cache_explorer(&written.structure))?;
    folder.text(REPORT, &agentic::report(&label, outcome))?;
    folder.text(SIMULATION, &agentic::simulation(&label, synthesis.config(), outcome))?;
    interrupt.check()?;
    validate(&folder.path(TRACE), outcome, synthesis.config().block_size)?;
    interrupt.check()?;
    let folder = folder.publish()?;
    print::out(&summary(&folder, outcome, &comparison));
    Ok(())
}

fn write_trace(
    synthesis: &Synthesis,
    sessions: u64,
    folder: &Folder,
    interrupt: &Interrupt,
) -> Result<Written, Failure> {
    let path = folder.path(TRACE);
    let file = File::create(&path).map_err(|error| folder.cannot_write(&error))?;
    let mut rows = BufWriter::with_capacity(1 << 18, interrupt.writer(file));
    let mut patience = print::patience();
    let written = synthesis.write(&mut rows, &mut |done| patience.tell(done, sessions, "sessions"));
    drop(patience);
    if written.is_err() {
        interrupt.check()?;
    }
    written.map_err(|error| match error {
        SynthesisError::Write(error) => folder.cannot_write(&error),
        error => Failure::usage(error.to_string()),
    })
}

/// Reads the trace back as a run would.
fn validate(path: &Path, outcome: &Outcome, block_size: u32) -> Result<(), Failure> {
    let broken = |what: String| {
        Failure::new(format!("the trace that was made is not valid: {what}"), ExitStatus::Internal)
    };
    let rows = input::mooncake_rows(path, block_size).map_err(|error| broken(error.to_string()))?;
    if rows == outcome.rows() {
        Ok(())
    } else {
        Err(broken(format!("{rows} rows were read back, {} were written", outcome.rows())))
    }
}

fn summary(folder: &Path, outcome: &Outcome, comparison: &str) -> String {
    let line = |name: &str, file: &str| format!("  {name:<16} {}\n", folder.join(file).display());
    let mut text = format!("Run directory: {}\n", folder.display());
    text += &line("Trace:", TRACE);
    text += &line("Manifest:", MANIFEST);
    text += &line("Quality:", QUALITY);
    text += &line("Comparison:", COMPARISON);
    text += &line("Cache structure:", STRUCTURE);
    text += &line("Cache explorer:", EXPLORER);
    text += &line("Report:", REPORT);
    text += &line("Simulation:", SIMULATION);
    let validated = format!("  {:<16} mooncake_trace, {} rows\n\n", "Validated:", outcome.rows());
    text + &validated + comparison
}
