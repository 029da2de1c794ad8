//! `cargo xtask bench`: what the client costs and how true its timings are, beside `wrk` and the reference.
//!
//! Every figure is taken from the release binary as a process of its own, against the bundled mock server in another
//! process. Where there is a rival, the runs alternate (ours, `wrk`, the reference, ours, …), so that a change of the
//! machine's mood meets all of them; what is shown is the median of the runs. `docs/benchmarks.md` says how each row
//! is measured.
//!
//! The harness fetches what it compares with only when it is missing: `wrk` from the distribution, the reference into
//! a virtual environment under `.bench/`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, value_parser};

use self::figure::Figure;
use self::reference::Reference;

mod client;
mod figure;
mod host;
mod mock;
mod process;
mod progress;
mod reference;
mod rows;
mod stats;
mod table;
mod wrk;

use self::progress::say;

/// What one call of the harness was asked, and where its things are.
#[derive(Debug)]
struct Bench {
    /// The release binary under test.
    binary: PathBuf,
    /// Runs of each program per figure.
    runs: usize,
    /// Fewer requests and shorter runs: to try the harness out, not to judge.
    quick: bool,
    /// The recorded trace of the trace rows, when there is one.
    trace: Option<PathBuf>,
    /// Folder of everything the harness keeps.
    home: PathBuf,
    /// Absent when it was not wanted.
    reference: Option<Reference>,
}

impl Bench {
    /// An empty folder for one run of `row`.
    fn fresh_folder(&self, row: &str) -> Result<PathBuf> {
        let folder = self.home.join("run").join(row);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
        }
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }

    /// `full`, or `quick` when the harness is only tried out.
    fn size(&self, full: u64, quick: u64) -> u64 {
        if self.quick { quick } else { full }
    }
}

/// The command line.
pub(crate) fn command() -> clap::Command {
    let rows = rows::ALL
        .iter()
        .map(|row| format!("  {:<16} {}", row.name, row.about))
        .collect::<Vec<_>>()
        .join("\n");
    clap::Command::new("xtask").subcommand_required(true).subcommand(
        clap::Command::new("bench")
            .about("Measures the release binary beside wrk and the reference")
            .after_help(format!("Rows:\n{rows}"))
            .arg(Arg::new("row").action(ArgAction::Append).help("Rows to measure [default: all]"))
            .arg(
                Arg::new("runs")
                    .long("runs")
                    .value_name("N")
                    .default_value("5")
                    .value_parser(value_parser!(u64).range(1..))
                    .help("Runs of each program; the median counts"),
            )
            .arg(
                Arg::new("no-reference")
                    .long("no-reference")
                    .action(ArgAction::SetTrue)
                    .help("Leave the reference out"),
            )
            .arg(
                Arg::new("reference")
                    .long("reference")
                    .value_name("PROGRAM")
                    .conflicts_with("no-reference")
                    .help("The reference, installed already, instead of one that is installed below .bench/"),
            )
            .arg(
                Arg::new("quick")
                    .long("quick")
                    .action(ArgAction::SetTrue)
                    .help("Short runs, to try the harness out"),
            )
            .arg(Arg::new("output").long("output").value_name("FILE").help("Figures and samples as JSON"))
            .arg(
                Arg::new("mooncake")
                    .long("mooncake")
                    .value_name("FILE")
                    .help("The Mooncake conversation trace, for the trace rows"),
            )
            .arg(
                Arg::new("binary")
                    .long("binary")
                    .value_name("FILE")
                    .help("Measure this build instead of building the release profile"),
            ),
    )
}

/// Measures the rows asked for and prints the table; failure when a figure misses what it must reach.
pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let wanted = matches.get_many::<String>("row").map(|rows| rows.map(String::as_str).collect::<Vec<_>>());
    let rows = rows::select(wanted.as_deref().unwrap_or(&[]))?;
    let root = root();
    let home = root.join(".bench");
    let binary = match matches.get_one::<String>("binary") {
        Some(path) => std::path::absolute(path).with_context(|| format!("--binary {path}"))?,
        None => build(&root)?,
    };
    let reference = if matches.get_flag("no-reference") || !rows.iter().any(|row| row.reference) {
        None
    } else {
        let installed = matches.get_one::<String>("reference").map(std::path::absolute).transpose();
        Some(Reference::ready(&home, installed.context("--reference")?.as_deref())?)
    };
    let bench = Bench {
        binary,
        runs: matches.get_one::<u64>("runs").map_or(5, |runs| *runs as usize),
        quick: matches.get_flag("quick"),
        trace: trace(matches.get_one::<String>("mooncake"))?,
        home,
        reference,
    };
    process::raise_descriptor_limit();

    let mut figures: Vec<Figure> = Vec::new();
    for row in &rows {
        say(format_args!("== {}: {}", row.name, row.about));
        match (row.measure)(&bench) {
            Ok(measured) => figures.extend(measured),
            // The other rows are worth having all the same.
            Err(error) => figures.push(Figure::failed(row.name, row.about, &error)),
        }
        if let Some(path) = matches.get_one::<String>("output") {
            table::write_json(Path::new(path), &bench, &figures)?;
        }
    }
    table::print(&figures)?;
    Ok(if figures.iter().any(Figure::misses) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

fn build(root: &Path) -> Result<PathBuf> {
    say(format_args!("building the release binary"));
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--package", "aiperf", "--bin", "aiperf"])
        .current_dir(root)
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("cargo build failed");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("release").join("aiperf"))
}

fn trace(given: Option<&String>) -> Result<Option<PathBuf>> {
    let Some(path) = given else { return Ok(None) };
    let path = std::path::absolute(path).with_context(|| format!("--mooncake {path}"))?;
    if !path.is_file() {
        bail!("--mooncake {}: no such file", path.display());
    }
    Ok(Some(path))
}
