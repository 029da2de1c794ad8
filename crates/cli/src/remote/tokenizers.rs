//! Tokenizers of the Hub: from a name to files in the cache, before anything is counted.

use std::path::{Path, PathBuf};

use aiperf_config::{RunConfig, TokenizerSource, holds_known_key};
use aiperf_source::{FoundModel, Problem, SourceError, Sources, is_damaged_copy, printable};
use aiperf_tokenize::{OpenOptions, Place, Tokenizer, TokenizerError, cached_files, tokenizer_files};

use crate::environment::Environment;
use crate::exit::Failure;
use crate::print;
use crate::settle::Note;
use crate::typed::Typed;

/// The revision that is meant where none is named.
const MAIN: &str = "main";

/// What is said of a name that [`is_key`].
pub(crate) const KEY: &str = "the tokenizer's name looks like an access key, and is not looked for";
/// What to do about it.
pub(crate) const IN_PLACE_OF_KEY: &str =
    "give --tokenizer a repository such as ORG/NAME, a path, or `builtin`, and put the token into HF_TOKEN";

/// Whether a name is a key of a well-known service by mistake: it would be sent to the Hub, and written down.
pub(crate) fn is_key(name: &str) -> bool {
    holds_known_key(name) && !Path::new(name).exists()
}

/// Says whose bytes those are, and what works without them.
fn unobtainable(error: SourceError) -> Failure {
    let failure = Failure::from(error);
    Failure {
        text: format!("tokenizer: {} Or give --tokenizer a path or `builtin`", failure.text),
        ..failure
    }
}

/// Whether the names on a command line may have to be looked for on the Hub.
pub(crate) fn may_download(typed: &Typed) -> bool {
    let options = OpenOptions {
        revision: typed.text("--tokenizer-revision").map(str::to_owned),
        ..OpenOptions::default()
    };
    let name = typed.text("--tokenizer").or_else(|| typed.text("--model"));
    name.is_some_and(|name| Place::of(name, &options) != Place::Here)
}

/// Brings the tokenizer of a run into the cache where it is not there yet, and puts its name and commit in its place.
/// `searches` tells whether a name without an owner may be searched: only `--tokenizer` says so, a model's name does not.
pub(crate) fn bring(
    environment: &Environment,
    config: &mut RunConfig,
    searches: bool,
    notes: &mut Vec<Note>,
) -> Result<(), Failure> {
    let TokenizerSource::Named(name) = &config.tokenizer.source else { return Ok(()) };
    if !aiperf_run::needs_tokenizer(config) {
        return Ok(());
    }
    let brought = of_hub(environment, name, &config.tokenizer.revision, searches);
    let way_out = if aiperf_run::makes_text(config) { "" } else { aiperf_run::WITHOUT_TOKENIZER };
    let brought = brought.map_err(|failure| Failure { text: failure.text + way_out, ..failure })?;
    if let Some(Brought { name, commit }) = brought {
        notes.push(Note::info(format!("tokenizer {name} is used at commit {commit}")));
        config.tokenizer.source = TokenizerSource::Named(name);
        config.tokenizer.revision = commit;
    }
    Ok(())
}

/// Opens the tokenizer of this name for a command that counts, brought into the cache where it is not there yet.
pub(crate) fn open(environment: &Environment, name: &str) -> Result<Tokenizer, Failure> {
    let revision = OpenOptions::default().revision.unwrap_or_else(|| MAIN.to_owned());
    let (name, revision) = match of_hub(environment, name, &revision, true)? {
        Some(Brought { name, commit }) => {
            print::err(&format!("info: tokenizer {name} is used at commit {commit}\n"));
            (name, Some(commit))
        }
        None => (name.to_owned(), None),
    };
    let options = OpenOptions { revision, ..OpenOptions::default() };
    Tokenizer::open(&name, &options).map_err(|error| Failure::usage(error.to_string()))
}

/// A tokenizer whose files are in the cache now.
struct Brought {
    /// Its repository.
    name: String,
    commit: String,
}

