//! `aiperf anonymize INPUT`: lengths, times and shared prefixes of a private prompt log, and nothing else.
//!
//! What is said about a fault names the file, the line and the field. The words of the loader may quote a value, so
//! they are not repeated here.

use std::collections::{HashSet, VecDeque};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use aiperf_config::{InputColumns, redact_reference};
use aiperf_dataset::{Dataset, DatasetError, Place, RawRecords, Survey, check_the_path, format};
use aiperf_report::{AtomicFile, Patience};
use aiperf_synthesize::anonymize::{AnonymizeError, Anonymizer, Request, Totals};
use aiperf_tokenize::Tokenizer;
use aiperf_types::{Content, Conversation};
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::value::RawValue;

use super::input;
use super::interrupt::{EndsAtOnce, Interrupt, Unfinished};
use super::output::{self, STDOUT};
use super::whole::whole_u32;
use crate::environment::Environment;
use crate::exit::ExitStatus;
use crate::exit::Failure;
use crate::print;
use crate::remote::{Named, tokenizers};

/// The flag that names the trace.
const OUTPUT: &str = "--output";

/// Conversations that are kept in case their turns lie apart in the file.
const KEPT: usize = 64;

pub(crate) fn command() -> Command {
    Command::new("anonymize")
        .about("Turn a private prompt log into a trace of lengths, times and shared prefixes")
        .long_about(
            "Turn a private prompt log into a mooncake_trace that keeps lengths, times and shared prefixes, and nothing \
             else: no text, name, id, model or hash is written. What still shows: how long each prompt and answer is, \
             when requests came (since the first; not the date), which of them begin alike and for how many tokens, \
             and for multi_turn which belong together. Somebody who has a text already may recognise it by its length, \
             and a schedule may give away who works when.",
        )
        .arg(
            Arg::new("input")
                .value_name("INPUT")
                .required(true)
                .help("File, folder or reference: a dataset with texts, or the raw records of a run"),
        )
        .args(output::arguments("The trace to write; - is stdout", true))
        .arg(
            Arg::new("custom-dataset-type")
                .long("custom-dataset-type")
                .value_name("TYPE")
                .help("Type of INPUT [default: found by its first record]"),
        )
        .arg(
            Arg::new("tokenizer")
                .long("tokenizer")
                .value_name("NAME")
                .help("Counts the tokens; messages go through its chat template [default: builtin]"),
        )
        .arg(
            Arg::new("block-size")
                .long("block-size")
                .value_name("TOKENS")
                .default_value("512")
                .value_parser(whole_u32(1))
                .help("Tokens of a block"),
        )
        .arg(
            Arg::new("skip-media")
                .long("skip-media")
                .action(ArgAction::SetTrue)
                .help("Leave out requests with images, audio, video or files, and count them"),
        )
}

pub(super) fn run(matches: &ArgMatches) -> ExitStatus {
    anonymize(matches).map_or_else(Failure::tell, |()| ExitStatus::Success)
}

fn anonymize(matches: &ArgMatches) -> Result<(), Failure> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    // Invariant: both are required.
    let (named, output) = (text("input").unwrap_or("."), text("output").unwrap_or(STDOUT));
    if output != STDOUT {
        output::is_not_read(OUTPUT, Path::new(output), &[named.into()])?;
        output::may_write(matches, Path::new(output))?;
    }
    let declared =
        text("custom-dataset-type").map(input::format_named).transpose().map_err(Failure::usage)?;
    // Invariant: it has a default.
    let block_size = matches.get_one::<u32>("block-size").copied().unwrap_or(512);
    let environment = Environment::of_process();
    let named = Named::bring(named, declared, &environment)?;
    let written = write(matches, &named, output, block_size, &environment);
    written.map_err(|failure| Failure { text: named.told(&failure.text), ..failure })
}

