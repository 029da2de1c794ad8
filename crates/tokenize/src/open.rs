//! From what was typed to a tokenizer.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::chat::TemplateSource;
use crate::files::{self, Settings};
use crate::tokenizer::Loaded;
use crate::{Tokenizer, TokenizerError, hub_cache, ranks};

/// How a tokenizer is looked up.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Branch, tag or commit on the hub; `main` when absent.
    pub revision: Option<String>,
    /// Folders that hold hub repositories, instead of the one that the environment names.
    pub hub_caches: Option<Vec<PathBuf>>,
}

impl Tokenizer {
    /// Opens `builtin`, a published encoding by name (`o200k_base`, `cl100k_base` …), a folder with a
    /// tokenizer in it, the file itself, or a hub repository that is in the local cache. Never touches the network
    /// and never runs code of a repository.
    pub fn open(source: &str, options: &OpenOptions) -> Result<Tokenizer, TokenizerError> {
        if source == "builtin" {
            return Ok(Tokenizer::builtin());
        }
        if let Some(encoding) = ranks::Encoding::named(source) {
            return Ok(Tokenizer::from_encoding(source, encoding));
        }
        let path = hub_cache::expand_home(Path::new(source));
        if path.is_dir() {
            return read_folder(source, &path, None);
        }
        if path.exists() {
            return read_file(source, &path, None);
        }
        if let Some(name) = name_in_address(source) {
            let (address, name) = (source.to_owned(), name.to_owned());
            return Err(TokenizerError::Address { address, name });
        }
        if is_path(source) {
            return Err(TokenizerError::PathNotFound(shown(&path.to_string_lossy()).into()));
        }
        open_cached(source, options)
    }
}

/// Where a tokenizer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On this machine, or nowhere: [`Tokenizer::open`] tells.
    Here,
    /// In a repository of the hub that is not in the cache, or without a tokenizer there.
    Repository,
    /// Unknown: a name without an owner.
    ShortName,
}

impl Place {
    /// Where `source` is, without reading it.
    pub fn of(source: &str, options: &OpenOptions) -> Place {
        if !may_be_repository(source) {
            return Place::Here;
        }
        let folders = options.hub_caches.clone().unwrap_or_else(hub_cache::folders);
        let revision = options.revision.as_deref().unwrap_or("main");
        match hub_cache::find(&folders, source, revision) {
            Ok(snapshot) if files::tokenizer_file(&files::names_in(&snapshot.folder)).is_some() => {
                Place::Here
            }
            _ if sign_of_no_repository(source).is_some() => Place::Here,
            _ if source.contains('/') => Place::Repository,
            _ => Place::ShortName,
        }
    }
}

/// Whether `source` is neither the name of an encoding nor a path.
fn may_be_repository(source: &str) -> bool {
    let is_encoding = source == "builtin" || ranks::Encoding::named(source).is_some();
    !is_encoding && !hub_cache::expand_home(Path::new(source)).exists() && !is_path(source)
}

/// The commit and the files of a tokenizer that [`Tokenizer::open`] would read from the cache of the hub; `None` where it
/// would read something else.
pub fn cached_files(source: &str, options: &OpenOptions) -> Option<(String, Vec<PathBuf>)> {
    if !may_be_repository(source) {
        return None;
    }
    let folders = options.hub_caches.clone().unwrap_or_else(hub_cache::folders);
    let revision = options.revision.as_deref().unwrap_or("main");
    let snapshot = hub_cache::find(&folders, source, revision).ok()?;
    let names = files::names_in(&snapshot.folder);
    let files = files::tokenizer_files(&names)?.into_iter().map(|name| snapshot.folder.join(name)).collect();
    Some((snapshot.commit, files))
}

