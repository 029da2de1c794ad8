//! Generated audio: noise in WAV files, as `wav,<base64>`.

use aiperf_config::SyntheticAudio;
use aiperf_tokenize::seed::{Stream, Streams, below};
use aiperf_types::{Media, MediaKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::random::{not_negative, standard_normal};

/// No clip is shorter, seconds.
const SHORTEST: f64 = 0.01;
/// Standard deviation of the samples; 1 is full scale.
const LOUDNESS: f64 = 0.3;
const HEADER: usize = 44;

/// Makes the clips of entries.
pub(super) struct Audio {
    shape: SyntheticAudio,
    samples: Streams,
}

impl Audio {
    pub(super) fn new(shape: SyntheticAudio, streams: impl Fn(&str) -> Streams) -> Audio {
        Audio { shape, samples: streams("audio") }
    }

    pub(super) fn draws(&self, entry: u64) -> Stream {
        self.samples.at(entry)
    }

    /// Appends the clips of the next turn.
    pub(super) fn turn(&self, stream: &mut Stream, media: &mut Vec<Media>) {
        for _ in 0..self.shape.count {
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
            let wav = wav(stream, length.max(SHORTEST), rate, depth, self.shape.channels);
            let mut content = String::from("wav,");
            STANDARD.encode_string(wav, &mut content);
            media.push(Media { kind: MediaKind::Audio, name: None, content: content.into(), uuid: None });
        }
    }
}

fn pick<T: Copy>(stream: &mut Stream, list: &[T]) -> T {
    list[below(stream, list.len() as u64) as usize]
}

/// A PCM file of noise.
fn wav(stream: &mut Stream, seconds: f64, rate: u32, depth: u8, channels: u8) -> Vec<u8> {
    let bytes = usize::from(depth / 8);
    let frame = bytes * usize::from(channels);
    let samples = (seconds * f64::from(rate)) as usize * usize::from(channels);
    let size = samples * bytes;
    let mut file = Vec::with_capacity(HEADER + size);
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&((HEADER - 8 + size) as u32).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt ");
    file.extend_from_slice(&16u32.to_le_bytes());
    file.extend_from_slice(&1u16.to_le_bytes());
    file.extend_from_slice(&u16::from(channels).to_le_bytes());
    file.extend_from_slice(&rate.to_le_bytes());
    file.extend_from_slice(&(rate * frame as u32).to_le_bytes());
    file.extend_from_slice(&(frame as u16).to_le_bytes());
    file.extend_from_slice(&u16::from(depth).to_le_bytes());
    file.extend_from_slice(b"data");
    file.extend_from_slice(&(size as u32).to_le_bytes());
    let full = ((1u64 << (depth - 1)) - 1) as f64;
    for _ in 0..samples {
        let value = ((standard_normal(stream) * LOUDNESS).clamp(-1.0, 1.0) * full) as i32;
        if depth == 8 {
            file.push((value + 128) as u8);
        } else {
            file.extend_from_slice(&value.to_le_bytes()[..bytes]);
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use aiperf_config::Normal;
    use aiperf_tokenize::seed::stream;

    use super::*;

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

    /// The reference's 24-bit files are 48 dB too quiet.
    #[test]
    fn every_depth_is_as_loud_as_the_others() {
        for depth in [8, 16, 24, 32] {
            for channels in [1, 2] {
                let file = wav(&mut stream(1, "wav"), 1.5, 16_000, depth, channels);
                let count = 24_000 * usize::from(channels);
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
    fn the_header_says_what_follows() {
        let file = wav(&mut stream(1, "wav"), 0.5, 44_100, 24, 2);
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let half = |at: usize| u16::from_le_bytes(file[at..at + 2].try_into().unwrap());
        assert_eq!((&file[..4], &file[8..16], &file[36..40]), (&b"RIFF"[..], &b"WAVEfmt "[..], &b"data"[..]));
        assert_eq!((word(4) as usize, word(40) as usize), (file.len() - 8, file.len() - HEADER));
        assert_eq!(
            (half(20), half(22), word(24), word(28), half(32), half(34)),
            (1, 2, 44_100, 264_600, 6, 24)
        );
    }

    #[test]
    fn clips_have_drawn_lengths_rates_and_depths_and_come_again() {
        let shape = SyntheticAudio {
            count: 3,
            length: Normal { mean: 0.05, stddev: 0.05 },
            sample_rates: vec![8000, 16_000],
            depths: vec![8, 16],
            channels: 1,
        };
        let audio = Audio::new(shape, |name| Streams::new(7, name));
        let clips = |entry| {
            let mut media = Vec::new();
            audio.turn(&mut audio.draws(entry), &mut media);
            media.iter().map(|media| media.content.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(clips(5), clips(5));
        let mut kinds = std::collections::BTreeSet::new();
        for clip in (0..40).flat_map(clips) {
            let file = STANDARD.decode(clip.strip_prefix("wav,").unwrap()).unwrap();
            let rate = u32::from_le_bytes(file[24..28].try_into().unwrap());
            let depth = u16::from_le_bytes(file[34..36].try_into().unwrap());
            kinds.insert((rate, depth));
            let seconds = (file.len() - HEADER) as f64 / f64::from(rate) / f64::from(depth / 8);
            assert!(seconds > SHORTEST - 1.0 / 8000.0, "{seconds}");
        }
        assert_eq!(kinds.len(), 4);
    }
}
