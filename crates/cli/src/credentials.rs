//! The credentials that a command line may hold: what must not be repeated in messages about it, or about a fault.

use std::collections::HashSet;

use aiperf_config::{is_known_key, is_random_word, is_secret_header};

use crate::quote::is_number;

/// What the next argument is the value of.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum After {
    Anything,
    Secret,
    Headers,
    Extras,
    Path,
    Reference,
}

impl After {
    /// What follows a flag of this name, without its dashes.
    pub(crate) fn flag(name: &str) -> After {
        match name {
            "api-key" => After::Secret,
            "header" => After::Headers,
            "extra-inputs" => After::Extras,
            "endpoint" | "custom-endpoint" => After::Path,
            "input-file" | "url" => After::Reference,
            _ => After::Anything,
        }
    }
}

/// Which header values are taken for credentials.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Headers {
    /// Those of headers that carry one by their name, and what looks like one under other names.
    ThatLookLikeOne,
    /// All of them: for text of which nobody knows what it quotes.
    All,
}

/// What may be a credential among `arguments`, each once: the values of flags that take one, whole and word by word, and
/// what looks like a key wherever it stands.
pub(crate) fn credentials(arguments: &[String], headers: Headers) -> Vec<&str> {
    let mut found = Vec::new();
    let mut after = After::Anything;
    let mut follows_flag = false;
    for argument in arguments {
        let (value, is_stray) = match argument.strip_prefix("--") {
            Some(rest) => {
                let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
                after = After::flag(name);
                follows_flag = true;
                (value, false)
            }
            None => match argument.strip_prefix("-H") {
                Some(value) => {
                    after = After::Headers;
                    follows_flag = true;
                    (value, false)
                }
                None if argument.starts_with('-') && !is_number(argument) => {
                    // A key may begin with a dash, and be no flag.
                    if after == After::Secret && argument.len() > 2 {
                        found.push(argument.as_str());
                    }
                    after = After::Anything;
                    follows_flag = true;
                    ("", false)
                }
                None => (argument.as_str(), !std::mem::take(&mut follows_flag)),
            },
        };
        match after {
            After::Secret => found.extend(words(value).chain([value])),
            After::Headers => of_headers(value, headers, &mut found),
            After::Anything | After::Extras | After::Path | After::Reference => {
                let is_key = |word: &&str| is_known_key(word) || (is_stray && is_random_word(word));
                found.extend(words(value).filter(is_key));
            }
        }
    }
    let mut seen = HashSet::new();
    found.retain(|secret| !secret.trim().is_empty() && seen.insert(*secret));
    found
}

/// Of the headers of one argument.
fn of_headers<'a>(argument: &'a str, headers: Headers, found: &mut Vec<&'a str>) {
    if headers == Headers::All
        && let Some((_, whole)) = argument.split_once(':')
    {
        found.push(whole.trim());
    }
    for part in argument.split(',') {
        match part.split_once(':') {
            Some((name, text)) if headers == Headers::ThatLookLikeOne && !is_secret_header(name) => {
                found.extend(words(text).filter(|word| is_known_key(word) || is_random_word(word)));
            }
            Some((_, text)) => found.extend(words(text).chain([text.trim()])),
            // Torn off its name.
            None => found.push(part),
        }
    }
}

/// The words of an argument, without the signs of JSON, pairs and lists around them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "'\"`,:=;(){}[]".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_whole_and_word_by_word_and_each_once() {
        let found = |line: &[&str], headers| {
            let arguments: Vec<String> = line.iter().map(|&argument| argument.to_owned()).collect();
            credentials(&arguments, headers).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let line = [
            "profile",
            "--api-key",
            "planted one",
            "-H",
            "X-Team: blue,Cookie: planted",
            "--api-key=planted",
        ];
        assert_eq!(
            found(&line, Headers::ThatLookLikeOne),
            ["planted", "one", "planted one"],
            "a team is no credential"
        );
        assert_eq!(found(&["--api-key", "-planted", "-v"], Headers::ThatLookLikeOne), ["-planted"]);
        let all = found(&line, Headers::All);
        assert!(
            all.contains(&"blue".to_owned()) && all.contains(&"blue,Cookie: planted".to_owned()),
            "{all:?}"
        );
    }
}
