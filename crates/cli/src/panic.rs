//! A fault of this program: the terminal is put in order, and the exit code says so.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::ffi::OsString;
use std::io::Write;

use aiperf_config::{is_secret_header, redact_known};
use aiperf_report::is_capable_terminal;

use crate::credentials::{Headers, credentials};
use crate::exit::ExitStatus;

/// Installs the hook. A panic on any thread ends the process: a run that lost a thread measures nothing that can be
/// trusted, and must not hang.
pub fn install() {
    std::panic::set_hook(Box::new(|info| {
        // A decoder gave up on a damaged file, which is told as an error.
        if aiperf_dataset::panic_is_caught() {
            return;
        }
        let mut stderr = std::io::stderr();
        if is_capable_terminal(&stderr) {
            // Attributes off, cursor shown, a line of its own.
            _ = stderr.write_all(b"\x1b[0m\x1b[?25h\r\n");
        }
        let thread = std::thread::current();
        let place = info.location().map(ToString::to_string);
        // What a value looked like when it was not as expected may hold a key.
        let message =
            redact_known(info.payload_as_str().unwrap_or("no message"), &secrets(variables(), &arguments()));
        let backtrace = Backtrace::capture();
        let backtrace = match backtrace.status() {
            BacktraceStatus::Captured => backtrace.to_string(),
            _ => "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n".to_owned(),
        };
        _ = stderr.write_all(
            format!(
                "\nthread '{}' panicked at {}:\n{message}\n{backtrace}internal error: this is a fault of aiperf, not of \
                 the server; please report it with the lines above\n",
                thread.name().unwrap_or("<unnamed>"),
                place.as_deref().unwrap_or("an unknown place"),
            )
            .as_bytes(),
        );
        std::process::exit(i32::from(ExitStatus::Internal.code()));
    }));
}

fn variables() -> impl Iterator<Item = (String, String)> {
    let text = |text: OsString| text.to_string_lossy().into_owned();
    std::env::vars_os().map(move |(name, value)| (text(name), text(value)))
}

fn arguments() -> Vec<String> {
    std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// The keys that this process was given: by variables whose names say so, and by its command line.
fn secrets(variables: impl Iterator<Item = (String, String)>, arguments: &[String]) -> Vec<String> {
    // Shorter ones occur in ordinary words.
    const SHORTEST: usize = 6;
    let by_name = |(name, value): (String, String)| {
        let name = name.to_ascii_lowercase().replace('_', "-");
        (is_secret_header(&name) || name.ends_with("-key-id")).then_some(value)
    };
    let mut found: Vec<String> = variables.filter_map(by_name).collect();
    found.extend(credentials(arguments, Headers::All).into_iter().map(str::to_owned));
    found.retain(|secret| secret.trim().len() >= SHORTEST);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_that_a_process_was_given_are_known() {
        let variables = [
            ("HF_TOKEN", "hf_canary"),
            ("AWS_ACCESS_KEY_ID", "AKIACANARY"),
            ("AWS_SECRET_ACCESS_KEY", "canary-secret"),
            ("AWS_SESSION_TOKEN", "canary-session"),
            ("OPENAI_API_KEY", "canary-key"),
            ("XDG_SESSION_ID", "1"),
            ("HOME", "/home/me"),
        ];
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let line = "profile --api-key canary-one --header X-Team:canary-two -H A:canary-three \
                    --api-key=canary-four --model canary-model";
        let line: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let found = secrets(variables, &line);
        assert_eq!(
            found,
            [
                "hf_canary",
                "AKIACANARY",
                "canary-secret",
                "canary-session",
                "canary-key",
                "canary-one",
                "canary-two",
                "canary-three",
                "canary-four"
            ]
        );
    }
}
