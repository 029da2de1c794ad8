//! WAV files of PCM samples.

/// Bytes before the samples.
pub(crate) const HEADER: usize = 44;

/// How sound is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Samples a second, of each channel.
    pub(crate) rate: u32,
    /// At least 1.
    pub(crate) channels: u16,
    /// Bits of a sample: 8, 16, 24 or 32.
    pub(crate) depth: u8,
}

impl Shape {
    /// The largest sample.
    pub(crate) fn full_scale(self) -> f64 {
        ((1u64 << (self.depth - 1)) - 1) as f64
    }

    /// A file of samples, the channels of each moment side by side, each within `depth` bits. Those beyond `count` are
    /// left out.
    pub(crate) fn file(self, count: usize, samples: impl Iterator<Item = i32>) -> Vec<u8> {
        let bytes = usize::from(self.depth / 8);
        let frame = bytes * usize::from(self.channels);
        let mut file = Vec::with_capacity(HEADER + count * bytes);
        file.resize(HEADER, 0);
        for sample in samples.take(count) {
            if self.depth == 8 {
                file.push((sample + 128) as u8);
            } else {
                file.extend_from_slice(&sample.to_le_bytes()[..bytes]);
            }
        }
        let size = file.len() - HEADER;
        let mut head = Vec::with_capacity(HEADER);
        head.extend_from_slice(b"RIFF");
        head.extend_from_slice(&((HEADER - 8 + size) as u32).to_le_bytes());
        head.extend_from_slice(b"WAVEfmt ");
        head.extend_from_slice(&16u32.to_le_bytes());
        head.extend_from_slice(&1u16.to_le_bytes());
        head.extend_from_slice(&self.channels.to_le_bytes());
        head.extend_from_slice(&self.rate.to_le_bytes());
        head.extend_from_slice(&self.rate.wrapping_mul(frame as u32).to_le_bytes());
        head.extend_from_slice(&(frame as u16).to_le_bytes());
        head.extend_from_slice(&u16::from(self.depth).to_le_bytes());
        head.extend_from_slice(b"data");
        head.extend_from_slice(&(size as u32).to_le_bytes());
        file[..HEADER].copy_from_slice(&head);
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_says_what_follows() {
        let shape = Shape { rate: 44_100, channels: 2, depth: 24 };
        let file = shape.file(400, std::iter::repeat(-2));
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let half = |at: usize| u16::from_le_bytes(file[at..at + 2].try_into().unwrap());
        assert_eq!((&file[..4], &file[8..16], &file[36..40]), (&b"RIFF"[..], &b"WAVEfmt "[..], &b"data"[..]));
        assert_eq!((word(4) as usize, word(40) as usize), (file.len() - 8, file.len() - HEADER));
        assert_eq!(file.len(), HEADER + 400 * 3);
        assert_eq!(
            (half(20), half(22), word(24), word(28), half(32), half(34)),
            (1, 2, 44_100, 264_600, 6, 24)
        );
        assert_eq!(file[HEADER..HEADER + 3], [0xfe, 0xff, 0xff]);
        let bytes = Shape { rate: 8000, channels: 1, depth: 8 }.file(2, [-128, 127].into_iter());
        assert_eq!(bytes[HEADER..], [0, 255]);
    }
}
