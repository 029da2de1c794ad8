//! What fills the slots of the coding templates: words and figures.

use std::fmt::Write as _;

use crate::seed::{Stream, below};

const NOUNS: [&str; 96] = [
    "account",
    "adapter",
    "agent",
    "alert",
    "archive",
    "batch",
    "block",
    "bucket",
    "buffer",
    "bundle",
    "cache",
    "catalog",
    "channel",
    "checkpoint",
    "client",
    "cluster",
    "column",
    "commit",
    "config",
    "connection",
    "container",
    "context",
    "counter",
    "cursor",
    "dataset",
    "deadline",
    "device",
    "digest",
    "document",
    "edge",
    "endpoint",
    "engine",
    "entry",
    "event",
    "export",
    "feature",
    "field",
    "filter",
    "frame",
    "gateway",
    "graph",
    "group",
    "handler",
    "header",
    "histogram",
    "index",
    "invoice",
    "job",
    "journal",
    "kernel",
    "label",
    "layer",
    "ledger",
    "lease",
    "limit",
    "listener",
    "manifest",
    "message",
    "metric",
    "migration",
    "monitor",
    "node",
    "order",
    "packet",
    "parser",
    "partition",
    "payload",
    "pipeline",
    "policy",
    "process",
    "profile",
    "proxy",
    "query",
    "queue",
    "record",
    "region",
    "registry",
    "replica",
    "report",
    "request",
    "resource",
    "route",
    "sample",
    "scheduler",
    "schema",
    "segment",
    "session",
    "shard",
    "signal",
    "snapshot",
    "stream",
    "table",
    "tenant",
    "token",
    "trace",
    "worker",
];
const VERBS: [&str; 40] = [
    "accept", "align", "assign", "attach", "balance", "check", "collect", "compact", "compress", "convert",
    "detect", "detach", "drain", "emit", "expand", "export", "fetch", "filter", "flush", "group", "import",
    "insert", "inspect", "load", "lock", "measure", "migrate", "monitor", "parse", "publish", "queue",
    "refresh", "reject", "render", "repair", "restart", "restore", "select", "sort", "verify",
];
const ADJECTIVES: [&str; 36] = [
    "active", "ambient", "atomic", "broken", "cached", "cold", "complete", "current", "deferred", "durable",
    "dynamic", "empty", "expired", "external", "fresh", "global", "idle", "invalid", "latest", "lazy",
    "local", "locked", "missing", "nested", "partial", "pending", "primary", "private", "remote", "secure",
    "shared", "slow", "sparse", "stale", "strict", "visible",
];
const MODULES: [&str; 20] = [
    "api", "auth", "billing", "core", "db", "deploy", "http", "ingest", "io", "ml", "net", "ops", "rpc",
    "search", "service", "storage", "sync", "tools", "ui", "util",
];
const USERS: [&str; 16] = [
    "ada",
    "alan",
    "barbara",
    "claude",
    "donald",
    "edsger",
    "frances",
    "grace",
    "hedy",
    "john",
    "katherine",
    "ken",
    "margaret",
    "niklaus",
    "radia",
    "tony",
];
const EXTENSIONS: [&str; 10] = ["py", "rs", "go", "ts", "c", "json", "yaml", "md", "sql", "log"];
const LEVELS: [&str; 5] = ["INFO", "INFO", "DEBUG", "WARN", "ERROR"];
const PYTHON_TYPES: [&str; 7] =
    ["int", "str", "float", "bool", "list[str]", "datetime | None = None", "dict[str, int]"];
const RUST_TYPES: [&str; 7] =
    ["u64", "String", "Option<Duration>", "Vec<u8>", "Arc<str>", "bool", "HashMap<u32, f64>"];
const TYPESCRIPT_TYPES: [&str; 6] =
    ["string", "number", "boolean", "Date", "readonly string[]", "Record<string, number>"];
const SQL_TYPES: [&str; 6] =
    ["TEXT NOT NULL", "INTEGER", "BOOLEAN DEFAULT FALSE", "NUMERIC(12, 2)", "JSONB", "TIMESTAMPTZ"];
const LETTERS: [&str; 8] = ["a", "b", "c", "m", "p", "s", "t", "w"];

/// The words of a slot, by its name in small letters.
pub(super) fn list(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "noun" => &NOUNS,
        "verb" => &VERBS,
        "adj" => &ADJECTIVES,
        "mod" => &MODULES,
        "user" => &USERS,
        "ext" => &EXTENSIONS,
        "level" => &LEVELS,
        "pytype" => &PYTHON_TYPES,
        "rstype" => &RUST_TYPES,
        "tstype" => &TYPESCRIPT_TYPES,
        "sqltype" => &SQL_TYPES,
        "char" => &LETTERS,
        _ => return None,
    })
}

/// Writes a figure for a slot that is no list of words; a slot it does not know shows in the tests.
pub(super) fn figure(name: &str, rng: &mut Stream, text: &mut String) {
    let mut up_to = |bound: u64| below(rng, bound);
    // Writing to a String cannot fail.
    let _ = match name {
        "digit" => write!(text, "{}", 1 + up_to(9)),
        "num" => write!(text, "{}", 2 + up_to(398)),
        "big" => write!(text, "{}", 1000 + up_to(89_000)),
        "float" => write!(text, "{}.{:02}", up_to(60), up_to(100)),
        "pow" => write!(text, "{}", 256u64 << up_to(6)),
        "pow2" => write!(text, "{}", 2u64 << up_to(6)),
        "hex7" => write!(text, "{:07x}", up_to(1 << 28)),
        "hex16" => write!(text, "{:016x}", up_to(u64::MAX)),
        "hex40" => write!(text, "{:016x}{:016x}{:08x}", up_to(u64::MAX), up_to(u64::MAX), up_to(1 << 32)),
        "ip" => write!(text, "10.{}.{}.{}", up_to(64), up_to(256), 1 + up_to(254)),
        "port" => write!(text, "{}", 3000 + up_to(7000)),
        "status" => {
            write!(text, "{}", [200, 200, 200, 201, 204, 304, 400, 404, 429, 500, 503][up_to(11) as usize])
        }
        "unix" => write!(text, "{}", 1_750_000_000 + up_to(30_000_000)),
        "date" => write!(text, "2026-{:02}-{:02}", 1 + up_to(12), 1 + up_to(28)),
        "clock" => write!(text, "{:02}:{:02}:{:02}", up_to(24), up_to(60), up_to(60)),
        "clf" => write!(
            text,
            "{:02}/Mar/2026:{:02}:{:02}:{:02} +0000",
            1 + up_to(28),
            up_to(24),
            up_to(60),
            up_to(60)
        ),
        "time" => write!(
            text,
            "2026-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            1 + up_to(12),
            1 + up_to(28),
            up_to(24),
            up_to(60),
            up_to(60),
            up_to(1000)
        ),
        _ => write!(text, "\u{7f}{name}\u{7f}"),
    };
}