/// Whether something that does not exist was meant as a path.
fn is_path(source: &str) -> bool {
    source.starts_with(['.', '~', '/'])
        || source.contains('\\')
        || source.matches('/').count() > 1
        || Path::new(source)
            .extension()
            .is_some_and(|extension| extension == "json" || extension == "model" || extension == "tiktoken")
}

/// The name of the repository that an address of the hub leads to: `hf://ORG/NAME`, `https://huggingface.co/ORG/NAME`.
fn name_in_address(source: &str) -> Option<&str> {
    let rest =
        ["hf://models/", "hf://", "https://huggingface.co/", "http://huggingface.co/", "huggingface.co/"]
            .iter()
            .find_map(|start| source.strip_prefix(start))?;
    let end = rest.match_indices('/').nth(1).map_or(rest.len(), |(at, _)| at);
    let name = &rest[..end];
    let is_name = name.split_once('/').is_some_and(|(org, repo)| !org.is_empty() && !repo.is_empty());
    // A set of data is no tokenizer.
    let is_model = !["datasets/", "spaces/"].iter().any(|kind| name.starts_with(kind));
    (is_name && is_model && sign_of_no_repository(name).is_none()).then_some(name)
}

/// The first character that no name of a repository has.
fn sign_of_no_repository(name: &str) -> Option<char> {
    name.chars().find(|c| !(c.is_ascii_alphanumeric() || "._-/".contains(*c)))
}

/// A name as messages show it: what may be a password before the `@` of a host, or a key in a query, is hidden.
fn shown(name: &str) -> String {
    if name.starts_with(['.', '~', '/']) {
        return name.to_owned();
    }
    let (address, query) = name.split_once('?').map_or((name, ""), |(address, _)| (address, "?<redacted>"));
    let user = address.rfind('@').filter(|at| {
        let before = &address[..*at];
        before.contains(':') || !before.contains('/')
    });
    match user {
        Some(at) => format!("<redacted>{}{query}", &address[at..]),
        None => address.to_owned() + query,
    }
}

fn open_cached(name: &str, options: &OpenOptions) -> Result<Tokenizer, TokenizerError> {
    let folders = options.hub_caches.clone().unwrap_or_else(hub_cache::folders);
    let revision = options.revision.as_deref().unwrap_or("main");
    match hub_cache::find(&folders, name, revision) {
        Ok(snapshot) => read_folder(name, &snapshot.folder, Some(snapshot.commit)),
        Err(searched) => {
            if let Some(sign) = sign_of_no_repository(name) {
                return Err(TokenizerError::NoRepository { name: shown(name), sign });
            }
            let searched = match searched.as_slice() {
                [] => "no cache folder is set, and there is no home folder".to_owned(),
                places => {
                    places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ")
                }
            };
            let name = name.to_owned();
            if name.contains('/') {
                return Err(TokenizerError::NotCached { name, revision: revision.to_owned(), searched });
            }
            let known = ranks::names().collect::<Vec<_>>().join(", ");
            Err(TokenizerError::UnknownName { name, known, searched })
        }
    }
}

fn read_folder(name: &str, folder: &Path, commit: Option<String>) -> Result<Tokenizer, TokenizerError> {
    let names = files::names_in(folder);
    match files::tokenizer_file(&names) {
        Some(file) => read_file(name, &folder.join(file), commit),
        None => Err(TokenizerError::no_tokenizer_in(folder.to_owned(), &names)),
    }
}

fn read_file(name: &str, file: &Path, commit: Option<String>) -> Result<Tokenizer, TokenizerError> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let settings = Settings::of_folder(folder)?;
    let tokenizer =
        files::open(file, &settings).ok_or_else(|| TokenizerError::UnsupportedFile(file.to_owned()))??;
    let number = |key: &str| settings.special(key).and_then(|text| tokenizer.token(&text));
    let separator = number("bos_token").or_else(|| number("eos_token"));
    let template_file = folder.join("chat_template.jinja");
    let template = match fs::read_to_string(&template_file) {
        Ok(text) => Some(TemplateSource::one(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            settings.config.get("chat_template").and_then(TemplateSource::of_config)
        }
        Err(cause) => return Err(TokenizerError::Unreadable { path: template_file, cause }),
    };
    let template = template.map(|template| template.with_tokens(&[&settings.specials, &settings.config]));
    Ok(Tokenizer::from_loaded(name, commit, Loaded { tokenizer, separator, template }))
}

