//! What the surroundings say: environment variables, terminal, working directory.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use aiperf_config::{IpVersion, SessionColumn, Tuning};
use aiperf_report::{is_capable_terminal, is_dumb};

use crate::similar;
use crate::usage::UsageError;

/// The variable that names a mirror of GitHub's files.
pub(crate) const GITHUB_VARIABLE: &str = "AIPERF_DATASET_GITHUB_ENDPOINT";

/// The variable that says how long a transfer of a public data set may be silent.
pub(crate) const TIMEOUT_VARIABLE: &str = "AIPERF_DATASET_PUBLIC_DATASET_TIMEOUT";

/// One environment variable.
#[derive(Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its default, for people.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
    set: Setter,
}

/// How a value is read into the settings.
#[derive(Debug)]
enum Setter {
    Switch(fn(&mut Tuning, bool)),
    Seconds(fn(&mut Tuning, Duration)),
    Percent(fn(&mut Tuning, f64)),
    Count(fn(&mut Tuning, u32)),
    IpVersion,
    SessionColumn,
    /// Read by [`Environment`] itself, or by the room that needs it.
    Elsewhere,
}

/// Every variable that is read.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "AIPERF_TIMING_CANCEL_DRAIN_TIMEOUT",
        default: "10",
        help: "Seconds that cancelled requests may take to come back before their slots are reclaimed",
        set: Setter::Seconds(|tuning, time| tuning.cancel_drain = time),
    },
    Variable {
        name: "AIPERF_TIMING_MAX_CATCHUP_SECONDS",
        default: "no bound",
        help: "Give up arrivals that are overdue by more than this; the report counts the time given up",
        set: Setter::Seconds(|tuning, time| tuning.max_catch_up = Some(time)),
    },
    Variable {
        name: "AIPERF_TIMING_RATE_RAMP_UPDATE_INTERVAL",
        default: "0.1",
        help: "A rate ramp starts at what it reaches after this many seconds",
        set: Setter::Seconds(|tuning, time| tuning.rate_ramp_interval = time),
    },
    Variable {
        name: "AIPERF_TIMING_HIGH_RES_TIMER",
        default: "1",
        help: "0 keeps the pacer from spinning for the last microseconds before a send",
        set: Setter::Switch(|tuning, on| tuning.high_resolution_timer = on),
    },
    Variable {
        name: "AIPERF_TIMING_PACER_THREAD",
        default: "0",
        help: "1 paces from a thread of its own even with one network worker",
        set: Setter::Switch(|tuning, on| tuning.pacer_thread = on),
    },
    Variable {
        name: "AIPERF_DATASET_BASETEN_SESSION_COLUMN",
        default: "the column whose values repeat more",
        help: "The column that names the sessions of a baseten_trace: provided_session_id or poor_man_session_id",
        set: Setter::SessionColumn,
    },
    Variable {
        name: "AIPERF_DATASET_WEKA_SPLIT_FLATTENED_AGENTS",
        default: "1",
        help: "0 replays the list of a weka_trace as one conversation, even where its prompts show several agents",
        set: Setter::Switch(|tuning, on| tuning.agents.split_flattened = on),
    },
    Variable {
        name: "AIPERF_DATASET_TRACELAB_SUBAGENT_JOIN",
        default: "1",
        help: "0 replays tracelab sessions that ran inside an Agent or Task call of another one by themselves",
        set: Setter::Switch(|tuning, on| tuning.agents.join_sessions = on),
    },
    Variable {
        name: "AIPERF_DATASET_TRACELAB_CODEX_SUBAGENT_JOIN",
        default: "1",
        help: "The same for sessions that ran between spawn_agent and wait_agent of a codex session",
        set: Setter::Switch(|tuning, on| tuning.agents.join_codex_sessions = on),
    },
    Variable {
        name: "AIPERF_DATASET_TRACELAB_MIN_SPAWN_MS",
        default: "10000",
        help: "Milliseconds below which an Agent or Task call of a tracelab session is taken to start no session",
        set: Setter::Count(|tuning, ms| tuning.agents.min_spawn = Duration::from_millis(u64::from(ms))),
    },
    Variable {
        name: "AIPERF_HTTP_KEEPALIVE_TIMEOUT",
        default: "300",
        help: "Seconds an idle connection is kept",
        set: Setter::Seconds(|tuning, time| tuning.keep_alive = time),
    },
    Variable {
        name: "AIPERF_HTTP_CONNECTION_LIMIT",
        default: "no limit",
        help: "Connections at once in the whole process, idle ones included; waiting for a place shows as blocked",
        set: Setter::Count(|tuning, count| tuning.connection_limit = Some(count)),
    },
    Variable {
        name: "AIPERF_HTTP_IP_VERSION",
        default: "4",
        help: "Addresses a name may resolve to: 4, 6 or auto",
        set: Setter::IpVersion,
    },
    Variable {
        name: "AIPERF_HTTP_SSL_VERIFY",
        default: "1",
        help: "0 accepts any certificate of the server under test",
        set: Setter::Switch(|tuning, on| tuning.verify_tls = on),
    },
    Variable {
        name: "SSL_CERT_FILE",
        default: "those of the system",
        help: "PEM file of the certificates that servers are trusted by, in place of the system's; SSL_CERT_DIR is a folder of them",
        set: Setter::Elsewhere,
    },
    Variable {
        name: "AIPERF_HTTP_TRUST_ENV",
        default: "0",
        help: "1 uses the proxies of HTTP_PROXY and HTTPS_PROXY, except for the hosts of NO_PROXY",
        set: Setter::Switch(|tuning, on| tuning.trust_environment_proxies = on),
    },
    Variable {
        name: "AIPERF_HTTP_SO_RCVBUF",
        default: "no fixed size",
        help: "Receive buffer of each socket, bytes",
        set: Setter::Count(|tuning, bytes| tuning.receive_buffer = Some(bytes)),
    },
    Variable {
        name: "AIPERF_HTTP_SO_SNDBUF",
        default: "no fixed size",
        help: "Send buffer of each socket, bytes",
        set: Setter::Count(|tuning, bytes| tuning.send_buffer = Some(bytes)),
    },
    Variable {
        name: "AIPERF_HTTP_X_SESSION_AFFINITY_FROM_CORRELATION_ID",
        default: "1",
        help: "Send the correlation id as X-Session-Affinity",
        set: Setter::Switch(|tuning, on| affinity(tuning, "X-Session-Affinity", on)),
    },
    Variable {
        name: "AIPERF_HTTP_X_SESSION_ID_FROM_CORRELATION_ID",
        default: "0",
        help: "Send the correlation id as X-Session-ID",
        set: Setter::Switch(|tuning, on| affinity(tuning, "X-Session-ID", on)),
    },
    Variable {
        name: "AIPERF_HTTP_X_SMG_ROUTING_KEY_FROM_CORRELATION_ID",
        default: "0",
        help: "Send the correlation id as X-SMG-Routing-Key",
        set: Setter::Switch(|tuning, on| affinity(tuning, "X-SMG-Routing-Key", on)),
    },
    Variable {
        name: "AIPERF_HTTP_X_DYNAMO_SESSION_ID_FROM_CORRELATION_ID",
        default: "0",
        help: "Send the correlation id as X-Dynamo-Session-ID",
        set: Setter::Switch(|tuning, on| affinity(tuning, "X-Dynamo-Session-ID", on)),
    },
    Variable {
        name: "AIPERF_ENDPOINT_FORCE_CONTENT_PARTS",
        default: "0",
        help: "1 sends message content as a list of parts even for one text",
        set: Setter::Switch(|tuning, on| tuning.force_content_parts = on),
    },
    Variable {
        name: "AIPERF_METRICS_OSL_MISMATCH_PCT_THRESHOLD",
        default: "5",
        help: "Output lengths further than this percentage from the requested one are counted",
        set: Setter::Percent(|tuning, number| tuning.osl_mismatch_pct = number),
    },
    Variable {
        name: "AIPERF_METRICS_OSL_MISMATCH_MAX_TOKEN_THRESHOLD",
        default: "50",
        help: "The same in tokens; the smaller of the two counts",
        set: Setter::Percent(|tuning, number| tuning.osl_mismatch_max_tokens = number),
    },
    Variable {
        name: "AIPERF_METRICS_USAGE_PCT_DIFF_THRESHOLD",
        default: "10",
        help: "Requests whose usage differs from the own count by more than this percentage are counted",
        set: Setter::Percent(|tuning, number| tuning.usage_diff_pct = number),
    },
    Variable {
        name: "AIPERF_DEV_MODE",
        default: "0",
        help: "1 lets the two switches below act on the per-request export",
        set: Setter::Elsewhere,
    },
    Variable {
        name: "AIPERF_DEV_SHOW_INTERNAL_METRICS",
        default: "0",
        help: "1 shows internal metrics",
        set: Setter::Elsewhere,
    },
    Variable {
        name: "AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS",
        default: "0",
        help: "1 shows experimental metrics",
        set: Setter::Elsewhere,
    },
    Variable {
        name: "AIPERF_UI_CONSOLE_EXPORT_WIDTH",
        default: "140",
        help: "Columns of profile_export_console.txt",
        set: Setter::Count(|tuning, count| tuning.console_width = count.clamp(40, 1000) as u16),
    },
    Variable {
        name: "AIPERF_UI_MIN_UPDATE_PERCENT",
        default: "1",
        help: "Smallest step of a progress bar",
        set: Setter::Percent(|tuning, number| tuning.min_update_pct = number),
    },
    Variable {
        name: "NO_COLOR",
        default: "unset",
        help: "Any value turns colour off",
        set: Setter::Elsewhere,
    },
    Variable {
        name: "TERM",
        default: "unset",
        help: "dumb turns colour and bars off",
        set: Setter::Elsewhere,
    },
    Variable {
        name: GITHUB_VARIABLE,
        default: "https://raw.githubusercontent.com",
        help: "Where files of GitHub repositories are read from, as those of --public-dataset spec_bench",
        set: Setter::Elsewhere,
    },
    Variable {
        name: TIMEOUT_VARIABLE,
        default: "60",
        help: "Seconds without a byte after which the transfer of a public data set is given up and tried again",
        set: Setter::Elsewhere,
    },
    Variable {
        name: "AIPERF_DATASET_REMOTE_CACHE_DIR",
        default: "~/.cache/aiperf/remote",
        help: "Where data sets from S3 and HTTPS are kept",
        set: Setter::Elsewhere,
    },
    Variable {
        name: "AIPERF_DATASET_REMOTE_OFFLINE",
        default: "0",
        help: "1 reads data sets from what was downloaded before, and asks no server",
        set: Setter::Elsewhere,
    },
    Variable {
        name: aiperf_source::LOCK_VARIABLE,
        default: "3600",
        help: "Seconds to wait for another process that downloads the same data",
        set: Setter::Elsewhere,
    },
    Variable {
        name: "HF_ENDPOINT",
        default: "https://huggingface.co",
        help: "The Hugging Face Hub that data sets come from",
        set: Setter::Elsewhere,
    },
    Variable {
        name: "HF_TOKEN",
        default: "unset",
        help: "Its token; then HUGGING_FACE_HUB_TOKEN, then the file HF_TOKEN_PATH ($HF_HOME/token). None of these with HF_HUB_DISABLE_IMPLICIT_TOKEN=1",
        set: Setter::Elsewhere,
    },
    Variable {
        name: "HF_HUB_ETAG_TIMEOUT",
        default: "30",
        help: "Seconds to wait for its answers",
        set: Setter::Elsewhere,
    },
    Variable {
        name: "HF_HUB_DOWNLOAD_TIMEOUT",
        default: "60",
        help: "Seconds that a download from it may pause",
        set: Setter::Elsewhere,
    },
    Variable {
        name: "HF_HUB_DISABLE_SYMLINKS",
        default: "0",
        help: "1 copies files in the hub cache instead of linking them",
        set: Setter::Elsewhere,
    },
    Variable {
        name: "HF_HOME",
        default: "~/.cache/huggingface",
        help: "The hub cache: data sets are kept there, and tokenizers looked for",
        set: Setter::Elsewhere,
    },
    Variable {
        name: "HF_HUB_CACHE",
        default: "$HF_HOME/hub",
        help: "The same, more exactly",
        set: Setter::Elsewhere,
    },
    Variable {
        name: "HF_HUB_OFFLINE",
        default: "0",
        help: "1 uses nothing but that folder; so does TRANSFORMERS_OFFLINE",
        set: Setter::Elsewhere,
    },
];