/// Writes the trace of data that are here.
fn write(
    matches: &ArgMatches,
    named: &Named,
    output: &str,
    block_size: u32,
    environment: &Environment,
) -> Result<(), Failure> {
    let (path, declared) = (named.path(), named.format);
    let ends = EndsAtOnce::new(named.leftover());
    let source = if declared.is_none() && RawRecords::fits(path) {
        Source::Raw(RawRecords::open(path).map_err(|error| unreadable(path, &error))?)
    } else if let Some(raw) = RawRecords::in_folder(path).filter(|_| declared.is_none()) {
        return Err(Failure::usage(format!(
            "{}: this is the folder of a run; name its raw records, {}, or the trace that aiperf dataset from-run DIR makes \
             of them",
            redact_reference(&path.display().to_string()),
            redact_reference(&raw.display().to_string())
        )));
    } else {
        Source::Data(data(path, declared, output)?)
    };
    let tokenizer = match matches.get_one::<String>("tokenizer") {
        None => {
            print::err("note: tokens are counted with the builtin tokenizer; --tokenizer names another\n");
            Tokenizer::builtin()
        }
        Some(name) => tokenizers::open(environment, name)?,
    };
    if let Some(fault) = tokenizer.chat_template_fault() {
        print::err(&format!("warning: the chat template of the tokenizer is not used: {fault}\n"));
    }
    let broken = |error: &io::Error| output::broken(output::shown(output), error);
    let mut stdout = output::stdout();
    let (interrupt, mut file) = if output == STDOUT {
        (None, None)
    } else {
        // From now on there is something to take away.
        let interrupt = Interrupt::new(&Unfinished::file(Path::new(output)));
        drop(ends);
        (Some(interrupt), Some(AtomicFile::create(output).map_err(|error| broken(&error))?))
    };
    let mut out: Box<dyn Write + '_> = match (&interrupt, &mut file) {
        (Some(interrupt), Some(file)) => Box::new(interrupt.writer(file)),
        _ => Box::new(&mut stdout),
    };
    let mut job = Job {
        path,
        anonymizer: Anonymizer::new(tokenizer, block_size),
        out: &mut *out,
        broken: &broken,
        closed: false,
        skip_media: matches.get_flag("skip-media"),
        skipped: 0,
        patience: print::patience(),
    };
    let written = match &source {
        Source::Raw(records) => job.raw(records),
        Source::Data(dataset) => job.data(&**dataset),
    };
    // Whoever closed the other end has read enough.
    if job.closed {
        return Ok(());
    }
    interrupt.as_ref().map_or(Ok(()), Interrupt::check)?;
    written?;
    let (totals, skipped) = (job.anonymizer.totals(), job.skipped);
    drop(job);
    drop(out);
    if totals.rows == 0 {
        return Err(Failure::usage(format!(
            "{}: no request with text{}; nothing was written",
            path.display(),
            if skipped > 0 { format!(", {skipped} with media were left out") } else { String::new() }
        )));
    }
    let committed = match file {
        Some(file) => file.commit().map(drop),
        None => stdout.flush(),
    };
    match committed {
        Err(error) if is_closed(&error) => return Ok(()),
        committed => committed.map_err(|error| broken(&error))?,
    }
    print::err(&summary(output, &totals, skipped));
    Ok(())
}

/// Whether nobody reads what is written to stdout.
fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

enum Source {
    Raw(RawRecords),
    Data(Arc<dyn Dataset>),
}

/// Opens a dataset that was read to its end without a fault, and of which `output` is no part.
fn data(
    path: &Path,
    declared: Option<aiperf_config::FileFormat>,
    output: &str,
) -> Result<Arc<dyn Dataset>, Failure> {
    let survey = Survey::new(1);
    let file = input::file(path, declared, None, &InputColumns::default())
        .map_err(|error| unreadable(path, &error))?;
    if output != STDOUT {
        output::is_not_read(OUTPUT, Path::new(output), &format(file.format).files_read(path))?;
    }
    input::tell_columns(&InputColumns::default(), &file);
    let opened = input::survey(file, &survey);
    if let Ok(dataset) = &opened {
        dataset.wait_for(u64::MAX);
    }
    // With a bad record alone nothing is left; the record is what to look at.
    match (survey.faults().0.into_iter().next(), opened) {
        (Some(fault), _) | (None, Err(fault)) => Err(unreadable(path, &fault)),
        (None, Ok(dataset)) => match dataset.fault() {
            Some(fault) => Err(unreadable(path, &fault)),
            None => Ok(dataset),
        },
    }
}

