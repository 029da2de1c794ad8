//! Recorded sound as samples: read from FLAC, WAV, MP3 and Ogg Opus, written as WAV.

use std::io::Cursor;

use opus_decoder::OpusDecoder;
use symphonia::core::audio::Channels;
use symphonia::core::codecs::audio::well_known::CODEC_ID_OPUS;
use symphonia::core::codecs::audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, FormatReader, TrackType};
use symphonia::core::io::{MediaSourceStream, MediaSourceStreamOptions};
use symphonia::core::meta::MetadataOptions;
use symphonia::core::packet::Packet;

use super::wav::Shape;

/// Samples a second, at most.
const HIGHEST_RATE: u32 = 384_000;
/// Channels, at most.
const MOST_CHANNELS: usize = 8;
/// Opus counts time in this rate, whatever the sound was sampled at.
const OPUS_RATE: u32 = 48_000;
/// Rates that Opus can be decoded at.
const OPUS_RATES: [u32; 5] = [8000, 12_000, 16_000, 24_000, OPUS_RATE];

/// Samples of 16 bits, the channels of each moment side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sound {
    /// Samples a second, of each channel.
    pub(crate) rate: u32,
    /// At least 1.
    pub(crate) channels: u16,
    samples: Vec<i16>,
}

/// Why there is no sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It is longer than is wanted.
    TooLong,
    /// It is nothing that can be read, or there is nothing in it.
    Undecodable(String),
}

/// Said by a decoder, or by this.
#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn undecodable(reason: impl ToString) -> Unusable {
    Unusable::Undecodable(reason.to_string())
}

impl Sound {
    /// Reads a file, with the rate and channels it has. No more than `longest` seconds are decoded.
    pub(crate) fn decode(bytes: Vec<u8>, longest: f64) -> Result<Sound, Unusable> {
        let source =
            MediaSourceStream::new(Box::new(Cursor::new(bytes)), MediaSourceStreamOptions::default());
        let mut file = symphonia::default::get_probe()
            .probe(&Hint::new(), source, FormatOptions::default(), MetadataOptions::default())
            .map_err(undecodable)?;
        let track = file.default_track(TrackType::Audio).ok_or_else(|| undecodable("it has no sound"))?;
        let id = track.id;
        let head = track
            .codec_params
            .as_ref()
            .and_then(|parameters| parameters.audio())
            .ok_or_else(|| undecodable("it has no sound"))?;
        let channels = head.channels.as_ref().map(Channels::count);
        let frames = track.num_frames.unwrap_or(0).saturating_sub(track.delay.unwrap_or(0).into());
        if head.sample_rate.is_some_and(|rate| rate > 0 && frames as f64 > longest * f64::from(rate)) {
            return Err(Unusable::TooLong);
        }
        let mut decoder = if head.codec == CODEC_ID_OPUS {
            Decoder::Opus(Opus::new(head, channels, track.delay.unwrap_or(0))?)
        } else {
            let options = AudioDecoderOptions::default();
            Decoder::Other(
                symphonia::default::get_codecs().make_audio_decoder(head, &options).map_err(undecodable)?,
            )
        };
        let mut sound = Sound { rate: 0, channels: 0, samples: Vec::new() };
        while let Some(packet) = next(&mut *file)? {
            if packet.track_id == id {
                decoder.decode(&packet, &mut sound)?;
            }
            if sound.rate > 0 && sound.seconds() > longest {
                return Err(Unusable::TooLong);
            }
        }
        if sound.samples.is_empty() {
            return Err(undecodable("there is nothing in it"));
        }
        Ok(sound)
    }

    /// Its length.
    pub(crate) fn seconds(&self) -> f64 {
        (self.samples.len() / usize::from(self.channels)) as f64 / f64::from(self.rate)
    }

    /// A WAV file of 16 bits.
    pub(crate) fn wav(&self) -> Vec<u8> {
        let shape = Shape { rate: self.rate, channels: self.channels, depth: 16 };
        shape.file(self.samples.len(), self.samples.iter().map(|sample| i32::from(*sample)))
    }

