//! From JSON to a configuration. Keys that are left out have the built-in value; keys that nobody knows are reported.

use serde_json::{Map, Value};

use super::{Config, Reset, Turns};
use crate::LogNormal;
use crate::draw::fifteen_digits;

/// Why a configuration cannot be used: one line, the key first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It is no JSON.
    #[error("is not JSON: {0}")]
    Json(String),
    /// It is something else.
    #[error("{0}")]
    Kind(&'static str),
    /// A value breaks a rule.
    #[error("key `{key}`: {rule}")]
    Key {
        /// The key, with those around it.
        key: String,
        /// What it must be, and what it is.
        rule: String,
    },
    /// Values that do not go together.
    #[error("{0}")]
    Contradiction(String),
}

/// A configuration, and what was found beside it.
#[derive(Clone, Debug)]
pub struct ReadConfig {
    /// The configuration.
    pub config: Config,
    /// Keys without meaning, with those around them.
    pub unknown: Vec<String>,
}

/// Reads a configuration, or the manifest of an earlier run (its `generation_params`). Its values are checked one by
/// one; [`super::Synthesis::new`] checks how they go together.
pub fn read(json: &str) -> Result<ReadConfig, ConfigError> {
    let value: Value = serde_json::from_str(json).map_err(|error| ConfigError::Json(error.to_string()))?;
    let Value::Object(mut map) = value else {
        return Err(ConfigError::Kind("must be a JSON object: a configuration or the manifest of a run"));
    };
    if map.get("properties").is_some_and(Value::is_object) {
        return Err(ConfigError::Kind(
            "is the schema of configurations and no configuration; give one that follows it",
        ));
    }
    map.remove("$schema");
    if let Some(parameters) = map.remove("generation_params") {
        let Value::Object(parameters) = parameters else {
            return Err(fault("generation_params", "must be an object"));
        };
        map = parameters;
    }
    let mut reader = Reader { prefix: String::new(), map, unknown: Vec::new() };
    let config = reader.config()?;
    reader.finish();
    Ok(ReadConfig { config, unknown: reader.unknown })
}

fn fault(key: &str, rule: impl Into<String>) -> ConfigError {
    ConfigError::Key { key: key.to_owned(), rule: rule.into() }
}

/// One object of the configuration; keys are taken out as they are read.
struct Reader {
    /// The keys around it, each with a dot behind.
    prefix: String,
    map: Map<String, Value>,
    unknown: Vec<String>,
}

impl Reader {
    fn path(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    fn fault(&self, key: &str, rule: &str, found: &Value) -> ConfigError {
        let mut found = found.to_string();
        if found.len() > 60 {
            found = found.chars().take(57).chain("...".chars()).collect();
        }
        fault(&self.path(key), format!("must be {rule}, is {found}"))
    }

    /// What is left has no meaning.
    fn finish(&mut self) {
        let prefix = &self.prefix;
        self.unknown.extend(self.map.keys().map(|key| format!("{prefix}{key}")));
    }

    fn number(
        &mut self,
        key: &str,
        rule: &str,
        fits: impl Fn(f64) -> bool,
    ) -> Result<Option<f64>, ConfigError> {
        match self.map.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_f64().map(fifteen_digits).filter(|number| fits(*number)) {
                Some(number) => Ok(Some(number)),
                None => Err(self.fault(key, rule, &value)),
            },
        }
    }

    fn whole(&mut self, key: &str, least: u64, most: u64) -> Result<Option<u64>, ConfigError> {
        let number = self.number(key, &format!("a whole number from {least} to {most}"), |number| {
            number.fract() == 0.0 && number >= least as f64 && number <= most as f64
        })?;
        Ok(number.map(|number| number as u64))
    }

    fn probability(&mut self, key: &str) -> Result<Option<f64>, ConfigError> {
        self.number(key, "a number from 0 to 1", |number| (0.0..=1.0).contains(&number))
    }

    fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// Reads the object under `key`, when there is one; `null` is none.
    fn object<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut Reader) -> Result<T, ConfigError>,
    ) -> Result<Option<T>, ConfigError> {
        match self.map.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(map)) => {
                let mut inner = Reader { prefix: format!("{}{key}.", self.prefix), map, unknown: Vec::new() };
                let value = read(&mut inner)?;
                inner.finish();
                self.unknown.append(&mut inner.unknown);
                Ok(Some(value))
            }
            Some(value) => Err(self.fault(key, "an object", &value)),
        }
    }

    fn lognormal(&mut self, key: &str) -> Result<Option<LogNormal>, ConfigError> {
        self.object(key, Reader::lognormal_keys)
    }

    fn lognormal_keys(&mut self) -> Result<LogNormal, ConfigError> {
        let above = |number: f64| number > 0.0 && number.is_finite();
        let whole = self.prefix.trim_end_matches('.').to_owned();
        let mut positive = |key: &str| self.number(key, "a number above 0", above);
        let (mean, median) = (positive("mean")?, positive("median")?);
        let (min, max) = (positive("min")?, positive("max")?);
        let (Some(mean), Some(median)) = (mean, median) else {
            return Err(fault(&whole, "needs both `mean` and `median`"));
        };
        if mean < median {
            return Err(fault(
                &whole,
                format!("mean must not be below median, and {mean} is below {median}"),
            ));
        }
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            return Err(fault(&whole, format!("min must not be above max, and {min} is above {max}")));
        }
        let mu = self.number("mu", "a number", f64::is_finite)?;
        let sigma =
            self.number("sigma", "a number of 0 or more", |number| number >= 0.0 && number.is_finite())?;
        let derived = LogNormal { min, max, ..LogNormal::new(mean, median) };
        match (mu, sigma) {
            (None, None) => Ok(derived),
            (Some(mu), Some(sigma)) => Ok(LogNormal { mu, sigma, ..derived }),
            _ => Err(fault(&whole, "give `mu` and `sigma` together, or neither")),
        }
    }

    fn config(&mut self) -> Result<Config, ConfigError> {
        const MOST: u64 = 1 << 40;
        let mut config = Config::default();
        let above = |number: f64| number > 0.0 && number.is_finite();
        // Older files say what the system prompt has; layer 1 holds it.
        self.map.remove("system_prompt_tokens");
        let new_tokens = self.object("new_tokens_per_turn", |inner| {
            let bias = inner.number("bias", "a number above 0", above)?;
            Ok((inner.lognormal_keys()?, bias.unwrap_or(1.0)))
        })?;
        if let Some((new_tokens, bias)) = new_tokens {
            (config.new_tokens, config.new_tokens_bias) = (new_tokens, bias);
        }
        set(&mut config.generation, self.lognormal("generation_length")?);
        let delays = &mut config.delays;
        self.object("inter_turn_delay", |inner| {
            set(&mut delays.agentic_fraction, inner.probability("agentic_fraction")?);
            set(&mut delays.agentic, inner.lognormal("agentic_delay")?);
            set(&mut delays.human, inner.lognormal("human_delay")?);
            delays.max = inner.number("max", "a number above 0", above)?;
            Ok(())
        })?;
        config.turns = self.object("turns", Reader::turns)?;
        // Left out, it is the built-in one, or none beside a number of turns; `null` is none.
        let reset_given = self.has("reset");
        let reset = self.object("reset", |inner| {
            let base = inner.probability("base_probability")?;
            let scaling = inner.number("context_scaling", "a number of 0 or more", |number| {
                number >= 0.0 && number.is_finite()
            })?;
            let builtin = Reset { base_probability: 0.02, context_scaling: 2.0 };
            Ok(Reset {
                base_probability: base.unwrap_or(builtin.base_probability),
                context_scaling: scaling.unwrap_or(builtin.context_scaling),
            })
        })?;
        if reset_given || config.turns.is_some() {
            config.reset = reset;
        }
        set(&mut config.max_prompt_tokens, self.whole("max_prompt_tokens", 2, MOST)?);
        if let Some(size) = self.whole("block_size", 1, u64::from(u32::MAX))? {
            config.block_size = size as u32;
        }
        let cache = &mut config.cache;
        self.object("cache", |inner| {
            set(&mut cache.layer1_tokens, inner.whole("layer1_tokens", 0, MOST)?);
            set(&mut cache.layer1_5_tokens, inner.whole("layer1_5_tokens", 0, MOST)?);
            set(&mut cache.layer2, inner.lognormal("layer2")?);
            inner.object("layer1_5_groups", |groups| {
                if let Some(number) = groups.whole("num_groups", 1, 10_000_000)? {
                    cache.groups = number as u32;
                }
                let alpha = groups.number("zipf_alpha", "a number of 0 or more", |number| {
                    number >= 0.0 && number.is_finite()
                })?;
                set(&mut cache.zipf_alpha, alpha);
                Ok(())
            })?;
            Ok(())
        })?;
        let older = self.probability("restart_fraction")?;
        let probability = self.probability("restart_initial_probability")?;
        set(&mut config.restart_initial_probability, probability.or(older));
        match self.map.remove("restart_turn_range") {
            None | Some(Value::Null) => {}
            Some(value) => {
                let ends: Option<Vec<u64>> =
                    value.as_array().and_then(|ends| ends.iter().map(Value::as_u64).collect());
                match ends.as_deref() {
                    Some(&[from, to]) if (1..to).contains(&from) => config.restart_turns = (from, to),
                    _ => {
                        let rule = "two whole numbers, [first, past the last], the first at least 1";
                        return Err(self.fault("restart_turn_range", rule, &value));
                    }
                }
            }
        }
        Ok(config)
    }

    fn turns(&mut self) -> Result<Turns, ConfigError> {
        let whole = self.prefix.trim_end_matches('.').to_owned();
        let at_least_one = |number: f64| number >= 1.0 && number.is_finite();
        let mean = self.number("mean", "a number of 1 or more", at_least_one)?;
        let median = self.number("median", "a number of 1 or more", at_least_one)?;
        let (min, max) = (self.whole("min", 1, 1 << 32)?, self.whole("max", 1, 1 << 32)?);
        let (Some(mean), Some(median), Some(min), Some(max)) = (mean, median, min, max) else {
            return Err(fault(&whole, "needs `mean`, `median`, `min` and `max`"));
        };
        let attempts = self.whole("max_session_attempts", 1, u64::from(u32::MAX))?;
        let allow_truncation = match self.map.remove("allow_truncation") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(allow)) => allow,
            Some(value) => return Err(self.fault("allow_truncation", "true or false", &value)),
        };
        // The complete form that a manifest records has both; only another number than the default contradicts.
        if allow_truncation && attempts.is_some_and(|attempts| attempts != 100) {
            return Err(fault(
                &whole,
                "`allow_truncation` and `max_session_attempts` exclude each other; leave one of them out",
            ));
        }
        let max_session_attempts = attempts.unwrap_or(100) as u32;
        Ok(Turns { mean, median, min, max, allow_truncation, max_session_attempts })
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::{BUNDLED, bundled};
    use super::*;

    fn refused(json: &Value) -> String {
        match read(&json.to_string()) {
            Err(error) => error.to_string(),
            Ok(read) => read.config.contradiction().expect("must be refused"),
        }
    }

    #[test]
    fn an_empty_object_is_the_built_in_configuration() {
        let read = read("{}").unwrap();
        assert_eq!(read.config, Config::default());
        assert!(read.unknown.is_empty());
    }

    #[test]
    fn what_a_manifest_records_is_read_back() {
        let turns = json!({"turns": {"mean": 10, "median": 8, "min": 3, "max": 40}});
        let mut configs = vec![Config::default(), read(&turns.to_string()).unwrap().config];
        configs.extend(BUNDLED.iter().map(|(name, ..)| bundled(name).unwrap()));
        for config in configs {
            assert_eq!(config.contradiction(), None);
            let manifest = json!({"seed": 1, "num_sessions": 5, "generation_params": config.to_json()});
            let read = read(&manifest.to_string()).unwrap();
            assert_eq!(read.config, config);
            assert!(read.unknown.is_empty(), "{:?}", read.unknown);
        }
    }

    #[test]
    fn unknown_keys_are_named_with_their_path() {
        let text = json!({"foo": 1, "$schema": "x", "system_prompt_tokens": 5,
            "cache": {"layer2": {"mean": 2, "median": 1, "typo": 1}, "layer3": {}},
            "generation_length": {"mean": 2, "median": 1, "maximum": 3}});
        let mut unknown = read(&text.to_string()).unwrap().unknown;
        unknown.sort();
        assert_eq!(unknown, ["cache.layer2.typo", "cache.layer3", "foo", "generation_length.maximum"]);
    }

    #[test]
    fn the_older_name_of_the_restart_probability_is_read() {
        assert!(
            (read(r#"{"restart_fraction":0.25}"#).unwrap().config.restart_initial_probability - 0.25).abs()
                < 1e-9
        );
    }

    #[test]
    fn what_breaks_a_rule_is_refused_in_one_line_that_names_the_key() {
        let lognormal = |value: Value| json!({"generation_length": value});
        let turns = |value: Value| json!({"turns": value});
        for (json, part) in [
            (json!([1]), "must be a JSON object"),
            (json!({"$schema": "x", "properties": {}}), "is the schema"),
            (lognormal(json!({"mean": 1})), "generation_length"),
            (lognormal(json!({"mean": 1, "median": 2})), "below median"),
            (lognormal(json!({"mean": 0, "median": 0})), "above 0"),
            (lognormal(json!({"mean": 2, "median": 1, "mu": 1})), "together"),
            (lognormal(json!({"mean": 2, "median": 1, "min": 3, "max": 2})), "min"),
            (lognormal(json!(5)), "an object"),
            (json!({"block_size": 0}), "block_size"),
            (json!({"block_size": 1.5}), "block_size"),
            (json!({"max_prompt_tokens": "x"}), "max_prompt_tokens"),
            (json!({"max_prompt_tokens": 52_737}), "shared layers"),
            (json!({"restart_turn_range": [5, 5]}), "restart_turn_range"),
            (json!({"restart_initial_probability": 1.5}), "restart_initial_probability"),
            (turns(json!({"mean": 10})), "turns"),
            (turns(json!({"mean": 2, "median": 3, "min": 1, "max": 4})), "min ≤ median"),
            (json!({"turns": {"mean": 10, "median": 8, "min": 3, "max": 40}, "reset": {}}), "exclude"),
            (
                json!({"turns": {"mean": 10, "median": 8, "min": 3, "max": 40}, "restart_fraction": 0.1}),
                "restarts",
            ),
            (
                turns(
                    json!({"mean": 10, "median": 8, "min": 3, "max": 40, "allow_truncation": true, "max_session_attempts": 5}),
                ),
                "max_session_attempts",
            ),
            (turns(json!({"mean": 9000, "median": 8000, "min": 7000, "max": 9999})), "do not fit"),
            (
                json!({"cache": {"layer2": {"mean": 200_000, "median": 190_000, "min": 150_000}}}),
                "smallest initial context",
            ),
        ] {
            let text = refused(&json);
            assert!(text.contains(part) && !text.contains('\n'), "{json}: {text}");
        }
        assert!(read("{").unwrap_err().to_string().contains("JSON"));
    }

    proptest! {
        /// Whatever is in the file: an answer, never a panic.
        #[test]
        fn any_values_are_read_or_refused(mean in -10.0..1e7f64, median in -10.0..1e7f64, size in 0u64..5000, limit in 0u64..500_000, layer in 0u64..400_000) {
            let text = json!({"new_tokens_per_turn": {"mean": mean, "median": median}, "block_size": size,
                "max_prompt_tokens": limit, "cache": {"layer1_tokens": layer}}).to_string();
            if let Ok(read) = read(&text) {
                let _ = read.config.contradiction();
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,60}") {
            let _ = read(&text);
        }
    }
}
