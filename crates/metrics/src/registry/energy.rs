//! Energy and power of GPUs, per vendor.

use super::ConsoleGroup::{AmdEfficiency, NvidiaEfficiency};
use super::definition::{MetricDef, derived};
use super::{Flag as F, Metric as M};

#[rustfmt::skip]
pub(super) const ROWS: &[MetricDef] = &[
    derived(M::NvidiaEnergyDelayProduct, "nvidia_energy_delay_product", "Energy Delay Product").unit("J*s").float().shown(NvidiaEfficiency, 700).flags(&[F::GpuTelemetry]),
    derived(M::NvidiaPerformancePerWatt, "nvidia_performance_per_watt", "Performance per Watt").unit("requests/sec/W").float().shown(NvidiaEfficiency, 710).flags(&[F::LargerIsBetter, F::GpuTelemetry]),
    derived(M::NvidiaOutputTpsPerWatt, "nvidia_output_tps_per_watt", "Output Tokens per Second per Watt").unit("tokens/sec/W").float().shown(NvidiaEfficiency, 712).flags(&[F::Tokens, F::LargerIsBetter, F::GpuTelemetry]),
    derived(M::NvidiaGoodputPerWatt, "nvidia_goodput_per_watt", "Goodput per Watt").unit("good-req/s/W").float().shown(NvidiaEfficiency, 714).flags(&[F::LargerIsBetter, F::GpuTelemetry]),
    derived(M::NvidiaAverageGpuPower, "nvidia_average_gpu_power", "Average GPU Power").unit("W").float().shown(NvidiaEfficiency, 720).flags(&[F::GpuTelemetry]),
    derived(M::NvidiaTotalGpuEnergy, "nvidia_total_gpu_energy", "Total GPU Energy").unit("J").float().shown(NvidiaEfficiency, 730).flags(&[F::GpuTelemetry]),
    derived(M::NvidiaTotalGpuPower, "nvidia_total_gpu_power", "Total GPU Power").unit("W").float().shown(NvidiaEfficiency, 740).flags(&[F::GpuTelemetry]),
    derived(M::NvidiaEnergyPerTotalToken, "nvidia_energy_per_total_token", "Energy per Total Token").unit("mJ/token").float().shown(NvidiaEfficiency, 745).flags(&[F::GpuTelemetry]),
    derived(M::NvidiaEnergyPerOutputToken, "nvidia_energy_per_output_token", "Energy per Output Token").unit("mJ/token").float().shown(NvidiaEfficiency, 750).flags(&[F::Tokens, F::GpuTelemetry]),
    derived(M::NvidiaEnergyPerRequest, "nvidia_energy_per_request", "Energy per Request").unit("joules/request").float().shown(NvidiaEfficiency, 755).flags(&[F::GpuTelemetry]),
    derived(M::NvidiaOutputTokensPerJoule, "nvidia_output_tokens_per_joule", "Output Tokens per Joule").unit("tokens/J").float().shown(NvidiaEfficiency, 760).flags(&[F::Tokens, F::LargerIsBetter, F::GpuTelemetry]),
    derived(M::NvidiaEnergyPerUser, "nvidia_energy_per_user", "Energy per User").unit("joules/user").float().shown(NvidiaEfficiency, 765).flags(&[F::GpuTelemetry]),
    derived(M::AmdEnergyDelayProduct, "amd_energy_delay_product", "Energy Delay Product").unit("J*s").float().shown(AmdEfficiency, 800).flags(&[F::GpuTelemetry]),
    derived(M::AmdPerformancePerWatt, "amd_performance_per_watt", "Performance per Watt").unit("requests/sec/W").float().shown(AmdEfficiency, 810).flags(&[F::LargerIsBetter, F::GpuTelemetry]),
    derived(M::AmdOutputTpsPerWatt, "amd_output_tps_per_watt", "Output Tokens per Second per Watt").unit("tokens/sec/W").float().shown(AmdEfficiency, 812).flags(&[F::Tokens, F::LargerIsBetter, F::GpuTelemetry]),
    derived(M::AmdGoodputPerWatt, "amd_goodput_per_watt", "Goodput per Watt").unit("good-req/s/W").float().shown(AmdEfficiency, 814).flags(&[F::LargerIsBetter, F::GpuTelemetry]),
    derived(M::AmdAverageGpuPower, "amd_average_gpu_power", "Average GPU Power").unit("W").float().shown(AmdEfficiency, 820).flags(&[F::GpuTelemetry]),
    derived(M::AmdTotalGpuEnergy, "amd_total_gpu_energy", "Total GPU Energy").unit("J").float().shown(AmdEfficiency, 830).flags(&[F::GpuTelemetry]),
    derived(M::AmdTotalGpuPower, "amd_total_gpu_power", "Total GPU Power").unit("W").float().shown(AmdEfficiency, 840).flags(&[F::GpuTelemetry]),
    derived(M::AmdEnergyPerTotalToken, "amd_energy_per_total_token", "Energy per Total Token").unit("mJ/token").float().shown(AmdEfficiency, 845).flags(&[F::GpuTelemetry]),
    derived(M::AmdEnergyPerOutputToken, "amd_energy_per_output_token", "Energy per Output Token").unit("mJ/token").float().shown(AmdEfficiency, 850).flags(&[F::Tokens, F::GpuTelemetry]),
    derived(M::AmdEnergyPerRequest, "amd_energy_per_request", "Energy per Request").unit("joules/request").float().shown(AmdEfficiency, 855).flags(&[F::GpuTelemetry]),
    derived(M::AmdOutputTokensPerJoule, "amd_output_tokens_per_joule", "Output Tokens per Joule").unit("tokens/J").float().shown(AmdEfficiency, 860).flags(&[F::Tokens, F::LargerIsBetter, F::GpuTelemetry]),
    derived(M::AmdEnergyPerUser, "amd_energy_per_user", "Energy per User").unit("joules/user").float().shown(AmdEfficiency, 865).flags(&[F::GpuTelemetry]),
];
