//! How the program ends.

use std::process::ExitCode;

use aiperf_config::{redact_keys, redact_text};
use aiperf_source::{Blame, SourceError};

use crate::print;

/// Exit codes. When several hold, the first in the order 130, 101, 2, 1, 3, 0 is the one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// At least one request succeeded and every result file was written; or another command did its work.
    Success,
    /// The run could not start for a reason outside command line and input, or it failed.
    Failure,
    /// The command line, the configuration or the input is wrong; nothing was sent.
    Usage,
    /// The client did not deliver the load as planned, and `--strict-load` was given.
    SuspectLoad,
    /// A fault of this program.
    Internal,
    /// A second Ctrl-C.
    Interrupted,
}

impl ExitStatus {
    /// Every status, the strongest first.
    pub const ALL: [ExitStatus; 6] = [
        ExitStatus::Interrupted,
        ExitStatus::Internal,
        ExitStatus::Usage,
        ExitStatus::Failure,
        ExitStatus::SuspectLoad,
        ExitStatus::Success,
    ];

    /// The code that the shell sees.
    pub const fn code(self) -> u8 {
        match self {
            ExitStatus::Success => 0,
            ExitStatus::Failure => 1,
            ExitStatus::Usage => 2,
            ExitStatus::SuspectLoad => 3,
            ExitStatus::Internal => 101,
            ExitStatus::Interrupted => 130,
        }
    }

    /// When it is used, in one line.
    pub const fn meaning(self) -> &'static str {
        match self {
            ExitStatus::Success => "At least one request succeeded and every file was written",
            ExitStatus::Failure => "The run could not start, or it failed",
            ExitStatus::Usage => "The command line or the input is wrong; nothing was sent",
            ExitStatus::SuspectLoad => "The load delivery is suspect, and --strict-load was given",
            ExitStatus::Internal => "A fault of this program",
            ExitStatus::Interrupted => "A second Ctrl-C",
        }
    }

    /// The one of two that decides.
    #[must_use]
    pub fn or(self, other: ExitStatus) -> ExitStatus {
        ExitStatus::ALL.into_iter().find(|status| *status == self || *status == other).unwrap_or(self)
    }
}

/// Why something cannot be had or done, and how the program ends.
#[derive(Debug)]
pub(crate) struct Failure {
    /// For the person; no full stop.
    pub(crate) text: String,
    pub(crate) status: ExitStatus,
}

impl Failure {
    pub(crate) fn new(text: impl Into<String>, status: ExitStatus) -> Failure {
        Failure { text: text.into(), status }
    }

    /// Says why, and how the program ends.
    pub(crate) fn tell(self) -> ExitStatus {
        print::err(&format!("error: {}\n", redact_keys(&redact_text(&self.text))));
        self.status
    }

    /// The command line or the input is wrong.
    pub(crate) fn usage(text: impl Into<String>) -> Failure {
        Failure::new(text, ExitStatus::Usage)
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Failure {
        Failure::new(error.to_string(), (&error).into())
    }
}

/// How the program ends when a source cannot be used.
impl From<&SourceError> for ExitStatus {
    fn from(error: &SourceError) -> ExitStatus {
        match error.problem.blame() {
            Blame::Input => ExitStatus::Usage,
            Blame::World => ExitStatus::Failure,
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> ExitCode {
        ExitCode::from(status.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stronger_status_decides() {
        assert_eq!(ExitStatus::Success.or(ExitStatus::SuspectLoad), ExitStatus::SuspectLoad);
        assert_eq!(ExitStatus::Failure.or(ExitStatus::SuspectLoad), ExitStatus::Failure);
        assert_eq!(ExitStatus::Failure.or(ExitStatus::Usage), ExitStatus::Usage);
        assert_eq!(ExitStatus::Usage.or(ExitStatus::Internal), ExitStatus::Internal);
        assert_eq!(ExitStatus::Internal.or(ExitStatus::Interrupted), ExitStatus::Interrupted);
        assert_eq!(ExitStatus::ALL.map(ExitStatus::code), [130, 101, 2, 1, 3, 0]);
    }
}
