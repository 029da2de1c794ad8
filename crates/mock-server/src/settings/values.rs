//! Values of settings: times, counts and distributions of both.

use std::path::PathBuf;

use super::{Name, SettingsError};
use crate::draw::Distribution;

/// The largest count a setting takes.
pub(super) const MOST: u64 = 1_000_000_000_000;
/// The longest time a setting takes: 30 days.
const LONGEST_NS: f64 = 30.0 * 86_400.0 * 1e9;

pub(super) fn refuse(name: &'static Name, value: &str) -> SettingsError {
    SettingsError::BadValue { name: name.name, value: value.to_owned(), form: name.form }
}

pub(super) fn integer(name: &'static Name, value: &str, least: u64, most: u64) -> Result<u64, SettingsError> {
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| value.parse().ok()).flatten();
    number.filter(|n| (least..=most).contains(n)).ok_or_else(|| refuse(name, value))
}

pub(super) fn boolean(name: &'static Name, value: &str) -> Result<bool, SettingsError> {
    value.parse().map_err(|_| refuse(name, value))
}

/// Names joined by commas, one of which may stand at the end; without any comma, by colons.
pub(super) fn models(name: &'static Name, value: &str) -> Result<Vec<String>, SettingsError> {
    let names: Vec<&str> = match value.strip_suffix(',') {
        Some(names) => names.split(',').collect(),
        None if value.contains(',') => value.split(',').collect(),
        None => value.split(':').collect(),
    };
    if names.iter().any(|name| name.is_empty()) {
        return Err(refuse(name, value));
    }
    Ok(names.into_iter().map(str::to_owned).collect())
}

pub(super) fn path(name: &'static Name, value: &str) -> Result<PathBuf, SettingsError> {
    if value.is_empty() { Err(refuse(name, value)) } else { Ok(PathBuf::from(value)) }
}

pub(super) fn time(name: &'static Name, value: &str) -> Result<Distribution, SettingsError> {
    distribution(value, nanoseconds).ok_or_else(|| refuse(name, value))
}

pub(super) fn fixed_time(name: &'static Name, value: &str) -> Result<u64, SettingsError> {
    nanoseconds(value).map(|ns| ns.round() as u64).ok_or_else(|| refuse(name, value))
}

pub(super) fn count(name: &'static Name, value: &str) -> Result<Distribution, SettingsError> {
    if let Ok(fixed) = integer(name, value, 1, MOST) {
        return Ok(Distribution::Fixed(fixed as f64));
    }
    let number = |text: &str| plain(text).filter(|n| *n <= MOST as f64);
    match distribution(value, number) {
        Some(Distribution::Fixed(_)) | None => Err(refuse(name, value)),
        Some(drawn) => Ok(drawn),
    }
}

fn distribution(text: &str, value: impl Fn(&str) -> Option<f64>) -> Option<Distribution> {
    let parts: Vec<&str> = text.split(':').collect();
    match parts[..] {
        [fixed] => value(fixed).map(Distribution::Fixed),
        ["uniform", low, high] => {
            let (low, high) = (value(low)?, value(high)?);
            (low <= high).then_some(Distribution::Uniform(low, high))
        }
        ["normal", mean, deviation] => Some(Distribution::Normal(value(mean)?, value(deviation)?)),
        // A spread above 10 would draw times beyond any clock.
        ["lognormal", median, sigma] => {
            Some(Distribution::LogNormal(value(median)?, plain(sigma).filter(|s| *s <= 10.0)?))
        }
        ["exp", mean] => value(mean).map(Distribution::Exponential),
        _ => None,
    }
}

/// A time in nanoseconds: a number with `us`, `ms` or `s`, bare in milliseconds.
fn nanoseconds(text: &str) -> Option<f64> {
    let units = [("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (number, unit) = units
        .iter()
        .find_map(|(suffix, ns)| text.strip_suffix(suffix).map(|number| (number, *ns)))
        .unwrap_or((text, 1e6));
    plain(number).map(|n| n * unit).filter(|ns| *ns <= LONGEST_NS)
}

/// A decimal number of digits and at most one point; no sign, no exponent, no `inf`.
fn plain(text: &str) -> Option<f64> {
    let shaped = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && text.bytes().any(|byte| byte.is_ascii_digit());
    if shaped { text.parse().ok() } else { None }
}
