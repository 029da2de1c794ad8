//! `aiperf profile`

use aiperf_config::{RunConfig, redact_text};
use aiperf_run::{RunEnd, RunError, Signals, ready_process};
use aiperf_source::Reference;
use clap::ArgMatches;

use crate::environment::Environment;
use crate::exit::ExitStatus;
use crate::remote::{Anywhere, public, tokenizers};
use crate::settle::{Note, Settled, settle};
use crate::typed::Typed;
use crate::usage::UsageError;
use crate::{help, print, quote};

pub(super) fn run(matches: &ArgMatches, arguments: &[String]) -> ExitStatus {
    if matches.get_flag(help::ALL) {
        print::out(&help::profile(help::Detail::All));
        return ExitStatus::Success;
    }
    let typed = match Typed::read(matches, arguments.to_vec()) {
        Ok(typed) => typed,
        Err(error) => {
            print::err(&quote::hidden(&error.report(), arguments));
            return ExitStatus::Usage;
        }
    };
    // While there is one thread.
    ready_process();
    // Before anything is read: a file may take its time. A transfer hears signals by itself, and cleans up.
    let is_remote = typed.text("--input-file").is_some_and(Reference::is_reference)
        || ["--public-dataset", "--hf-weka-dataset"].iter().any(|flag| typed.has(flag))
        || tokenizers::may_download(&typed);
    let early = if is_remote { None } else { Some(Signals::install()) };
    let environment = Environment::of_process();
    let data = Anywhere::new(&environment);
    let Settled { mut config, mut notes } = match settle(&typed, &environment, &data) {
        Ok(settled) => settled,
        Err(error) => {
            print::err(&typed.hidden(&error.report()));
            return match (&error, data.failure()) {
                (UsageError::Source(error), _) => error.into(),
                (_, Some(error)) => (&error).into(),
                _ => ExitStatus::Usage,
            };
        }
    };
    // Everything that can be wrong with the command line is known: now the data may be downloaded.
    let _view = match data.bring(&mut config) {
        // The files stay together for as long as they are read.
        Ok(view) => view,
        Err(error) => {
            print::err(&UsageError::Source(error.clone()).report());
            return (&error).into();
        }
    };
    let searches = typed.text("--tokenizer").is_some();
    if let Err(failure) = tokenizers::bring(&environment, &mut config, searches, &mut notes) {
        print::err(&format!("error: {}\n", redact_text(&failure.text)));
        return failure.status;
    }
    // Its rows may be measured with the tokenizer.
    let _rows = match public::bring(&environment, &mut config, &mut notes) {
        Ok(rows) => rows,
        Err(failure) => {
            print::err(&format!("error: {}\n", redact_text(&failure.text)));
            return failure.status;
        }
    };
    match early.unwrap_or_else(Signals::install) {
        Ok(signals) => execute(config, &notes, &signals),
        Err(error) => {
            print::err(&format!("error: cannot listen to signals: {error}\n"));
            ExitStatus::Failure
        }
    }
}

/// Performs the run.
fn execute(config: RunConfig, notes: &[Note], signals: &Signals) -> ExitStatus {
    for note in notes {
        print::err(&format!("{}: {}\n", if note.warning { "warning" } else { "info" }, note.text));
    }
    let strict = config.strict_load;
    let brought = config.brought().map(|(path, name)| (path.to_string_lossy().into_owned(), name.to_owned()));
    match aiperf_run::execute(config, env!("CARGO_PKG_VERSION"), signals) {
        Ok(RunEnd::Suspect) if strict => ExitStatus::SuspectLoad,
        Ok(RunEnd::Good | RunEnd::Suspect) => ExitStatus::Success,
        Ok(RunEnd::Failed) => ExitStatus::Failure,
        Err(error) => {
            let text = error.to_string();
            let text = brought.map_or(text.clone(), |(path, name)| text.replace(&path, &name));
            print::err(&format!("error: {}\n", redact_text(&text)));
            match error {
                RunError::Input(_) => ExitStatus::Usage,
                RunError::Start(_) => ExitStatus::Failure,
            }
        }
    }
}
