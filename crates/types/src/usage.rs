//! What the server said about its own work.

/// Token usage as a server reported it, under one set of names. `None` is "not reported"; 0 is a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Tokens generated, reasoning included.
    pub completion_tokens: Option<u64>,
    /// Prompt and completion.
    pub total_tokens: Option<u64>,
    /// Tokens of hidden or visible reasoning.
    pub reasoning_tokens: Option<u64>,
    /// Prompt tokens read from a cache.
    pub prompt_cache_read_tokens: Option<u64>,
    /// Prompt tokens written to a cache.
    pub prompt_cache_write_tokens: Option<u64>,
    /// Prompt tokens not found in a cache.
    pub prompt_cache_miss_tokens: Option<u64>,
    /// Prompt tokens of tool use.
    pub tool_use_prompt_tokens: Option<u64>,
    /// Audio tokens of the prompt.
    pub prompt_audio_tokens: Option<u64>,
    /// Audio of the prompt, seconds.
    pub prompt_audio_seconds: Option<f64>,
    /// Audio tokens of the completion.
    pub completion_audio_tokens: Option<u64>,
    /// Predicted-output tokens that were accepted.
    pub accepted_prediction_tokens: Option<u64>,
    /// Predicted-output tokens that were rejected.
    pub rejected_prediction_tokens: Option<u64>,
}

/// Speculative decoding statistics of one answer, validated.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SpecDecode {
    /// Index k: decode steps that accepted k draft tokens.
    pub acceptance_histogram: Vec<u64>,
    /// Decode steps.
    pub num_spec_steps: u64,
    /// Draft tokens per step, when reported.
    pub num_spec_tokens: Option<u64>,
    /// Draft tokens proposed, when reported.
    pub draft_tokens: Option<u64>,
    /// Draft tokens accepted, when reported.
    pub accepted_draft_tokens: Option<u64>,
    /// Mean acceptance length, when reported.
    pub mean_acceptance_length: Option<f64>,
    /// The object as the server sent it.
    pub raw: Option<String>,
}
