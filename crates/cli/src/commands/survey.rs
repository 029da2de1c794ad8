//! Datasets that are looked at, not sent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aiperf_config::{DatasetConfig, DatasetSource, EndpointKind, FileDataset, FileFormat, Sampling};
use aiperf_dataset::{Dataset, DatasetError, OpenContext, Survey};

/// Opens a file to look at it; what is wrong with it is in `survey`.
pub(super) fn open(
    path: PathBuf,
    format: FileFormat,
    block_size: Option<u32>,
    survey: &Survey,
) -> Result<Arc<dyn Dataset>, DatasetError> {
    let file = FileDataset { block_size, ..FileDataset::new(path, format) };
    let config = DatasetConfig {
        source: DatasetSource::File(file),
        sampling: Sampling::Sequential,
        inter_turn_delay_cap: None,
        osl: None,
        system_prompt: None,
        corpus: None,
    };
    let context = OpenContext {
        seed: 0,
        seed_given: true,
        tokenizer: None,
        endpoint: EndpointKind::Chat,
        extra_inputs: None,
        streaming: false,
        fixed_schedule: false,
        apply_chat_template: false,
        survey: Some(survey),
    };
    aiperf_dataset::open(&config, &context)
}

/// Checks a trace as a run would, and counts its rows.
pub(super) fn mooncake_rows(path: &Path, block_size: u32) -> Result<u64, DatasetError> {
    let survey = Survey::new(1);
    let dataset = open(path.to_owned(), FileFormat::MooncakeTrace, Some(block_size), &survey)?;
    dataset.wait_for(u64::MAX);
    match (survey.faults().0.into_iter().next(), dataset.fault()) {
        (Some(fault), _) | (None, Some(fault)) => Err(fault),
        (None, None) => Ok(dataset.total_turns().unwrap_or(0)),
    }
}