impl TokenizerError {
    /// A folder or repository that holds `names` and no tokenizer.
    pub fn no_tokenizer_in(folder: PathBuf, names: &[String]) -> TokenizerError {
        TokenizerError::NoTokenizerFile { folder, found: what_lies_in(names) }
    }
}

fn what_lies_in(names: &[String]) -> String {
    let code =
        names.iter().any(|name| Path::new(name).extension().is_some_and(|extension| extension == "py"));
    let note = if code { "; tokenizers that are code of a repository are never run" } else { "" };
    match names.len() {
        0 => "it is empty".to_owned(),
        1..=12 => format!("it holds {}{note}", names.join(", ")),
        more => format!("it holds {} and {} more{note}", names[..12].join(", "), more - 12),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_repository_is_answered_with_its_name() {
        let options =
            OpenOptions { hub_caches: Some(vec![PathBuf::from("/none")]), ..OpenOptions::default() };
        for address in [
            "hf://me/tok",
            "hf://models/me/tok",
            "https://huggingface.co/me/tok",
            "https://huggingface.co/me/tok/tree/main",
            "huggingface.co/me/tok/",
        ] {
            assert_eq!(Place::of(address, &options), Place::Here, "{address}");
            let text = Tokenizer::open(address, &options).unwrap_err().to_string();
            assert!(text.contains(address) && text.ends_with("give --tokenizer me/tok"), "{text}");
        }
        for other in
            ["hf://me", "hf://datasets/me/x", "https://huggingface.co/u:p@me/tok", "https://h/me/tok"]
        {
            let text = Tokenizer::open(other, &options).unwrap_err().to_string();
            assert!(!text.contains("is an address"), "{text}");
        }
    }

    #[test]
    fn names_that_no_repository_has_are_refused_without_what_may_be_a_password() {
        let options =
            OpenOptions { hub_caches: Some(vec![PathBuf::from("/none")]), ..OpenOptions::default() };
        for (name, told) in [
            ("u:CANARY@me/tok", "`<redacted>@me/tok` names no tokenizer"),
            ("CANARY@me/tok", "`<redacted>@me/tok` names no tokenizer"),
            ("u:CANARY@tok", "`<redacted>@tok` names no tokenizer"),
            ("u:CAN/ARY@me/tok", "tokenizer path <redacted>@me/tok does not exist"),
            ("me/tok?token=CANARY", "`me/tok?<redacted>` names no tokenizer"),
            ("me/tok@main", "`me/tok@main` names no tokenizer"),
            ("me/tok@main", "(a revision goes into --tokenizer-revision)"),
            ("llama3:8b", "`llama3:8b` names no tokenizer"),
            ("~/me@home/tok", "me@home/tok does not exist"),
            ("https://h/me/tok", "tokenizer path https://h/me/tok does not exist"),
            ("https://h/tok?sig=CANARY", "tokenizer path https://h/tok?<redacted> does not exist"),
            ("https://me:CANARY@h/tok", "tokenizer path <redacted>@h/tok does not exist"),
        ] {
            assert_eq!(Place::of(name, &options), Place::Here, "{name}");
            let text = Tokenizer::open(name, &options).unwrap_err().to_string();
            assert!(text.contains(told) && !text.contains("CAN") && text.contains("`builtin`"), "{text}");
        }
        assert_eq!(Place::of("me/tok", &options), Place::Repository);
        assert_eq!(Place::of("tok_1.5-b", &options), Place::ShortName);
    }
}
