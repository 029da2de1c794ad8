//! Generated images: noise in PNG or JPEG, as data URLs.

use std::io::Write as _;

use aiperf_config::{ImageFormat, SyntheticImages};
use aiperf_tokenize::seed::{Rng as _, Stream, Streams, below};
use aiperf_types::{Media, MediaKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use crate::DatasetError;
use crate::random::whole;

/// Bytes of a pixel.
const CHANNELS: usize = 3;
/// No side is longer: neither format that models read goes beyond, and a slip must not fill the memory.
pub(super) const LONGEST_SIDE: u64 = 16_384;
const JPEG_QUALITY: u8 = 85;

/// Makes the images of entries. Sizes and pixels are drawn from one stream, formats from another.
pub(super) struct Images {
    shape: SyntheticImages,
    pixels: Streams,
    formats: Streams,
}

/// The streams of one entry.
pub(super) struct Draws {
    pixels: Stream,
    formats: Stream,
}

impl Images {
    pub(super) fn new(shape: SyntheticImages, streams: impl Fn(&str) -> Streams) -> Images {
        Images { shape, pixels: streams("images"), formats: streams("image_formats") }
    }

    pub(super) fn draws(&self, entry: u64) -> Draws {
        Draws { pixels: self.pixels.at(entry), formats: self.formats.at(entry) }
    }

    /// Appends the images of the next turn.
    pub(super) fn turn(&self, draws: &mut Draws, media: &mut Vec<Media>) -> Result<(), DatasetError> {
        for _ in 0..self.shape.count {
            let side = |stream: &mut Stream, normal| whole(stream, normal, 1).min(LONGEST_SIDE) as u16;
            let width = side(&mut draws.pixels, self.shape.width);
            let height = side(&mut draws.pixels, self.shape.height);
            let mut pixels = vec![0; usize::from(width) * usize::from(height) * CHANNELS];
            draws.pixels.fill_bytes(&mut pixels);
            let is_png = match self.shape.format {
                ImageFormat::Png => true,
                ImageFormat::Jpeg => false,
                ImageFormat::Random => below(&mut draws.formats, 2) == 0,
            };
            let (name, bytes) = if is_png {
                ("png", png(width, height, &pixels))
            } else {
                ("jpeg", jpeg(width, height, &pixels))
            };
            let bytes = bytes.map_err(|error| {
                DatasetError::Prompt(format!("cannot encode an image of {width}x{height} as {name}: {error}"))
            })?;
            let mut url = format!("data:image/{name};base64,");
            STANDARD.encode_string(bytes, &mut url);
            media.push(Media { kind: MediaKind::Image, name: None, content: url.into(), uuid: None });
        }
        Ok(())
    }
}

/// A PNG file of 8-bit RGB. Noise does not get smaller, so it is stored as it is, which costs no time.
fn png(width: u16, height: u16, pixels: &[u8]) -> Result<Vec<u8>, String> {
    let mut file = Vec::with_capacity(pixels.len() + pixels.len() / 500 + 1024);
    file.extend_from_slice(b"\x89PNG\r\n\x1a\n");
    let mut header = Vec::with_capacity(13);
    header.extend_from_slice(&u32::from(width).to_be_bytes());
    header.extend_from_slice(&u32::from(height).to_be_bytes());
    // Depth 8, colour, deflate, adaptive filters, not interlaced.
    header.extend_from_slice(&[8, 2, 0, 0, 0]);
    chunk(&mut file, *b"IHDR", &header);
    let mut rows = ZlibEncoder::new(Vec::with_capacity(pixels.len() + 1024), Compression::none());
    for row in pixels.chunks(usize::from(width) * CHANNELS) {
        rows.write_all(&[0]).and_then(|()| rows.write_all(row)).map_err(|error| error.to_string())?;
    }
    chunk(&mut file, *b"IDAT", &rows.finish().map_err(|error| error.to_string())?);
    chunk(&mut file, *b"IEND", &[]);
    Ok(file)
}

fn chunk(file: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    file.extend_from_slice(&(data.len() as u32).to_be_bytes());
    file.extend_from_slice(&kind);
    file.extend_from_slice(data);
    let mut crc = Crc::new();
    crc.update(&kind);
    crc.update(data);
    file.extend_from_slice(&crc.sum().to_be_bytes());
}

fn jpeg(width: u16, height: u16, pixels: &[u8]) -> Result<Vec<u8>, String> {
    let mut file = Vec::with_capacity(pixels.len() / 2 + 1024);
    let mut encoder = Encoder::new(&mut file, JPEG_QUALITY);
    encoder.set_sampling_factor(SamplingFactor::R_4_4_4);
    encoder.encode(pixels, width, height, ColorType::Rgb).map_err(|error| error.to_string())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use aiperf_config::Normal;

    use super::*;

    fn images(format: ImageFormat, side: f64, stddev: f64, count: u32) -> Images {
        let normal = Normal { mean: side, stddev };
        Images::new(SyntheticImages { count, width: normal, height: normal, format }, |name| {
            Streams::new(7, name)
        })
    }

    fn urls(images: &Images, entry: u64) -> Vec<String> {
        let mut media = Vec::new();
        images.turn(&mut images.draws(entry), &mut media).unwrap();
        media.iter().map(|media| media.content.to_string()).collect()
    }

    fn bytes(url: &str, kind: &str) -> Vec<u8> {
        STANDARD.decode(url.strip_prefix(&format!("data:image/{kind};base64,")).unwrap()).unwrap()
    }

    #[test]
    fn a_png_holds_its_pixels() {
        let pixels: Vec<u8> = (0..5 * 3 * 3).collect();
        let file = png(5, 3, &pixels).unwrap();
        assert_eq!(file[..8], *b"\x89PNG\r\n\x1a\n");
        let (mut at, mut found, mut data) = (8, Vec::new(), Vec::new());
        while at < file.len() {
            let length = u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
            let body = &file[at + 8..at + 8 + length];
            let mut crc = Crc::new();
            crc.update(&file[at + 4..at + 8 + length]);
            assert_eq!(file[at + 8 + length..at + 12 + length], crc.sum().to_be_bytes());
            match &file[at + 4..at + 8] {
                b"IHDR" => assert_eq!(*body, [0, 0, 0, 5, 0, 0, 0, 3, 8, 2, 0, 0, 0]),
                b"IDAT" => data.extend_from_slice(body),
                _ => {}
            }
            found.push(file[at + 4..at + 8].to_vec());
            at += 12 + length;
        }
        assert_eq!(found, [b"IHDR".to_vec(), b"IDAT".to_vec(), b"IEND".to_vec()]);
        let mut rows = Vec::new();
        flate2::read::ZlibDecoder::new(&data[..]).read_to_end(&mut rows).unwrap();
        let kept: Vec<u8> = rows.chunks(16).flat_map(|row| row[1..].to_vec()).collect();
        assert_eq!(kept, pixels);
        assert!(rows.chunks(16).all(|row| row[0] == 0));
    }

    #[test]
    fn noise_has_the_size_that_noise_has() {
        let pixels = 256.0 * 256.0;
        let png = bytes(&urls(&images(ImageFormat::Png, 256.0, 0.0, 1), 0)[0], "png").len() as f64 / pixels;
        assert!((3.0..=3.02).contains(&png), "{png}");
        let jpeg = bytes(&urls(&images(ImageFormat::Jpeg, 256.0, 0.0, 1), 0)[0], "jpeg");
        assert_eq!((&jpeg[..2], &jpeg[jpeg.len() - 2..]), (&b"\xff\xd8"[..], &b"\xff\xd9"[..]));
        let jpeg = jpeg.len() as f64 / pixels;
        assert!((1.55..=1.65).contains(&jpeg), "{jpeg}");
    }

    #[test]
    fn images_differ_and_come_again_and_the_format_moves_no_pixel() {
        let png = images(ImageFormat::Png, 20.0, 4.0, 4);
        let all = urls(&png, 3);
        assert_eq!(all, urls(&png, 3));
        assert_eq!(all.len(), 4);
        assert_ne!(all[0], all[1]);
        assert_ne!(all, urls(&png, 4));
        let mixed = images(ImageFormat::Random, 20.0, 4.0, 4);
        let kinds: Vec<bool> = (0..100)
            .flat_map(|entry| urls(&mixed, entry))
            .map(|url| url.starts_with("data:image/png"))
            .collect();
        let share = kinds.iter().filter(|is_png| **is_png).count();
        assert!((150..=250).contains(&share), "{share} of 400");
        let same = urls(&mixed, 3);
        assert!(same.iter().zip(&all).all(|(one, other)| !one.starts_with("data:image/png") || one == other));
    }
}
