//! Token counts, rates made of them, and comparisons of counts.

use super::ConsoleGroup::{Default, Hidden};
use super::definition::{MetricDef, derived, record, sum_of};
use super::units::{PERCENT, RATIO, REQUESTS, TOKENS, TOKENS_PER_SEC, TOKENS_PER_SEC_PER_USER};
use super::{Flag as F, Metric as M};

#[rustfmt::skip]
pub(super) const ROWS: &[MetricDef] = &[
    record(M::OutputSequenceLength, "output_sequence_length", "Output Sequence Length").short("OSL").unit(TOKENS).int().shown(Default, 600).flags(&[F::Tokens, F::LargerIsBetter]),
    derived(M::TotalOsl, "total_osl", "Total Output Sequence Length").short_bare("Total OSL").unit(TOKENS).int().flags(&[F::Tokens, F::LargerIsBetter]).needs(&[M::OutputSequenceLength]),
    derived(M::OutputTokenThroughput, "output_token_throughput", "Output Token Throughput").short_bare("Output TPS").unit(TOKENS_PER_SEC).float().shown(Default, 800).flags(&[F::Tokens, F::LargerIsBetter]).needs(&[M::BenchmarkDuration, M::TotalOsl]),
    record(M::OutputTokenThroughputPerUser, "output_token_throughput_per_user", "Output Token Throughput Per User").short_bare("Output TPS/User").unit(TOKENS_PER_SEC_PER_USER).float().shown(Default, 500).flags(&[F::Streaming, F::Tokens, F::LargerIsBetter]).needs(&[M::InterTokenLatency]),
    record(M::OutputTokenCount, "output_token_count", "Output Token Count").short_bare("Output Tokens").unit(TOKENS).int().flags(&[F::Tokens, F::LargerIsBetter]),
    derived(M::TotalOutputTokens, "total_output_tokens", "Total Output Tokens").short_bare("Total Output").unit(TOKENS).int().flags(&[F::Tokens, F::LargerIsBetter]).needs(&[M::OutputTokenCount]),
    record(M::ReasoningTokenCount, "reasoning_token_count", "Reasoning Token Count").short_bare("Reasoning Tokens").unit(TOKENS).int().flags(&[F::Tokens, F::Reasoning, F::LargerIsBetter]),
    derived(M::TotalReasoningTokens, "total_reasoning_tokens", "Total Reasoning Tokens").short_bare("Total Reasoning").unit(TOKENS).int().flags(&[F::Tokens, F::LargerIsBetter]).needs(&[M::ReasoningTokenCount]),
    record(M::ThinkingEfficiency, "thinking_efficiency", "Thinking Efficiency").bare().unit(RATIO).float().shown_last(Default).flags(&[F::Tokens, F::Reasoning, F::Experimental]).needs(&[M::OutputTokenCount, M::ReasoningTokenCount]),
    derived(M::OverallThinkingEfficiency, "overall_thinking_efficiency", "Overall Thinking Efficiency").short_bare("Overall Eff.").unit(RATIO).float().shown_last(Default).flags(&[F::Tokens, F::Reasoning, F::Experimental]).needs(&[M::TotalOutputTokens, M::TotalReasoningTokens]),
    record(M::InputSequenceLength, "input_sequence_length", "Input Sequence Length").short("ISL").unit(TOKENS).int().shown(Default, 700).flags(&[F::TokenizesInput, F::LargerIsBetter]),
    derived(M::TotalIsl, "total_isl", "Total Input Sequence Length").short_bare("Total ISL").unit(TOKENS).int().flags(&[F::TokenizesInput, F::LargerIsBetter]).needs(&[M::InputSequenceLength]),
    record(M::ErrorIsl, "error_isl", "Error Input Sequence Length").short("Error ISL").unit(TOKENS).int().shown(Hidden, 700).flags(&[F::ErrorOnly, F::TokenizesInput, F::LargerIsBetter]),
    derived(M::TotalErrorIsl, "total_error_isl", "Total Error Input Sequence Length").short_bare("Total Error ISL").unit(TOKENS).int().flags(&[F::ErrorOnly, F::TokenizesInput, F::LargerIsBetter]).needs(&[M::ErrorIsl]),
    record(M::PrefillThroughputPerUser, "prefill_throughput_per_user", "Prefill Throughput Per User").short_bare("Prefill TPS/User").unit(TOKENS_PER_SEC_PER_USER).float().flags(&[F::Streaming, F::Tokens, F::TokenizesInput, F::LargerIsBetter]).needs(&[M::InputSequenceLength, M::TimeToFirstToken]),
    derived(M::TotalTokenThroughput, "total_token_throughput", "Total Token Throughput").short_bare("Total TPS").unit(TOKENS_PER_SEC).float().flags(&[F::Tokens, F::LargerIsBetter]).needs(&[M::BenchmarkDuration, M::TotalIsl, M::TotalOsl]),
    record(M::RequestedOsl, "requested_osl", "Requested OSL").short("Req OSL").unit(TOKENS).int().flags(&[F::Tokens, F::Internal]),
    record(M::OslMismatchDiffPct, "osl_mismatch_diff_pct", "OSL Mismatch Diff %").short_bare("OSL Diff").unit(PERCENT).float().flags(&[F::Tokens, F::NotInAccuracy]).needs(&[M::OutputSequenceLength, M::RequestedOsl]),
    sum_of(M::OslMismatchCount, "osl_mismatch_count", "OSL Mismatch Count").short_bare("OSL Mismatches").unit(REQUESTS).int().flags(&[F::Tokens, F::RunOnly, F::NotInAccuracy]).needs(&[M::OslMismatchDiffPct, M::OutputSequenceLength, M::RequestedOsl]),
    derived(M::InputTokenThroughput, "input_token_throughput", "Input Token Throughput").short_bare("Input TPS").unit(TOKENS_PER_SEC).float().shown(Default, 805).flags(&[F::LargerIsBetter]).needs(&[M::BenchmarkDuration, M::TotalIsl]),
    record(M::E2eOutputTokenThroughput, "e2e_output_token_throughput", "E2E Output Token Throughput").short_bare("E2E Output TPS/User").unit(TOKENS_PER_SEC_PER_USER).float().shown(Default, 510).flags(&[F::Tokens, F::LargerIsBetter]).needs(&[M::OutputSequenceLength, M::RequestLatency]),
];
