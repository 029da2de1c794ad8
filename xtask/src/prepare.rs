//! `cargo xtask prepare`: every request body of a trace, or of generated requests, made as a run makes them, and none
//! sent. A process of its own, so that the benchmark can time it from its start.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use aiperf_config::{
    ConnectionReuse, DatasetConfig, DatasetSource, EndpointConfig, EndpointKind, FileDataset, FileFormat,
    ImageFormat, ImageSampling, ImageSource, Normal, SyntheticDataset, SyntheticImages, Target,
};
use aiperf_dataset::{Dataset, OpenContext, Survey, open};
use aiperf_endpoint::Format;
use aiperf_tokenize::Tokenizer;
use anyhow::{Result, anyhow};
use clap::{Arg, ArgGroup, ArgMatches, value_parser};

/// The command line.
pub(crate) fn command() -> clap::Command {
    clap::Command::new("prepare")
        .about("Makes every request body of a mooncake_trace, or of generated requests, and sends none")
        .arg(Arg::new("file").value_name("FILE").help("A mooncake_trace"))
        .arg(count("prompts", "So many prompts of 1,000 tokens"))
        .arg(count("images", "So many prompts of 16 tokens with a PNG image of 512x512 pixels each"))
        .arg(count("jpegs", "The same with a JPEG image"))
        .group(ArgGroup::new("what").args(["file", "prompts", "images", "jpegs"]).required(true))
}

fn count(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("N").value_parser(value_parser!(u64).range(1..)).help(help)
}

fn source(matches: &ArgMatches) -> DatasetSource {
    if let Some(file) = matches.get_one::<String>("file") {
        return DatasetSource::File(FileDataset::new(Path::new(file), FileFormat::MooncakeTrace));
    }
    let constant = |mean| Normal { mean, stddev: 0.0 };
    let count = |name| matches.get_one::<u64>(name).copied();
    let images = count("images").map(|count| (count, ImageFormat::Png));
    let images = images.or_else(|| count("jpegs").map(|count| (count, ImageFormat::Jpeg)));
    let entries = images.map(|(count, _)| count).or_else(|| count("prompts")).unwrap_or(1);
    let tokens = if images.is_some() { 16.0 } else { 1000.0 };
    let mut dataset = SyntheticDataset::new(entries, constant(tokens));
    dataset.media.images = images.map(|(_, format)| SyntheticImages {
        count: 1,
        width: constant(512.0),
        height: constant(512.0),
        format,
        source: ImageSource::Noise,
        sampling: ImageSampling::Random,
    });
    DatasetSource::Synthetic(dataset)
}

/// Prints how many bodies of how many bytes were made.
pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let tokenizer = Tokenizer::builtin();
    let survey = Survey::default();
    let context = OpenContext {
        seed: 7,
        tokenizer: Some(&tokenizer),
        streaming: true,
        survey: None,
        ..OpenContext::survey(&survey, matches.contains_id("file"))
    };
    let dataset = open(&DatasetConfig::new(source(matches)), &context)?;
    let format = Format::new(&endpoint(), "mock-model");
    let (next, made) = (AtomicU64::new(0), Made::default());
    // As many as a run would have for it.
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| prepare(dataset.as_ref(), &format, &next, &made))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| anyhow!("a thread panicked"))?)
    })?;
    let [bodies, bytes] = [&made.bodies, &made.bytes].map(|sum| sum.load(Ordering::Relaxed));
    writeln!(std::io::stdout(), "{bodies} bodies, {bytes} bytes")?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Default)]
struct Made {
    bodies: AtomicU64,
    bytes: AtomicU64,
}

fn prepare(dataset: &dyn Dataset, format: &Format, next: &AtomicU64, made: &Made) -> Result<()> {
    let count = dataset.wait_for(u64::MAX).known();
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= count {
            return Ok(());
        }
        let conversation = dataset.build(index)?;
        for turn in 0..conversation.turns.len() {
            let body = format.render_alone(&conversation, turn);
            made.bodies.fetch_add(1, Ordering::Relaxed);
            made.bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
        }
    }
}

fn endpoint() -> EndpointConfig {
    EndpointConfig {
        kind: EndpointKind::Chat,
        target: Target::Mock("mock://".into()),
        custom_path: None,
        streaming: true,
        api_key: None,
        headers: Vec::new(),
        extra_inputs: serde_json::Map::new(),
        use_legacy_max_tokens: false,
        use_server_token_count: false,
        per_chunk_usage: false,
        request_timeout: None,
        connection_reuse: ConnectionReuse::default(),
        bind_addresses: Vec::new(),
    }
}
