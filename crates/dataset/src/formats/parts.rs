//! Texts and media of a record, singular or plural, plain or in named groups: the part that `single_turn`,
//! `multi_turn` and `random_pool` have in common.

use std::sync::Arc;

use aiperf_types::{Content, Media, MediaKind, Ranked, TextGroup};

use super::media;
use crate::json::{self, Fault, Field};
use crate::record::Problem;

/// The keys of this part, in the order of [`PartFields`].
pub(crate) const PART_KEYS: [&str; 9] =
    ["text", "texts", "image", "images", "audio", "audios", "video", "videos", "image_uuids"];

/// The values of [`PART_KEYS`].
pub(crate) type PartFields<'a> = [Field<'a>; 9];

const IMAGES: usize = 3;
const UUIDS: usize = 8;

/// Texts, images, audio, video: the order of everything that is counted by modality.
pub(crate) const MODALITIES: usize = 4;
const KINDS: [Option<MediaKind>; MODALITIES] =
    [None, Some(MediaKind::Image), Some(MediaKind::Audio), Some(MediaKind::Video)];

/// What a record holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holds {
    /// Items of each modality that are not empty.
    pub(crate) items: [u32; MODALITIES],
    /// Some group was given a name by the author.
    pub(crate) named: bool,
    /// Images have identities.
    pub(crate) uuids: bool,
}

impl Holds {
    pub(crate) fn any(self) -> bool {
        self.uuids || self.items.iter().any(|count| *count > 0)
    }

    pub(crate) fn media(self) -> bool {
        self.uuids || self.items[1..].iter().any(|count| *count > 0)
    }
}

/// Checks the rules of texts and media: at least one is there, not both of a pair, lists of one kind.
pub(crate) fn check(fields: &PartFields<'_>) -> Result<Holds, Fault> {
    let mut holds = Holds::default();
    for (modality, kind) in KINDS.iter().enumerate() {
        let (one, many) = (fields[2 * modality], fields[2 * modality + 1]);
        if one.is_some() && many.is_some() {
            let (one, many) = (PART_KEYS[2 * modality], PART_KEYS[2 * modality + 1]);
            return Err(Fault::new(
                one,
                format!("`{one}` and `{many}` exclude each other; keep one of them"),
            ));
        }
        items(modality, fields, |name, field, text| {
            holds.named |= name.is_some();
            if json::check_string(field, text)? {
                holds.items[modality] += 1;
                if let Some(kind) = kind {
                    media::check(*kind, field, &json::string(field, text)?)?;
                }
            }
            Ok(())
        })?;
    }
    if let Some(uuids) = fields[UUIDS] {
        check_uuids(uuids, fields)?;
        holds.uuids = true;
    }
    if !holds.any() {
        return Err(Fault::new(
            "",
            "there is nothing to send: give at least one of `text`, `texts`, `image`, `images`, `audio`, `audios`, \
             `video`, `videos` that is not empty",
        ));
    }
    Ok(holds)
}

fn check_uuids(text: &str, fields: &PartFields<'_>) -> Result<(), Fault> {
    let name = PART_KEYS[UUIDS];
    if fields[IMAGES - 1].is_some() {
        return Err(Fault::new(name, "goes with `images`, not with `image`"));
    }
    let uuids = json::list(name, text)?;
    if uuids.is_empty() {
        return Err(Fault::new(name, "must not be an empty list; leave it out"));
    }
    for uuid in &uuids {
        if !json::check_string(name, uuid)? {
            return Err(Fault::new(name, "must hold strings that are not empty"));
        }
    }
    if let Some(images) = fields[IMAGES] {
        let images = json::list(PART_KEYS[IMAGES], images)?;
        if images.iter().any(|image| !image.starts_with('"')) {
            return Err(Fault::new(name, "goes with `images` as a list of strings, not of named groups"));
        }
        if images.len() != uuids.len() {
            return Err(Fault::new(
                name,
                format!(
                    "has {} item(s) and `images` has {}; they must be as many",
                    uuids.len(),
                    images.len()
                ),
            ));
        }
    }
    Ok(())
}

/// Whether there is a query, and whether there are passages, for endpoints that rank; texts that are neither are a
/// fault. Groups without a name of their own have `default_name`.
pub(crate) fn ranked(fields: &PartFields<'_>, default_name: Option<&str>) -> Result<(bool, bool), Fault> {
    let (mut query, mut passages) = (false, false);
    groups(0, fields, |field, name, contents| {
        let name = match name {
            Some(name) => json::string("name", name)?.into_owned(),
            None => default_name.unwrap_or_default().to_owned(),
        };
        let found = match Ranked::named(&name) {
            Some(Ranked::Query) => &mut query,
            Some(Ranked::Passages) => &mut passages,
            None => {
                let what = if name.is_empty() { "without a name".into() } else { format!("named `{name}`") };
                return Err(Fault::new(field, format!("has texts {what}; {RANKED_NAMES}")));
            }
        };
        for content in contents {
            *found |= json::check_string(field, content)?;
        }
        Ok(())
    })?;
    Ok((query, passages))
}

