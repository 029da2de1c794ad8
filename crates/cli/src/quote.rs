//! The command line as results record it, quoted for a POSIX shell, and messages about it: secrets redacted.

use std::borrow::Cow;

use aiperf_config::{
    REDACTED, begins_like_reference, redact_known, redact_path, redact_reference, redact_text,
};

use crate::credentials::{After, Headers, credentials};
use crate::settle::pairs;

/// `aiperf` and its arguments. Values stand in single quotes, `profile` and numbers do not.
pub(crate) fn command_line(arguments: &[String]) -> String {
    let mut line = String::from("aiperf");
    let mut after = After::Anything;
    for argument in arguments {
        line.push(' ');
        if let Some(rest) = argument.strip_prefix("--") {
            let (name, value) =
                rest.split_once('=').map_or((rest, None), |(name, value)| (name, Some(value)));
            after = After::flag(name);
            line.push_str("--");
            line.push_str(&plain_or_quoted(name));
            if let Some(value) = value {
                line.push('=');
                line.push_str(&plain_or_quoted(&redact(value, after)));
                after = After::Anything;
            }
        } else if let Some(value) = argument.strip_prefix("-H") {
            after = After::Headers;
            line.push_str("-H");
            if !value.is_empty() {
                line.push_str(&plain_or_quoted(&redact(value, after)));
            }
        } else if argument.starts_with('-') && !is_number(argument) {
            after = After::Anything;
            line.push_str(&plain_or_quoted(&redact_text(argument)));
        } else {
            let value = redact(argument, after);
            let bare = value == "profile" || is_number(&value);
            line.push_str(&if bare { value } else { Cow::Owned(quoted(&value)) });
        }
    }
    line
}

/// A message about a command line, without the credentials that it may quote: what follows a flag that takes them, even
/// where a blank has torn it off, and what looks like a key wherever it stands.
pub(crate) fn hidden(message: &str, arguments: &[String]) -> String {
    let found = credentials(arguments, Headers::ThatLookLikeOne);
    let (long, short): (Vec<&str>, Vec<&str>) =
        found.into_iter().partition(|secret| secret.len() >= SHORTEST);
    let message = references_hidden(message, arguments);
    let long: Vec<String> = long.into_iter().map(str::to_owned).collect();
    // A short one may be a part of any word: only where it is quoted is it itself.
    short.into_iter().fold(redact_known(&message, &long), |message, secret| {
        message
            .replace(&format!("'{secret}'"), &format!("'{REDACTED}'"))
            .replace(&format!("'-- {secret}'"), &format!("'-- {REDACTED}'"))
    })
}

/// A message with each argument that may be a reference hidden as a whole: where one ends, the text around it does not
/// tell.
fn references_hidden(message: &str, arguments: &[String]) -> String {
    let values = arguments.iter().flat_map(|argument| {
        let value = argument.split_once('=').filter(|_| argument.starts_with("--")).map(|(_, value)| value);
        value.into_iter().chain([argument.as_str()])
    });
    values.fold(message.to_owned(), |message, value| {
        let shown = redact_reference(value);
        if shown == value { message } else { message.replace(value, &shown) }
    })
}

/// Shorter secrets are not searched for within words.
const SHORTEST: usize = 5;

/// A command for a shell, quoted only where it must be.
pub(crate) fn joined(words: &[String]) -> String {
    words.iter().map(|word| plain_or_quoted(word)).collect::<Vec<_>>().join(" ")
}

fn redact(value: &str, after: After) -> Cow<'_, str> {
    match after {
        // A text may begin with a URL, a word is one.
        After::Anything if begins_like_reference(value) && !value.contains(char::is_whitespace) => {
            Cow::Owned(redact_known(&redact_reference(value), &[]))
        }
        After::Anything => Cow::Owned(redact_known(value, &[])),
        After::Reference => Cow::Owned(redact_known(&redact_reference(value), &[])),
        After::Secret => Cow::Borrowed(REDACTED),
        After::Headers => Cow::Owned(pairs::redact_headers(value)),
        After::Extras => Cow::Owned(pairs::redact_extras(value)),
        After::Path => Cow::Owned(redact_path(value)),
    }
}

pub(crate) fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite) && text.contains(|letter: char| letter.is_ascii_digit())
}