/// What is wrong with the input, without a value of it.
fn unreadable(path: &Path, error: &DatasetError) -> Failure {
    let shown = redact_reference(&path.display().to_string());
    Failure::usage(match error {
        DatasetError::Missing { .. } => format!("{shown} does not exist; {}", check_the_path(path)),
        DatasetError::Unreadable { reason, .. } => format!("cannot read {shown}: {reason}"),
        DatasetError::Invalid(invalid) => format!(
            "{}{} breaks a rule of its type; aiperf validate says which (and may quote it)",
            place(&invalid.file, &invalid.place),
            if invalid.field.is_empty() {
                String::new()
            } else {
                format!(" field `{}`", known(&invalid.field))
            }
        ),
        DatasetError::Undetected(_) => {
            format!(
                "{shown}: its type cannot be told by its first record; name it with --custom-dataset-type"
            )
        }
        DatasetError::Empty(_) => format!("{shown}: has no record"),
        _ => format!("{shown}: cannot be used as it is; aiperf validate says why (and may quote it)"),
    })
}

/// Names that formats give to fields.
const FIELDS: [&str; 16] = [
    "turns",
    "session_id",
    "type",
    "timestamp",
    "delay",
    "messages",
    "payload",
    "tools",
    "input_length",
    "output_length",
    "hash_ids",
    "text_input",
    "text",
    "texts",
    "data",
    "metadata",
];

/// A field as far as its name is one of a format: names that the data brings along are left out.
fn known(field: &str) -> String {
    let plain =
        |letter: char| letter.is_ascii_lowercase() || "_.[]".contains(letter) || letter.is_ascii_digit();
    let first = field.split(['.', '[']).next().unwrap_or_default();
    let is_known = FIELDS.contains(&first)
        && field.split('.').skip(1).all(|part| {
            FIELDS.contains(&part.split('[').next().unwrap_or_default())
                || ["role", "content"].contains(&part)
        });
    if is_known && field.chars().all(plain) { field.to_owned() } else { "...".to_owned() }
}

fn place(file: &Path, place: &Place) -> String {
    match place {
        Place::Line(line) => format!("{}:{line}:", file.display()),
        Place::Json(path) => format!("{}: {}", file.display(), known(path)),
        Place::Offset(offset) => format!("{} (byte {offset}):", file.display()),
        Place::Row(row) => format!("{}: row {row}:", file.display()),
    }
}

/// The work and what it needs.
struct Job<'a> {
    path: &'a Path,
    anonymizer: Anonymizer,
    out: &'a mut dyn Write,
    broken: &'a dyn Fn(&io::Error) -> Failure,
    /// Nobody reads what is written.
    closed: bool,
    skip_media: bool,
    skipped: u64,
    patience: Patience,
}

