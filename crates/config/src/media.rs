//! Generated images, audio and video.

use std::path::PathBuf;

use crate::dataset::Normal;

/// Generated media of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyntheticMedia {
    /// Images.
    pub images: Option<SyntheticImages>,
    /// Audio clips.
    pub audio: Option<SyntheticAudio>,
    /// Videos.
    pub video: Option<SyntheticVideo>,
}

/// Generated images.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticImages {
    /// Images of a turn, at least 1.
    pub count: u32,
    /// Width, pixels.
    pub width: Normal,
    /// Height, pixels.
    pub height: Normal,
    /// How they are encoded.
    pub format: ImageFormat,
    /// What they show.
    pub source: ImageSource,
    /// Which picture is next, where they show pictures.
    pub sampling: ImageSampling,
}

/// What generated images show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageSource {
    /// Noise, new for each.
    Noise,
    /// The pictures that come with the program.
    Assets,
    /// The pictures of a folder.
    Folder(PathBuf),
}

/// The order in which pictures are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageSampling {
    /// Each as likely as the others, every time.
    Random,
    /// All of them in a random order, then all in another.
    Shuffle,
    /// In the order of their names, again and again.
    Sequential,
}

/// How generated images are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// PNG, 8 bits of red, green and blue.
    Png,
    /// JPEG of quality 85 without chroma subsampling.
    Jpeg,
    /// Either, as likely as the other, for each image.
    Random,
}

/// Generated audio clips: noise.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticAudio {
    /// Clips of a turn, at least 1.
    pub count: u32,
    /// Length, seconds; never below 0.01.
    pub length: Normal,
    /// Sample rates to draw from, Hz; never empty.
    pub sample_rates: Vec<u32>,
    /// Bits of a sample to draw from: 8, 16, 24 or 32; never empty.
    pub depths: Vec<u8>,
    /// 1 or 2.
    pub channels: u8,
    /// How they are encoded.
    pub format: AudioFormat,
}

/// How generated audio clips are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioFormat {
    /// PCM samples in a WAV file.
    Wav,
    /// MP3, by an installed encoder.
    Mp3,
}

/// Generated videos, encoded by an installed ffmpeg.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticVideo {
    /// Videos of a turn, at least 1.
    pub count: u32,
    /// Width, pixels, at least 1.
    pub width: u16,
    /// Height, pixels, at least 1.
    pub height: u16,
    /// Length, seconds; above 0.
    pub seconds: f64,
    /// Frames a second, at least 1.
    pub fps: u32,
    /// What they show.
    pub kind: VideoKind,
    /// The file they are in.
    pub container: VideoContainer,
    /// Their codec, as ffmpeg calls it.
    pub codec: String,
    /// Their sound.
    pub sound: Option<VideoSound>,
}

impl SyntheticVideo {
    /// Frames of a video, at least 1.
    pub fn frames(&self) -> u64 {
        ((self.seconds * f64::from(self.fps)) as u64).max(1)
    }
}

/// What generated videos show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VideoKind {
    /// Discs and a square that move over a black ground.
    MovingShapes,
    /// A dial on a grid, and the number of the frame.
    GridClock,
    /// Noise, new for each frame.
    Noise,
}

/// The file that a generated video is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VideoContainer {
    /// `WebM`.
    Webm,
    /// MP4.
    Mp4,
}

impl VideoContainer {
    /// As media types and ffmpeg call it.
    pub fn name(self) -> &'static str {
        match self {
            VideoContainer::Webm => "webm",
            VideoContainer::Mp4 => "mp4",
        }
    }
}

/// The sound of generated videos: noise.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoSound {
    /// 1 or 2.
    pub channels: u8,
    /// Samples a second of each channel.
    pub sample_rate: u32,
    /// Bits of a sample before encoding: 8, 16, 24 or 32.
    pub depth: u8,
    /// Its codec, as ffmpeg calls it.
    pub codec: String,
}
