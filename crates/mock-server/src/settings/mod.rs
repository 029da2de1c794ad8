//! What the server was asked to be: parsed from name and value pairs or from a `mock://` URL.

mod names;
mod url;
mod values;

use std::path::PathBuf;

use crate::draw::Distribution;
use crate::fault::Plan;

pub use names::{Name, NameSource};
pub(crate) use url::percent_decode;

/// How prompt tokens are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageMode {
    /// By the built-in tokenizer, off the network threads.
    Exact,
    /// A quarter of the bytes of the texts.
    Estimate,
    /// Answers carry no usage.
    Off,
}

/// Certificate and key of an https server, both PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain, leaf first.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Everything settled about a server except where it listens.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Nanoseconds from the end of the request body to the first token.
    pub ttft: Distribution,
    /// Nanoseconds between tokens.
    pub itl: Distribution,
    /// Tokens of an answer without a limit.
    pub tokens: Distribution,
    /// Percent of answers that begin with reasoning.
    pub reasoning: u8,
    /// Reported as cached prompt tokens.
    pub cached_tokens: Option<u64>,
    /// Whether the last chunk reports speculative decoding.
    pub spec_decode: bool,
    /// How prompt tokens are counted.
    pub usage: UsageMode,
    /// Length of embedding vectors.
    pub embedding_dim: usize,
    /// Models served; empty serves any.
    pub models: Vec<String>,
    /// Faults by request number.
    pub plan: Plan,
    /// Nanoseconds of the pauses of `stall` and `slow_headers`.
    pub stall_ns: u64,
    /// Nanoseconds after which an idle connection is closed.
    pub idle_timeout_ns: Option<u64>,
    /// Network threads.
    pub threads: usize,
    /// Seed of all draws.
    pub seed: u64,
    /// Where the timing log goes.
    pub log: Option<PathBuf>,
    /// Certificate and key, for https.
    pub tls: Option<TlsFiles>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            ttft: Distribution::Fixed(20e6),
            itl: Distribution::Fixed(5e6),
            tokens: Distribution::Fixed(64.0),
            reasoning: 0,
            cached_tokens: None,
            spec_decode: false,
            usage: UsageMode::Exact,
            embedding_dim: 1024,
            models: Vec::new(),
            plan: Plan::default(),
            stall_ns: 10_000_000_000,
            idle_timeout_ns: None,
            threads: 1,
            seed: 0,
            log: None,
            tls: None,
        }
    }
}

/// Why settings were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// No setting has this name.
    #[error("`{name}` is no setting of the mock server; the settings are {known}")]
    UnknownName {
        /// What was given.
        name: String,
        /// The names that exist, joined by commas.
        known: String,
    },
    /// A setting of `aiperf mock-server` that a `mock://` URL does not take.
    #[error("`{name}` is not allowed in a mock:// URL; it is a flag of `aiperf mock-server`")]
    CommandOnly {
        /// The setting.
        name: &'static str,
    },
    /// A setting was given twice.
    #[error("`{name}` is given more than once")]
    Repeated {
        /// The setting.
        name: &'static str,
    },
    /// A value that its setting does not take.
    #[error("`{name}` cannot be `{value}`: it takes {form}")]
    BadValue {
        /// The setting.
        name: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        form: &'static str,
    },
    /// A plan with an element that is no fault.
    #[error(
        "`plan` has the element `{element}`: it takes faults joined by `:`, each with `*COUNT` (1 to 1000000000) if wanted; the faults are {known}"
    )]
    BadPlan {
        /// The element.
        element: String,
        /// The faults that exist.
        known: String,
    },
    /// A part of the query that is not NAME=VALUE.
    #[error("`{part}` in a mock:// URL is not NAME=VALUE")]
    NotAPair {
        /// The part.
        part: String,
    },
    /// A value with a broken percent escape.
    #[error("`{name}` has the value `{value}`, whose percent escapes are not UTF-8 text")]
    BadEscape {
        /// The setting.
        name: String,
        /// What was given.
        value: String,
    },
    /// A URL that is not `mock://` with an optional query.
    #[error("`{found}` is not allowed after `mock:`: {part}; write mock:// or mock://?NAME=VALUE&NAME=VALUE")]
    UrlForm {
        /// What is wrong with it.
        part: &'static str,
        /// The text in question.
        found: String,
    },
    /// Only one of the two TLS files was given.
    #[error("`{given}` needs `{missing}` beside it")]
    HalfTls {
        /// The setting that was given.
        given: &'static str,
        /// The setting that is missing.
        missing: &'static str,
    },
}

