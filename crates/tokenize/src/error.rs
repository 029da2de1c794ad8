//! Why a tokenizer cannot be had.

use std::path::PathBuf;

use crate::files::READ;

fn at(sign: char) -> &'static str {
    if sign == '@' { " (a revision goes into --tokenizer-revision)" } else { "" }
}

/// Why a tokenizer cannot be had. Each text names the tokenizer and the next step.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// A path that leads nowhere.
    #[error(
        "tokenizer path {0} does not exist; give --tokenizer a folder with a tokenizer, its file, or `builtin`"
    )]
    PathNotFound(PathBuf),
    /// A hub repository that is not in the local cache.
    #[error(
        "tokenizer `{name}` (revision {revision}) is not in the local Hugging Face cache; searched: {searched}. \
         It is downloaded unless HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE or \
         AIPERF_DATASET_REMOTE_OFFLINE is set: unset these, run `hf download {name} tokenizer.json`, or give \
         --tokenizer a PATH or `builtin`"
    )]
    NotCached {
        /// The repository.
        name: String,
        /// Branch, tag or commit.
        revision: String,
        /// Every place looked at.
        searched: String,
    },
    /// An address of a repository of the hub in the place of its name.
    #[error(
        "`{address}` is an address, and a tokenizer is given by the name of its repository; give --tokenizer {name}"
    )]
    Address {
        /// As given.
        address: String,
        /// The repository.
        name: String,
    },
    /// A name that no repository has, of nothing that is here.
    #[error(
        "`{name}` names no tokenizer: it is no path, and no repository of the Hub has {sign:?} in its name{}. Give \
         --tokenizer a repository such as ORG/NAME, a path, or `builtin`",
        at(*.sign)
    )]
    NoRepository {
        /// The name, what may be a credential hidden.
        name: String,
        /// The first character that no name has.
        sign: char,
    },
    /// A name without an organisation that is no encoding, no path and not in the cache.
    #[error(
        "`{name}` names no tokenizer: it is no path, no built-in encoding ({known}) and no cached repository \
         (searched: {searched}). Give --tokenizer a repository such as ORG/{name}, a path, or `builtin`"
    )]
    UnknownName {
        /// The name.
        name: String,
        /// Names that work anywhere.
        known: String,
        /// Every place looked at.
        searched: String,
    },
    /// A folder without a tokenizer.
    #[error(
        "{folder} has no tokenizer file ({READ}); {found}. Give --tokenizer a compatible \
         repository or `builtin`"
    )]
    NoTokenizerFile {
        /// The folder.
        folder: PathBuf,
        /// What lies in it.
        found: String,
    },
    /// A file of a kind that is not read.
    #[error(
        "{0} is no tokenizer file ({READ}); give --tokenizer such a file or its folder, a cached repository, or `builtin`"
    )]
    UnsupportedFile(PathBuf),
    /// A file that cannot be read.
    #[error("cannot read {path}: {cause}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// A file that is no tokenizer.
    #[error("{path} is not a usable tokenizer: {cause}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
}
