//! How pairs of lengths are written.
//!
//! ```text
//! list    := pair (";" pair)* ";"?         pair   := length "," length ":" NUM
//! bracket := "[" item ("," item)* "]"      item   := "(" length "," length ")" ":" NUM
//! json    := {"pairs": [{"isl": INT, "osl": INT, "prob": NUM, "isl_stddev"?: NUM, "osl_stddev"?: NUM}, …]}
//! length  := INT ("|" NUM)?
//! ```
//! An INT is digits, a NUM is digits with decimals or not, or `.digits`; white space may stand around them.

use serde_json::{Map, Value};
use thiserror::Error;

use super::{LengthPair, LengthPairs};
use crate::Normal;

/// How far the shares may be off 100.
const TOLERANCE: f64 = 1e-4;
/// Lengths and deviations beyond this are a slip that would fill the memory.
const MOST_TOKENS: f64 = 2e7;
/// Characters of the input that a message quotes.
const QUOTED: usize = 160;

const FORM: &str = "ISL[|STDDEV],OSL[|STDDEV]:PERCENT";
const BRACKET_FORM: &str = "(ISL[|STDDEV],OSL[|STDDEV]):PERCENT";
const KEYS: [&str; 5] = ["isl", "osl", "prob", "isl_stddev", "osl_stddev"];

/// Why a text is no list of pairs of lengths.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{input}': {what}")]
pub struct LengthPairsError {
    /// The text, shortened when it is long.
    input: String,
    /// What is wrong, with the number and the text of the pair.
    what: String,
}

impl LengthPairs {
    /// Reads pairs in one of the three forms: JSON where the text begins with `{`, brackets where it begins with `[`.
    pub fn parse(text: &str) -> Result<LengthPairs, LengthPairsError> {
        let trimmed = text.trim();
        let list = match trimmed.as_bytes().first() {
            None => Err("there is no pair".to_owned()),
            Some(b'{') => json(trimmed),
            Some(b'[') => bracket(trimmed),
            Some(_) => plain(trimmed),
        };
        let list = list.and_then(|list| {
            let total: f64 = list.iter().map(|pair| pair.share).sum();
            if (total - 100.0).abs() <= TOLERANCE {
                return Ok(list);
            }
            // Not more digits than a share is typed with.
            let total = (total * 1e6).round() / 1e6;
            Err(format!("the shares add up to {total}, not to 100"))
        });
        list.map(|list| LengthPairs { list })
            .map_err(|what| LengthPairsError { input: shortened(text), what })
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn plain(text: &str) -> Result<Vec<LengthPair>, String> {
    let text = text.strip_suffix(';').unwrap_or(text);
    text.split(';').zip(1..).map(|(pair, number)| one(pair, FORM).map_err(of_pair(number, pair))).collect()
}

fn bracket(text: &str) -> Result<Vec<LengthPair>, String> {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let mut left = inner.ok_or("the closing bracket is missing")?.trim();
    let mut list = Vec::new();
    loop {
        let number = list.len() + 1;
        // A comma within the parentheses parts the lengths, one after them ends the pair.
        let closing = if left.starts_with('(') { left.find(')').unwrap_or(0) } else { 0 };
        let (pair, rest) = match left[closing..].find(',') {
            Some(comma) => (&left[..closing + comma], Some(left[closing + comma + 1..].trim_start())),
            None => (left, None),
        };
        let lengths = || {
            let (lengths, share) = pair.trim().strip_prefix('(')?.split_once(')')?;
            Some((lengths, share.trim_start().strip_prefix(':')?))
        };
        let read = match lengths() {
            None => Err(Mistake::form(BRACKET_FORM)),
            Some((lengths, share)) => pair_of(lengths, share, BRACKET_FORM),
        };
        list.push(read.map_err(of_pair(number, pair))?);
        match rest {
            None => return Ok(list),
            Some(rest) => left = rest,
        }
    }
}

fn json(text: &str) -> Result<Vec<LengthPair>, String> {
    let document: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| format!("it is no JSON object: {error}"))?;
    if let Some(key) = document.keys().find(|key| *key != "pairs") {
        return Err(format!("'{key}' is no key of it, only 'pairs' is"));
    }
    let Some(Value::Array(pairs)) = document.get("pairs") else {
        return Err("'pairs' is missing, or is no array".into());
    };
    if pairs.is_empty() {
        return Err("'pairs' is empty".into());
    }
    let read = |(pair, number): (&Value, usize)| object(pair).map_err(of_pair(number, &pair.to_string()));
    pairs.iter().zip(1..).map(read).collect()
}

fn object(pair: &Value) -> Result<LengthPair, Mistake> {
    let rule = |text: String| Mistake(text);
    let members = pair.as_object().ok_or_else(|| rule("is no object".into()))?;
    if let Some(key) = members.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(rule(format!("has the key '{key}', known are {}", KEYS.join(", "))));
    }
    let length = |key: &str| match members.get(key).map(Value::as_u64) {
        Some(Some(length)) => Ok(length as f64),
        Some(None) => Err(rule(format!("has an '{key}' that is no whole number"))),
        None => Err(rule(format!("has no '{key}'"))),
    };
    let number = |key: &str| match members.get(key).map(Value::as_f64) {
        Some(Some(number)) => Ok(Some(number)),
        Some(None) => Err(rule(format!("has an '{key}' that is no number"))),
        None => Ok(None),
    };
    checked(
        Normal { mean: length("isl")?, stddev: number("isl_stddev")?.unwrap_or(0.0) },
        Normal { mean: length("osl")?, stddev: number("osl_stddev")?.unwrap_or(0.0) },
        number("prob")?.ok_or_else(|| rule("has no 'prob'".into()))?,
    )
}

