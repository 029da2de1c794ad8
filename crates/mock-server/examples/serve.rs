//! Runs the mock server by itself: `serve --port 8000 --ttft 20ms`.

use aiperf_mock_server::{Settings, run_command};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut host, mut port) = ("127.0.0.1".to_owned(), 8000u16);
    let mut pairs = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let name = flag.strip_prefix("--").ok_or_else(|| format!("{flag} is no flag"))?.to_owned();
        let value = arguments.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match name.as_str() {
            "host" => host = value,
            "port" => port = value.parse()?,
            _ => pairs.push((name, value)),
        }
    }
    Ok(run_command(&Settings::from_pairs(pairs)?, &host, port)?)
}
