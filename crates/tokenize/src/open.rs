//! From what was typed to a tokenizer.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::chat::TemplateSource;
use crate::huggingface::HuggingFace;
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
    /// `tokenizer.json`, such a file, or a hub repository that is in the local cache. Never touches the network
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
            let is_json = path.extension().is_some_and(|extension| extension == "json");
            return if is_json {
                read_file(source, &path, None)
            } else {
                Err(TokenizerError::UnsupportedFile(path))
            };
        }
        if is_path(source) {
            return Err(TokenizerError::PathNotFound(path));
        }
        open_cached(source, options)
    }
}

/// Whether something that does not exist was meant as a path.
fn is_path(source: &str) -> bool {
    source.starts_with(['.', '~', '/'])
        || source.contains('\\')
        || source.matches('/').count() > 1
        || Path::new(source).extension().is_some_and(|extension| extension == "json")
}

fn open_cached(name: &str, options: &OpenOptions) -> Result<Tokenizer, TokenizerError> {
    let folders = options.hub_caches.clone().unwrap_or_else(hub_cache::folders);
    let revision = options.revision.as_deref().unwrap_or("main");
    match hub_cache::find(&folders, name, revision) {
        Ok(snapshot) => read_folder(name, &snapshot.folder, Some(snapshot.commit)),
        Err(searched) => {
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
    let file = folder.join("tokenizer.json");
    if !file.exists() {
        return Err(TokenizerError::NoTokenizerFile {
            folder: folder.to_owned(),
            found: what_lies_in(folder),
        });
    }
    read_file(name, &file, commit)
}

fn read_file(name: &str, file: &Path, commit: Option<String>) -> Result<Tokenizer, TokenizerError> {
    let json = fs::read(file).map_err(|cause| TokenizerError::Unreadable { path: file.to_owned(), cause })?;
    let tokenizer = HuggingFace::parse(&json)
        .map_err(|cause| TokenizerError::Invalid { path: file.to_owned(), cause })?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let config = optional_json(&folder.join("tokenizer_config.json"))?;
    let specials = optional_json(&folder.join("special_tokens_map.json"))?;
    let special = |key: &str| special_text(&config, key).or_else(|| special_text(&specials, key));
    let separator = special("bos_token")
        .and_then(|text| tokenizer.token(&text))
        .or_else(|| special("eos_token").and_then(|text| tokenizer.token(&text)));
    let template_file = folder.join("chat_template.jinja");
    let template = match fs::read_to_string(&template_file) {
        Ok(text) => Some(TemplateSource::one(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            config.get("chat_template").and_then(TemplateSource::of_config)
        }
        Err(cause) => return Err(TokenizerError::Unreadable { path: template_file, cause }),
    };
    let template = template.map(|template| template.with_tokens(&[&specials, &config]));
    Ok(Tokenizer::from_loaded(name, commit, Loaded { tokenizer, separator, template }))
}

/// A JSON file that need not be there; `null` when it is not.
fn optional_json(path: &Path) -> Result<Value, TokenizerError> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|cause| TokenizerError::Invalid { path: path.to_owned(), cause: cause.to_string() }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Value::Null),
        Err(cause) => Err(TokenizerError::Unreadable { path: path.to_owned(), cause }),
    }
}

/// The text of a special token: a plain string, or an object with `content`.
pub(crate) fn special_text(object: &Value, key: &str) -> Option<String> {
    let value = object.get(key)?;
    value.as_str().or_else(|| value.get("content")?.as_str()).map(str::to_owned)
}

fn what_lies_in(folder: &Path) -> String {
    let mut names: Vec<String> = fs::read_dir(folder)
        .map(|entries| {
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        })
        .unwrap_or_default();
    names.sort_unstable();
    let code =
        names.iter().any(|name| Path::new(name).extension().is_some_and(|extension| extension == "py"));
    let note = if code { "; tokenizers that are code of a repository are never run" } else { "" };
    match names.len() {
        0 => "it is empty".to_owned(),
        1..=12 => format!("it holds {}{note}", names.join(", ")),
        more => format!("it holds {} and {} more{note}", names[..12].join(", "), more - 12),
    }
}
