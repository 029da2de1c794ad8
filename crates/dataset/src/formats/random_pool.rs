//! `random_pool`: conversations of one turn, drawn from pools of texts and media. A file is a pool; so is every
//! file of a folder.

use std::sync::Arc;

use aiperf_config::FileFormat;
use aiperf_tokenize::seed::{Streams, below};
use aiperf_types::{Content, ContextMode, Conversation, Media, TextGroup, Turn};

use super::parts::{self, Holds, MODALITIES, PART_KEYS, PartFields, RANKED_NAMES};
use super::single_turn::takes_media;
use super::{Files, Folder, Format};
use crate::file::Finish;

use crate::index::{collect, row_fault};
use crate::json::{self, Fault};
use crate::look::{Look, is_hidden, stem};
use crate::open::{Opening, Sources};
use crate::record::{Problem, Row, check_type};
use crate::source::{Lines, SourceFile};
use crate::{Dataset, DatasetError, Len, Outline, Place, TurnOutline};

pub(crate) const FORMAT: Format = Format {
    writes_inputs: true,
    ranks: true,
    options: &[
        "--osl",
        "--num-dataset-entries",
        "--prompt-batch-size",
        "--image-batch-size",
        "--audio-batch-size",
        "--video-batch-size",
    ],
    fits: |format, look| {
        if look.is_folder() {
            let mut entries = look.files(|file| !is_hidden(file)).map(|file| is_entry(&file)).peekable();
            entries.peek().is_some() && entries.all(|is_entry| is_entry)
        } else {
            look.claims(format.name()) && is_entry(look)
        }
    },
    folder: Folder::Files(|file| !is_hidden(file)),
    ..Format::new(FileFormat::RandomPool, Files::Jsonl, "one entry of a pool", open)
};

/// Whether the first record of a file is an entry.
fn is_entry(look: &Look) -> bool {
    look.record().is_some_and(|(line, _)| entry(line).is_ok())
}

/// Conversations when no flag says how many.
const DEFAULT_DRAWS: u64 = 100;

const KEYS: [&str; 10] = {
    let mut keys = ["type"; 10];
    let mut at = 0;
    while at < PART_KEYS.len() {
        keys[at] = PART_KEYS[at];
        at += 1;
    }
    keys
};

/// An entry, taken apart and checked.
fn entry(text: &str) -> Result<(PartFields<'_>, Holds), Fault> {
    let all = json::object(text, &KEYS)?;
    let mut fields = PartFields::default();
    fields.copy_from_slice(&all[..PART_KEYS.len()]);
    check_type(all[PART_KEYS.len()], "random_pool")?;
    let holds = parts::check(&fields)?;
    if holds.uuids {
        return Err(Fault::new("image_uuids", "does not belong in a random_pool entry; leave it out"));
    }
    Ok((fields, holds))
}

/// The entries of one file.
struct Pool {
    name: Arc<str>,
    entries: Vec<Row>,
}

/// Where the items of one modality are, all entries of a single pool taken together.
#[derive(Default)]
struct Flat {
    /// Items up to and including each entry.
    ends: Vec<u64>,
}

impl Flat {
    fn add(&mut self, items: u32) {
        let before = self.total();
        self.ends.push(before + u64::from(items));
    }

