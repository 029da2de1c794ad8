//! `wrk` sending the very requests that the client sent, as `profile_export_raw.jsonl` keeps them.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Bench;
use super::client;
use super::mock::Mock;
use super::process::{Running, Used, tail};
use super::progress::say;

/// Requests that are recorded and then sent round and round.
const RECORDED: &str = "2000";

/// Reads the recorded requests once, then hands them out in turn: nothing is put together while running.
const SCRIPT: &str = r#"
local requests, index = {}, 0
function init(args)
  local file = assert(io.open(args[1], "rb"))
  for length in file:lines() do
    requests[#requests + 1] = file:read(tonumber(length))
  end
  file:close()
end
function request()
  index = index % #requests + 1
  return requests[index]
end
"#;

/// The script and the recorded requests.
#[derive(Debug)]
pub(crate) struct Wrk {
    script: PathBuf,
    requests: PathBuf,
}

/// One run of `wrk`.
#[derive(Debug)]
pub(crate) struct WrkRun {
    pub(crate) used: Used,
    pub(crate) requests: f64,
    pub(crate) per_second: f64,
    /// Median time from request to answer.
    pub(crate) median_ms: f64,
}

impl Wrk {
    /// Installs `wrk` when it is missing, and records requests of the client with `arguments` against `mock`.
    pub(crate) fn record(bench: &Bench, folder: &Path, mock: &Mock, arguments: &[&str]) -> Result<Self> {
        install()?;
        let recording = folder.join("recording");
        std::fs::create_dir_all(&recording)?;
        let mut all = arguments.to_vec();
        all.extend(["--request-count", RECORDED, "--export-level", "raw"]);
        client::profile(bench, &recording, &mock.url(), &all)?;
        let wrk = Self { script: folder.join("wrk.lua"), requests: folder.join("wrk-requests.bin") };
        std::fs::write(&wrk.script, SCRIPT)?;
        let raw = recording.join("artifacts/profile_export_raw.jsonl");
        let raw = BufReader::new(File::open(&raw).with_context(|| format!("cannot read {}", raw.display()))?);
        let mut out = BufWriter::new(File::create(&wrk.requests)?);
        for line in raw.lines() {
            let request = whole_request(&line?, &mock.authority())?;
            writeln!(out, "{}", request.len())?;
            out.write_all(&request)?;
        }
        out.flush()?;
        std::fs::remove_dir_all(recording)?;
        Ok(wrk)
    }

    /// One thread and `connections` connections for `seconds`.
    pub(crate) fn run(&self, folder: &Path, mock: &Mock, connections: u64, seconds: u64) -> Result<WrkRun> {
        let own = folder.join("wrk");
        std::fs::create_dir_all(&own)?;
        let mut command = Command::new("wrk");
        command
            .args(["-t1", "--latency", &format!("-c{connections}"), &format!("-d{seconds}s"), "-s"])
            .arg(&self.script)
            .arg(format!("{}/v1/chat/completions", mock.url()))
            .arg("--")
            .arg(&self.requests);
        let used = Running::start(command, &own)?.wait(Duration::from_secs(seconds + 60))?;
        let text = std::fs::read_to_string(own.join("stdout.txt"))?;
        if used.code != Some(0) {
            bail!("wrk ended with {:?}\n{text}{}", used.code, tail(&own.join("stderr.txt")));
        }
        let (requests, per_second, median_ms) = parse(&text)?;
        Ok(WrkRun { used, requests, per_second, median_ms })
    }
}

/// Requests in all and per second and the median latency in ms, from what `wrk` prints; an error when some failed.
fn parse(text: &str) -> Result<(f64, f64, f64)> {
    if let Some(line) = text.lines().find(|line| line.contains("Non-2xx") || line.contains("Socket errors")) {
        bail!("wrk: {}", line.trim());
    }
    let number = |found: Option<&str>| found.and_then(|word| word.parse::<f64>().ok());
    let requests =
        number(text.lines().find_map(|line| line.trim().split_once(" requests in ")).map(|(count, _)| count));
    let per_second = number(text.lines().find_map(|line| line.strip_prefix("Requests/sec:")).map(str::trim));
    let median = text.lines().find_map(|line| milliseconds(line.trim().strip_prefix("50%")?.trim()));
    match (requests, per_second, median) {
        (Some(requests), Some(per_second), Some(median)) if requests > 0.0 => {
            Ok((requests, per_second, median))
        }
        _ => bail!("wrk printed no count or no latency\n{text}"),
    }
}

/// A time as `wrk` prints it: `93.00us`, `50.27ms`, `1.20s`, `2.00m`.
fn milliseconds(text: &str) -> Option<f64> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "us" => 1e-3,
        "ms" => 1.0,
        "s" => 1e3,
        "m" => 6e4,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

#[derive(Deserialize)]
struct Recorded<'a> {
    metadata: Map<String, Value>,
    request_headers: Map<String, Value>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// The bytes of a recorded request as they went over the wire.
fn whole_request(line: &str, authority: &str) -> Result<Vec<u8>> {
    let recorded: Recorded<'_> = serde_json::from_str(line).context("a line of profile_export_raw.jsonl")?;
    let body = recorded.payload.get().as_bytes();
    let mut request = format!("POST /v1/chat/completions HTTP/1.1\r\nHost: {authority}\r\n").into_bytes();
    for (name, value) in &recorded.request_headers {
        if ["host", "content-length"].iter().any(|own| name.eq_ignore_ascii_case(own)) {
            continue;
        }
        let value = value.as_str().unwrap_or_default();
        // Kept secret in the file; what went out is the correlation id.
        let value = if value == "<redacted>" {
            recorded.metadata.get("x_correlation_id").and_then(Value::as_str).unwrap_or_default()
        } else {
            value
        };
        write!(request, "{name}: {value}\r\n")?;
    }
    write!(request, "Content-Length: {}\r\n\r\n", body.len())?;
    request.extend_from_slice(body);
    Ok(request)
}

fn install() -> Result<()> {
    if Command::new("wrk").arg("--version").output().is_ok() {
        return Ok(());
    }
    say(format_args!("installing wrk"));
    let sudo = if rustix::process::geteuid().is_root() { "" } else { "sudo " };
    for step in ["apt-get update", "apt-get install --yes --no-install-recommends wrk"] {
        let status = Command::new("sh")
            .args(["-c", &format!("{sudo}{step} >&2")])
            .status()
            .context("cannot start a shell")?;
        if !status.success() {
            bail!("`{step}` failed; install wrk by hand");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_line_becomes_the_bytes_that_were_sent() {
        let line = r#"{"metadata":{"x_correlation_id":"c-1"},"start_perf_ns":5,"request_headers":{"User-Agent":"a/1","X-Session-Affinity":"<redacted>"},"responses":[],"payload":{"b": 1,"a":[ ]}}"#;
        assert_eq!(
            String::from_utf8(whole_request(line, "h:1").unwrap()).unwrap(),
            "POST /v1/chat/completions HTTP/1.1\r\nHost: h:1\r\nUser-Agent: a/1\r\n\
             X-Session-Affinity: c-1\r\nContent-Length: 16\r\n\r\n{\"b\": 1,\"a\":[ ]}"
        );
    }

    #[test]
    fn counts_are_read_and_failures_are_not_passed_over() {
        let good = "Running 2s test\n  Latency Distribution\n     50%   93.00us\n     99%    1.20ms\n  81234 requests in 2.00s, 9.00MB read\nRequests/sec:  40617.00\nTransfer/sec: 4MB\n";
        assert_eq!(parse(good).unwrap(), (81_234.0, 40_617.0, 0.093));
        assert_eq!(
            [milliseconds("50.27ms"), milliseconds("1.50s"), milliseconds("n/a")],
            [Some(50.27), Some(1_500.0), None]
        );
        assert!(parse(&format!("{good}  Non-2xx or 3xx responses: 4\n")).is_err());
        assert!(parse("unable to connect").is_err());
    }
}
