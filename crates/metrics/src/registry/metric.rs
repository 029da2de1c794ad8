//! The identity of every metric.

/// One metric. The order of the variants is the order of exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Metric {
    /// Error Request Count
    ErrorRequestCount,
    /// Good Request Count
    GoodRequestCount,
    /// Request Count
    RequestCount,
    /// Good requests as a share of all
    GoodRequestFraction,
    /// Request Latency
    RequestLatency,
    /// Maximum Response Timestamp
    MaxResponseTimestamp,
    /// Minimum Request Timestamp
    MinRequestTimestamp,
    /// Benchmark Duration
    BenchmarkDuration,
    /// Output Sequence Length
    OutputSequenceLength,
    /// Total Output Sequence Length
    TotalOsl,
    /// Time to First Token
    TimeToFirstToken,
    /// Inter Token Latency
    InterTokenLatency,
    /// Output Token Throughput
    OutputTokenThroughput,
    /// Output Token Throughput Per User
    OutputTokenThroughputPerUser,
    /// Number of Images
    NumImages,
    /// Image Throughput
    ImageThroughput,
    /// Image Latency
    ImageLatency,
    /// Output Token Count
    OutputTokenCount,
    /// Total Output Tokens
    TotalOutputTokens,
    /// Reasoning Token Count
    ReasoningTokenCount,
    /// Total Reasoning Tokens
    TotalReasoningTokens,
    /// Thinking Efficiency
    ThinkingEfficiency,
    /// Overall Thinking Efficiency
    OverallThinkingEfficiency,
    /// Decode Duration
    DecodeDuration,
    /// Time to First Output Token
    TimeToFirstOutputToken,
    /// Network-Adjusted Request Latency
    NetworkAdjustedRequestLatency,
    /// Network-Adjusted Time to First Token
    NetworkAdjustedTimeToFirstToken,
    /// Network-Adjusted Time to First Output Token
    NetworkAdjustedTimeToFirstOutputToken,
    /// Network RTT
    NetworkRtt,
    /// Request Throughput
    RequestThroughput,
    /// Context Overflow Count
    ContextOverflowCount,
    /// HTTP Blocked
    HttpReqBlocked,
    /// HTTP Connection Reused
    HttpReqConnectionReused,
    /// HTTP Connecting
    HttpReqConnecting,
    /// HTTP DNS Lookup
    HttpReqDnsLookup,
    /// HTTP Sending
    HttpReqSending,
    /// HTTP Waiting (TTFB)
    HttpReqWaiting,
    /// HTTP Receiving
    HttpReqReceiving,
    /// HTTP Duration (excl. conn)
    HttpReqDuration,
    /// HTTP Data Sent
    HttpReqDataSent,
    /// HTTP Data Received
    HttpReqDataReceived,
    /// HTTP Chunks Sent
    HttpReqChunksSent,
    /// HTTP Chunks Received
    HttpReqChunksReceived,
    /// HTTP Connection Overhead
    HttpReqConnectionOverhead,
    /// HTTP Total Time
    HttpReqTotal,
    /// Completed Requests (Success + Error)
    CompletedRequestCount,
    /// Replay Send Schedule Offset
    ReplaySendScheduleOffset,
    /// Replay Schedule Lag p50
    ReplaySchedLagP50,
    /// Replay Schedule Lag p90
    ReplaySchedLagP90,
    /// Replay Schedule Lag p99
    ReplaySchedLagP99,
    /// Replay Schedule Degraded
    ReplaySchedDegraded,
    /// Goodput
    Goodput,
    /// Input Sequence Length
    InputSequenceLength,
    /// Total Input Sequence Length
    TotalIsl,
    /// Error Input Sequence Length
    ErrorIsl,
    /// Total Error Input Sequence Length
    TotalErrorIsl,
    /// Video Inference Time
    VideoInferenceTime,
    /// Video Peak Memory
    VideoPeakMemory,
    /// Prefill Throughput Per User
    PrefillThroughputPerUser,
    /// Usage Prompt Tokens
    UsagePromptTokens,
    /// Usage Completion Tokens
    UsageCompletionTokens,
    /// Usage Total Tokens
    UsageTotalTokens,
    /// Usage Reasoning Tokens
    UsageReasoningTokens,
    /// Usage Prompt Audio Tokens
    UsagePromptAudioTokens,
    /// Usage Completion Audio Tokens
    UsageCompletionAudioTokens,
    /// Usage Accepted Prediction Tokens
    UsageAcceptedPredictionTokens,
    /// Usage Rejected Prediction Tokens
    UsageRejectedPredictionTokens,
    /// Total Token Throughput
    TotalTokenThroughput,
    /// Audio Duration
    AudioDuration,
    /// Inverse Real-Time Factor (`RTFx`)
    Rtfx,
    /// Stream Setup Latency
    StreamSetupLatency,
    /// Stream Prefill Latency
    StreamPrefillLatency,
    /// Inter Chunk Latency
    InterChunkLatency,
    /// Acceptance Length
    SpecDecodeAcceptanceLength,
    /// Draft Acceptance Rate
    SpecDecodeDraftAcceptanceRate,
    /// Accepted per Verified
    SpecDecodeAcceptedPerVerified,
    /// Spec Decode Steps
    SpecDecodeSteps,
    /// Accepted Draft Tokens
    SpecDecodeAcceptedDraftTokens,
    /// Draft Tokens
    SpecDecodeDraftTokens,
    /// Total Spec Decode Steps
    TotalSpecDecodeSteps,
    /// Total Accepted Draft Tokens
    TotalAcceptedDraftTokens,
    /// Total Draft Tokens
    TotalDraftTokens,
    /// Token-Weighted Acceptance Length
    SpecDecodeTokenWeightedAcceptanceLength,
    /// Overall Draft Acceptance Rate
    SpecDecodeOverallDraftAcceptanceRate,
    /// Usage Prompt Cache Read Tokens
    UsagePromptCacheReadTokens,
    /// Usage Prompt Cache Write Tokens
    UsagePromptCacheWriteTokens,
    /// Usage Prompt Cache Miss Tokens
    UsagePromptCacheMissTokens,
    /// Usage Tool Use Prompt Tokens
    UsageToolUsePromptTokens,
    /// Usage Prompt Audio Seconds
    UsagePromptAudioSeconds,
    /// Total Usage Prompt Tokens
    TotalUsagePromptTokens,
    /// Total Usage Completion Tokens
    TotalUsageCompletionTokens,
    /// Total Usage Total Tokens
    TotalUsageTotalTokens,
    /// Total Usage Reasoning Tokens
    TotalUsageReasoningTokens,
    /// Total Usage Prompt Cache Read Tokens
    TotalUsagePromptCacheReadTokens,
    /// Total Usage Prompt Cache Write Tokens
    TotalUsagePromptCacheWriteTokens,
    /// Total Usage Prompt Audio Tokens
    TotalUsagePromptAudioTokens,
    /// Total Usage Completion Audio Tokens
    TotalUsageCompletionAudioTokens,
    /// Total Usage Accepted Prediction Tokens
    TotalUsageAcceptedPredictionTokens,
    /// Total Usage Rejected Prediction Tokens
    TotalUsageRejectedPredictionTokens,
    /// Total Usage Prompt Cache Miss Tokens
    TotalUsagePromptCacheMissTokens,
    /// Total Usage Tool Use Prompt Tokens
    TotalUsageToolUsePromptTokens,
    /// Total Usage Prompt Audio Seconds
    TotalUsagePromptAudioSeconds,
    /// Overall Usage Prompt Cache Read %
    OverallUsagePromptCacheReadPct,
    /// Usage Prompt Diff %
    UsagePromptTokensDiffPct,
    /// Usage Completion Diff %
    UsageCompletionTokensDiffPct,
    /// Usage Reasoning Diff %
    UsageReasoningTokensDiffPct,
    /// Usage Discrepancy Count
    UsageDiscrepancyCount,
    /// Requested OSL
    RequestedOsl,
    /// OSL Mismatch Diff %
    OslMismatchDiffPct,
    /// OSL Mismatch Count
    OslMismatchCount,
    /// Input Token Throughput
    InputTokenThroughput,
    /// Credit Drop Latency
    CreditDropLatency,
    /// Energy Delay Product
    NvidiaEnergyDelayProduct,
    /// Performance per Watt
    NvidiaPerformancePerWatt,
    /// Output Tokens per Second per Watt
    NvidiaOutputTpsPerWatt,
    /// Goodput per Watt
    NvidiaGoodputPerWatt,
    /// Average GPU Power
    NvidiaAverageGpuPower,
    /// Total GPU Energy
    NvidiaTotalGpuEnergy,
    /// Total GPU Power
    NvidiaTotalGpuPower,
    /// Energy per Total Token
    NvidiaEnergyPerTotalToken,
    /// Energy per Output Token
    NvidiaEnergyPerOutputToken,
    /// Energy per Request
    NvidiaEnergyPerRequest,
    /// Output Tokens per Joule
    NvidiaOutputTokensPerJoule,
    /// Energy per User
    NvidiaEnergyPerUser,
    /// Energy Delay Product
    AmdEnergyDelayProduct,
    /// Performance per Watt
    AmdPerformancePerWatt,
    /// Output Tokens per Second per Watt
    AmdOutputTpsPerWatt,
    /// Goodput per Watt
    AmdGoodputPerWatt,
    /// Average GPU Power
    AmdAverageGpuPower,
    /// Total GPU Energy
    AmdTotalGpuEnergy,
    /// Total GPU Power
    AmdTotalGpuPower,
    /// Energy per Total Token
    AmdEnergyPerTotalToken,
    /// Energy per Output Token
    AmdEnergyPerOutputToken,
    /// Energy per Request
    AmdEnergyPerRequest,
    /// Output Tokens per Joule
    AmdOutputTokensPerJoule,
    /// Energy per User
    AmdEnergyPerUser,
    /// Time to Second Token
    TimeToSecondToken,
    /// E2E Output Token Throughput
    E2eOutputTokenThroughput,
    /// Request Error Rate
    RequestErrorRate,
    /// Effective Concurrency
    EffectiveConcurrency,
    /// Effective Decode Throughput
    EffectiveDecodeThroughput,
    /// Effective Prefill Throughput
    EffectivePrefillThroughput,
    /// Effective Decode Concurrency
    EffectiveDecodeConcurrency,
    /// Effective Prefill Concurrency
    EffectivePrefillConcurrency,
    /// Effective Total Throughput
    EffectiveTotalThroughput,
    /// Effective Decode Throughput Per User
    EffectiveDecodeThroughputPerUser,
    /// Effective Prefill Throughput Per User
    EffectivePrefillThroughputPerUser,
    /// Tokens In Flight
    TokensInFlight,
    /// Active Decode Throughput
    ActiveDecodeThroughput,
    /// Active Prefill Throughput
    ActivePrefillThroughput,
    /// Active Decode Throughput Per User
    ActiveDecodeThroughputPerUser,
    /// Active Prefill Throughput Per User
    ActivePrefillThroughputPerUser,
    /// Active Total Throughput
    ActiveTotalThroughput,
    /// Credit-to-Start Latency
    CreditToStartLatency,
    /// Effective Latency (CO-aware)
    EffectiveLatency,
    /// Request Latency (error-adjusted)
    AdjRequestLatency,
    /// Time to First Token (error-adjusted)
    AdjTimeToFirstToken,
    /// Inter Token Latency (error-adjusted)
    AdjInterTokenLatency,
    /// Decode Duration (error-adjusted)
    AdjDecodeDuration,
    /// Theoretical Prefix Cache Hit
    TheoreticalPrefixCacheHit,
    /// Requests that agentic replay did not send because they would not fit
    SkippedContextOverflowCount,
    /// HTTP TLS Handshaking; ours
    HttpReqTlsHandshaking,
}

impl Metric {
    /// How many metrics there are.
    pub const COUNT: usize = 162;
}
