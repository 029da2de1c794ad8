//! Ends the making of a conversation that nobody wants any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::DatasetError;

/// A flag that those who make conversations look at between texts, images, clips and frames. Clones are the same flag.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    set: AtomicBool,
    /// Looks until it sets itself; 0 is never.
    #[cfg(test)]
    left: std::sync::atomic::AtomicU64,
}

impl Stop {
    /// A flag that is set at its n-th look, for tests.
    #[cfg(test)]
    pub(crate) fn at_look(n: u64) -> Stop {
        Stop(Arc::new(Flag { set: AtomicBool::new(false), left: n.into() }))
    }

    /// From now on what is being made is given up.
    pub fn set(&self) {
        self.0.set.store(true, Ordering::Relaxed);
    }

    /// Whether nothing more is wanted.
    pub(crate) fn is_set(&self) -> bool {
        #[cfg(test)]
        if self.0.left.load(Ordering::Relaxed) > 0 && self.0.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.set();
        }
        self.0.set.load(Ordering::Relaxed)
    }

    /// An error once nothing more is wanted.
    pub(crate) fn go_on(&self) -> Result<(), DatasetError> {
        if self.is_set() { Err(DatasetError::Stopped) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use aiperf_config::{
        AudioFormat, Corpus, DatasetConfig, DatasetSource, EndpointKind, ImageFormat, ImageSampling,
        ImageSource, LengthRange, Lengths, Normal, SyntheticAudio, SyntheticDataset, SyntheticImages,
        SyntheticMedia, SyntheticRankings,
    };
    use aiperf_tokenize::Tokenizer;
    use aiperf_types::Conversation;

    use super::*;
    use crate::{OpenContext, Survey, open_until};

    fn constant(mean: f64) -> Normal {
        Normal { mean, stddev: 0.0 }
    }

    fn shape() -> SyntheticDataset {
        SyntheticDataset::new(30, constant(4.0))
    }

    fn images(format: ImageFormat, source: ImageSource, side: f64, count: u32) -> SyntheticDataset {
        let side = constant(side);
        let sampling = ImageSampling::Random;
        let images = SyntheticImages { count, width: side, height: side, format, source, sampling };
        SyntheticDataset {
            media: SyntheticMedia { images: Some(images), ..SyntheticMedia::default() },
            ..shape()
        }
    }

    /// The last of the conversations that `shape` describes.
    fn last(
        shape: SyntheticDataset,
        endpoint: EndpointKind,
        corpus: Option<Corpus>,
        stop: &Stop,
    ) -> Result<Conversation, DatasetError> {
        let tokenizer = Tokenizer::builtin();
        let entry = shape.entries - 1;
        let config = DatasetConfig { corpus, ..DatasetConfig::new(DatasetSource::Synthetic(shape)) };
        let survey = Survey::default();
        let context = OpenContext {
            tokenizer: Some(&tokenizer),
            endpoint,
            survey: None,
            ..OpenContext::survey(&survey, false)
        };
        open_until(&config, &context, stop).unwrap().build(entry)
    }

    /// Wherever in the row of its items the making is stopped, it ends there.
    #[test]
    fn a_conversation_that_nobody_wants_ends_at_its_next_item() {
        let chat = EndpointKind::Chat;
        let clips = SyntheticAudio {
            count: 20,
            length: constant(0.01),
            sample_rates: vec![8000],
            depths: vec![8],
            channels: 1,
            format: AudioFormat::Wav,
        };
        let range = LengthRange { input: 5, output: 5, input_ratio: 0.2, output_ratio: 0.0 };
        let rankings = SyntheticRankings {
            passages: constant(20.0),
            passage_tokens: constant(3.0),
            query_tokens: constant(3.0),
        };
        for (what, shape, endpoint, corpus) in [
            ("turns", SyntheticDataset { turns: constant(20.0), ..shape() }, chat, None),
            ("texts", SyntheticDataset { batch_size: 20, ..shape() }, EndpointKind::Embeddings, None),
            ("noise", images(ImageFormat::Png, ImageSource::Noise, 2.0, 20), chat, None),
            ("pictures", images(ImageFormat::Png, ImageSource::Assets, 2.0, 20), chat, None),
            // Each of its rows of blocks is written by itself.
            ("one picture", images(ImageFormat::Jpeg, ImageSource::Assets, 500.0, 1), chat, None),
            (
                "clips",
                SyntheticDataset {
                    media: SyntheticMedia { audio: Some(clips), ..SyntheticMedia::default() },
                    ..shape()
                },
                chat,
                None,
            ),
            (
                "passages",
                SyntheticDataset { rankings: Some(rankings), ..shape() },
                EndpointKind::NimRankings,
                None,
            ),
            // Made in their order, whichever is wanted.
            (
                "prompts of another benchmark",
                SyntheticDataset { lengths: Lengths::Range(range), ..shape() },
                chat,
                Some(Corpus::Random),
            ),
        ] {
            assert!(last(shape.clone(), endpoint, corpus, &Stop::default()).is_ok(), "{what}");
            for look in [1, 2, 20] {
                let stopped = last(shape.clone(), endpoint, corpus, &Stop::at_look(look));
                assert_eq!(stopped.err(), Some(DatasetError::Stopped), "{what}, stopped at look {look}");
            }
        }
    }
}
