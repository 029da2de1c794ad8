//! A picture as pixels: read from PNG or JPEG, resized, written as either.

use std::io::{self, Cursor, Write};

use flate2::Crc;
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use png::{BitDepth, Transformations};
use simd_adler32::Adler32;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::Stop;

/// Bytes of a pixel.
pub(crate) const CHANNELS: usize = 3;
/// No side is longer: neither format that models read goes beyond, and a slip must not fill the memory.
pub(crate) const LONGEST_SIDE: u16 = 16_384;
/// No picture that is read has more pixels.
const MOST_PIXELS: usize = 1 << 26;
const JPEG_QUALITY: u8 = 85;
/// Bytes of a stored block of deflate.
const BLOCK: usize = 0xffff;

const PNG_MARK: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG_MARK: &[u8] = b"\xff\xd8\xff";

/// Rows of red, green and blue, 8 bits each, from the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    /// Pixels of a row, at least 1.
    pub(crate) width: u16,
    /// Rows, at least 1.
    pub(crate) height: u16,
    pub(crate) pixels: Vec<u8>,
}

impl Picture {
    /// Reads a PNG or JPEG file, told apart by its first bytes. Transparency is dropped, 16 bits become 8.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Picture, String> {
        if bytes.starts_with(PNG_MARK) {
            decode_png(bytes)
        } else if bytes.starts_with(JPEG_MARK) {
            decode_jpeg(bytes)
        } else {
            Err("it is neither PNG nor JPEG".into())
        }
    }

    /// Whether the head of a file is that of a picture which can be read; the pixels are not looked at.
    pub(crate) fn check_head(bytes: &[u8]) -> Result<(), String> {
        if bytes.starts_with(PNG_MARK) {
            png_reader(bytes).map(|_| ())
        } else if bytes.starts_with(JPEG_MARK) {
            jpeg_reader(bytes).map(|_| ())
        } else {
            Err("it is neither PNG nor JPEG".into())
        }
    }

    /// The whole picture in another size. Each pixel is the mean of what it covers, near ones counting more.
    pub(crate) fn resized(&self, width: u16, height: u16) -> Picture {
        let (old, new) = (usize::from(self.width), usize::from(width));
        let mut narrow = Vec::with_capacity(new * usize::from(self.height) * CHANNELS);
        let shares = shares(old, new);
        for row in self.pixels.chunks_exact(old * CHANNELS) {
            for (from, shares) in &shares {
                let mut sums = [0.5; CHANNELS];
                for (pixel, share) in row[from * CHANNELS..].chunks_exact(CHANNELS).zip(shares) {
                    for (sum, value) in sums.iter_mut().zip(pixel) {
                        *sum += f32::from(*value) * share;
                    }
                }
                narrow.extend(sums.map(|sum| sum as u8));
            }
        }
        let line = new * CHANNELS;
        let mut pixels = Vec::with_capacity(line * usize::from(height));
        let mut sums = vec![0.0; line];
        for (from, shares) in self::shares(usize::from(self.height), usize::from(height)) {
            sums.fill(0.5);
            for (row, share) in narrow[from * line..].chunks_exact(line).zip(shares) {
                for (sum, value) in sums.iter_mut().zip(row) {
                    *sum += f32::from(*value) * share;
                }
            }
            pixels.extend(sums.iter().map(|sum| *sum as u8));
        }
        Picture { width, height, pixels }
    }

    /// A JPEG file of quality 85 without chroma subsampling.
    pub(crate) fn jpeg(&self, stop: &Stop) -> Result<Vec<u8>, String> {
        let mut file = Growing { bytes: Vec::with_capacity(self.pixels.len() / 2 + 1024), stop };
        let mut encoder = Encoder::new(&mut file, JPEG_QUALITY);
        encoder.set_sampling_factor(SamplingFactor::R_4_4_4);
        encoder
            .encode(&self.pixels, self.width, self.height, ColorType::Rgb)
            .map_err(|error| error.to_string())?;
        Ok(file.bytes)
    }

    /// A PNG file, compressed.
    pub(crate) fn png(&self, stop: &Stop) -> Result<Vec<u8>, String> {
        let mut file = Growing { bytes: Vec::with_capacity(self.pixels.len() / 2 + 1024), stop };
        let mut encoder = png::Encoder::new(&mut file, u32::from(self.width), u32::from(self.height));
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_compression(png::Compression::Balanced);
        encoder
            .write_header()
            .and_then(|mut writer| writer.write_image_data(&self.pixels))
            .map_err(|error| error.to_string())?;
        Ok(file.bytes)
    }

    /// A PNG file whose pixels are stored as they are: noise does not get smaller, and storing costs no time.
    pub(crate) fn stored_png(&self) -> Vec<u8> {
        let line = usize::from(self.width) * CHANNELS;
        // Each row has a mark in front that says it is not filtered.
        let size = usize::from(self.height) * (line + 1);
        let length = 2 + size + size.div_ceil(BLOCK) * 5 + 4;
        let mut file = Vec::with_capacity(PNG_MARK.len() + 3 * 12 + 13 + length);
        file.extend_from_slice(PNG_MARK);
        chunk(&mut file, *b"IHDR", |file| {
            file.extend_from_slice(&u32::from(self.width).to_be_bytes());
            file.extend_from_slice(&u32::from(self.height).to_be_bytes());
            // Depth 8, colour, deflate, adaptive filters, not interlaced.
            file.extend_from_slice(&[8, 2, 0, 0, 0]);
        });
        chunk(&mut file, *b"IDAT", |file| {
            file.extend_from_slice(&[0x78, 0x01]);
            let (mut left, mut room) = (size, 0);
            let mut check = Adler32::new();
            let mut push = |file: &mut Vec<u8>, mut bytes: &[u8]| {
                check.write(bytes);
                while !bytes.is_empty() {
                    if room == 0 {
                        room = left.min(BLOCK);
                        left -= room;
                        file.push(u8::from(left == 0));
                        file.extend_from_slice(&(room as u16).to_le_bytes());
                        file.extend_from_slice(&(!(room as u16)).to_le_bytes());
                    }
                    let (now, rest) = bytes.split_at(bytes.len().min(room));
                    file.extend_from_slice(now);
                    room -= now.len();
                    bytes = rest;
                }
            };
            for row in self.pixels.chunks_exact(line) {
                push(file, &[0]);
                push(file, row);
            }
            file.extend_from_slice(&check.finish().to_be_bytes());
        });
        chunk(&mut file, *b"IEND", |_| {});
        file
    }
}

