//! Measures what the tokenizer and the corpora cost: `cargo run --release -p aiperf-tokenize --example speed`,
//! with a tokenizer to measure as an argument (`builtin` when there is none).

use std::hint::black_box;
use std::io::{Write, stdout};

use aiperf_tokenize::seed::Streams;
use aiperf_tokenize::{Corpus, CorpusKind, OpenOptions, Tokenizer};

/// Median nanoseconds of one call over a few rounds.
fn nanos(calls: u64, mut call: impl FnMut(u64)) -> f64 {
    let mut rounds: Vec<f64> = (0..7)
        .map(|round| {
            let start = aiperf_clock::now();
            for index in 0..calls {
                call(round * calls + index);
            }
            aiperf_clock::now().saturating_since(start) as f64 / calls as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

/// Keeps the compiler from leaving out what made `value`.
fn nothing<T>(value: T) {
    drop(black_box(Some(value)));
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = stdout();
    let begin = aiperf_clock::now();
    let source = std::env::args().nth(1).unwrap_or_else(|| "builtin".to_owned());
    let tokenizer = Tokenizer::open(&source, &OpenOptions::default())?;
    let opened = aiperf_clock::now();
    let first_count = tokenizer.count("Thou that art now the world's fresh ornament");
    let counted = aiperf_clock::now();
    let corpus = Corpus::open(CorpusKind::Sonnet, &tokenizer);
    let family = Streams::new(1, "speed");
    let first = corpus.exact_text(&mut family.at(0), 550);
    let prompted = aiperf_clock::now();
    let micros = |from: aiperf_clock::Mono, to: aiperf_clock::Mono| to.saturating_since(from) as f64 / 1000.0;
    writeln!(out, "open {source}: {:.1} µs", micros(begin, opened))?;
    writeln!(out, "first count ({first_count} tokens): {:.1} µs", micros(opened, counted))?;
    writeln!(out, "first prompt ({} tokens): {:.1} µs", first.tokens, micros(counted, prompted))?;

    let hello = " hello".repeat(100);
    writeln!(
        out,
        "count \" hello\" × 100: {:.2} µs",
        nanos(1000, |_| nothing(tokenizer.count(black_box(&hello)))) / 1e3
    )?;
    let answer = corpus.exact_text(&mut family.at(2), 128);
    writeln!(
        out,
        "count 128 tokens of prose: {:.2} µs",
        nanos(1000, |_| nothing(tokenizer.count(black_box(&answer.text)))) / 1e3
    )?;
    let prose = corpus.exact_text(&mut family.at(1), 12_000);
    writeln!(
        out,
        "count 12,000 tokens of prose: {:.0} µs",
        nanos(20, |_| nothing(tokenizer.count(black_box(&prose.text)))) / 1e3
    )?;
    for (kind, name) in
        [(CorpusKind::Sonnet, "sonnet"), (CorpusKind::Coding, "coding"), (CorpusKind::Random, "random")]
    {
        let begin = aiperf_clock::now();
        let corpus = Corpus::open(kind, &tokenizer);
        black_box(corpus.exact_text(&mut family.at(0), 1));
        let first = aiperf_clock::now();
        let mut all = Vec::new();
        corpus.draw_window(&mut family.at(0), 2_000_000, &mut all);
        let warm = aiperf_clock::now();
        writeln!(
            out,
            "{name}: first prompt {:.0} µs, all of it {:.0} µs",
            micros(begin, first),
            micros(first, warm)
        )?;
        for n in [8, 128, 550, 1000, 8000] {
            let calls = (if kind == CorpusKind::Random { 20_000 } else { 400_000 }) / n;
            let each = nanos(calls, |item| nothing(corpus.exact_text(&mut family.at(item), n)));
            writeln!(out, "{name}: prompt of {n} tokens: {:.2} µs", each / 1e3)?;
        }
    }
    let mut tokens = Vec::new();
    let blocks = corpus.blocks(1, &[0; 32]);
    let each = nanos(2000, |id| {
        tokens.clear();
        blocks.append_tokens(id.cast_signed(), 512, &mut tokens);
        black_box(&tokens);
    });
    writeln!(out, "hash block of 512 tokens: {:.2} µs", each / 1e3)?;
    let each = nanos(500, |_| nothing(tokenizer.decode(black_box(&tokens))));
    writeln!(out, "decode 512 tokens: {:.2} µs", each / 1e3)?;
    Ok(())
}
