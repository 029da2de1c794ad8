//! How much one generated conversation may hold. It is in memory as a whole, and so are those made ahead of it: a slip
//! in a length or a count must not fill the host.

use aiperf_config::{Lengths, Normal, SyntheticDataset};

use crate::typed::Typed;
use crate::usage::UsageError;

/// Tokens of all texts. No model takes as many.
const MOST_TOKENS: f64 = 2e7;
/// A text takes the room of so many tokens, however short it is.
const LEAST_TOKENS: f64 = 10.0;
/// Tokens of all prefixes that are chosen from.
const MOST_PREFIX_TOKENS: f64 = 1e8;
/// The same where each is made before the run, as another benchmark draws them.
const MOST_IMITATED_TOKENS: f64 = 1e7;
/// Pixels of all images, and of a frame of a video.
const MOST_PIXELS: f64 = 1e8;
/// An image takes the room of so many pixels, however small it is.
const LEAST_PIXELS: f64 = 1e3;
/// Bytes of all samples of sound.
const MOST_SOUND: f64 = 3e8;
/// A clip takes the room of so many bytes, however short it is.
const LEAST_SOUND: f64 = 3e3;
/// Pixels of all frames of all videos.
const MOST_FRAMES: f64 = 1e10;
/// A video takes the room of so many pixels, however small it is.
const LEAST_FRAMES: f64 = 1e5;
/// Longest pause between two turns, ms: a week.
const LONGEST_PAUSE: f64 = 7.0 * 86_400e3;
/// A draw is hardly ever so many deviations above its mean.
const DEVIATIONS: f64 = 4.0;

const TURNS: [&str; 2] = ["--conversation-turn-mean", "--conversation-turn-stddev"];

/// Refuses what no memory holds.
pub(super) fn check(typed: &Typed, shape: &SyntheticDataset) -> Result<(), UsageError> {
    let turns = high(shape.turns).max(1.0);
    texts(typed, shape, turns)?;
    prefixes(typed, shape)?;
    images(typed, shape, turns)?;
    sound(typed, shape, turns)?;
    videos(typed, shape, turns)?;
    let pause = high(shape.turn_delay) * shape.turn_delay_ratio;
    refuse_above(
        LONGEST_PAUSE,
        pause,
        typed,
        "milliseconds between two turns",
        &[
            "--conversation-turn-delay-mean",
            "--conversation-turn-delay-stddev",
            "--conversation-turn-delay-ratio",
        ],
    )
}

/// What hardly any draw exceeds.
fn high(normal: Normal) -> f64 {
    normal.mean.max(0.0) + DEVIATIONS * normal.stddev.max(0.0)
}