/// Brings a tokenizer into the cache if its name is one of the Hub; nothing where it names something else, or where
/// no server may be asked.
fn of_hub(
    environment: &Environment,
    name: &str,
    revision: &str,
    searches: bool,
) -> Result<Option<Brought>, Failure> {
    if is_key(name) {
        return Err(Failure::usage(format!("{KEY}; {IN_PLACE_OF_KEY}")));
    }
    let options = OpenOptions { revision: Some(revision.to_owned()), ..OpenOptions::default() };
    let place = Place::of(name, &options);
    let failed = |problem: Problem| unobtainable(problem.about(name.to_owned()));
    let damaged = cached_files(name, &options)
        .and_then(|(commit, files)| Some((commit, files.into_iter().find(|file| is_damaged_copy(file))?)));
    if damaged.is_none() && place != Place::Repository && !(place == Place::ShortName && searches) {
        return Ok(None);
    }
    let (sources, _signals) = super::sources(environment).map_err(failed)?;
    match damaged {
        Some((_, file)) if sources.is_offline() => return Err(failed(Problem::Damaged(file))),
        Some((commit, file)) => {
            print::err(&format!(
                "warning: {} is not what it should be: it is fetched again\n",
                file.display()
            ));
            return fetched(&sources, name, &commit).map(Some);
        }
        // Opening it says where it was looked for.
        None if sources.is_offline() => return Ok(None),
        None => {}
    }
    let name = if place == Place::ShortName { search(&sources, name)? } else { name.to_owned() };
    fetched(&sources, &name, revision).map(Some)
}

/// Brings the tokenizer of a repository into the cache.
fn fetched(sources: &Sources, name: &str, revision: &str) -> Result<Brought, Failure> {
    let listing = sources.model(name, revision).map_err(unobtainable)?;
    let names = listing.names();
    let Some(files) = tokenizer_files(&names) else {
        let shown: Vec<String> = names.iter().map(|name| printable(name)).collect();
        return Err(Failure::usage(TokenizerError::no_tokenizer_in(PathBuf::from(name), &shown).to_string()));
    };
    sources.model_files(&listing, &files).map_err(unobtainable)?;
    Ok(Brought { name: name.to_owned(), commit: listing.commit })
}

/// The repository that a name without an owner stands for.
fn search(sources: &Sources, name: &str) -> Result<String, Failure> {
    let found = sources.find_models(name).map_err(unobtainable)?;
    choose(&found, name).map(str::to_owned).ok_or_else(|| {
        let near: Vec<String> = found.iter().take(5).map(|model| printable(&model.id)).collect();
        let near = if near.is_empty() { "none".to_owned() } else { near.join(", ") };
        Failure::usage(format!(
            "--tokenizer {name} names no repository of the Hub; near it are: {near}. Give --tokenizer one of these, a \
             path, or `builtin`"
        ))
    })
}

/// The one of this name, in any case; else the most downloaded that ends in it. `found` is in order of downloads.
fn choose<'found>(found: &'found [FoundModel], name: &str) -> Option<&'found str> {
    let same = found.iter().find(|model| model.id.eq_ignore_ascii_case(name));
    let ends = || {
        found
            .iter()
            .find(|model| model.id.rsplit_once('/').is_some_and(|(_, last)| last.eq_ignore_ascii_case(name)))
    };
    same.or_else(ends).map(|model| model.id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_is_the_same_name_or_else_the_most_downloaded_that_ends_in_it() {
        let models = |ids: &[&str]| -> Vec<FoundModel> {
            ids.iter().map(|id| FoundModel { id: (*id).to_owned(), downloads: 1 }).collect()
        };
        let found = models(&["big/xgpt2", "openai-community/gpt2", "other/gpt2"]);
        assert_eq!(choose(&found, "GPT2"), Some("openai-community/gpt2"));
        assert_eq!(choose(&found, "gpt"), None);
        assert_eq!(choose(&models(&["a/gpt2", "gpt2"]), "gpt2"), Some("gpt2"));
    }
}
