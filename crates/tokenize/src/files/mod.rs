//! Which file of a folder holds the tokenizer, and how it is read. A kind of file is one file here and one line of
//! [`KINDS`].

mod byte_bpe;
mod rank_file;
mod settings;
mod wordpiece;

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use settings::{Settings, special_text};

use crate::TokenizerError;
use crate::huggingface::HuggingFace;
use crate::sentencepiece::SentencePiece;
use crate::vocabulary::Vocabulary;

/// One kind of tokenizer file.
struct Kind {
    /// The file of this kind in a list of names.
    find: fn(&[String]) -> Option<&String>,
    open: fn(&Path, &Settings) -> Opened,
}

type Opened = Result<Box<dyn Vocabulary>, Fault>;

/// Why a file is no tokenizer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// This file cannot be read.
    Unreadable(PathBuf, std::io::Error),
    /// What is wrong with its content.
    Content(String),
}

impl From<String> for Fault {
    fn from(text: String) -> Fault {
        Fault::Content(text)
    }
}

/// The kinds, the one that is taken first, first.
const KINDS: [Kind; 5] = [
    Kind {
        find: |names| named(names, "tokenizer.json"),
        open: |path, _| Ok(Box::new(HuggingFace::parse(&read(path)?)?)),
    },
    Kind {
        find: |names| named(names, "tokenizer.model"),
        open: |path, settings| {
            let bytes = read(path)?;
            // Some models have ranks under this name.
            if rank_file::is_one(&bytes) {
                return Ok(Box::new(rank_file::parse(path, &bytes, settings)?));
            }
            Ok(Box::new(SentencePiece::parse(&bytes, settings)?))
        },
    },
    Kind {
        find: |names| named(names, "merges.txt").and_then(|_| named(names, "vocab.json")),
        open: |path, settings| {
            let merges = read(&path.with_file_name("merges.txt"))?;
            Ok(Box::new(byte_bpe::parse(&read(path)?, &merges, settings)?))
        },
    },
    Kind {
        find: |names| named(names, "vocab.txt"),
        open: |path, settings| Ok(Box::new(wordpiece::parse(&read(path)?, settings)?)),
    },
    Kind {
        find: |names| {
            named(names, "tiktoken.model").or_else(|| names.iter().find(|name| name.ends_with(".tiktoken")))
        },
        open: |path, settings| Ok(Box::new(rank_file::parse(path, &read(path)?, settings)?)),
    },
];

/// What is read, in words.
pub(crate) const READ: &str =
    "tokenizer.json, tokenizer.model, vocab.json with merges.txt, vocab.txt, tiktoken.model and *.tiktoken";

fn named<'names>(names: &'names [String], wanted: &str) -> Option<&'names String> {
    names.iter().find(|name| *name == wanted)
}

fn read(path: &Path) -> Result<Vec<u8>, Fault> {
    fs::read(path).map_err(|cause| Fault::Unreadable(path.to_owned(), cause))
}

/// The names in a folder, in order.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .map(|entries| {
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        })
        .unwrap_or_default();
    names.sort_unstable();
    names
}

/// The tokenizer file among `names`, by the order of kinds.
pub(crate) fn tokenizer_file(names: &[String]) -> Option<&String> {
    KINDS.iter().find_map(|kind| (kind.find)(names))
}

/// The files of a repository that its tokenizer is made of; `None` when there is no tokenizer among `names`.
pub fn tokenizer_files(names: &[String]) -> Option<Vec<&str>> {
    const BESIDE: [&str; 4] =
        ["tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja"];
    let file = tokenizer_file(names)?;
    let needed = |name: &&str| {
        *name == file || BESIDE.contains(name) || (file == "vocab.json" && *name == "merges.txt")
    };
    Some(names.iter().map(String::as_str).filter(needed).collect())
}

/// Reads the tokenizer file at `path`; `None` when it is of no kind that is read.
pub(crate) fn open(path: &Path, settings: &Settings) -> Option<Result<Box<dyn Vocabulary>, TokenizerError>> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let folder = path.parent().unwrap_or(Path::new("."));
    let own = [name.clone()];
    let (kind, path) = match KINDS.iter().find(|kind| (kind.find)(&own).is_some()) {
        Some(kind) => (kind, path.to_owned()),
        // Either of a pair stands for both.
        None if name == "vocab.json" || name == "merges.txt" => (&KINDS[2], folder.join("vocab.json")),
        None => match path.extension()?.to_str()? {
            "json" => (&KINDS[0], path.to_owned()),
            "model" => (&KINDS[1], path.to_owned()),
            _ => return None,
        },
    };
    let opened = (kind.open)(&path, settings).map_err(|fault| match fault {
        Fault::Unreadable(path, cause) => TokenizerError::Unreadable { path, cause },
        Fault::Content(cause) => TokenizerError::Invalid { path: path.clone(), cause },
    });
    Some(opened)
}