    fn total(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Entry of item `index`, and its place there.
    fn find(&self, index: u64) -> (usize, u32) {
        let entry = self.ends.partition_point(|end| *end <= index);
        let before = if entry == 0 { 0 } else { self.ends[entry - 1] };
        (entry, (index - before) as u32)
    }
}

struct RandomPool {
    files: Arc<[SourceFile]>,
    pools: Vec<Pool>,
    /// Present when batch sizes are drawn item by item.
    batch: Option<([u32; MODALITIES], [Flat; MODALITIES])>,
    draws: u64,
    /// Entries are not drawn: every one is a conversation.
    each: bool,
    streams: Streams,
    finish: Finish,
}

/// Reads pools.
fn open(opening: Opening<'_>) -> Result<Arc<dyn Dataset>, DatasetError> {
    let Sources { files, is_folder, .. } = opening.sources()?;
    let endpoint = opening.context.endpoint;
    let survey = opening.context.survey;
    let mut records = 0;
    // Items of each modality that a conversation draws.
    let batch = if is_folder { [1; MODALITIES] } else { opening.file.pool_batch };
    let mut pools = Vec::with_capacity(files.len());
    let mut flat: [Flat; MODALITIES] = Default::default();
    let mut authored = false;
    let mut ranked = (false, false);
    for (number, file) in files.iter().enumerate() {
        let name = stem(&file.path);
        // Whether each entry has a query, and whether each has passages.
        let mut all_ranked = (true, true);
        let mut entries = Vec::new();
        let mut lines = Lines::new(file)?;
        while let Some(line) = lines.next(file)? {
            let fault = |fault: Fault| {
                DatasetError::invalid(&file.path, Place::Line(line.number), fault.field, fault.rule)
            };
            records += 1;
            let holds = std::str::from_utf8(line.bytes)
                .map_err(|_| Fault::new("", "not valid UTF-8; save the file as UTF-8"))
                .and_then(|text| {
                    let (fields, holds) = entry(text)?;
                    let ranked =
                        if endpoint.ranks() { parts::ranked(&fields, Some(&name))? } else { (false, false) };
                    Ok((holds, ranked))
                });
            let holds = match holds {
                Ok((holds, (query, passages))) => {
                    all_ranked = (all_ranked.0 && query, all_ranked.1 && passages);
                    holds
                }
                Err(rule) => {
                    collect(survey, fault(rule))?;
                    continue;
                }
            };
            if holds.media() && !takes_media(endpoint) {
                let rule =
                    format!("the {} endpoint cannot carry media; use --endpoint-type chat", endpoint.name());
                return Err(fault(Fault::new("", rule)));
            }
            authored |= holds.named;
            for (flat, items) in flat.iter_mut().zip(holds.items) {
                flat.add(items);
            }
            entries.push(Row::new(number as u16, line.offset, line.bytes.len() as u32, None, None, 0));
        }
        if entries.is_empty() {
            return Err(DatasetError::Empty(format!("{}: the pool has no entries", file.path.display())));
        }
        ranked = (ranked.0 || all_ranked.0, ranked.1 || all_ranked.1);
        pools.push(Pool { name: name.into(), entries });
    }
    if let Some(survey) = survey {
        survey.count(records);
    }
    let occurs = |modality: usize| flat[modality].total() > 0;
    let batching = (0..MODALITIES).any(|modality| batch[modality] != 1 && occurs(modality));
    if endpoint.ranks() && (batching || ranked != (true, true)) {
        return Err(DatasetError::Unsuitable(format!(
            "{}: draws of it have not always a query and passages; {RANKED_NAMES}, in each entry or as files of a folder \
             with these names, without batch sizes",
            opening.file.path.display()
        )));
    }
    if batching {
        check_batching(&pools, authored, batch, occurs)?;
    }
    // Who only looks wants to see what is there.
    let each = survey.is_some();
    let entries = pools.iter().map(|pool| pool.entries.len() as u64).sum::<u64>();
    Ok(Arc::new(RandomPool {
        files,
        draws: if each {
            entries.min(opening.limit())
        } else {
            opening.file.entries.unwrap_or(DEFAULT_DRAWS)
        },
        each,
        pools,
        batch: batching.then_some((batch, flat)),
        streams: Streams::new(opening.context.seed, "dataset.pool"),
        finish: opening.finish,
    }))
}

fn check_batching(
    pools: &[Pool],
    authored: bool,
    batch: [u32; MODALITIES],
    occurs: impl Fn(usize) -> bool,
) -> Result<(), DatasetError> {
    let names: Vec<&str> = pools.iter().map(|pool| &*pool.name).collect();
    if pools.len() > 1 {
        return Err(DatasetError::Unsuitable(format!(
            "batch sizes draw from one pool, and there are the pools {}; name one file with --input-file, or leave \
             --prompt-batch-size and --image/audio/video-batch-size out",
            names.join(", ")
        )));
    }
    if authored {
        return Err(DatasetError::Unsuitable(format!(
            "batch sizes draw single items, and entries of the pool {} have named groups; leave --prompt-batch-size \
             and --image/audio/video-batch-size out",
            names.join(", ")
        )));
    }
    if !(0..MODALITIES).any(|modality| batch[modality] > 0 && occurs(modality)) {
        return Err(DatasetError::Unsuitable(
            "nothing is left to send: --prompt-batch-size, --image-batch-size, --audio-batch-size and \
             --video-batch-size are 0 for everything that the pool has"
                .into(),
        ));
    }
    Ok(())
}

impl RandomPool {
    fn with_entry<T>(
        &self,
        row: Row,
        read: impl FnOnce(&PartFields<'_>) -> Result<T, Problem>,
    ) -> Result<T, DatasetError> {
        let mut bytes = vec![0; row.length as usize];
        self.files[row.file()].read_at(row.offset(), &mut bytes)?;
        let result = match std::str::from_utf8(&bytes) {
            Ok(text) => entry(text).map_err(Problem::from).and_then(|(fields, _)| read(&fields)),
            Err(_) => Err(Fault::new("", "not valid UTF-8").into()),
        };
        result.map_err(|problem| match problem {
            Problem::Fault(fault) => row_fault(&self.files, row, fault),
            Problem::Error(error) => error,
        })
    }

    /// Entry `index` of all pools, one after the other.
    fn entry(&self, index: u64) -> Result<Content, DatasetError> {
        let mut left = index as usize;
        for pool in &self.pools {
            match pool.entries.get(left) {
                Some(row) => {
                    return self.with_entry(*row, |fields| parts::content(fields, Some(&pool.name)));
                }
                None => left -= pool.entries.len(),
            }
        }
        panic!("conversation {index} of {}", self.draws)
    }

    fn entries(&self, index: u64) -> Result<Content, DatasetError> {
        let mut stream = self.streams.at(index);
        let (mut texts, mut media) = (Vec::new(), Vec::new());
        for pool in &self.pools {
            let row = pool.entries[below(&mut stream, pool.entries.len() as u64) as usize];
            let content = self.with_entry(row, |fields| parts::content(fields, Some(&pool.name)))?;
            if let Content::Parts { texts: more_texts, media: more_media } = content {
                texts.extend(more_texts);
                media.extend(more_media);
            }
        }
        // Pool by pool, but in the order of kinds that requests have.
        media.sort_by_key(|item: &Media| item.kind as u8);
        Ok(Content::Parts { texts, media })
    }

    fn items(
        &self,
        index: u64,
        batch: [u32; MODALITIES],
        flat: &[Flat; MODALITIES],
    ) -> Result<Content, DatasetError> {
        let mut stream = self.streams.at(index);
        let (mut contents, mut media) = (Vec::new(), Vec::new());
        for modality in 0..MODALITIES {
            let total = flat[modality].total();
            let count = if total == 0 { 0 } else { batch[modality] };
            for _ in 0..count {
                self.finish.stop().go_on()?;
                let (entry, place) = flat[modality].find(below(&mut stream, total));
                let row = self.pools[0].entries[entry];
                let item = self.with_entry(row, |fields| Ok(parts::item(fields, modality, place)?))?;
                let Some(content) = item else { continue };
                match parts::kind_of(modality) {
                    None => contents.push(content),
                    Some(kind) => media.push(Media { kind, name: None, content, uuid: None }),
                }
            }
        }
        let texts = if contents.is_empty() { Vec::new() } else { vec![TextGroup { name: None, contents }] };
        Ok(Content::Parts { texts, media })
    }
}

impl Dataset for RandomPool {
    fn len(&self) -> Len {
        Len::Exact(self.draws)
    }

    fn outline(&self, _index: u64) -> Outline {
        Outline::one(TurnOutline::default())
    }

    fn build(&self, index: u64) -> Result<Conversation, DatasetError> {
        let content = match &self.batch {
            _ if self.each => self.entry(index)?,
            None => self.entries(index)?,
            Some((batch, flat)) => self.items(index, *batch, flat)?,
        };
        let mut conversation = Conversation {
            id: self.finish.names().generate(index),
            turns: vec![Turn { content, ..Turn::default() }],
            context_mode: ContextMode::DeltasWithoutResponses,
            ..Conversation::default()
        };
        self.finish.apply(index, &mut conversation);
        Ok(conversation)
    }

    fn total_turns(&self) -> Option<u64> {
        Some(self.draws)
    }
}