fn quoted(text: &str) -> String {
    let is_unseen = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_unseen) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let escape = |c: char| match c {
        '\'' | '\\' => format!("\\{c}"),
        c if is_unseen(c) && c.is_ascii() => format!("\\x{:02x}", u32::from(c)),
        c if is_unseen(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    format!("$'{}'", text.chars().map(escape).collect::<String>())
}

fn plain_or_quoted(text: &str) -> Cow<'_, str> {
    let plain = |letter: char| {
        letter.is_ascii_alphanumeric()
            || "-_./:=,@%+".contains(letter)
            || (!letter.is_ascii() && !letter.is_control())
    };
    if !text.is_empty() && text.chars().all(plain) { Cow::Borrowed(text) } else { Cow::Owned(quoted(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(arguments: &[&str]) -> String {
        command_line(&arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn values_are_quoted_and_numbers_are_not() {
        assert_eq!(
            line(&[
                "profile",
                "--ui",
                "none",
                "--isl",
                "64",
                "--request-cancellation-delay",
                "0.02",
                "--osl=12"
            ]),
            "aiperf profile --ui 'none' --isl 64 --request-cancellation-delay 0.02 --osl=12"
        );
        assert_eq!(line(&["profile", "--grace", "inf", "-5"]), "aiperf profile --grace 'inf' -5");
    }

    #[test]
    fn a_posix_shell_reads_the_line_back() {
        for text in ["it's", "a b", "$HOME `x` \"y\" \\", "*", "#", "", "é\n", "~", "--a='b'"] {
            let written = line(&[text, "--name", text]);
            let output = std::process::Command::new("sh")
                .arg("-c")
                .arg(format!("aiperf() {{ printf '%s\\0' \"$@\"; }}; {written}"))
                .output()
                .unwrap();
            let read: Vec<String> =
                String::from_utf8(output.stdout).unwrap().split_terminator('\0').map(str::to_owned).collect();
            assert_eq!(read, [text, "--name", text], "{written}");
        }
    }

    #[test]
    fn what_would_act_on_a_terminal_is_escaped_as_a_shell_reads_it() {
        assert_eq!(
            joined(&["--input-file".into(), "\u{9b}31m.jsonl".into()]),
            r"--input-file $'\u009b31m.jsonl'"
        );
        assert_eq!(line(&["--model", "it's\\\u{1b}[31m\u{9b}"]), r"aiperf --model $'it\'s\\\x1b[31m\u009b'");
    }

    #[test]
    fn secrets_do_not_appear() {
        let line = line(&[
            "profile",
            "--api-key",
            "sk-planted1",
            "--api-key=sk-planted2",
            "-H",
            "X-A:1,Authorization: planted3",
            "--header=Cookie:planted4",
            "-HX-Api-Key:planted5",
            "--header",
            "{\"authorization\":\"planted6\"}",
            "X-Auth-Token: planted7",
            "--url",
            "http://me:planted8@host/?sig=planted9",
            "--system-prompt",
            "use sk-planted10-0123",
        ]);
        assert!(!line.contains("planted"), "{line}");
        assert!(line.contains("-H 'X-A: 1,Authorization: <redacted>'"), "{line}");
        assert!(line.contains("'http://<redacted>@host/?sig=<redacted>'"), "{line}");
    }

    #[test]
    fn messages_do_not_repeat_what_may_be_a_credential() {
        for (arguments, quoted) in [
            // A blank after the equals sign has torn the key off, short as it may be.
            (&["--api-key=", "planted"][..], "planted"),
            (&["--api-key=", "pw"], "pw"),
            (&["--api-key", "Bearer", "planted"], "planted"),
            (&["-H", "Authorization:", "planted"], "planted"),
            (&["-HX-Api-Key: planted"], "planted"),
            (&["--header", "X-Team: blue", "planted"], "planted"),
            (&["--header", "X-Team: blue,Cookie: planted"], "planted"),
            (&["--header", "{\"cookie\": \"planted\"}"], "planted"),
            // What looks like a key.
            (&["sk-planted-0123456789"], "sk-planted-0123456789"),
            (&["--streaming", "a", "planted0123456789abcd"], "planted0123456789abcd"),
            (&["--url=hf_planted0123456789"], "hf_planted0123456789"),
            (&["--extra-inputs", "{\"key\": \"sk-planted-0123456789\""], "sk-planted-0123456789"),
        ] {
            let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
            let message = format!("unexpected argument '{quoted}' found; use '-- {quoted}'");
            let told = hidden(&message, &arguments);
            assert_eq!(told, "unexpected argument '<redacted>' found; use '-- <redacted>'", "{arguments:?}");
        }
        let harmless = ["profile", "-m", "deepseek70bdistillllama3instruct", "--tokenizer", "a/b-8B", "odd"];
        let arguments: Vec<String> = harmless.iter().map(|&argument| argument.to_owned()).collect();
        let message = harmless.join(" ");
        assert_eq!(hidden(&message, &arguments), message);
    }
}