/// A file in the making, which ends when nobody wants it any more.
struct Growing<'a> {
    bytes: Vec<u8>,
    stop: &'a Stop,
}

impl Write for Growing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stop.go_on().map_err(io::Error::other)?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn chunk(file: &mut Vec<u8>, kind: [u8; 4], write: impl FnOnce(&mut Vec<u8>)) {
    let start = file.len();
    file.extend_from_slice(&[0; 4]);
    file.extend_from_slice(&kind);
    write(file);
    let length = (file.len() - start - 8) as u32;
    file[start..start + 4].copy_from_slice(&length.to_be_bytes());
    let mut crc = Crc::new();
    crc.update(&file[start + 4..]);
    file.extend_from_slice(&crc.sum().to_be_bytes());
}

/// For each of `new` places, the first of the `old` ones it covers and the shares of that and those after it.
fn shares(old: usize, new: usize) -> Vec<(usize, Vec<f32>)> {
    let scale = old as f32 / new as f32;
    let reach = scale.max(1.0);
    (0..new)
        .map(|place| {
            let middle = (place as f32 + 0.5) * scale;
            let from = ((middle - reach).floor().max(0.0) as usize).min(old - 1);
            let to = ((middle + reach).ceil() as usize).clamp(from + 1, old);
            let share = |at: usize| (1.0 - (at as f32 + 0.5 - middle).abs() / reach).max(0.0);
            let mut shares: Vec<f32> = (from..to).map(share).collect();
            let sum: f32 = shares.iter().sum();
            for share in &mut shares {
                *share /= sum;
            }
            (from, shares)
        })
        .collect()
}

/// Width and height, where they can be those of a picture here.
fn size(width: usize, height: usize) -> Result<(u16, u16), String> {
    let side = |side: usize| u16::try_from(side).ok().filter(|side| (1..=LONGEST_SIDE).contains(side));
    match (side(width), side(height)) {
        (Some(wide), Some(high)) if width * height <= MOST_PIXELS => Ok((wide, high)),
        _ => Err(format!("{width}x{height} pixels are too many")),
    }
}

