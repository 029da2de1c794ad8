//! Hints and warnings about the figures, each with what to do next.

use super::table::panel;
use crate::number::count;
use crate::results::RunResults;
use crate::style::{Palette, Style};
use crate::text::wrap;

/// Usage is reported, but never a cache read.
pub(super) fn cache_hint(results: &RunResults<'_>, width: usize, palette: Palette, out: &mut String) {
    if !results.profiling().is_some_and(|phase| phase.summary.usage_without_cache_reads) {
        return;
    }
    let text = "The server reports token usage but no tokens read from a prompt cache. If it caches prefixes, let it \
                say so: vLLM --enable-prompt-tokens-details, SGLang --enable-cache-report; TensorRT-LLM does by itself.";
    out.push('\n');
    for line in wrap(text, width) {
        out.push_str(&palette.paint(Style::Dim, &line));
        out.push('\n');
    }
}

/// Usage and the client's own counts disagree.
pub(super) fn usage_discrepancy(results: &RunResults<'_>, width: usize, palette: Palette, out: &mut String) {
    let Some(found) = results.profiling().and_then(|phase| phase.summary.usage_discrepancy) else { return };
    if found.count == 0 {
        return;
    }
    let lines = [
        format!(
            "{} of {} requests ({:.1}%): the token counts of the server's usage differ from the client's own by more",
            count(found.count),
            count(found.compared),
            share(found.count, found.compared),
        ),
        format!("than {}%.", results.config.tuning.usage_diff_pct),
        String::new(),
        "Likely: another tokenizer than the model's, or special tokens and templates that the server adds."
            .into(),
        String::new(),
        "What to do:".into(),
        "  - see usage_*_diff_pct of each request in the records JSONL".into(),
        "  - name the model's own tokenizer with --tokenizer".into(),
        "  - take the server's counts with --use-server-token-count".into(),
        "  - set another threshold with AIPERF_METRICS_USAGE_PCT_DIFF_THRESHOLD".into(),
    ];
    panel("Token Counts Disagree", &lines, Style::Yellow, width, palette, out);
}

/// Answers are not as long as they were asked to be.
pub(super) fn osl_mismatch(results: &RunResults<'_>, width: usize, palette: Palette, out: &mut String) {
    let Some(found) = results.profiling().and_then(|phase| phase.summary.osl_mismatch) else { return };
    if found.count == 0 {
        return;
    }
    let tuning = &results.config.tuning;
    let lines = [
        format!(
            "{} of {} requests ({:.1}%) got an answer of another length than was asked for.",
            count(found.count),
            count(found.compared),
            share(found.count, found.compared),
        ),
        format!(
            "Counted beyond the smaller of {}% of the requested length and {} tokens; mean difference {:+.1}%.",
            tuning.osl_mismatch_pct, tuning.osl_mismatch_max_tokens, found.mean_diff_pct
        ),
        String::new(),
        "Likely: the model ended its answer before the limit.".into(),
        String::new(),
        "What to do:".into(),
        "  - --extra-inputs ignore_eos:true lets vLLM and TensorRT-LLM write on to the limit".into(),
        "  - --extra-inputs min_tokens:<n> sets a lower bound (vLLM, TensorRT-LLM, SGLang)".into(),
        "  - --use-server-token-count, when the tokenizer is not the model's".into(),
        "  - see osl_mismatch_diff_pct of each request in the records JSONL".into(),
        "  - set other thresholds with AIPERF_METRICS_OSL_MISMATCH_PCT_THRESHOLD and _MAX_TOKEN_THRESHOLD"
            .into(),
    ];
    panel("Output Lengths Differ", &lines, Style::Yellow, width, palette, out);
}

fn share(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}