fn affinity(tuning: &mut Tuning, header: &'static str, on: bool) {
    tuning.affinity_headers.retain(|name| *name != header);
    if on {
        tuning.affinity_headers.push(header);
    }
}

/// What the surroundings say. `Debug` shows no variable: any may be a key.
#[derive(Clone, Default)]
pub struct Environment {
    /// Environment variables.
    pub variables: BTreeMap<String, String>,
    /// Whether progress would be seen on a terminal.
    pub terminal: bool,
    /// The working directory.
    pub directory: PathBuf,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("terminal", &self.terminal)
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl Environment {
    /// That of this process.
    pub fn of_process() -> Environment {
        Environment {
            variables: std::env::vars_os()
                .map(|(name, value)| (name.to_string_lossy().into(), value.to_string_lossy().into()))
                .collect(),
            terminal: is_capable_terminal(&std::io::stderr()),
            directory: std::env::current_dir().unwrap_or_default(),
        }
    }

    /// Whether a switch is on.
    pub fn is_on(&self, name: &'static str) -> Result<bool, UsageError> {
        self.variables.get(name).map_or(Ok(false), |text| switch(name, text))
    }

    /// The settings that variables make; an empty variable is an unset one.
    pub fn tuning(&self) -> Result<Tuning, UsageError> {
        let mut tuning = Tuning::default();
        for variable in VARIABLES {
            let Some(text) = self.variables.get(variable.name).filter(|text| !text.is_empty()) else {
                continue;
            };
            let name = variable.name;
            match variable.set {
                Setter::Switch(set) => set(&mut tuning, switch(name, text)?),
                Setter::Seconds(set) => match text.parse::<f64>().ok().map(Duration::try_from_secs_f64) {
                    Some(Ok(time)) => set(&mut tuning, time),
                    _ => {
                        return Err(refuse(
                            name,
                            text,
                            "seconds, 0 or more, and no more than fit in the clock (1.8e19)",
                        ));
                    }
                },
                Setter::Percent(set) => match text.parse::<f64>() {
                    Ok(number) if number.is_finite() && number >= 0.0 => set(&mut tuning, number),
                    _ => return Err(refuse(name, text, "a finite number, 0 or more")),
                },
                Setter::Count(set) => match text.parse::<u32>() {
                    Ok(count) if count > 0 => set(&mut tuning, count),
                    _ => return Err(refuse(name, text, "a whole number from 1 to 4294967295")),
                },
                Setter::IpVersion => {
                    tuning.ip_version = match text.to_ascii_lowercase().as_str() {
                        "4" => IpVersion::V4,
                        "6" => IpVersion::V6,
                        "auto" => IpVersion::Auto,
                        _ => return Err(refuse(name, text, "4, 6 or auto")),
                    }
                }
                Setter::SessionColumn => {
                    let column = SessionColumn::ALL.into_iter().find(|column| column.name() == text);
                    let rule = "provided_session_id or poor_man_session_id";
                    tuning.session_column = Some(column.ok_or_else(|| refuse(name, text, rule))?);
                }
                Setter::Elsewhere => {}
            }
        }
        let is_dumb = self.variables.get("TERM").is_some_and(is_dumb);
        tuning.color = !is_dumb && self.variables.get("NO_COLOR").is_none_or(String::is_empty);
        Ok(tuning)
    }

    /// Variables of our prefix that nobody reads, each with one that was perhaps meant.
    pub fn unknown(&self) -> impl Iterator<Item = (&str, Option<&'static str>)> {
        self.variables.keys().filter(|name| name.starts_with("AIPERF_")).filter_map(|name| {
            let known = || VARIABLES.iter().map(|variable| variable.name);
            (!known().any(|other| other == name))
                .then(|| (name.as_str(), similar::closest(name, known().map(|name| (name, name.to_owned())))))
        })
    }
}

fn switch(name: &'static str, text: &str) -> Result<bool, UsageError> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "" | "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(refuse(name, text, "1 or 0")),
    }
}

