//! Turns the rank files that the `tiktoken-rs` package carries into tables that the program uses in place, so
//! that a tokenizer is ready the moment the process starts. Runs on the build machine only.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use regex_syntax::hir::{Class, HirKind};
use tiktoken_rs::CoreBPE;

#[path = "src/ranks/hash.rs"]
mod hash;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/ranks/hash.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);

    let o200k = tiktoken_rs::o200k_base()?;
    let cl100k = tiktoken_rs::cl100k_base()?;
    let p50k = tiktoken_rs::p50k_base()?;
    write_ranks(&out, "o200k", &ranks(&o200k, 199_998)?)?;
    write_ranks(&out, "cl100k", &ranks(&cl100k, 100_256)?)?;
    let p50k_ranks = ranks(&p50k, 50_281)?;
    // r50k is p50k without the runs of spaces that p50k adds at the end: one table serves both.
    let r50k = tiktoken_rs::r50k_base()?;
    if p50k_ranks[..50_256] != ranks(&r50k, 50_256)? {
        return Err("the first 50,256 ranks of p50k_base and r50k_base differ".into());
    }
    write_ranks(&out, "p50k", &p50k_ranks)?;
    write_classes(&out)
}

/// The bytes of ranks 0 to `count`; a rank that stands for nothing (p50k 50256 is a special token) is empty.
fn ranks(encoding: &CoreBPE, count: u32) -> Result<Vec<Vec<u8>>, Failure> {
    let special: Vec<Vec<u8>> =
        encoding.special_tokens().iter().map(|text| text.as_bytes().to_vec()).collect();
    let mut all = Vec::with_capacity(count as usize);
    for rank in 0..count {
        match encoding.decode_bytes(&[rank]) {
            Ok(bytes) if special.contains(&bytes) => all.push(Vec::new()),
            Ok(bytes) => all.push(bytes),
            Err(_) => return Err(format!("rank {rank} has no bytes").into()),
        }
    }
    if encoding.decode_bytes(&[count]).is_ok_and(|bytes| !special.contains(&bytes)) {
        return Err(format!("there are more than {count} ranks").into());
    }
    Ok(all)
}

fn write_ranks(out: &Path, name: &str, ranks: &[Vec<u8>]) -> Result<(), Failure> {
    let mut text = Vec::new();
    let mut ends = Vec::with_capacity(ranks.len() * 4);
    let slot_count = (ranks.len() * 5 / 4).next_power_of_two();
    let mut slots = vec![hash::EMPTY_SLOT; slot_count];
    for (rank, token) in ranks.iter().enumerate() {
        text.extend_from_slice(token);
        ends.extend_from_slice(&u32::try_from(text.len())?.to_le_bytes());
        if token.is_empty() {
            continue;
        }
        let hashed = hash::hash(token);
        let mut slot = hash::first_slot(hashed, slot_count);
        while slots[slot] != hash::EMPTY_SLOT {
            slot = (slot + 1) & (slot_count - 1);
        }
        slots[slot] = hash::fingerprint(hashed) | u32::try_from(rank)?;
    }
    fs::write(out.join(format!("{name}.text")), text)?;
    fs::write(out.join(format!("{name}.ends")), ends)?;
    fs::write(
        out.join(format!("{name}.slots")),
        slots.iter().flat_map(|slot| slot.to_le_bytes()).collect::<Vec<_>>(),
    )?;
    Ok(())
}

/// Character classes of the split patterns, by code point: a byte per block of 256, then the distinct blocks.
/// The numbers are those of `split::Class`.
fn write_classes(out: &Path) -> Result<(), Failure> {
    let mut classes = vec![0u8; 0x11_0000];
    for (pattern, class) in [
        (r"[\p{Lu}\p{Lt}]", 1),
        (r"\p{Ll}", 2),
        (r"[\p{Lm}\p{Lo}]", 3),
        (r"\p{M}", 4),
        (r"\p{N}", 5),
        (r"\s", 6),
        (r"[\r\n]", 7),
    ] {
        let parsed = regex_syntax::parse(pattern)?;
        let HirKind::Class(Class::Unicode(ranges)) = parsed.kind() else {
            return Err(format!("{pattern} is no class of characters").into());
        };
        for range in ranges.ranges() {
            classes[range.start() as usize..=range.end() as usize].fill(class);
        }
    }
    let mut blocks: Vec<&[u8]> = Vec::new();
    let mut index = Vec::new();
    for block in classes.chunks_exact(256) {
        let position = blocks.iter().position(|known| *known == block).unwrap_or_else(|| {
            blocks.push(block);
            blocks.len() - 1
        });
        index.push(u8::try_from(position)?);
    }
    fs::write(out.join("classes.index"), index)?;
    fs::write(out.join("classes.blocks"), blocks.concat())?;
    Ok(())
}