/// Refuses `value`, which the flags among `flags` that were given bring about.
fn refuse_above(
    most: f64,
    value: f64,
    typed: &Typed,
    what: &str,
    flags: &[&'static str],
) -> Result<(), UsageError> {
    if value <= most {
        return Ok(());
    }
    let given: Vec<&str> = flags.iter().filter(|flag| typed.has(flag)).map(|flag| typed.name(flag)).collect();
    let come = if given.len() == 1 { "comes" } else { "come" };
    Err(UsageError::combination(
        format!("{} {come} to {value:.0} {what}, and {most:.0} at most are made", given.join(", ")),
        "give smaller values; deviations count four times",
    ))
}

fn texts(typed: &Typed, shape: &SyntheticDataset, turns: f64) -> Result<(), UsageError> {
    if let Some(rankings) = &shape.rankings {
        let tokens = high(rankings.passages).max(1.0) * high(rankings.passage_tokens).max(LEAST_TOKENS)
            + high(rankings.query_tokens);
        return refuse_above(
            MOST_TOKENS,
            tokens,
            typed,
            "tokens in one request",
            &[
                "--rankings-passages-mean",
                "--rankings-passages-stddev",
                "--rankings-passages-prompt-token-mean",
                "--rankings-passages-prompt-token-stddev",
                "--rankings-query-prompt-token-mean",
                "--rankings-query-prompt-token-stddev",
            ],
        );
    }
    let longest = match &shape.lengths {
        Lengths::Normal(length) => high(*length),
        Lengths::Pairs(pairs) => pairs.list().iter().map(|pair| high(pair.input)).fold(0.0, f64::max),
        Lengths::Range(range) => range.input as f64 * (1.0 + range.input_ratio),
    };
    let length = |tokens: Option<u32>| f64::from(tokens.unwrap_or(0));
    let prefix = length(shape.prefix_pool.map(|(_, tokens)| tokens));
    let before = length(shape.shared_system_prompt_length) + length(shape.user_context_prompt_length);
    let batch = f64::from(shape.batch_size);
    let tokens = batch * (turns * longest.max(LEAST_TOKENS) + prefix) + before;
    refuse_above(
        MOST_TOKENS,
        tokens,
        typed,
        "tokens in one conversation",
        &[
            TURNS[0],
            TURNS[1],
            "--isl",
            "--isl-stddev",
            "--seq-dist",
            "--random-range-ratio",
            "--batch-size",
            "--prefix-prompt-length",
            "--shared-system-prompt-length",
            "--user-context-prompt-length",
        ],
    )
}

fn prefixes(typed: &Typed, shape: &SyntheticDataset) -> Result<(), UsageError> {
    let Some((count, length)) = shape.prefix_pool else { return Ok(()) };
    let tokens = f64::from(count) * f64::from(length);
    let imitated =
        matches!(shape.lengths, Lengths::Range(_)) && typed.text("--prompt-corpus") == Some("random");
    let most = if imitated { MOST_IMITATED_TOKENS } else { MOST_PREFIX_TOKENS };
    refuse_above(
        most,
        tokens,
        typed,
        "tokens of prefixes",
        &["--num-prefix-prompts", "--prefix-prompt-length"],
    )
}

fn images(typed: &Typed, shape: &SyntheticDataset, turns: f64) -> Result<(), UsageError> {
    let Some(images) = &shape.media.images else { return Ok(()) };
    // Draws are cut at the longest side.
    let side = |normal| high(normal).min(super::media::LARGEST);
    let pixels = (side(images.width) * side(images.height)).max(LEAST_PIXELS);
    let all = turns * f64::from(images.count) * pixels;
    refuse_above(
        MOST_PIXELS,
        all,
        typed,
        "pixels of images in one conversation",
        &[
            "--image-width-mean",
            "--image-width-stddev",
            "--image-height-mean",
            "--image-height-stddev",
            "--image-batch-size",
            TURNS[0],
            TURNS[1],
        ],
    )
}

fn sound(typed: &Typed, shape: &SyntheticDataset, turns: f64) -> Result<(), UsageError> {
    let Some(audio) = &shape.media.audio else { return Ok(()) };
    let rate = audio.sample_rates.iter().copied().max().unwrap_or(0);
    let depth = audio.depths.iter().copied().max().unwrap_or(0);
    let second = bytes_of_a_second(rate, audio.channels, depth);
    let all = turns * f64::from(audio.count) * (high(audio.length) * second).max(LEAST_SOUND);
    refuse_above(
        MOST_SOUND,
        all,
        typed,
        "bytes of sound in one conversation",
        &[
            "--audio-length-mean",
            "--audio-length-stddev",
            "--audio-sample-rates",
            "--audio-depths",
            "--audio-num-channels",
            "--audio-batch-size",
            TURNS[0],
            TURNS[1],
        ],
    )
}

fn videos(typed: &Typed, shape: &SyntheticDataset, turns: f64) -> Result<(), UsageError> {
    let Some(video) = &shape.media.video else { return Ok(()) };
    let frame = f64::from(video.width) * f64::from(video.height);
    refuse_above(MOST_PIXELS, frame, typed, "pixels of a frame", &["--video-width", "--video-height"])?;
    let all = turns * f64::from(video.count) * (frame * video.frames() as f64).max(LEAST_FRAMES);
    refuse_above(
        MOST_FRAMES,
        all,
        typed,
        "pixels of videos in one conversation",
        &[
            "--video-width",
            "--video-height",
            "--video-duration",
            "--video-fps",
            "--video-batch-size",
            TURNS[0],
            TURNS[1],
        ],
    )?;
    let Some(sound) = &video.sound else { return Ok(()) };
    let seconds = video.frames() as f64 / f64::from(video.fps);
    let bytes = seconds * bytes_of_a_second(sound.sample_rate, sound.channels, sound.depth);
    refuse_above(
        MOST_SOUND,
        bytes,
        typed,
        "bytes of sound in one video",
        &[
            "--video-duration",
            "--video-audio-sample-rate",
            "--video-audio-num-channels",
            "--video-audio-depth",
        ],
    )
}

fn bytes_of_a_second(rate: u32, channels: u8, depth: u8) -> f64 {
    f64::from(rate) * f64::from(channels) * f64::from(depth / 8)
}
