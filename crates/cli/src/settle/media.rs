//! Generated images, audio and video beside the text of each turn.

use aiperf_config::{
    AudioFormat, EndpointKind, ImageFormat, ImageSampling, ImageSource, Normal, SyntheticAudio,
    SyntheticImages, SyntheticMedia, SyntheticVideo, VideoContainer, VideoKind, VideoSound,
};

use super::dataset::to_u32;
use super::{Note, refuse_all};
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

const VIDEO_BATCH: &str = "--video-batch-size";
const VIDEO_WIDTH: &str = "--video-width";
const VIDEO_HEIGHT: &str = "--video-height";
const DURATION: &str = "--video-duration";
const FPS: &str = "--video-fps";
const CHANNELS: &str = "--video-audio-num-channels";
const SOUND_CODEC: &str = "--video-audio-codec";
const SOUND_RATE: &str = "--video-audio-sample-rate";
const SOUND_DEPTH: &str = "--video-audio-depth";
/// Flags that ask for videos.
const VIDEO: [&str; 12] = [
    VIDEO_BATCH,
    VIDEO_WIDTH,
    VIDEO_HEIGHT,
    DURATION,
    FPS,
    "--video-synth-type",
    "--video-format",
    "--video-codec",
    CHANNELS,
    SOUND_CODEC,
    SOUND_RATE,
    SOUND_DEPTH,
];

/// Sample rates that MP3 has, Hz.
const MP3_RATES: [u32; 9] = [8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000];
/// No video has more frames a second.
const MOST_FPS: u64 = 1000;
/// The shortest clip, seconds.
const SHORTEST: f64 = 0.01;
/// No clip is longer on average, seconds.
const LONGEST: f64 = 3600.0;
/// No image is wider or higher, pixels.
pub(super) const LARGEST: f64 = 16_384.0;
/// A rate above is in Hz, not in kHz.
const MOST_KHZ: f64 = 96.0;

pub(super) fn settle(
    typed: &Typed,
    kind: EndpointKind,
    notes: &mut Vec<Note>,
) -> Result<SyntheticMedia, UsageError> {
    if kind != EndpointKind::Chat {
        let needs = format!("needs an endpoint with messages; {} has no place for it", kind.name());
        for flags in [&IMAGES[..], &AUDIO, &VIDEO] {
            refuse_all(typed, flags, &needs, "use --endpoint-type chat, or drop it")?;
        }
    }
    let media = SyntheticMedia { images: images(typed)?, audio: audio(typed)?, video: video(typed)? };
    for (is_off, what, flags, sizes) in [
        (media.images.is_none(), "images", &IMAGES[..], &[IMAGE_BATCH, WIDTH, HEIGHT][..]),
        (media.audio.is_none(), "audio", &AUDIO, &[AUDIO_BATCH, LENGTH]),
        (media.video.is_none(), "video", &VIDEO, &[VIDEO_BATCH]),
    ] {
        if is_off {
            notes.extend(switched_off(typed, what, flags, sizes));
        }
    }
    Ok(media)
}

/// Refuses what shapes generated media where the data of `flag` bring their own. The sizes of batches are another matter.
pub(super) fn refuse(typed: &Typed, flag: &str) -> Result<(), UsageError> {
    for flags in [&IMAGES[1..], &AUDIO[1..], &VIDEO[1..]] {
        refuse_all(
            typed,
            flags,
            &format!("shapes generated media, and {flag} brings its own"),
            &format!("drop it, or drop {flag}"),
        )?;
    }
    Ok(())
}

/// Says what has no effect beside a size of 0, which switches generated media off.
fn switched_off(typed: &Typed, what: &str, flags: &[&'static str], sizes: &[&'static str]) -> Option<Note> {
    let zero = |flag: &&&'static str| typed.count(flag) == Some(0) || typed.number(flag) == Some(0.0);
    let off = sizes.iter().find(zero)?;
    let others = flags.iter().filter(|flag| typed.has(flag) && !(sizes.contains(flag) && zero(flag)));
    let others: Vec<&str> = others.map(|flag| typed.name(flag)).collect();
    let change = if others.len() == 1 { "changes" } else { "change" };
    (!others.is_empty()).then(|| {
        Note::warning(format!(
            "{} 0 switches generated {what} off: {} {change} nothing",
            typed.name(off),
            others.join(", ")
        ))
    })
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
            format!("{} {mean:?} is not from {SHORTEST} to {LONGEST} seconds", typed.name(LENGTH)),
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
    let format = match typed.text("--audio-format") {
        Some("mp3") => AudioFormat::Mp3,
        _ => AudioFormat::Wav,
    };
    let sample_rates = if rates.is_empty() { vec![16_000] } else { rates };
    if let (AudioFormat::Mp3, Some(rate)) =
        (format, sample_rates.iter().find(|rate| !MP3_RATES.contains(rate)))
    {
        return Err(UsageError::combination(
            format!("--audio-sample-rates {}: MP3 has no such rate", f64::from(*rate) / 1000.0),
            format!(
                "give one of {} kHz, or use --audio-format wav",
                MP3_RATES.map(|rate| (f64::from(rate) / 1000.0).to_string()).join(", ")
            ),
        ));
    }
    Ok(Some(SyntheticAudio {
        count: to_u32(typed, AUDIO_BATCH)(count)?,
        length: Normal { mean, stddev: typed.number("--audio-length-stddev").unwrap_or(0.0) },
        sample_rates,
        depths: if depths.is_empty() { vec![16] } else { depths },
        channels: channels as u8,
        format,
    }))
}

