//! Images, audio and video.

use super::ConsoleGroup::{Default, Hidden};
use super::definition::{MetricDef, record};
use super::units::{MS, RATIO, SEC};
use super::{Flag as F, Metric as M};

#[rustfmt::skip]
pub(super) const ROWS: &[MetricDef] = &[
    record(M::NumImages, "num_images", "Number of Images").short("Num Images").unit("images").int().flags(&[F::Images]),
    record(M::ImageThroughput, "image_throughput", "Image Throughput").short("Image Throughput").unit("images/sec").float().shown(Default, 860).flags(&[F::Images]).needs(&[M::NumImages, M::RequestLatency]),
    record(M::ImageLatency, "image_latency", "Image Latency").short("Image Latency").unit("ms/image").float().shown(Default, 861).flags(&[F::Images]).needs(&[M::NumImages, M::RequestLatency]),
    record(M::VideoInferenceTime, "video_inference_time", "Video Inference Time").short("Inference Time").units(SEC, MS).float().shown(Default, 310).flags(&[F::Video]),
    record(M::VideoPeakMemory, "video_peak_memory", "Video Peak Memory").short("Peak Memory").unit("MB").float().shown(Default, 311).flags(&[F::Video]),
    record(M::AudioDuration, "audio_duration", "Audio Duration").short("Audio Dur").unit(SEC).float().shown(Hidden, 870).flags(&[F::Audio]),
    record(M::Rtfx, "rtfx", "Inverse Real-Time Factor (RTFx)").short_bare("RTFx").unit(RATIO).float().shown(Default, 850).flags(&[F::Audio, F::LargerIsBetter]).needs(&[M::AudioDuration, M::RequestLatency]),
];
