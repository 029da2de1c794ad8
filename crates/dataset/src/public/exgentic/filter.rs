//! Which sessions are asked for: by harness, by the model that made the trace, and by workload.

use std::collections::BTreeSet;

use super::combinations::{BENCHMARKS, MODELS, Version};
use super::head::Head;

/// What providers put in front of the name of a model.
const PROVIDERS: [&str; 4] = ["openai/azure/", "azure/", "aws/", "gcp/"];

/// The sessions that are asked for; all of them when nothing is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    harness: Option<String>,
    source_model: Option<String>,
    benchmark: Option<String>,
    given: Vec<(String, String)>,
}

impl Filter {
    /// Checks `--dataset-filter` values, each a key that occurs once and its value, against what the data are known
    /// to hold. The error is a whole message.
    pub(crate) fn new(version: Version, given: &[(String, String)]) -> Result<Filter, String> {
        let mut filter = Filter { given: given.to_vec(), ..Filter::default() };
        for (key, value) in given {
            let unknown =
                |what: String| Err(format!("--dataset-filter {key}={value}: {what}; {}", available(version)));
            match key.as_str() {
                "harness" => match version.pairs().find(|(harness, _)| harness.eq_ignore_ascii_case(value)) {
                    Some((harness, _)) => filter.harness = Some(harness.to_owned()),
                    None => return unknown("no session has this harness".into()),
                },
                "source_model" => {
                    let wanted = without_provider(value);
                    match version.pairs().find(|(_, model)| model.eq_ignore_ascii_case(wanted)) {
                        Some((_, model)) => filter.source_model = Some(model.to_owned()),
                        None => return unknown("no session was made by this model".into()),
                    }
                }
                "benchmark" if version == Version::V1 => {
                    return Err(format!(
                        "--dataset-filter {key}={value}: exgentic cannot be filtered by benchmark, only exgentic_v2 \
                         can; {}",
                        available(version)
                    ));
                }
                "benchmark" => match BENCHMARKS.iter().find(|name| name.eq_ignore_ascii_case(value)) {
                    Some(benchmark) => filter.benchmark = Some((*benchmark).to_owned()),
                    None => return unknown("no session has this benchmark".into()),
                },
                _ => {
                    let known = match version {
                        Version::V1 => "harness and source_model",
                        Version::V2 => "harness, source_model and benchmark",
                    };
                    return unknown(format!("the key is not known, known are {known}"));
                }
            }
        }
        if let (Some(harness), Some(model)) = (&filter.harness, &filter.source_model)
            && !version.pairs().any(|pair| pair == (harness, model))
        {
            return Err(format!(
                "--dataset-filter: no session has harness={harness} with source_model={model}; {}",
                available(version)
            ));
        }
        Ok(filter)
    }

    /// Whether all sessions are asked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// Whether a session is asked for.
    pub(crate) fn matches(&self, head: &Head) -> bool {
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(found))
        };
        is(&self.harness, &head.harness)
            && is(&self.benchmark, &head.benchmark)
            && (self.source_model.is_none()
                || head.models.iter().any(|model| is(&self.source_model, without_provider(model))))
    }
}

/// `key=value` of each filter, as given.
impl std::fmt::Display for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (key, value)) in self.given.iter().enumerate() {
            let between = if index == 0 { "" } else { ", " };
            write!(f, "{between}{key}={value}")?;
        }
        Ok(())
    }
}

/// The name of a model without the prefix of its provider.
fn without_provider(model: &str) -> &str {
    PROVIDERS
        .iter()
        .find_map(|prefix| {
            let (start, rest) = model.split_at_checked(prefix.len())?;
            start.eq_ignore_ascii_case(prefix).then_some(rest)
        })
        .unwrap_or(model)
}

/// What can be asked for.
fn available(version: Version) -> String {
    let pairs: Vec<String> = version.pairs().map(|(harness, model)| format!("{harness}/{model}")).collect();
    let benchmarks = match version {
        Version::V1 => String::new(),
        Version::V2 => format!("; benchmarks: {}", BENCHMARKS.join(", ")),
    };
    format!("available harness/model pairs: {}{benchmarks}", pairs.join(", "))
}

/// Pairs of harness and model that were met.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(BTreeSet<String>);