fn refuse(name: &str, value: &str, rule: &'static str) -> UsageError {
    UsageError::Variable { name: name.into(), value: value.into(), rule }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Environment {
        Environment {
            variables: variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            ..Environment::default()
        }
    }

    #[test]
    fn nothing_set_is_the_default() {
        assert_eq!(with(&[]).tuning().unwrap(), Tuning::default());
    }

    #[test]
    fn each_variable_that_tunes_changes_the_settings() {
        for variable in VARIABLES {
            let value = match variable.set {
                Setter::Switch(_) if variable.default == "1" => "0",
                Setter::Switch(_) => "1",
                Setter::Seconds(_) | Setter::Percent(_) => "7.5",
                Setter::Count(_) => "99",
                Setter::IpVersion => "auto",
                Setter::SessionColumn => "poor_man_session_id",
                Setter::Elsewhere => continue,
            };
            assert_ne!(
                with(&[(variable.name, value)]).tuning().unwrap(),
                Tuning::default(),
                "{}",
                variable.name
            );
            let error = with(&[(variable.name, "nonsense")]).tuning().unwrap_err().to_string();
            assert!(error.starts_with(variable.name), "{error}");
        }
        assert!(!with(&[("NO_COLOR", "1")]).tuning().unwrap().color);
        assert!(!with(&[("TERM", "dumb")]).tuning().unwrap().color);
        assert!(with(&[("TERM", "xterm")]).tuning().unwrap().color);
    }

    #[test]
    fn a_limit_that_a_value_is_beyond_is_named() {
        for (name, value, limit) in [
            ("AIPERF_UI_CONSOLE_EXPORT_WIDTH", "9999999999999", "1 to 4294967295"),
            ("AIPERF_HTTP_SO_RCVBUF", "0", "1 to 4294967295"),
            ("AIPERF_HTTP_KEEPALIVE_TIMEOUT", "1e308", "1.8e19"),
        ] {
            let error = with(&[(name, value)]).tuning().unwrap_err().to_string();
            assert!(error.contains(limit), "{error}");
        }
    }

    #[test]
    fn the_documented_defaults_are_the_defaults() {
        for variable in VARIABLES {
            let numeric = matches!(variable.set, Setter::Elsewhere | Setter::SessionColumn)
                || variable.default.starts_with("no ");
            if !numeric {
                let tuning = with(&[(variable.name, variable.default)]).tuning().unwrap();
                assert_eq!(tuning, Tuning::default(), "{}", variable.name);
            }
        }
    }

    #[test]
    fn unknown_variables_of_ours_are_told() {
        let environment = with(&[("AIPERF_HTTP_SSL_VERIFI", "0"), ("HOME", "/"), ("AIPERF_ZZZ", "1")]);
        let unknown: Vec<_> = environment.unknown().collect();
        assert_eq!(
            unknown,
            [("AIPERF_HTTP_SSL_VERIFI", Some("AIPERF_HTTP_SSL_VERIFY")), ("AIPERF_ZZZ", None)]
        );
    }
}
