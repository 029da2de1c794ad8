//! Generated audio: noise in WAV or MP3 files, as `wav,<base64>` or `mp3,<base64>`.

use aiperf_config::{AudioFormat, SyntheticAudio};
use aiperf_tokenize::seed::{Stream, Streams, below};
use aiperf_types::{Media, MediaKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::media::mp3::Mp3;
use crate::media::wav::Shape;
use crate::random::{not_negative, standard_normal};
use crate::{DatasetError, Stop};

/// No clip is shorter, seconds.
const SHORTEST: f64 = 0.01;
/// Standard deviation of the samples; 1 is full scale.
const LOUDNESS: f64 = 0.3;

/// Makes the clips of entries.
pub(super) struct Audio {
    shape: SyntheticAudio,
    /// What writes MP3; WAV without.
    mp3: Option<Mp3>,
    samples: Streams,
}

impl Audio {
    pub(super) fn new(
        shape: SyntheticAudio,
        streams: impl Fn(&str) -> Streams,
    ) -> Result<Audio, DatasetError> {
        let mp3 = match shape.format {
            AudioFormat::Wav => None,
            AudioFormat::Mp3 => Some(
                Mp3::find()
                    .map_err(|reason| DatasetError::Unsuitable(format!("--audio-format mp3: {reason}")))?,
            ),
        };
        Ok(Audio { shape, mp3, samples: streams("audio") })
    }

    pub(super) fn draws(&self, entry: u64) -> Stream {
        self.samples.at(entry)
    }

    /// Appends the clips of the next turn. The answer is the length of the first one, seconds.
    pub(super) fn turn(
        &self,
        stream: &mut Stream,
        media: &mut Vec<Media>,
        stop: &Stop,
    ) -> Result<Option<f64>, DatasetError> {
        let mut first = None;
        for _ in 0..self.shape.count {
            stop.go_on()?;
            let mut length = not_negative(stream, self.shape.length);
            // Drawn again while it is too short; the bound is for means that hardly are.
            for _ in 0..1000 {
                if length >= SHORTEST {
                    break;
                }
                length = not_negative(stream, self.shape.length);
            }
            let rate = pick(stream, &self.shape.sample_rates);
            let depth = pick(stream, &self.shape.depths);
            let shape = Shape { rate, channels: self.shape.channels.into(), depth };
            let moments = (length.max(SHORTEST) * f64::from(rate)) as usize;
            first = first.or(Some(moments as f64 / f64::from(rate)));
            let count = moments * usize::from(self.shape.channels);
            let samples = noise(stream, shape, stop);
            let (name, file) = match &self.mp3 {
                None => ("wav", shape.file(count, samples)),
                Some(mp3) => (
                    "mp3",
                    mp3.encode(shape, count, samples).map_err(|error| {
                        DatasetError::Prompt(format!(
                            "cannot make an audio clip of {moments} samples at {rate} Hz: {error}"
                        ))
                    })?,
                ),
            };
            // What was given up is too short.
            stop.go_on()?;
            let mut content = String::with_capacity(4 + file.len().div_ceil(3) * 4);
            content.push_str(name);
            content.push(',');
            STANDARD.encode_string(file, &mut content);
            media.push(Media { kind: MediaKind::Audio, name: None, content: content.into(), uuid: None });
        }
        Ok(first)
    }
}

fn pick<T: Copy>(stream: &mut Stream, list: &[T]) -> T {
    list[below(stream, list.len() as u64) as usize]
}

/// Samples of noise, without end until `stop` is set.
pub(super) fn noise(stream: &mut Stream, shape: Shape, stop: &Stop) -> impl Iterator<Item = i32> {
    let full = shape.full_scale();
    std::iter::repeat_with(move || ((standard_normal(stream) * LOUDNESS).clamp(-1.0, 1.0) * full) as i32)
        .take_while(|_| !stop.is_set())
}

#[cfg(test)]
mod tests {
    use aiperf_config::Normal;
    use aiperf_tokenize::seed::stream;

    use super::*;
    use crate::media::wav::HEADER;

    fn samples(file: &[u8], depth: u8) -> Vec<f64> {
        let full = ((1u64 << (depth - 1)) - 1) as f64;
        file[HEADER..]
            .chunks(usize::from(depth / 8))
            .map(|sample| {
                if depth == 8 {
                    return (f64::from(sample[0]) - 128.0) / full;
                }
                let mut wide = [0; 4];
                wide[4 - sample.len()..].copy_from_slice(sample);
                f64::from(i32::from_le_bytes(wide) >> (32 - depth)) / full
            })
            .collect()
    }

    /// By its header, of one channel.
    fn seconds(file: &[u8]) -> f64 {
        let rate = u32::from_le_bytes(file[24..28].try_into().unwrap());
        let depth = u16::from_le_bytes(file[34..36].try_into().unwrap());
        (file.len() - HEADER) as f64 / f64::from(rate) / f64::from(depth / 8)
    }

    /// The reference's 24-bit files are 48 dB too quiet.
    #[test]
    fn every_depth_is_as_loud_as_the_others() {
        for depth in [8, 16, 24, 32] {
            for channels in [1, 2] {
                let shape = Shape { rate: 16_000, channels, depth };
                let count = 24_000 * usize::from(channels);
                let file = shape.file(count, noise(&mut stream(1, "wav"), shape, &Stop::default()));
                assert_eq!(file.len(), HEADER + count * usize::from(depth / 8));
                let samples = samples(&file, depth);
                let mean = samples.iter().sum::<f64>() / count as f64;
                let deviation =
                    (samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count as f64).sqrt();
                assert!((0.29..=0.31).contains(&deviation), "{depth}: {deviation}");
                assert!(mean.abs() < 0.01, "{depth}: {mean}");
            }
        }
    }

    #[test]
    fn clips_have_drawn_lengths_rates_and_depths_and_come_again() {
        let shape = SyntheticAudio {
            count: 3,
            length: Normal { mean: 0.05, stddev: 0.05 },
            sample_rates: vec![8000, 16_000],
            depths: vec![8, 16],
            channels: 1,
            format: AudioFormat::Wav,
        };
        let audio = Audio::new(shape, |name| Streams::new(7, name)).unwrap();
        let clips = |entry| {
            let mut media = Vec::new();
            let first = audio.turn(&mut audio.draws(entry), &mut media, &Stop::default()).unwrap().unwrap();
            let file = STANDARD.decode(media[0].content.strip_prefix("wav,").unwrap()).unwrap();
            assert!((first - seconds(&file)).abs() < 1e-9, "{first}");
            media.iter().map(|media| media.content.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(clips(5), clips(5));
        let mut kinds = std::collections::BTreeSet::new();
        for clip in (0..40).flat_map(clips) {
            let file = STANDARD.decode(clip.strip_prefix("wav,").unwrap()).unwrap();
            let rate = u32::from_le_bytes(file[24..28].try_into().unwrap());
            let depth = u16::from_le_bytes(file[34..36].try_into().unwrap());
            kinds.insert((rate, depth));
            let seconds = seconds(&file);
            assert!(seconds > SHORTEST - 1.0 / 8000.0, "{seconds}");
        }
        assert_eq!(kinds.len(), 4);
    }
}
