//! What is wrong with a command line. Every one of these ends the program with exit code 2 before anything starts.

use aiperf_config::redact_keys;
use aiperf_source::SourceError;
use thiserror::Error;

use crate::flags::Later;

/// A mistake in what was typed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum UsageError {
    /// The flag is known, and not there yet.
    #[error("{flag} is not supported yet: it comes with {}", feature.phrase())]
    FlagNotYet {
        /// As typed.
        flag: String,
        /// What it comes with.
        feature: Later,
    },
    /// The value is known, and not there yet.
    #[error("{flag} {value} is not supported yet: it comes with {what}")]
    ValueNotYet {
        /// As typed.
        flag: String,
        /// As typed.
        value: String,
        /// What it comes with.
        what: String,
    },
    /// The flag has no meaning in this program.
    #[error("{flag} has no meaning here: {reason}")]
    NoMeaning {
        /// As typed.
        flag: String,
        /// Why.
        reason: &'static str,
    },
    /// A value that breaks the rule of its flag.
    #[error("{flag}: expected {rule}, got '{value}'")]
    Value {
        /// As typed.
        flag: String,
        /// As typed, secrets redacted.
        value: String,
        /// What it should have been.
        rule: String,
        /// A value that was perhaps meant.
        similar: Option<String>,
    },
    /// Flags that do not go together, or one that needs another.
    #[error("{what}")]
    Combination {
        /// What does not go together.
        what: String,
        /// What to do.
        fix: String,
    },
    /// The input cannot be used.
    #[error("{what}")]
    Input {
        /// What is wrong, with path and line.
        what: String,
        /// What to do, when there is something.
        fix: Option<String>,
    },
    /// An environment variable with a value that means nothing.
    #[error("{name}: expected {rule}, got '{value}'")]
    Variable {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
        /// What it should have been.
        rule: &'static str,
    },
    /// A reference that cannot be used; some of these are no mistake of the command line.
    #[error("{0}")]
    Source(SourceError),
    /// The arguments do not parse; the text is complete.
    #[error("{0}")]
    Arguments(String),
}

impl UsageError {
    /// Flags that do not go together.
    pub(crate) fn combination(what: impl Into<String>, fix: impl Into<String>) -> UsageError {
        UsageError::Combination { what: what.into(), fix: fix.into() }
    }

    /// The next step.
    pub fn tip(&self) -> Option<String> {
        match self {
            UsageError::FlagNotYet { .. } | UsageError::ValueNotYet { .. } | UsageError::NoMeaning { .. } => {
                Some("'aiperf profile --help' lists what is supported".into())
            }
            UsageError::Value { similar, .. } => {
                similar.as_ref().map(|similar| format!("did you mean '{similar}'?"))
            }
            UsageError::Combination { fix, .. } => Some(fix.clone()),
            UsageError::Input { fix, .. } => fix.clone(),
            UsageError::Variable { name, .. } => Some(format!("unset {name} for its default")),
            UsageError::Arguments(_) | UsageError::Source(_) => None,
        }
    }

    /// The whole message, as it is printed.
    pub fn report(&self) -> String {
        if let UsageError::Arguments(text) = self {
            return text.clone();
        }
        let what = redact_keys(&self.to_string());
        match self.tip() {
            Some(tip) => format!("error: {what}\n\n  tip: {}\n", redact_keys(&tip)),
            None => format!("error: {what}\n"),
        }
    }
}
