//! `aiperf mock-server`: its flags are the settings of the server.

use crate::typed::whole;
use aiperf_mock_server::{Settings, SettingsError, faults};
use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, ArgMatches, Command};

pub(crate) const HOST: &str = "host";
pub(crate) const PORT: &str = "port";

/// What a setting takes.
fn form(name: &str) -> &'static str {
    Settings::names().iter().find(|known| known.name == name).map_or("", |known| known.form)
}

pub(crate) fn command() -> Command {
    let settings = Settings::names().iter().map(|name| {
        let default = name.default.map(|default| format!(" [default: {default}]")).unwrap_or_default();
        Arg::new(name.name)
            .long(name.name)
            .value_name(name.value_name)
            .allow_negative_numbers(true)
            .help(format!("{}{default}", name.meaning))
    });
    let width = faults().map(|(name, _)| name.len()).max().unwrap_or(0);
    let known = faults().map(|(name, meaning)| format!("  {name:width$}  {meaning}\n"));
    Command::new("mock-server")
        .override_usage("aiperf mock-server [FLAGS]")
        .after_long_help(format!(
            "TIME is {}; for --stall and --idle-timeout a time alone\n\nCOUNT is {}\n\nFaults of --plan, of the header \
             X-Mock-Fault and of ?fault= in a URL:\n{}",
            form("ttft"),
            form("tokens"),
            known.collect::<String>()
        ))
        .about("Start a server whose timings are known")
        .long_about(
            "Start a server whose timings are known. It answers the OpenAI dialect and prints where it listens; the \
             same settings, except --log, --tls-cert and --tls-key, go into a mock:// URL: --url \
             'mock://?ttft=20ms&itl=5ms'",
        )
        .arg(
            Arg::new(HOST)
                .long(HOST)
                .value_name("HOST")
                .default_value("127.0.0.1")
                .value_parser(NonEmptyStringValueParser::new())
                .help("Address to listen on"),
        )
        .arg(
            Arg::new(PORT)
                .long(PORT)
                .value_name("PORT")
                .default_value("8000")
                .allow_negative_numbers(true)
                .value_parser(port)
                .help("Port to listen on; 0 finds a free one"),
        )
        .args(settings)
}

fn port(text: &str) -> Result<u16, String> {
    whole(text, 0, u16::MAX.into()).map(|port| port as u16).map_err(|rule| format!("expected {rule}"))
}

/// Whether a flag is one of a setting, whose value may begin with a dash and is refused with what there should be.
pub(crate) fn takes_times(flag: &str) -> bool {
    Settings::names().iter().any(|name| flag.strip_prefix("--") == Some(name.name))
}

/// What is wrong with a setting, under the name of its flag.
pub(crate) fn under_flag(error: &SettingsError) -> String {
    // The first of its name is the setting; a value that is quoted stands behind it.
    error
        .settings()
        .fold(error.to_string(), |text, name| text.replacen(&format!("`{name}`"), &format!("--{name}"), 1))
}

/// The settings that were given.
pub(crate) fn settings(matches: &ArgMatches) -> Result<Settings, SettingsError> {
    Settings::from_pairs(
        Settings::names()
            .iter()
            .filter_map(|name| matches.get_one::<String>(name.name).map(|value| (name.name, value))),
    )
}