fn png_reader(bytes: &[u8]) -> Result<png::Reader<Cursor<&[u8]>>, String> {
    let limits = png::Limits { bytes: MOST_PIXELS * 4 };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(Transformations::normalize_to_color8());
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let reader = decoder.read_info().map_err(|error| error.to_string())?;
    size(reader.info().width as usize, reader.info().height as usize)?;
    Ok(reader)
}

fn decode_png(bytes: &[u8]) -> Result<Picture, String> {
    let mut reader = png_reader(bytes)?;
    let mut buffer = vec![0; reader.output_buffer_size().ok_or("its size is too large")?];
    let frame = reader.next_frame(&mut buffer).map_err(|error| error.to_string())?;
    let (width, height) = size(frame.width as usize, frame.height as usize)?;
    buffer.truncate(frame.buffer_size());
    let pixels = match frame.color_type {
        png::ColorType::Rgb => buffer,
        png::ColorType::Rgba => {
            buffer.chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect()
        }
        png::ColorType::Grayscale => buffer.iter().flat_map(|grey| [*grey; CHANNELS]).collect(),
        png::ColorType::GrayscaleAlpha => {
            buffer.chunks_exact(2).flat_map(|pixel| [pixel[0]; CHANNELS]).collect()
        }
        png::ColorType::Indexed => return Err("its palette cannot be read".into()),
    };
    complete(width, height, pixels)
}

fn jpeg_reader(bytes: &[u8]) -> Result<JpegDecoder<ZCursor<&[u8]>>, String> {
    let options = DecoderOptions::new_safe()
        .set_max_width(usize::from(LONGEST_SIDE))
        .set_max_height(usize::from(LONGEST_SIDE))
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|error| error.to_string())?;
    let info = decoder.info().ok_or("it has no head")?;
    size(usize::from(info.width), usize::from(info.height))?;
    Ok(decoder)
}

fn decode_jpeg(bytes: &[u8]) -> Result<Picture, String> {
    let mut decoder = jpeg_reader(bytes)?;
    let pixels = decoder.decode().map_err(|error| error.to_string())?;
    let info = decoder.info().ok_or("it has no head")?;
    complete(info.width, info.height, pixels)
}

