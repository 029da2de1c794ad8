//! Generated images: noise or pictures in PNG or JPEG, as data URLs.

use std::sync::Arc;

use aiperf_config::{ImageFormat, ImageSampling, ImageSource, SyntheticImages};
use aiperf_tokenize::seed::{Rng as _, Stream, Streams, below};
use aiperf_types::{Media, MediaKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::pictures::Pictures;
use crate::media::picture::{CHANNELS, LONGEST_SIDE, Picture};
use crate::random::{shuffle, whole};
use crate::{DatasetError, Note, Stop};

/// Bytes of noise drawn at once: whole blocks of the generator, so that the noise is the same in one piece.
const NOISE_AT_ONCE: usize = 1 << 20;

/// Makes the images of entries. Sizes and pixels are drawn from one stream, formats and pictures from others.
pub(super) struct Images {
    shape: SyntheticImages,
    /// What they show; noise without.
    pictures: Option<Pictures>,
    pixels: Streams,
    formats: Streams,
    choices: Streams,
}

/// The streams of one entry.
pub(super) struct Draws {
    pixels: Stream,
    formats: Stream,
    choices: Stream,
    /// Images made before the next one, over all entries.
    number: u64,
}

impl Images {
    pub(super) fn new(
        shape: SyntheticImages,
        streams: impl Fn(&str) -> Streams,
    ) -> Result<Images, DatasetError> {
        let pictures = match &shape.source {
            ImageSource::Noise => None,
            ImageSource::Assets => Some(Pictures::bundled()),
            ImageSource::Folder(folder) => Some(Pictures::of_folder(folder)?),
        };
        Ok(Images {
            shape,
            pictures,
            pixels: streams("images"),
            formats: streams("image_formats"),
            choices: streams("image_pictures"),
        })
    }

    /// Whether what an entry gets follows from how many images come before it.
    pub(super) fn go_round(&self) -> bool {
        self.pictures.is_some() && self.shape.sampling != ImageSampling::Random
    }

    /// The draws of an entry before which there are so many turns. Only where images go round does that matter.
    pub(super) fn draws(&self, entry: u64, turns_before: u64) -> Draws {
        Draws {
            pixels: self.pixels.at(entry),
            formats: self.formats.at(entry),
            choices: self.choices.at(entry),
            number: turns_before * u64::from(self.shape.count),
        }
    }

    pub(super) fn note(&self) -> Option<Note> {
        self.pictures.as_ref().and_then(Pictures::note)
    }

    /// Appends the images of the next turn.
    pub(super) fn turn(
        &self,
        draws: &mut Draws,
        media: &mut Vec<Media>,
        stop: &Stop,
    ) -> Result<(), DatasetError> {
        for _ in 0..self.shape.count {
            stop.go_on()?;
            let side = |stream: &mut Stream, normal| whole(stream, normal, 1).min(LONGEST_SIDE.into()) as u16;
            let width = side(&mut draws.pixels, self.shape.width);
            let height = side(&mut draws.pixels, self.shape.height);
            let is_png = match self.shape.format {
                ImageFormat::Png => true,
                ImageFormat::Jpeg => false,
                ImageFormat::Random => below(&mut draws.formats, 2) == 0,
            };
            let content = match &self.pictures {
                None => {
                    let mut pixels = vec![0; usize::from(width) * usize::from(height) * CHANNELS];
                    for some in pixels.chunks_mut(NOISE_AT_ONCE) {
                        stop.go_on()?;
                        draws.pixels.fill_bytes(some);
                    }
                    let noise = Picture { width, height, pixels };
                    Arc::from(if is_png { url("png", &noise.stored_png()) } else { jpeg_url(&noise, stop)? })
                }
                Some(pictures) => {
                    let index = self.choose(pictures.len(), draws);
                    pictures.image(index, (width, height), is_png, |picture| {
                        if is_png { png_url(picture, stop) } else { jpeg_url(picture, stop) }
                    })?
                }
            };
            draws.number += 1;
            media.push(Media { kind: MediaKind::Image, name: None, content, uuid: None });
        }
        Ok(())
    }

    /// Which of `count` pictures is next.
    fn choose(&self, count: usize, draws: &mut Draws) -> usize {
        let (round, place) = (draws.number / count as u64, (draws.number % count as u64) as usize);
        match self.shape.sampling {
            ImageSampling::Random => below(&mut draws.choices, count as u64) as usize,
            ImageSampling::Sequential => place,
            ImageSampling::Shuffle => {
                let mut order: Vec<u32> = (0..count as u32).collect();
                shuffle(&mut self.choices.at(round), &mut order);
                order[place] as usize
            }
        }
    }
}

fn png_url(picture: &Picture, stop: &Stop) -> Result<String, DatasetError> {
    let file = picture.png(stop);
    file.map(|bytes| url("png", &bytes)).map_err(|error| failed("png", picture, &error, stop))
}

fn jpeg_url(picture: &Picture, stop: &Stop) -> Result<String, DatasetError> {
    let file = picture.jpeg(stop);
    file.map(|bytes| url("jpeg", &bytes)).map_err(|error| failed("jpeg", picture, &error, stop))
}

fn failed(name: &str, picture: &Picture, error: &str, stop: &Stop) -> DatasetError {
    if stop.is_set() {
        return DatasetError::Stopped;
    }
    let (width, height) = (picture.width, picture.height);
    DatasetError::Prompt(format!("cannot encode an image of {width}x{height} as {name}: {error}"))
}

fn url(name: &str, bytes: &[u8]) -> String {
    let mut url = String::with_capacity(32 + bytes.len().div_ceil(3) * 4);
    url.push_str("data:image/");
    url.push_str(name);
    url.push_str(";base64,");
    STANDARD.encode_string(bytes, &mut url);
    url
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use aiperf_config::Normal;

    use super::*;

    fn shape(format: ImageFormat, side: f64, stddev: f64, count: u32) -> SyntheticImages {
        let normal = Normal { mean: side, stddev };
        let (source, sampling) = (ImageSource::Noise, ImageSampling::Random);
        SyntheticImages { count, width: normal, height: normal, format, source, sampling }
    }

    fn made(shape: SyntheticImages) -> Images {
        Images::new(shape, |name| Streams::new(7, name)).unwrap()
    }

    fn images(format: ImageFormat, side: f64, stddev: f64, count: u32) -> Images {
        made(shape(format, side, stddev, count))
    }

    fn pictures(sampling: ImageSampling, format: ImageFormat, count: u32) -> Images {
        let source = ImageSource::Assets;
        made(SyntheticImages { source, sampling, ..shape(format, 16.0, 0.0, count) })
    }

    fn urls(images: &Images, entry: u64) -> Vec<String> {
        let mut media = Vec::new();
        images.turn(&mut images.draws(entry, entry), &mut media, &Stop::default()).unwrap();
        media.iter().map(|media| media.content.to_string()).collect()
    }

    fn bytes(url: &str, kind: &str) -> Vec<u8> {
        STANDARD.decode(url.strip_prefix(&format!("data:image/{kind};base64,")).unwrap()).unwrap()
    }

    #[test]
    fn noise_has_the_size_that_noise_has() {
        let pixels = 256.0 * 256.0;
        let png = bytes(&urls(&images(ImageFormat::Png, 256.0, 0.0, 1), 0)[0], "png");
        let mut counts = [0u32; 256];
        for value in Picture::decode(&png).unwrap().pixels {
            counts[usize::from(value)] += 1;
        }
        // Each value comes up 768 times on average, with a deviation of 28.
        assert!(counts.iter().all(|count| (600..940).contains(count)), "{counts:?}");
        let png = png.len() as f64 / pixels;
        assert!((3.0..=3.02).contains(&png), "{png}");
        let jpeg = bytes(&urls(&images(ImageFormat::Jpeg, 256.0, 0.0, 1), 0)[0], "jpeg");
        assert_eq!((&jpeg[..2], &jpeg[jpeg.len() - 2..]), (&b"\xff\xd8"[..], &b"\xff\xd9"[..]));
        // Three components, none of them sampled more coarsely than another.
        let frame = jpeg.windows(2).position(|mark| mark == b"\xff\xc0").unwrap();
        assert_eq!(jpeg[frame + 9], 3);
        assert!([11, 14, 17].iter().all(|at| jpeg[frame + at] == 0x11));
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

    #[test]
    fn pictures_are_drawn_anew_or_go_round() {
        let random = pictures(ImageSampling::Random, ImageFormat::Png, 1);
        assert!(!random.go_round());
        let drawn: Vec<String> = (0..200).flat_map(|entry| urls(&random, entry)).collect();
        for one in drawn.iter().collect::<BTreeSet<_>>() {
            let count = drawn.iter().filter(|other| *other == one).count();
            assert!((25..=80).contains(&count), "{count} of 200");
        }
        let sequential = pictures(ImageSampling::Sequential, ImageFormat::Png, 3);
        assert!(sequential.go_round());
        let order: Vec<String> = (0..8).flat_map(|entry| urls(&sequential, entry)).collect();
        assert_eq!(order[..4].iter().collect::<BTreeSet<_>>().len(), 4);
        assert!((4..order.len()).all(|at| order[at] == order[at - 4]));
        let shuffled = pictures(ImageSampling::Shuffle, ImageFormat::Png, 2);
        let order: Vec<String> = (0..40).flat_map(|entry| urls(&shuffled, entry)).collect();
        assert!(order.chunks(4).all(|round| round.iter().collect::<BTreeSet<_>>().len() == 4));
        assert!(order.chunks(4).collect::<BTreeSet<_>>().len() > 5);
        assert_eq!(urls(&shuffled, 17), urls(&shuffled, 17));
    }

    #[test]
    fn a_picture_has_the_size_and_format_asked_for() {
        let source = ImageSource::Assets;
        let images = made(SyntheticImages { source, ..shape(ImageFormat::Random, 60.0, 20.0, 30) });
        let mut sizes = BTreeSet::new();
        let mut kinds = BTreeSet::new();
        for url in urls(&images, 1) {
            let (kind, _) = url.strip_prefix("data:image/").unwrap().split_once(';').unwrap();
            let picture = Picture::decode(&bytes(&url, kind)).unwrap();
            sizes.insert((picture.width, picture.height));
            kinds.insert(kind.to_owned());
        }
        assert!(sizes.len() > 20, "{sizes:?}");
        assert_eq!(kinds.len(), 2);
    }
}