/// What is wrong with a pair, in words that follow its name.
struct Mistake(String);

impl Mistake {
    fn form(form: &str) -> Mistake {
        Mistake(format!("is not {form}"))
    }
}

fn of_pair(number: usize, pair: &str) -> impl FnOnce(Mistake) -> String {
    let pair = shortened(pair.trim());
    move |mistake| format!("pair {number}, '{pair}', {}", mistake.0)
}

fn one(pair: &str, form: &str) -> Result<LengthPair, Mistake> {
    let (lengths, share) = pair.split_once(':').ok_or_else(|| Mistake::form(form))?;
    pair_of(lengths, share, form)
}

fn pair_of(lengths: &str, share: &str, form: &str) -> Result<LengthPair, Mistake> {
    let (input, output) = lengths.split_once(',').ok_or_else(|| Mistake::form(form))?;
    checked(length(input, form)?, length(output, form)?, number(share, form)?)
}

/// `INT ("|" NUM)?`
fn length(text: &str, form: &str) -> Result<Normal, Mistake> {
    let (mean, stddev) = match text.split_once('|') {
        Some((mean, stddev)) => (mean, number(stddev, form)?),
        None => (text, 0.0),
    };
    let mean = mean.trim();
    if mean.is_empty() || !mean.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Mistake(format!("has the length '{}', expected a whole number", shortened(mean))));
    }
    Ok(Normal { mean: number(mean, form)?, stddev })
}

/// Digits with decimals or not, or `.digits`: no sign and no exponent.
fn number(text: &str, form: &str) -> Result<f64, Mistake> {
    let text = text.trim();
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = match text.split_once('.') {
        Some((whole, decimals)) => digits(whole) && !decimals.is_empty() && digits(decimals),
        None => !text.is_empty() && digits(text),
    };
    match text.parse() {
        Ok(number) if plain => Ok(number),
        _ => Err(Mistake(format!("has '{}' where {form} has a number", shortened(text)))),
    }
}

fn checked(input: Normal, output: Normal, share: f64) -> Result<LengthPair, Mistake> {
    for (name, length) in [("input", input), ("output", output)] {
        if !(1.0..=MOST_TOKENS).contains(&length.mean) {
            return Err(Mistake(format!(
                "has an {name} length of {}, expected 1 to {MOST_TOKENS}",
                length.mean
            )));
        }
        if !(0.0..=MOST_TOKENS).contains(&length.stddev) {
            return Err(Mistake(format!(
                "has an {name} deviation of {}, expected 0 to {MOST_TOKENS}",
                length.stddev
            )));
        }
    }
    if !(0.0..=100.0).contains(&share) {
        return Err(Mistake(format!("has a share of {share}, expected 0 to 100 percent")));
    }
    Ok(LengthPair { input, output, share })
}