impl SettingsError {
    /// The settings that are wrong, in the order in which the message names them between backticks; none where a name
    /// is unknown or a URL is not one.
    pub fn settings(&self) -> impl Iterator<Item = &'static str> {
        let (first, second) = match self {
            SettingsError::CommandOnly { name }
            | SettingsError::Repeated { name }
            | SettingsError::BadValue { name, .. } => (Some(*name), None),
            SettingsError::BadPlan { .. } => (Some("plan"), None),
            SettingsError::HalfTls { given, missing } => (Some(*given), Some(*missing)),
            SettingsError::UnknownName { .. }
            | SettingsError::NotAPair { .. }
            | SettingsError::BadEscape { .. }
            | SettingsError::UrlForm { .. } => (None, None),
        };
        first.into_iter().chain(second)
    }
}

impl Settings {
    /// Every setting with its value form, default and meaning, for flags and help.
    pub fn names() -> &'static [Name] {
        names::NAMES
    }

    /// Settings from name and value pairs, as `aiperf mock-server` has them after its flags are read.
    pub fn from_pairs<N: AsRef<str>, V: AsRef<str>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Settings, SettingsError> {
        Self::parse(pairs, NameSource::Command)
    }

    /// Settings from a `mock://[?NAME=VALUE[&NAME=VALUE]…]` URL.
    pub fn from_url(url: &str) -> Result<Settings, SettingsError> {
        Self::parse(url::pairs(url)?, NameSource::Url)
    }

    fn parse<N: AsRef<str>, V: AsRef<str>>(
        pairs: impl IntoIterator<Item = (N, V)>,
        source: NameSource,
    ) -> Result<Settings, SettingsError> {
        let mut settings = Settings::default();
        let mut seen = Vec::new();
        let (mut certificate, mut key) = (None, None);
        for (name, value) in pairs {
            let (name, value) = (name.as_ref(), value.as_ref());
            let known = names::find(name, source)?;
            if seen.contains(&known.name) {
                return Err(SettingsError::Repeated { name: known.name });
            }
            seen.push(known.name);
            match known.name {
                "tls-cert" => certificate = Some(values::path(known, value)?),
                "tls-key" => key = Some(values::path(known, value)?),
                _ => settings.set(known, value)?,
            }
        }
        settings.tls = match (certificate, key) {
            (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key }),
            (Some(_), None) => return Err(SettingsError::HalfTls { given: "tls-cert", missing: "tls-key" }),
            (None, Some(_)) => return Err(SettingsError::HalfTls { given: "tls-key", missing: "tls-cert" }),
            (None, None) => None,
        };
        Ok(settings)
    }

    fn set(&mut self, name: &'static Name, value: &str) -> Result<(), SettingsError> {
        match name.name {
            "ttft" => self.ttft = values::time(name, value)?,
            "itl" => self.itl = values::time(name, value)?,
            "tokens" => self.tokens = values::count(name, value)?,
            "reasoning" => self.reasoning = values::integer(name, value, 0, 100)? as u8,
            "cached-tokens" => self.cached_tokens = Some(values::integer(name, value, 0, values::MOST)?),
            "spec-decode" => self.spec_decode = values::boolean(name, value)?,
            "usage" => {
                self.usage = match value {
                    "exact" => UsageMode::Exact,
                    "estimate" => UsageMode::Estimate,
                    "off" => UsageMode::Off,
                    _ => return Err(values::refuse(name, value)),
                }
            }
            "embedding-dim" => self.embedding_dim = values::integer(name, value, 1, 1 << 20)? as usize,
            "models" => self.models = values::models(name, value)?,
            "plan" => {
                self.plan = Plan::parse(value)
                    .map_err(|element| SettingsError::BadPlan { element, known: names::faults() })?;
            }
            "stall" => self.stall_ns = values::fixed_time(name, value)?,
            "idle-timeout" => self.idle_timeout_ns = Some(values::fixed_time(name, value)?),
            "threads" => self.threads = values::integer(name, value, 1, 256)? as usize,
            "seed" => self.seed = values::integer(name, value, 0, u64::MAX)?,
            "log" => self.log = Some(values::path(name, value)?),
            _ => return Err(names::unknown(name.name, NameSource::Command)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
