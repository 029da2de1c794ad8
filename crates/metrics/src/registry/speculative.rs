//! Speculative decoding, from the statistics a server puts beside its answers.

use super::ConsoleGroup::{Hidden, SpecDecode};
use super::definition::{MetricDef, derived, record};
use super::units::{COUNT, PERCENT, RATIO, TOKENS};
use super::{Flag as F, Metric as M};

#[rustfmt::skip]
pub(super) const ROWS: &[MetricDef] = &[
    record(M::SpecDecodeAcceptanceLength, "spec_decode_acceptance_length", "Acceptance Length").short_bare("Acceptance Length").unit(RATIO).float().shown(SpecDecode, 5000).flags(&[F::LargerIsBetter, F::ServerReported]),
    record(M::SpecDecodeDraftAcceptanceRate, "spec_decode_draft_acceptance_rate", "Draft Acceptance Rate").short_bare("Draft Accept Rate").unit(PERCENT).float().shown(SpecDecode, 5020).flags(&[F::LargerIsBetter, F::ServerReported]),
    record(M::SpecDecodeAcceptedPerVerified, "spec_decode_accepted_per_verified", "Accepted per Verified").short_bare("Accepted / Verified").unit(RATIO).float().shown(SpecDecode, 5030).flags(&[F::LargerIsBetter, F::ServerReported]),
    record(M::SpecDecodeSteps, "spec_decode_steps", "Spec Decode Steps").short_bare("Spec Decode Steps").unit(COUNT).int().shown(SpecDecode, 5040).flags(&[F::ServerReported]),
    record(M::SpecDecodeAcceptedDraftTokens, "spec_decode_accepted_draft_tokens", "Accepted Draft Tokens").short_bare("Accepted Draft").unit(TOKENS).int().shown(Hidden, 5050).flags(&[F::ServerReported]),
    record(M::SpecDecodeDraftTokens, "spec_decode_draft_tokens", "Draft Tokens").short_bare("Draft Tokens").unit(TOKENS).int().shown(Hidden, 5060).flags(&[F::ServerReported]),
    derived(M::TotalSpecDecodeSteps, "total_spec_decode_steps", "Total Spec Decode Steps").short_bare("Total Spec Decode Steps").unit(COUNT).int().shown(Hidden, 5140).flags(&[F::ServerReported]).needs(&[M::SpecDecodeSteps]),
    derived(M::TotalAcceptedDraftTokens, "total_accepted_draft_tokens", "Total Accepted Draft Tokens").short_bare("Total Accepted Draft").unit(TOKENS).int().shown(Hidden, 5150).flags(&[F::ServerReported]).needs(&[M::SpecDecodeAcceptedDraftTokens]),
    derived(M::TotalDraftTokens, "total_draft_tokens", "Total Draft Tokens").short_bare("Total Draft").unit(TOKENS).int().shown(Hidden, 5160).flags(&[F::ServerReported]).needs(&[M::SpecDecodeDraftTokens]),
    derived(M::SpecDecodeTokenWeightedAcceptanceLength, "spec_decode_token_weighted_acceptance_length", "Token-Weighted Acceptance Length").short_bare("Token-Wtd Accept Len").unit(RATIO).float().shown(SpecDecode, 5010).flags(&[F::LargerIsBetter, F::ServerReported]).needs(&[M::TotalAcceptedDraftTokens, M::TotalSpecDecodeSteps]),
    derived(M::SpecDecodeOverallDraftAcceptanceRate, "spec_decode_overall_draft_acceptance_rate", "Overall Draft Acceptance Rate").short_bare("Overall Draft Accept Rate").unit(PERCENT).float().shown(SpecDecode, 5025).flags(&[F::LargerIsBetter, F::ServerReported]).needs(&[M::TotalAcceptedDraftTokens, M::TotalDraftTokens]),
];