impl Seen {
    /// Takes note of a session.
    pub(crate) fn take(&mut self, head: &Head) {
        for model in &head.models {
            let model = without_provider(model);
            let known = MODELS.iter().find(|name| name.eq_ignore_ascii_case(model));
            self.0.insert(format!("{}/{}", head.harness, known.copied().unwrap_or(model)));
        }
    }

    /// What to say when no session was what `filter` asks for.
    pub(crate) fn no_match(&self, filter: &Filter) -> String {
        let pairs: Vec<&str> = self.0.iter().map(String::as_str).collect();
        let pairs = if pairs.is_empty() { "none".to_owned() } else { pairs.join(", ") };
        format!("no session has {filter}; available combinations: {pairs}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(version: Version, given: &[(&str, &str)]) -> Result<Filter, String> {
        let given: Vec<_> =
            given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Filter::new(version, &given)
    }

    fn head(harness: &str, models: &[&str], benchmark: &str) -> Head {
        Head {
            session_id: "s".into(),
            harness: harness.into(),
            models: models.iter().map(|model| (*model).to_owned()).collect(),
            benchmark: benchmark.into(),
        }
    }

    #[test]
    fn values_match_in_any_case_and_models_without_the_prefix_of_a_provider() {
        let wanted =
            filter(Version::V2, &[("harness", "CLAUDE_CODE"), ("source_model", "Azure/deepseek-v3.2")])
                .unwrap();
        assert!(wanted.matches(&head("claude_code", &["x", "openai/azure/DeepSeek-V3.2"], "swebench")));
        assert!(!wanted.matches(&head("claude_code", &["x"], "swebench")));
        assert!(!wanted.matches(&head("tool_calling", &["DeepSeek-V3.2"], "swebench")));
        let wanted = filter(Version::V2, &[("benchmark", "TAU2_retail")]).unwrap();
        assert!(wanted.matches(&head("x", &[], "tau2_retail")));
        assert!(!wanted.matches(&head("x", &[], "tau2_airline")));
        // One prefix is lost, not two.
        assert_eq!(without_provider("aws/gcp/m"), "gcp/m");
        assert_eq!(without_provider("OpenAI/Azure/m"), "m");
        assert_eq!(without_provider("é/m"), "é/m");
    }

    #[test]
    fn a_bad_filter_lists_the_pairs_of_its_version_and_the_benchmarks_of_the_second() {
        for (given, says) in [
            (vec![("harness", "codex")], "no session has this harness"),
            (vec![("source_model", "gpt-9")], "no session was made by this model"),
            (vec![("model", "Kimi-K2.5")], "known are harness and source_model;"),
            (
                vec![("harness", "smolagents_code"), ("source_model", "claude-opus-4-5")],
                "no session has harness=smolagents_code with source_model=claude-opus-4-5",
            ),
        ] {
            let error = filter(Version::V1, &given).unwrap_err();
            assert!(error.contains(says), "{error}");
            assert_eq!(error.matches("claude_code/").count(), 6, "{error}");
            assert!(error.contains("openai_solo/gpt-4.1, smolagents_code/"), "{error}");
            assert!(!error.contains("benchmarks:"), "{error}");
        }
        for given in [("benchmark", "gsm8k"), ("source_model", "gpt-4.1")] {
            let error = filter(Version::V2, &[given]).unwrap_err();
            assert!(error.contains("; benchmarks: appworld, "), "{error}");
            assert!(!error.contains("/gpt-4.1"), "{error}");
        }
        let error = filter(Version::V1, &[("benchmark", "swebench")]).unwrap_err();
        assert!(error.contains("only exgentic_v2 can"), "{error}");
    }

    #[test]
    fn a_filter_that_matches_nothing_names_the_pairs_that_were_seen() {
        let wanted =
            filter(Version::V2, &[("harness", "tool_calling"), ("source_model", "Kimi-K2.5")]).unwrap();
        let mut seen = Seen::default();
        assert_eq!(
            seen.no_match(&wanted),
            "no session has harness=tool_calling, source_model=Kimi-K2.5; available combinations: none"
        );
        seen.take(&head("tool_calling", &["gcp/GEMINI-3-pro-preview", "own/model"], ""));
        seen.take(&head("claude_code", &["Kimi-K2.5"], ""));
        assert!(seen.no_match(&wanted).ends_with(
            "combinations: claude_code/Kimi-K2.5, tool_calling/gemini-3-pro-preview, tool_calling/own/model"
        ));
    }
}
