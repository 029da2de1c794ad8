//! One round: what went in and out, and when.

use crate::agentic::LONGEST_INPUT;
use crate::json::{self, Fault, Field};

/// A line of the file.
pub(super) struct Row {
    pub(super) session: String,
    /// User and project.
    pub(super) owner: (Option<String>, Option<String>),
    pub(super) is_codex: bool,
    /// Absent without a time.
    pub(super) round: Option<Round>,
    /// Events that would count and have no time.
    pub(super) untimed: u64,
    pub(super) calls: Vec<ToolCall>,
}

/// One call of a model.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// When it was submitted and when its last output came, seconds.
    pub(super) at: f64,
    pub(super) end: f64,
    pub(super) index: i64,
    pub(super) model: String,
    pub(super) input: u64,
    /// Tokens that were in the cache.
    pub(super) prefix: u64,
    pub(super) output: u64,
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub(super) struct ToolCall {
    pub(super) name: String,
    /// From when to when, seconds.
    pub(super) from: f64,
    pub(super) to: f64,
    /// How long it took, ms.
    pub(super) took_ms: f64,
}

/// Reads a line; nothing where it belongs to no session.
pub(super) fn parse(text: &str) -> Result<Option<Row>, Fault> {
    let [session, index, user, project, provider, model, total, prefix, output, reasoning, events, tools] =
        json::object(
            text,
            &[
                "session_id",
                "round_index",
                "user",
                "project",
                "provider",
                "model",
                "input_tokens_total",
                "prefix_tokens",
                "output_tokens",
                "reasoning_output_tokens",
                "timing_events",
                "tools",
            ],
        )?;
    let Some(session) = string("session_id", session)?.filter(|session| !session.is_empty()) else {
        return Ok(None);
    };
    let output = count("output_tokens", output)?.saturating_add(count("reasoning_output_tokens", reasoning)?);
    let (span, untimed) = span(events)?;
    let round = span.map(|(at, end)| -> Result<Round, Fault> {
        Ok(Round {
            at,
            end,
            index: index.map(|index| json::integer("round_index", index)).transpose()?.unwrap_or(0),
            model: string("model", model)?.unwrap_or_default(),
            input: count("input_tokens_total", total)?.max(1),
            prefix: count("prefix_tokens", prefix)?,
            output: output.max(1),
        })
    });
    Ok(Some(Row {
        session,
        owner: (string("user", user)?, string("project", project)?),
        is_codex: string("provider", provider)?.as_deref() == Some("codex"),
        round: round.transpose()?,
        untimed,
        calls: calls(tools)?,
    }))
}

/// When a round was submitted and when the last of its output came, and how many events have no time to tell it.
fn span(events: Field<'_>) -> Result<(Option<(f64, f64)>, u64), Fault> {
    let Some(events) = events else { return Ok((None, 0)) };
    let mut untimed = 0;
    let (mut asked, mut first, mut last) = (None::<f64>, None::<f64>, None::<f64>);
    for event in json::list("timing_events", events)? {
        let [kind, time] = json::object(event, &["event_type", "timestamp"])
            .map_err(|fault| fault.within("timing_events"))?;
        let time = time.map(|time| instant("timestamp", time)).transpose()?;
        let is_asked = match string("event_type", kind)?.as_deref() {
            Some("user_message" | "tool_result") => true,
            Some("text" | "reasoning" | "tool_call") => false,
            _ => continue,
        };
        let Some(time) = time else {
            untimed += 1;
            continue;
        };
        if is_asked {
            asked = Some(asked.map_or(time, |asked| asked.max(time)));
        } else {
            first = Some(first.map_or(time, |first| first.min(time)));
            last = Some(last.map_or(time, |last| last.max(time)));
        }
    }
    Ok((asked.or(first).map(|at| (at, last.unwrap_or(at).max(at))), untimed))
}

fn calls(tools: Field<'_>) -> Result<Vec<ToolCall>, Fault> {
    let Some(tools) = tools else { return Ok(Vec::new()) };
    let mut calls = Vec::new();
    for tool in json::list("tools", tools)? {
        let [name, from, to, took] =
            json::object(tool, &["tool_name", "emitted_at", "result_at", "tool_wall_latency_ms"])
                .map_err(|fault| fault.within("tools"))?;
        let times = from
            .map(|time| instant("emitted_at", time))
            .transpose()?
            .zip(to.map(|time| instant("result_at", time)).transpose()?);
        let (Some(name), Some((from, to))) = (string("tool_name", name)?, times) else { continue };
        let took_ms = took
            .map(|took| json::number("tool_wall_latency_ms", took))
            .transpose()?
            .unwrap_or((to - from) * 1000.0);
        calls.push(ToolCall { name, from, to, took_ms });
    }
    Ok(calls)
}

