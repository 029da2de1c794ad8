//! Generated images and audio beside the text of each turn.

use aiperf_config::{
    EndpointKind, ImageFormat, ImageSampling, ImageSource, Normal, SyntheticAudio, SyntheticImages,
    SyntheticMedia,
};

use super::dataset::to_u32;
use super::refuse_all;
use crate::typed::Typed;
use crate::usage::UsageError;

const IMAGE_BATCH: &str = "--image-batch-size";
const WIDTH: &str = "--image-width-mean";
const HEIGHT: &str = "--image-height-mean";
const SOURCE: &str = "--image-source";
const SAMPLING: &str = "--image-source-sampling";
/// Flags that ask for images.
const IMAGES: [&str; 8] = [
    IMAGE_BATCH,
    WIDTH,
    HEIGHT,
    "--image-width-stddev",
    "--image-height-stddev",
    "--image-format",
    SOURCE,
    SAMPLING,
];

const AUDIO_BATCH: &str = "--audio-batch-size";
const LENGTH: &str = "--audio-length-mean";
/// Flags that ask for audio.
const AUDIO: [&str; 7] = [
    AUDIO_BATCH,
    LENGTH,
    "--audio-length-stddev",
    "--audio-format",
    "--audio-depths",
    "--audio-sample-rates",
    "--audio-num-channels",
];

/// The shortest clip, seconds.
const SHORTEST: f64 = 0.01;
/// No clip is longer on average, seconds.
const LONGEST: f64 = 3600.0;
/// No image is wider or higher on average, pixels.
const LARGEST: f64 = 16_384.0;
/// A rate above is in Hz, not in kHz.
const MOST_KHZ: f64 = 96.0;

pub(super) fn settle(typed: &Typed, kind: EndpointKind) -> Result<SyntheticMedia, UsageError> {
    if kind != EndpointKind::Chat {
        let needs = format!("needs an endpoint with messages; {} has no place for it", kind.name());
        for flags in [&IMAGES[..], &AUDIO] {
            refuse_all(typed, flags, &needs, "use --endpoint-type chat, or drop it")?;
        }
    }
    Ok(SyntheticMedia { images: images(typed)?, audio: audio(typed)? })
}

/// Refuses what shapes generated media where the data of `flag` bring their own. The sizes of batches are another matter.
pub(super) fn refuse(typed: &Typed, flag: &str) -> Result<(), UsageError> {
    for flags in [&IMAGES[1..], &AUDIO[1..]] {
        refuse_all(
            typed,
            flags,
            &format!("shapes generated media, and {flag} brings its own"),
            &format!("drop it, or drop {flag}"),
        )?;
    }
    Ok(())
}

fn given<'a>(typed: &Typed, flags: &[&'a str]) -> Option<&'a str> {
    flags.iter().find(|flag| typed.has(flag)).copied()
}

fn missing(typed: &Typed, flag: &str, needed: &str, what: &str) -> UsageError {
    UsageError::combination(
        format!("{} needs {needed}: {what}", typed.name(flag)),
        format!("add {needed}, or drop {}", typed.name(flag)),
    )
}

fn images(typed: &Typed) -> Result<Option<SyntheticImages>, UsageError> {
    let Some(flag) = given(typed, &IMAGES) else { return Ok(None) };
    let count = typed.count(IMAGE_BATCH).unwrap_or(1);
    let off = |mean: Option<f64>| mean.is_some_and(|mean| mean <= 0.0);
    let (width, height) = (typed.number(WIDTH), typed.number(HEIGHT));
    if count == 0 || off(width) || off(height) {
        return Ok(None);
    }
    let source = match typed.text(SOURCE) {
        None => ImageSource::Noise,
        Some(text) if text.eq_ignore_ascii_case("noise") => ImageSource::Noise,
        Some(text) if text.eq_ignore_ascii_case("assets") => ImageSource::Assets,
        Some(folder) => ImageSource::Folder(folder.into()),
    };
    let side = |name: &'static str, mean: Option<f64>, stddev: &str| match mean {
        None => Err(missing(typed, flag, name, "an image has a width and a height")),
        Some(mean) if mean > LARGEST => Err(UsageError::combination(
            format!("{} {mean} is more than {LARGEST} pixels", typed.name(name)),
            "give a smaller one",
        )),
        Some(mean) => Ok(Normal { mean, stddev: typed.number(stddev).unwrap_or(0.0) }),
    };
    Ok(Some(SyntheticImages {
        count: to_u32(typed, IMAGE_BATCH)(count)?,
        width: side(WIDTH, width, "--image-width-stddev")?,
        height: side(HEIGHT, height, "--image-height-stddev")?,
        format: match typed.text("--image-format") {
            Some("jpeg") => ImageFormat::Jpeg,
            Some("random") => ImageFormat::Random,
            _ => ImageFormat::Png,
        },
        sampling: sampling(typed, source == ImageSource::Noise)?,
        source,
    }))
}