/// What endpoints that rank take.
pub(crate) const RANKED_NAMES: &str =
    "endpoints that rank take groups of texts: one named `query`, one named `passages`";

/// Visits the contents of one modality: group name (JSON text), field, content (JSON text).
fn items<'a>(
    modality: usize,
    fields: &PartFields<'a>,
    mut visit: impl FnMut(Field<'a>, &'static str, &'a str) -> Result<(), Fault>,
) -> Result<(), Fault> {
    groups(modality, fields, |field, name, contents| {
        contents.iter().try_for_each(|content| visit(name, field, content))
    })
}

/// Visits the groups of one modality: field, name (JSON text), contents (JSON texts).
fn groups<'a>(
    modality: usize,
    fields: &PartFields<'a>,
    mut visit: impl FnMut(&'static str, Field<'a>, &[&'a str]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    if let Some(text) = fields[2 * modality] {
        visit(PART_KEYS[2 * modality], None, &[text])?;
    }
    let Some(text) = fields[2 * modality + 1] else { return Ok(()) };
    let field = PART_KEYS[2 * modality + 1];
    let elements = json::list(field, text)?;
    if elements.iter().all(|element| !element.starts_with('{')) {
        return if elements.is_empty() { Ok(()) } else { visit(field, None, &elements) };
    }
    for element in elements {
        if !element.starts_with('{') {
            return Err(Fault::new(field, "must be a list of strings or a list of objects, not of both"));
        }
        let [name, contents] =
            json::object(element, &["name", "contents"]).map_err(|fault| fault.within(field))?;
        if let Some(name) = name {
            json::check_string("name", name).map_err(|fault| fault.within(field))?;
        }
        let Some(contents) = contents else {
            return Err(Fault::new(field, "every group needs `contents`, a list of strings"));
        };
        visit(field, name, &json::list("contents", contents).map_err(|fault| fault.within(field))?)?;
    }
    Ok(())
}

/// Texts and media, decoded. Groups without a name of their own get `default_name`.
pub(crate) fn content(fields: &PartFields<'_>, default_name: Option<&Arc<str>>) -> Result<Content, Problem> {
    let mut texts = Vec::new();
    groups(0, fields, |field, name, contents| {
        let contents = contents
            .iter()
            .map(|text| json::string(field, text).map(|text| Arc::from(&*text)))
            .collect::<Result<Vec<Arc<str>>, Fault>>()?;
        texts.push(TextGroup { name: group_name(name, default_name)?, contents });
        Ok(())
    })?;
    let mut media = Vec::new();
    for (modality, kind) in KINDS.iter().enumerate() {
        let Some(kind) = *kind else { continue };
        groups(modality, fields, |field, name, contents| {
            let name = group_name(name, default_name)?;
            for text in contents {
                let content = media::load(kind, field, &json::string(field, text)?)?;
                media.push(Media { kind, name: name.clone(), content, uuid: None });
            }
            Ok(())
        })?;
    }
    if let Some(uuids) = fields[UUIDS] {
        let uuids = json::list(PART_KEYS[UUIDS], uuids)?;
        if fields[IMAGES].is_none() {
            let blank = Media { kind: MediaKind::Image, name: None, content: Arc::from(""), uuid: None };
            media.splice(0..0, uuids.iter().map(|_| blank.clone()));
        }
        for (image, uuid) in media.iter_mut().zip(uuids) {
            image.uuid = Some(json::string(PART_KEYS[UUIDS], uuid)?.into());
        }
    }
    Ok(Content::Parts { texts, media })
}

fn group_name(name: Field<'_>, default_name: Option<&Arc<str>>) -> Result<Option<Arc<str>>, Fault> {
    match name {
        Some(name) => Ok(Some(json::string("name", name)?.into())),
        None => Ok(default_name.cloned()),
    }
}

/// Item `index` of one modality, empty ones not counted, decoded: for pools that are drawn from flat.
pub(crate) fn item(fields: &PartFields<'_>, modality: usize, index: u32) -> Result<Option<Arc<str>>, Fault> {
    let mut seen = 0;
    let mut wanted = None;
    items(modality, fields, |_, field, text| {
        if text.len() > 2 {
            if seen == index {
                wanted = Some(match KINDS[modality] {
                    None => Arc::from(&*json::string(field, text)?),
                    Some(kind) => media::load(kind, field, &json::string(field, text)?)?,
                });
            }
            seen += 1;
        }
        Ok(())
    })?;
    Ok(wanted)
}

/// The kind of media of a modality; none for texts.
pub(crate) fn kind_of(modality: usize) -> Option<MediaKind> {
    KINDS[modality]
}
