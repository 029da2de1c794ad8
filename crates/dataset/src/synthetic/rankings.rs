//! Queries, and passages to rank by them.

use aiperf_config::SyntheticRankings;
use aiperf_tokenize::Corpus;
use aiperf_tokenize::seed::{Stream, Streams};
use aiperf_types::{Content, TextGroup, Turn};

use crate::random::whole;
use crate::{DatasetError, Stop};

/// Makes them, one of each entry.
pub(super) struct Rankings {
    shape: SyntheticRankings,
    counts: Streams,
    query_lengths: Streams,
    passage_lengths: Streams,
    passages: Streams,
}

impl Rankings {
    pub(super) fn new(shape: SyntheticRankings, streams: impl Fn(&str) -> Streams) -> Rankings {
        Rankings {
            shape,
            counts: streams("passages"),
            query_lengths: streams("query_length"),
            passage_lengths: streams("passage_length"),
            passages: streams("passage_prompts"),
        }
    }

    /// The turn of an entry; its query is cut from the corpus with `prompts`.
    pub(super) fn turn(
        &self,
        corpus: &Corpus,
        index: u64,
        prompts: &mut Stream,
        stop: &Stop,
    ) -> Result<Turn, DatasetError> {
        let length = whole(&mut self.query_lengths.at(index), self.shape.query_tokens, 1);
        let query = corpus.exact_text(prompts, length);
        let mut tokens = query.tokens;
        let (mut lengths, mut texts) = (self.passage_lengths.at(index), self.passages.at(index));
        let passages = (0..whole(&mut self.counts.at(index), self.shape.passages, 1))
            .map(|_| {
                stop.go_on()?;
                let length = whole(&mut lengths, self.shape.passage_tokens, 1);
                let passage = corpus.exact_text(&mut texts, length);
                tokens += passage.tokens;
                Ok(passage.text.into())
            })
            .collect::<Result<_, DatasetError>>()?;
        let group = |name: &str, contents| TextGroup { name: Some(name.into()), contents };
        let texts = vec![group("query", vec![query.text.into()]), group("passages", passages)];
        Ok(Turn {
            content: Content::Parts { texts, media: Vec::new() },
            text_tokens: Some(tokens),
            ..Turn::default()
        })
    }
}