    /// Takes what a packet was decoded to, as long as it is sampled like what came before.
    fn take(&mut self, rate: u32, channels: usize, samples: &[i16]) -> Result<(), Unusable> {
        if !(1..=HIGHEST_RATE).contains(&rate) || !(1..=MOST_CHANNELS).contains(&channels) {
            return Err(undecodable(format!("{channels} channels at {rate} Hz are no sound")));
        }
        let channels = channels as u16;
        if self.samples.is_empty() {
            (self.rate, self.channels) = (rate, channels);
        } else if (self.rate, self.channels) != (rate, channels) {
            return Err(undecodable("its rate or its channels change"));
        }
        self.samples.extend_from_slice(samples);
        Ok(())
    }
}

/// The next packet. A file that breaks off ends there.
fn next(file: &mut dyn FormatReader) -> Result<Option<Packet>, Unusable> {
    match file.next_packet() {
        Ok(packet) => Ok(packet),
        Err(Error::IoError(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(undecodable(error)),
    }
}

enum Decoder {
    Opus(Opus),
    Other(Box<dyn AudioDecoder>),
}

impl Decoder {
    fn decode(&mut self, packet: &Packet, sound: &mut Sound) -> Result<(), Unusable> {
        match self {
            Decoder::Opus(opus) => opus.decode(packet, sound),
            Decoder::Other(decoder) => match decoder.decode(packet) {
                Ok(buffer) => {
                    let mut samples: Vec<i16> = Vec::new();
                    buffer.copy_to_vec_interleaved(&mut samples);
                    let spec = buffer.spec();
                    sound.take(spec.rate(), spec.channels().count(), &samples)
                }
                // A frame that needs one that is not there, as the first ones of an MP3 that was cut out of another.
                Err(Error::DecodeError(_)) => Ok(()),
                Err(error) => Err(undecodable(error)),
            },
        }
    }
}

struct Opus {
    decoder: Box<OpusDecoder>,
    rate: u32,
    channels: usize,
    /// Moments at the start that are still to be dropped.
    delay: usize,
    buffer: Vec<i16>,
}

impl Opus {
    fn new(head: &AudioCodecParameters, channels: Option<usize>, delay: u32) -> Result<Opus, Unusable> {
        let channels = channels.unwrap_or(0);
        // Bytes 12 to 15 of the head say at which rate the sound was sampled before it was encoded.
        let original = head.extra_data.as_ref().and_then(|head| head.get(12..16)?.try_into().ok());
        let rate =
            original.map(u32::from_le_bytes).filter(|rate| OPUS_RATES.contains(rate)).unwrap_or(OPUS_RATE);
        let decoder = OpusDecoder::new(rate, channels)
            .map_err(|error| undecodable(format!("Opus with {channels} channels: {error}")))?;
        let buffer = vec![0; decoder.max_frame_size_per_channel() * channels];
        let delay = (u64::from(delay) * u64::from(rate) / u64::from(OPUS_RATE)) as usize;
        Ok(Opus { decoder: Box::new(decoder), rate, channels, delay, buffer })
    }

    fn decode(&mut self, packet: &Packet, sound: &mut Sound) -> Result<(), Unusable> {
        let moments = self.decoder.decode(&packet.data, &mut self.buffer, false).map_err(undecodable)?;
        let padding = packet.trim_end.get().saturating_mul(self.rate.into()) / u64::from(OPUS_RATE);
        let end = moments.saturating_sub(usize::try_from(padding).unwrap_or(usize::MAX));
        let start = self.delay.min(end);
        self.delay -= self.delay.min(moments);
        let samples = self.buffer.get(start * self.channels..end * self.channels).unwrap_or_default();
        sound.take(self.rate, self.channels, samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAC: &[u8] = include_bytes!("../../tests/data/public/tone.flac");
    const MP3: &[u8] = include_bytes!("../../tests/data/public/tone.mp3");
    const OPUS: &[u8] = include_bytes!("../../tests/data/public/tone.opus");
    const LONG: &[u8] = include_bytes!("../../tests/data/public/silence-30.5s.flac");

    fn decode(bytes: &[u8]) -> Result<Sound, Unusable> {
        Sound::decode(bytes.to_vec(), 30.0)
    }

    /// How much louder the sound is than what differs from another, dB; at the best shift of a few moments.
    fn likeness(one: &Sound, other: &Sound) -> f64 {
        let energy = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
        (0..200)
            .map(|shift| {
                let pairs = one.samples.iter().skip(shift).zip(&other.samples);
                let difference = energy(&mut pairs.map(|(a, b)| f64::from(*a) - f64::from(*b)));
                10.0 * (energy(&mut other.samples.iter().map(|a| f64::from(*a))) / difference.max(1e-9))
                    .log10()
            })
            .fold(f64::MIN, f64::max)
    }

    #[test]
    fn each_codec_gives_the_sound_that_was_encoded() {
        let flac = decode(FLAC).unwrap();
        assert_eq!((flac.rate, flac.channels, flac.samples.len()), (16_000, 1, 8000));
        assert!((flac.seconds() - 0.5).abs() < 1e-9);
        let mut reference = flac.clone();
        // The rate and the length are kept; the waveform comes close.
        for (name, bytes, least) in [("mp3", MP3, 15.0), ("opus", OPUS, 10.0)] {
            let sound = decode(bytes).unwrap();
            assert_eq!((sound.rate, sound.channels), (16_000, 1), "{name}");
            assert!(sound.samples.len().abs_diff(8000) <= 160, "{name}: {}", sound.samples.len());
            let likeness = likeness(&sound, &reference).max(likeness(&reference, &sound));
            assert!(likeness > least, "{name}: {likeness} dB");
        }
        reference.samples.reverse();
        assert!(likeness(&flac, &reference) < 5.0, "the measure tells sounds apart");
    }

    #[test]
    fn wav_files_of_any_depth_and_both_channels_are_read() {
        for depth in [8, 16, 24, 32] {
            let shape = Shape { rate: 8000, channels: 2, depth };
            let full = shape.full_scale();
            let samples = (0..1600).map(|at| (f64::from(at % 50 - 25) / 50.0 * full) as i32);
            let sound = decode(&shape.file(1600, samples)).unwrap();
            assert_eq!((sound.rate, sound.channels, sound.samples.len()), (8000, 2, 1600));
            for (at, sample) in (0..1600).zip(&sound.samples) {
                let expected = f64::from(at % 50 - 25) / 50.0 * 32767.0;
                // A step of 8 bits is 256, and full scale is one step off the middle.
                assert!((f64::from(*sample) - expected).abs() < 600.0, "{depth}: {at}");
            }
            if depth == 16 {
                assert_eq!(decode(&sound.wav()).unwrap(), sound);
                assert_eq!(sound.wav(), shape.file(1600, sound.samples.iter().map(|s| i32::from(*s))));
            }
        }
    }

    #[test]
    fn what_is_too_long_is_told_from_what_is_none() {
        assert_eq!(decode(LONG), Err(Unusable::TooLong));
        assert!((Sound::decode(LONG.to_vec(), 31.0).unwrap().seconds() - 30.5).abs() < 1e-9);
        // A file that does not say how long it is: as a stream, cut anywhere.
        let shape = Shape { rate: 8000, channels: 1, depth: 8 };
        let mut stream = shape.file(31 * 8000, std::iter::repeat(1));
        stream[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        stream[40..44].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(decode(&stream), Err(Unusable::TooLong));
        for bytes in [&b""[..], b"RIFF", b"no sound at all, just words", &FLAC[..20], &OPUS[..40]] {
            assert!(matches!(decode(bytes), Err(Unusable::Undecodable(_))), "{bytes:?}");
        }
        let empty = Shape { rate: 8000, channels: 1, depth: 16 }.file(0, std::iter::empty());
        assert!(matches!(decode(&empty), Err(Unusable::Undecodable(_))));
        // A file that breaks off is as long as what is there.
        assert!((0.1..0.5).contains(&decode(&FLAC[..FLAC.len() / 2]).unwrap().seconds()));
    }
}