impl Job<'_> {
    /// Adds one request; `at` says where it is. `false` when it was left out.
    fn add(&mut self, request: &Request<'_>, at: impl Fn() -> String) -> Result<bool, Failure> {
        match self.anonymizer.add(request, self.out) {
            Ok(()) => Ok(true),
            Err(AnonymizeError::Media(_)) if self.skip_media => {
                self.skipped += 1;
                Ok(false)
            }
            Err(AnonymizeError::Write(error)) => {
                self.closed = is_closed(&error);
                Err((self.broken)(&error))
            }
            Err(error) => Err(Failure::usage(format!("{} {error}", at()))),
        }
    }

    fn raw(&mut self, records: &RawRecords) -> Result<(), Failure> {
        let requests = records.requests();
        let first = requests.first().map_or(0, |request| request.sent_ns);
        for (done, request) in requests.iter().enumerate() {
            let body = records.body(request).map_err(|error| unreadable(self.path, &error))?;
            let at = || place(self.path, &Place::Line(request.line));
            let body = RawValue::from_string(body)
                .map_err(|_| Failure::usage(format!("{} field `payload`: is not JSON", at())))?;
            let content = Content::Payload(body);
            let asked = Request {
                timestamp_ms: Some((request.sent_ns - first) as f64 / 1e6),
                output_tokens: request.output_tokens,
                ..whole(&content)
            };
            self.add(&asked, at)?;
            self.patience.tell(done as u64 + 1, requests.len() as u64, "requests");
        }
        Ok(())
    }

    fn data(&mut self, dataset: &dyn Dataset) -> Result<(), Failure> {
        if dataset.children() > 0 {
            return Err(Failure::usage(format!(
                "{}: its conversations start others, which the rows of a mooncake_trace cannot say; give requests, \
                 conversations or captures",
                self.path.display()
            )));
        }
        let mut turns = Vec::new();
        let mut first = f64::INFINITY;
        for index in 0..dataset.len().known() {
            let outline = dataset.outline(index);
            for turn in 0..outline.turns() {
                turns.push((dataset.position(index, turn), index as u32, turn));
                let time = outline.turn(turn).and_then(|turn| turn.timestamp_ms);
                first = first.min(time.unwrap_or(f64::INFINITY));
            }
        }
        // In the order of the file: that is the order in which blocks appear.
        turns.sort_unstable();
        let mut built = Built::default();
        let mut begun = HashSet::new();
        let all = turns.len() as u64;
        for (done, (_, index, turn)) in turns.into_iter().enumerate() {
            let conversation = u64::from(index);
            let path = self.path;
            let at = || match dataset.place(conversation, turn) {
                Some((file, found)) => place(&file, &found),
                None => format!("{}:", path.display()),
            };
            let read = |error: DatasetError| unreadable(path, &error);
            let facts = dataset.facts(conversation, turn..turn + 1).map_err(read)?.pop().unwrap_or_default();
            let outline = dataset.outline(conversation);
            let times = outline.turn(turn).unwrap_or_default();
            let recorded = match facts.content {
                None => dataset.recorded_content(conversation, turn).map_err(read)?,
                some => some,
            };
            let Some(content) = &recorded else {
                return Err(Failure::usage(format!(
                    "{} has no text, only lengths; such a trace holds nothing to take out",
                    at()
                )));
            };
            let asked = Request {
                timestamp_ms: times.timestamp_ms.map(|time| time - first),
                delay_ms: times.delay_ms,
                output_tokens: facts.output_tokens,
                ..whole(content)
            };
            if matches!(content, Content::Parts { .. }) {
                let built = built.get(dataset, index).map_err(read)?;
                let grows = outline.turns() > 1 && built.context_mode.accumulates();
                let first_of_it = !grows || !begun.contains(&index);
                let before: Vec<(&str, &str)> = [
                    ("system", built.system_message.as_deref()),
                    ("user", built.user_context_message.as_deref()),
                ]
                .into_iter()
                .filter_map(|(role, text)| Some((role, text?)))
                .filter(|_| first_of_it)
                .collect();
                let of = built.turns.get(turn as usize);
                let asked = Request {
                    role: of.and_then(|turn| turn.role.as_deref()),
                    tools: of.and_then(|turn| turn.extra_body.as_ref()?.get("tools")),
                    before: &before,
                    session: grows.then_some(conversation),
                    // After what, if it belongs to no session?
                    delay_ms: asked.delay_ms.filter(|_| grows),
                    ..asked
                };
                if self.add(&asked, at)? {
                    begun.insert(index);
                }
            } else {
                self.add(&asked, at)?;
            }
            self.patience.tell(done as u64 + 1, all, "requests");
        }
        Ok(())
    }
}

/// The conversations that were made last.
#[derive(Default)]
struct Built {
    kept: VecDeque<(u32, Arc<Conversation>)>,
}

impl Built {
    fn get(&mut self, dataset: &dyn Dataset, index: u32) -> Result<Arc<Conversation>, DatasetError> {
        if let Some((_, built)) = self.kept.iter().find(|(kept, _)| *kept == index) {
            return Ok(Arc::clone(built));
        }
        let built = Arc::new(dataset.build(u64::from(index))?);
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((index, Arc::clone(&built)));
        Ok(built)
    }
}

/// A request that is whole in itself.
fn whole(content: &Content) -> Request<'_> {
    Request {
        content,
        role: None,
        before: &[],
        tools: None,
        timestamp_ms: None,
        delay_ms: None,
        output_tokens: None,
        session: None,
    }
}

fn summary(output: &str, totals: &Totals, skipped: u64) -> String {
    let sessions =
        if totals.sessions > 0 { format!(" in {} sessions", totals.sessions) } else { String::new() };
    let left_out = if skipped > 0 { format!(", {skipped} with media left out") } else { String::new() };
    format!(
        "{}: {} requests{sessions}, {} tokens in {} blocks, {} of them different{left_out}\n",
        output::shown(output),
        totals.rows,
        totals.input_tokens,
        totals.blocks,
        totals.distinct
    )
}