/// What is read is written and read again the same; nothing panics.
///
/// # Panics
/// When a promise of the reader is broken.
#[cfg(any(test, feature = "fuzzing"))]
pub fn fuzz_length_pairs(text: &str) {
    match LengthPairs::parse(text) {
        Err(error) => assert!(error.to_string().len() < 4000, "a message that nobody reads: {error}"),
        Ok(pairs) => {
            let total: f64 = pairs.list().iter().map(|pair| pair.share).sum();
            assert!(!pairs.list().is_empty() && (total - 100.0).abs() <= TOLERANCE);
            for pair in pairs.list() {
                assert!(pair.input.mean >= 1.0 && pair.output.mean >= 1.0);
            }
            assert_eq!(LengthPairs::parse(&pairs.to_string()), Ok(pairs));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pair(input: (f64, f64), output: (f64, f64), share: f64) -> LengthPair {
        let normal = |(mean, stddev)| Normal { mean, stddev };
        LengthPair { input: normal(input), output: normal(output), share }
    }

    fn read(text: &str) -> Vec<LengthPair> {
        LengthPairs::parse(text).unwrap_or_else(|error| panic!("{error}")).list
    }

    #[test]
    fn the_three_forms_say_the_same() {
        let wanted = [pair((256.0, 10.0), (128.0, 5.0), 40.0), pair((512.0, 20.0), (256.0, 10.0), 60.0)];
        for text in [
            "256|10,128|5:40;512|20,256|10:60",
            " 256 | 10 , 128|5 : 40 ; 512|20,256|10:60.0 ; ",
            "[(256|10,128|5):40,(512|20,256|10):60]",
            "[ ( 256|10 , 128|5 ) : 40 , (512|20,256|10):60 ]",
            r#"{"pairs":[{"isl":256,"isl_stddev":10,"osl":128,"osl_stddev":5,"prob":40},
                {"isl":512,"isl_stddev":20.0,"osl":256,"osl_stddev":10,"prob":60.0}]}"#,
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
        assert_eq!(read("256|.5,128:100"), [pair((256.0, 0.5), (128.0, 0.0), 100.0)]);
        assert_eq!(read("1,1:0;2,2:100").len(), 2);
        assert_eq!(read("1,1:33.3333;2,2:33.3333;3,3:33.3334").len(), 3);
    }

    #[test]
    fn mistakes_name_the_input_and_the_pair() {
        for (text, what) in [
            ("", "there is no pair"),
            (" ; ", "pair 1, '', is not ISL[|STDDEV],OSL[|STDDEV]:PERCENT"),
            ("256,128", "pair 1, '256,128', is not ISL[|STDDEV],OSL[|STDDEV]:PERCENT"),
            ("256,128:50;;1,1:50", "pair 2, '', is not"),
            ("256,128:0.4;512,256:0.6", "the shares add up to 1, not to 100"),
            ("1,1:33.33;1,1:33.33;1,1:33.33", "the shares add up to 99.99, not to 100"),
            ("0,128:100", "pair 1, '0,128:100', has an input length of 0, expected 1 to 20000000"),
            ("9,30000000:100", "has an output length of 30000000"),
            ("256.5,128:100", "has the length '256.5', expected a whole number"),
            ("-5,128:100", "has the length '-5'"),
            ("1e3,128:100", "has the length '1e3'"),
            ("5|1e3,128:100", "has '1e3' where ISL[|STDDEV],OSL[|STDDEV]:PERCENT has a number"),
            ("5|-1,128:100", "has '-1' where"),
            ("5|1.,128:100", "has '1.' where"),
            ("5|.,128:100", "has '.' where"),
            ("5|+1,128:100", "has '+1' where"),
            ("5|inf,128:100", "has 'inf' where"),
            ("5,6:101", "has a share of 101, expected 0 to 100 percent"),
            ("5,6,7:100", "has the length '6,7'"),
            ("5,6:50:50", "has '50:50' where"),
            ("256,128:60; x,1:40", "pair 2, 'x,1:40', has the length 'x'"),
            (
                "[(256,128):40,junk,(512,256):60]",
                "pair 2, 'junk', is not (ISL[|STDDEV],OSL[|STDDEV]):PERCENT",
            ),
            ("[(256,128):40 junk,(512,256):60]", "pair 1, '(256,128):40 junk', has '40 junk' where"),
            ("[(256,128):40,(512,256):60,]", "pair 3, '', is not"),
            ("[(256,128):40,(512,256):60", "the closing bracket is missing"),
            ("[256,128:100]", "pair 1, '256', is not"),
            ("[]", "pair 1, '', is not"),
            ("[", "the closing bracket is missing"),
            ("{\"pairs\":[]}", "'pairs' is empty"),
            ("{}", "'pairs' is missing"),
            ("{\"pairs\":[{}]}", "pair 1, '{}', has no 'isl'"),
            ("{\"pairs\":[7]}", "pair 1, '7', is no object"),
            ("{\"pairs\":[{\"isl\":1,\"osl\":2.5,\"prob\":100}]}", "has an 'osl' that is no whole number"),
            ("{\"pairs\":[{\"isl\":1,\"osl\":2}]}", "has no 'prob'"),
            (
                "{\"pairs\":[{\"isl\":1,\"osl\":2,\"prob\":100,\"isl_std\":1}]}",
                "has the key 'isl_std', known are",
            ),
            (
                "{\"pairs\":[{\"isl\":1,\"osl\":2,\"prob\":100,\"isl_stddev\":-1}]}",
                "has an input deviation of -1",
            ),
            ("{\"pair\":[]}", "'pair' is no key of it"),
            ("{\"pairs\"", "it is no JSON object"),
        ] {
            let message = LengthPairs::parse(text).unwrap_err().to_string();
            assert!(message.starts_with(&format!("'{text}': ")) && message.contains(what), "{message}");
        }
        let long = LengthPairs::parse(&"9".repeat(100_000)).unwrap_err().to_string();
        assert!(long.len() < 1000, "{}", long.len());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9|,:;.\\[\\](){}\" a-z-]{0,40}") {
            fuzz_length_pairs(&text);
        }

        #[test]
        fn what_is_written_is_read(
            list in proptest::collection::vec((1u32..10_000, 0u32..4000, 1u32..10_000, 0u32..4000, 1u32..1000), 1..8),
            form in 0..3,
        ) {
            let total: u32 = list.iter().map(|pair| pair.4).sum();
            let pairs: Vec<LengthPair> = list
                .iter()
                .map(|&(isl, isl_dev, osl, osl_dev, share)| {
                    let share = f64::from(share) * 100.0 / f64::from(total);
                    // As many digits as a share can have without an exponent.
                    pair((isl.into(), f64::from(isl_dev) / 8.0), (osl.into(), f64::from(osl_dev) / 8.0), share)
                })
                .collect();
            let parts = |pair: &LengthPair| {
                (pair.input.mean, pair.input.stddev, pair.output.mean, pair.output.stddev, pair.share)
            };
            let texts: Vec<String> = pairs.iter().map(|pair| {
                let (a, b, c, d, e) = parts(pair);
                match form {
                    0 => format!("{a}|{b}, {c}|{d}:{e}"),
                    1 => format!("({a}|{b},{c}|{d}):{e}"),
                    _ => format!(r#"{{"isl":{a},"isl_stddev":{b},"osl":{c},"osl_stddev":{d},"prob":{e}}}"#),
                }
            }).collect();
            let text = match form {
                0 => texts.join(" ; "),
                1 => format!("[{}]", texts.join(" , ")),
                _ => format!(r#"{{"pairs":[{}]}}"#, texts.join(",")),
            };
            let read = LengthPairs::parse(&text).unwrap().list;
            prop_assert_eq!(read.len(), pairs.len());
            for (read, pair) in read.iter().zip(&pairs) {
                prop_assert_eq!((read.input, read.output), (pair.input, pair.output));
                // A JSON number may come out a bit off in its last place.
                prop_assert!((read.share - pair.share).abs() < 1e-12);
            }
            fuzz_length_pairs(&text);
        }
    }
}