fn string(key: &'static str, field: Field<'_>) -> Result<Option<String>, Fault> {
    field.map(|text| json::string(key, text).map(std::borrow::Cow::into_owned)).transpose()
}

fn count(key: &'static str, field: Field<'_>) -> Result<u64, Fault> {
    let count = field.map(|text| json::integer(key, text)).transpose()?.unwrap_or(0);
    if (0..=LONGEST_INPUT).contains(&count) {
        Ok(count as u64)
    } else {
        Err(Fault::new(key, format!("must be 0 to {LONGEST_INPUT}, is {count}")))
    }
}

/// An instant as ISO 8601 text, in seconds since 1970; without a zone it is UTC.
fn instant(key: &'static str, text: &str) -> Result<f64, Fault> {
    let written = json::string(key, text)?;
    seconds_of(&written).ok_or_else(|| {
        Fault::new(key, format!("{} is no time such as 2026-03-01T09:00:00.250Z", json::excerpt(&written)))
    })
}

fn seconds_of(text: &str) -> Option<f64> {
    let (date, time) = text.trim().split_once(['T', ' '])?;
    let mut parts = date.split('-');
    let (year, month, day) = (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) || year > 9999 {
        return None;
    }
    let (clock, offset) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => (&time[..at], zone(&time[at..])?),
        None => (time, 0.0),
    };
    let mut parts = clock.split(':');
    let (hours, minutes) = (number(parts.next()?)?, number(parts.next()?)?);
    let seconds = parts.next().unwrap_or("0");
    let plain = !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds: f64 = seconds.parse().ok().filter(|seconds| plain && *seconds < 61.0)?;
    if parts.next().is_some() || hours > 24 || minutes > 59 {
        return None;
    }
    // Days since 1970 of the Gregorian calendar, the year beginning in March.
    let (shifted, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = shifted * 365 + shifted.div_euclid(4) - shifted.div_euclid(100)
        + shifted.div_euclid(400)
        + (153 * month + 2) / 5
        + day
        - 1
        - 719_468;
    Some((days * 86_400 + hours * 3600 + minutes * 60) as f64 + seconds - offset)
}

/// Seconds east of Greenwich of `Z`, `+02:00` or `-0530`.
fn zone(text: &str) -> Option<f64> {
    let sign = match text.as_bytes().first()? {
        b'Z' | b'z' => return (text.len() == 1).then_some(0.0),
        b'-' => -1.0,
        _ => 1.0,
    };
    let digits: String = text[1..].chars().filter(|digit| *digit != ':').collect();
    if digits.len() != 4 && digits.len() != 2 {
        return None;
    }
    let hours = number(digits.get(..2)?)?;
    let minutes = digits.get(2..).filter(|rest| !rest.is_empty()).map_or(Some(0), number)?;
    Some(sign * (hours * 3600 + minutes * 60) as f64)
}

fn number(text: &str) -> Option<i64> {
    let plain = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_common_spelling() {
        let base = 1_772_355_600.0;
        for (text, expected) in [
            ("2026-03-01T09:00:00Z", base),
            ("2026-03-01T09:00:00.250Z", base + 0.25),
            ("2026-03-01 09:00:00", base),
            ("2026-03-01T11:00:00+02:00", base),
            ("2026-03-01T04:30:00-0430", base),
            ("2026-03-01T10:00:00.5+01", base + 0.5),
            ("1970-01-01T00:00:00Z", 0.0),
            ("2024-02-29T00:00Z", 1_709_164_800.0),
        ] {
            assert_eq!(seconds_of(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "2026-03-01",
            "09:00:00",
            "2026-13-01T00:00:00Z",
            "2026-03-01T09",
            "2026-03-01T09:00:xxZ",
            "2026-03-01T09:00:00+1",
        ] {
            assert_eq!(seconds_of(text), None, "{text}");
        }
    }
}
