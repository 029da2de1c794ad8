//! Units, as exports spell them.

pub(crate) const NS: &str = "ns";
pub(crate) const MS: &str = "ms";
pub(crate) const SEC: &str = "sec";
pub(crate) const BYTES: &str = "B";
pub(crate) const KB: &str = "KB";
pub(crate) const TOKENS: &str = "tokens";
pub(crate) const TOKENS_PER_SEC: &str = "tokens/sec";
pub(crate) const TOKENS_PER_SEC_PER_USER: &str = "tokens/sec/user";
pub(crate) const REQUESTS: &str = "requests";
pub(crate) const REQUESTS_PER_SEC: &str = "requests/sec";
pub(crate) const PERCENT: &str = "%";
pub(crate) const RATIO: &str = "ratio";
pub(crate) const COUNT: &str = "count";