/// The order of pictures. Noise has none: each image of it is new.
fn sampling(typed: &Typed, is_noise: bool) -> Result<ImageSampling, UsageError> {
    let sampling = match typed.text(SAMPLING) {
        Some("shuffle-cycle") => ImageSampling::Shuffle,
        Some("sequential-cycle") => ImageSampling::Sequential,
        _ => return Ok(ImageSampling::Random),
    };
    if is_noise {
        return Err(UsageError::combination(
            format!("{SAMPLING} goes round pictures, and {SOURCE} noise has none: each image is new"),
            format!("add {SOURCE} assets or {SOURCE} FOLDER, or drop {SAMPLING}"),
        ));
    }
    Ok(sampling)
}

fn audio(typed: &Typed) -> Result<Option<SyntheticAudio>, UsageError> {
    let Some(flag) = given(typed, &AUDIO) else { return Ok(None) };
    let count = typed.count(AUDIO_BATCH).unwrap_or(1);
    let mean = typed.number(LENGTH);
    if count == 0 || mean.is_some_and(|mean| mean <= 0.0) {
        return Ok(None);
    }
    let Some(mean) = mean else { return Err(missing(typed, flag, LENGTH, "a clip has a length")) };
    if !(SHORTEST..=LONGEST).contains(&mean) {
        return Err(UsageError::combination(
            format!("{} {mean} is not from {SHORTEST} to {LONGEST} seconds", typed.name(LENGTH)),
            "give another length",
        ));
    }
    let channels = typed.count("--audio-num-channels").unwrap_or(1);
    if channels > 2 {
        return Err(UsageError::combination(
            format!("--audio-num-channels {channels} is neither mono nor stereo"),
            "give 1 or 2",
        ));
    }
    let rates = list(typed, "--audio-sample-rates", |rate| {
        let hz = if rate > MOST_KHZ { rate } else { rate * 1000.0 };
        (1000.0..=768_000.0).contains(&hz).then(|| hz.round() as u32)
    })?;
    let depths = list(typed, "--audio-depths", |depth| {
        [8u8, 16, 24, 32].into_iter().find(|it| (f64::from(*it) - depth).abs() < 1e-9)
    })?;
    Ok(Some(SyntheticAudio {
        count: to_u32(typed, AUDIO_BATCH)(count)?,
        length: Normal { mean, stddev: typed.number("--audio-length-stddev").unwrap_or(0.0) },
        sample_rates: if rates.is_empty() { vec![16_000] } else { rates },
        depths: if depths.is_empty() { vec![16] } else { depths },
        channels: channels as u8,
    }))
}

/// The numbers of a flag that is given several times, or with a list in brackets or commas.
pub(super) fn numbers(typed: &Typed, flag: &str) -> Vec<Result<f64, String>> {
    typed
        .texts(flag)
        .flat_map(|text| text.trim_matches(['[', ']', ' ']).split([',', ' ']))
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().map_err(|_| part.to_owned()))
        .collect()
}

fn list<T>(typed: &Typed, flag: &'static str, read: impl Fn(f64) -> Option<T>) -> Result<Vec<T>, UsageError> {
    let rule = match flag {
        "--audio-depths" => "8, 16, 24 or 32 bits",
        _ => "a rate from 1 to 768 kHz (above 96 it is read as Hz)",
    };
    numbers(typed, flag)
        .into_iter()
        .map(|number| {
            let shown = number.as_ref().map_or_else(Clone::clone, ToString::to_string);
            number.ok().and_then(&read).ok_or_else(|| {
                UsageError::combination(format!("{flag} {shown} is not {rule}"), "give another value")
            })
        })
        .collect()
}