/// A picture, if the decoder gave as many pixels as it said.
fn complete(width: u16, height: u16, pixels: Vec<u8>) -> Result<Picture, String> {
    if pixels.len() != usize::from(width) * usize::from(height) * CHANNELS {
        return Err("it has fewer pixels than it says".into());
    }
    Ok(Picture { width, height, pixels })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use png::ColorType as Colour;

    use super::*;

    fn ramp(width: u16, height: u16) -> Picture {
        let size = usize::from(width) * usize::from(height) * CHANNELS;
        Picture { width, height, pixels: (0..size).map(|at| (at * 7 % 251) as u8).collect() }
    }

    #[test]
    fn a_stored_png_is_what_the_format_says() {
        let picture = Picture { width: 5, height: 3, pixels: (0..5 * 3 * 3).collect() };
        let file = picture.stored_png();
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
        assert_eq!(kept, picture.pixels);
        assert!(rows.chunks(16).all(|row| row[0] == 0));
    }

    #[test]
    fn a_png_holds_its_pixels_stored_or_compressed_at_any_size() {
        // 21,846 pixels of one row and 300 × 300 are more than one stored block.
        for (width, height) in [(1, 1), (5, 3), (300, 300), (16_384, 2), (1, 400)] {
            let picture = ramp(width, height);
            assert!(Picture::decode(&picture.stored_png()).unwrap() == picture, "{width}x{height}");
            assert!(
                Picture::decode(&picture.png(&Stop::default()).unwrap()).unwrap() == picture,
                "{width}x{height}"
            );
        }
    }

    #[test]
    fn a_jpeg_comes_back_nearly() {
        let grey = Picture { width: 40, height: 20, pixels: [200, 60, 30].repeat(800) };
        let again = Picture::decode(&grey.jpeg(&Stop::default()).unwrap()).unwrap();
        assert_eq!((again.width, again.height), (40, 20));
        assert!(again.pixels.iter().zip(&grey.pixels).all(|(one, other)| one.abs_diff(*other) < 4));
    }

    #[test]
    fn every_colour_type_becomes_red_green_and_blue() {
        let encode = |colour, depth, palette: Option<&[u8]>, data: &[u8]| {
            let mut file = Vec::new();
            let mut encoder = png::Encoder::new(&mut file, 2, 1);
            encoder.set_color(colour);
            encoder.set_depth(depth);
            if let Some(palette) = palette {
                encoder.set_palette(palette.to_vec());
            }
            let mut writer = encoder.write_header().unwrap();
            writer.write_image_data(data).unwrap();
            drop(writer);
            Picture::decode(&file).unwrap().pixels
        };
        assert_eq!(encode(Colour::Grayscale, BitDepth::Eight, None, &[7, 9]), [7, 7, 7, 9, 9, 9]);
        assert_eq!(encode(Colour::GrayscaleAlpha, BitDepth::Eight, None, &[7, 0, 9, 9]), [7, 7, 7, 9, 9, 9]);
        assert_eq!(
            encode(Colour::Rgba, BitDepth::Eight, None, &[1, 2, 3, 0, 4, 5, 6, 9]),
            [1, 2, 3, 4, 5, 6]
        );
        let wide: Vec<u8> = [1u8, 2, 3, 4, 5, 6].iter().flat_map(|value| [*value, 99]).collect();
        assert_eq!(encode(Colour::Rgb, BitDepth::Sixteen, None, &wide), [1, 2, 3, 4, 5, 6]);
        let palette = [10, 20, 30, 40, 50, 60];
        assert_eq!(
            encode(Colour::Indexed, BitDepth::Eight, Some(&palette), &[1, 0]),
            [40, 50, 60, 10, 20, 30]
        );
    }

    #[test]
    fn a_picture_in_another_size_shows_the_same() {
        let halves = |width: u16, height: u16| {
            let row: Vec<u8> =
                (0..width).flat_map(|x| [if x < width / 2 { 250 } else { 10 }, 90, 0]).collect();
            Picture { width, height, pixels: row.repeat(usize::from(height)) }
        };
        let wide = halves(64, 16);
        assert_eq!(wide.resized(64, 16), wide);
        for (width, height) in [(8, 4), (200, 3), (1, 1), (63, 40)] {
            let new = wide.resized(width, height);
            assert_eq!((new.width, new.height), (width, height));
            assert_eq!(new.pixels.len(), usize::from(width) * usize::from(height) * CHANNELS);
            let mean = |picture: &Picture| {
                picture.pixels.iter().map(|value| f64::from(*value)).sum::<f64>()
                    / picture.pixels.len() as f64
            };
            assert!((mean(&new) - mean(&wide)).abs() < 2.0, "{width}x{height}: {}", mean(&new));
            assert!(new.pixels.chunks_exact(3).all(|pixel| pixel[1] == 90 && pixel[2] == 0));
        }
        let small = wide.resized(8, 4);
        assert_eq!((small.pixels[0], small.pixels[7 * 3]), (250, 10));
    }

    #[test]
    fn what_is_no_picture_or_too_large_is_an_error() {
        let png = ramp(5, 5).stored_png();
        let jpeg = ramp(5, 5).jpeg(&Stop::default()).unwrap();
        assert!(Picture::decode(b"GIF89a").unwrap_err().contains("neither PNG nor JPEG"));
        for bytes in [&png[..20], &png[..60], &jpeg[..10], &jpeg[..100], b"", PNG_MARK, JPEG_MARK] {
            assert!(Picture::decode(bytes).is_err(), "{bytes:?}");
        }
        assert!(Picture::check_head(&png[..60]).is_ok());
        assert!(Picture::check_head(&png[..20]).is_err());
        let mut huge = png.clone();
        huge[16..24].copy_from_slice(&[0, 0, 0x40, 0, 0, 0, 0x40, 0]);
        let mut crc = Crc::new();
        crc.update(&huge[12..29]);
        huge[29..33].copy_from_slice(&crc.sum().to_be_bytes());
        assert!(Picture::check_head(&huge).unwrap_err().contains("16384x16384"));
    }
}
