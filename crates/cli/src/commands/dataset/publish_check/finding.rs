//! One thing worth saying about a folder.

use aiperf_source::printable;
use serde_json::{Value, json};

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// It would not run.
    Error,
    /// It would, and not as one would wish.
    Warning,
    /// A fact.
    Note,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        }
    }
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) level: Level,
    /// Relative to the folder.
    pub(super) file: String,
    pub(super) line: Option<u64>,
    /// The key of a manifest, or the field of a record.
    pub(super) key: Option<String>,
    pub(super) message: String,
    pub(super) fix: String,
}

impl Finding {
    pub(super) fn new(
        level: Level,
        file: &str,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Finding {
        let message = message.into();
        Finding {
            level,
            file: file.to_owned(),
            line: between(&message, "(line ", ")").and_then(|line| line.parse().ok()),
            key: between(&message, " key \"", "\"").or_else(|| between(&message, "the value of \"", "\"")),
            message,
            fix: fix.into(),
        }
    }

    pub(super) fn error(file: &str, message: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding::new(Level::Error, file, message, fix)
    }

    /// For people.
    pub(super) fn line(&self) -> String {
        let place = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        printable(&format!("{} {}{place}: {}. {}.", self.level.name(), self.file, self.message, self.fix))
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        json!({
            "level": self.level.name(), "file": self.file, "line": self.line, "key": self.key,
            "message": self.message, "fix": self.fix,
        })
    }
}

fn between(text: &str, start: &str, end: &str) -> Option<String> {
    let (_, rest) = text.split_once(start)?;
    rest.split_once(end).map(|(found, _)| found.to_owned())
}