fn video(typed: &Typed) -> Result<Option<SyntheticVideo>, UsageError> {
    let Some(flag) = given(typed, &VIDEO) else { return Ok(None) };
    let count = typed.count(VIDEO_BATCH).unwrap_or(1);
    if count == 0 {
        return Ok(None);
    }
    let side = |name: &'static str| match typed.count(name) {
        None => Err(missing(typed, flag, name, "a video has a width and a height")),
        Some(pixels) if pixels as f64 > LARGEST => Err(UsageError::combination(
            format!("{name} {pixels} is more than {LARGEST} pixels"),
            "give a smaller one",
        )),
        Some(pixels) => Ok(pixels as u16),
    };
    let (width, height) = (side(VIDEO_WIDTH)?, side(VIDEO_HEIGHT)?);
    let seconds = typed.number(DURATION).unwrap_or(5.0);
    if seconds > LONGEST {
        return Err(UsageError::combination(
            format!("{DURATION} {seconds} is more than {LONGEST} seconds"),
            "give a shorter one",
        ));
    }
    let fps = typed.count(FPS).unwrap_or(4);
    if fps > MOST_FPS {
        return Err(UsageError::combination(
            format!("{FPS} {fps} is more than {MOST_FPS} frames a second"),
            "give fewer",
        ));
    }
    let container = match typed.text("--video-format") {
        Some("mp4") => VideoContainer::Mp4,
        _ => VideoContainer::Webm,
    };
    Ok(Some(SyntheticVideo {
        count: to_u32(typed, VIDEO_BATCH)(count)?,
        width,
        height,
        seconds,
        fps: fps as u32,
        kind: match typed.text("--video-synth-type") {
            Some("grid-clock") => VideoKind::GridClock,
            Some("noise") => VideoKind::Noise,
            _ => VideoKind::MovingShapes,
        },
        container,
        codec: typed.text("--video-codec").unwrap_or("libvpx-vp9").to_owned(),
        sound: sound(typed, container)?,
    }))
}

/// The sound of videos; none without channels.
fn sound(typed: &Typed, container: VideoContainer) -> Result<Option<VideoSound>, UsageError> {
    let channels = typed.count(CHANNELS).unwrap_or(0);
    if channels == 0 {
        return match given(typed, &[SOUND_CODEC, SOUND_RATE, SOUND_DEPTH]) {
            None => Ok(None),
            Some(flag) => Err(UsageError::combination(
                format!("{flag} shapes the sound of a video, and {CHANNELS} 0 means it has none"),
                format!("add {CHANNELS} 1 or 2, or drop {flag}"),
            )),
        };
    }
    if channels > 2 {
        return Err(UsageError::combination(
            format!("{CHANNELS} {channels} is neither mono nor stereo"),
            "give 0, 1 or 2",
        ));
    }
    let sample_rate = typed.count(SOUND_RATE).unwrap_or(44_100);
    if !(1000..=384_000).contains(&sample_rate) {
        return Err(UsageError::combination(
            format!("{SOUND_RATE} {sample_rate} is not from 1000 to 384000 Hz"),
            "give another rate",
        ));
    }
    let codec = typed.text(SOUND_CODEC).unwrap_or(match container {
        VideoContainer::Webm => "libvorbis",
        VideoContainer::Mp4 => "libopus",
    });
    if container == VideoContainer::Webm && codec == "aac" {
        return Err(UsageError::combination(
            format!("{SOUND_CODEC} aac has no place in WebM"),
            "give libvorbis or libopus, or add --video-format mp4",
        ));
    }
    Ok(Some(VideoSound {
        channels: channels as u8,
        sample_rate: sample_rate as u32,
        depth: typed.text(SOUND_DEPTH).and_then(|depth| depth.parse().ok()).unwrap_or(16),
        codec: codec.to_owned(),
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
        _ => "a rate from 1 to 96 kHz, or from 1000 to 768000 Hz",
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
