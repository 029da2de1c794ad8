//! Do tokenizers give the tokens that other programs recorded?
//!
//! `cargo run --example agree -- FOLDER...`: each folder holds a tokenizer and `vectors.json`, a list of
//! `[text, tokens, decoded text or null]`.

#![expect(clippy::print_stdout, reason = "what it is for")]

use std::process::ExitCode;

use aiperf_tokenize::{OpenOptions, Tokenizer};
use serde_json::Value;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut good = true;
    for folder in std::env::args().skip(1) {
        let tokenizer = Tokenizer::open(&folder, &OpenOptions::default())?;
        let vectors: Vec<(String, Vec<u32>, Value)> =
            serde_json::from_slice(&std::fs::read(format!("{folder}/vectors.json"))?)?;
        let (mut encoded, mut decoded) = (0, 0);
        for (text, expected, back) in &vectors {
            let mut tokens = Vec::new();
            tokenizer.encode(text, &mut tokens);
            if tokens != *expected {
                encoded += 1;
                if encoded <= 3 {
                    println!("  {text:?}\n    expected {expected:?}\n    found    {tokens:?}");
                }
            }
            let text = tokenizer.decode(expected);
            if back.as_str().is_some_and(|back| back != text) {
                decoded += 1;
                if decoded <= 3 {
                    println!("  {expected:?}\n    expected {back}\n    found    {text:?}");
                }
            }
        }
        println!(
            "{folder}: {} texts, {encoded} encoded otherwise, {decoded} decoded otherwise, {} added",
            vectors.len(),
            tokenizer.num_special_tokens_to_add()
        );
        good &= encoded + decoded == 0;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
