//! `cargo xtask oracle`: the same commands with the reference and with this client, against one mock server, and the
//! bodies they sent beside each other as JSON. Needs an installed reference and a folder of sample files.

mod cases;
mod compare;

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};
use clap::{Arg, ArgMatches};
use serde_json::Value;

use cases::{CASES, Case};
use compare::{Request, compare, starts};

/// The command line.
pub(crate) fn command() -> clap::Command {
    let path =
        |name: &'static str, help: &'static str| Arg::new(name).long(name).value_name("PATH").help(help);
    clap::Command::new("oracle")
        .about("Compares the request bodies of sample files with those of the reference, and when they leave with a list")
        .arg(path("reference", "The reference's program").required(true))
        .arg(path("client", "This client's program").default_value("target/release/aiperf"))
        .arg(path("samples", "Folder of the sample files").required(true))
        .arg(
            path("vocabulary", "Folder with the vocabulary of the reference's builtin tokenizer")
                .required(true),
        )
        .arg(path("out", "Folder for what both write").default_value("target/oracle"))
        .arg(Arg::new("only").long("only").value_name("TEXT").help("Cases whose name has this in it"))
}

/// Prints a line for each case, and below it what differs.
pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let path = |name: &str| -> Result<PathBuf> {
        let path = matches.get_one::<String>(name).with_context(|| format!("--{name} is missing"))?;
        std::path::absolute(path).with_context(|| format!("--{name} {path}"))
    };
    let out = path("out")?;
    std::fs::create_dir_all(&out)?;
    let run = Runs {
        reference: path("reference")?,
        client: path("client")?,
        samples: path("samples")?,
        vocabulary: path("vocabulary")?,
        out,
    };
    let only = matches.get_one::<String>("only").map_or("", String::as_str);
    let mut differ = false;
    for case in CASES.iter().filter(|case| case.name.contains(only)) {
        let found = run.case(case)?;
        let verdict = match (found.is_empty(), case.intended) {
            (true, _) => "same".to_owned(),
            (false, Some(why)) => format!("different on purpose: {why}"),
            (false, None) => {
                differ = true;
                "DIFFERENT".to_owned()
            }
        };
        say(&format!("{:32} {verdict}", case.name));
        for line in &found {
            say(&format!("    {line}"));
        }
    }
    Ok(if differ { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

struct Runs {
    reference: PathBuf,
    client: PathBuf,
    samples: PathBuf,
    vocabulary: PathBuf,
    out: PathBuf,
}

/// Ended when it is dropped.
struct Server {
    child: Child,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Runs {
    fn case(&self, case: &Case) -> Result<Vec<String>> {
        let server = self.server()?;
        let theirs = self.profile(&self.reference, "reference", case, &server.url)?;
        let ours = self.profile(&self.client, "client", case, &server.url)?;
        let mut found = compare(case, &theirs, &ours);
        found.extend(starts(case, &ours));
        Ok(found)
    }

    fn server(&self) -> Result<Server> {
        let mut child = Command::new(&self.client)
            .args(["mock-server", "--port", "0", "--ttft", "20ms", "--itl", "0ms"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", self.client.display()))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned);
        let url =
            url.with_context(|| format!("the mock server says where it listens in no way known: {line}"))?;
        Ok(Server { child, url })
    }

    fn profile(&self, program: &Path, who: &str, case: &Case, url: &str) -> Result<Vec<Request>> {
        let folder = self.out.join(case.name).join(who);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        let log = File::create(folder.join("log.txt"))?;
        let status = Command::new(program)
            .args(["profile", "--model", "mock-model", "--tokenizer", "builtin", "--ui", "none"])
            .args(["--random-seed", "7", "--export-level", "raw", "--url", url])
            .arg("--input-file")
            .arg(self.samples.join(case.file))
            .arg("--artifact-dir")
            .arg(folder.join("artifacts"))
            .args(case.arguments.split_whitespace())
            .args(
                case.kind
                    .iter()
                    .flat_map(|kind| std::iter::once("--custom-dataset-type").chain(kind.split_whitespace())),
            )
            .env("TIKTOKEN_CACHE_DIR", &self.vocabulary)
            .env("HF_HUB_OFFLINE", "1")
            // The reference keeps prepared data below the home folder.
            .env("HOME", &folder)
            .envs(case.environment.split_whitespace().filter_map(|pair| pair.split_once('=')))
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .status()
            .with_context(|| format!("cannot start {}", program.display()))?;
        if !status.success() {
            let log = std::fs::read_to_string(folder.join("log.txt")).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().filter(|line| !line.trim().is_empty()).take(12).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            if case.may_fail {
                return Ok(Vec::new());
            }
            bail!("{}: {who} ended with {status}\n{}", case.name, tail.join("\n"));
        }
        requests(&folder.join("artifacts/profile_export_raw.jsonl"))
    }
}

fn requests(path: &Path) -> Result<Vec<Request>> {
    let file = File::open(path).with_context(|| format!("no {}", path.display()))?;
    let mut all = Vec::new();
    for line in BufReader::new(file).lines() {
        let record: Value = serde_json::from_str(&line?)?;
        let metadata = &record["metadata"];
        all.push(Request {
            conversation: metadata["conversation_id"].as_str().unwrap_or_default().to_owned(),
            turn: metadata["turn_index"].as_u64().unwrap_or_default(),
            start: metadata["request_start_ns"].as_u64().unwrap_or_default(),
            end: metadata["request_end_ns"].as_u64().unwrap_or_default(),
            scheduled: metadata["scheduled_ns"].as_u64(),
            body: record["payload"].clone(),
        });
    }
    all.sort_by_key(|request| request.start);
    Ok(all)
}
