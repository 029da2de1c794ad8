//! What `resolve` and `fetch` say about a reference.

use std::fmt::Write as _;

use aiperf_config::FileFormat;
use aiperf_source::{FormatSource, ManifestMark, Plan, Presence, Provenance, Reference};
use serde_json::{Value, json};

use crate::remote::{self, FirstRecord};

/// The JSON object of one reference.
pub(super) fn json(
    plan: &Plan,
    present: &[Presence],
    found: Option<&str>,
    fetched: Option<&Provenance>,
    scheduled: Option<bool>,
) -> Value {
    let (format, source) = format(plan, found);
    let mut value = json!({
        "reference": plan.reference.redacted(),
        "resolved_reference": plan.resolved_reference,
        "resolved_version": plan.version,
        "pinned": plan.pinned,
        "format": fetched.map_or(format, |fetched| fetched.format.as_deref()),
        "format_source":
            fetched.map_or(source, |fetched| fetched.format_source).map(aiperf_source::FormatSource::name),
        "defaults": { "block_size": plan.block_size },
        "requires": { "endpoint_types": plan.endpoint_types, "max_context_tokens": plan.max_context_tokens },
        "files": plan.paths().zip(plan.files()).zip(present).enumerate().map(|(index, ((path, (_, size)), present))| {
            let fetched = fetched.and_then(|fetched| fetched.files.get(index));
            json!({
                "path": path,
                "size": fetched.map_or(size, |(_, size, _)| Some(*size)),
                "sha256": fetched.map(|(_, _, sha256)| sha256).or(present.sha256.as_ref()),
                "cached": present.cached,
            })
        }).collect::<Vec<_>>(),
        "bytes": fetched.map(Provenance::bytes).or_else(|| plan.bytes()),
        "cached": present.iter().all(|file| file.cached),
        "dropped": plan.dropped,
        "fixed_schedule": scheduled,
        "manifest": plan.manifest.as_ref().map(ManifestMark::json),
    });
    if plan.offline {
        value["offline"] = json!(true);
    }
    value
}

/// The format that is declared, else the one that was found.
fn format<'a>(plan: &'a Plan, found: Option<&'a str>) -> (Option<&'a str>, Option<FormatSource>) {
    match (plan.format, found) {
        (None, Some(found)) => (Some(found), Some(FormatSource::Detected)),
        (declared, _) => (declared, plan.format_source),
    }
}

/// The same for people. `looked` is what the first record tells, where it was looked at.
pub(super) fn text(
    plan: &Plan,
    present: &[Presence],
    looked: Option<&FirstRecord>,
    scheduled: Option<bool>,
) -> String {
    let mut out = String::new();
    // Publishers and servers wrote some of it.
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(out, "{name:<16} {}", aiperf_source::printable(value));
    };
    line("reference", &plan.reference.redacted());
    line("exact reference", &plan.resolved_reference);
    let version = match (&plan.version, &plan.reference) {
        (Some(version), _) if plan.pinned => format!("{version} (named by the reference)"),
        (Some(version), _) if plan.offline => format!("{version} (the newest in the cache)"),
        (Some(version), Reference::Hub(hub)) if hub.revision.is_some() => {
            format!("{version} (what {} names now)", hub.revision.as_deref().unwrap_or_default())
        }
        (Some(version), _) => format!("{version} (the newest)"),
        (None, Reference::Local(_)) => "none (local)".into(),
        (None, _) => "none: it is downloaded again on every run".into(),
    };
    line("version", &version);
    match format(plan, looked.and_then(|first| first.format).map(FileFormat::name)) {
        (Some(format), Some(FormatSource::Detected)) => {
            line("format", &format!("{format} (found by the first record)"));
        }
        (Some(format), Some(source)) => line("format", &format!("{format} (by {})", source.name())),
        _ => line("format", "found by the first record of the downloaded data"),
    }
    if let Some(size) = plan.block_size {
        line("block size", &size.to_string());
    }
    if let Some(types) = &plan.endpoint_types {
        line("endpoint types", &types.join(", "));
    }
    if let Some(tokens) = plan.max_context_tokens {
        line("context tokens", &tokens.to_string());
    }
    let bytes = plan.bytes().map_or_else(|| "size unknown".to_owned(), remote::size);
    line("files", &format!("{}, {bytes}", plan.count()));
    for ((name, size), present) in plan.files().zip(present) {
        let size = size.map_or_else(|| "size unknown".to_owned(), remote::size);
        let place = match (&plan.reference, present.cached) {
            (Reference::Local(_), _) => "",
            (_, true) => ", cached",
            (_, false) => ", not cached",
        };
        line("", &format!("{name} ({size}{place})"));
    }
    if !plan.dropped.is_empty() {
        line("not read", &plan.dropped.join(", "));
    }
    if let (Reference::Local(path), Some(_)) = (&plan.reference, &plan.manifest) {
        // A run reads a manifest where the data are published.
        let data = plan.folder_path().map(str::to_owned).or_else(|| plan.paths().next()).unwrap_or_default();
        let file = if path.is_dir() { path.join(data) } else { path.clone() };
        let mut words =
            vec!["aiperf".into(), "profile".into(), "--input-file".into(), file.display().to_string()];
        if let Some(format) = plan.format {
            words.extend(["--custom-dataset-type".into(), format.into()]);
        }
        if let Some(size) = plan.block_size {
            words.extend(["--isl-block-size".into(), size.to_string()]);
        }
        line("from here", &crate::quote::joined(&words));
    }
    let unknown = looked.map(|first| match &first.fault {
        Some(fault) => format!("not known: the first bytes fit no format: {fault}"),
        None => "not known: the first bytes fit no format; name it with --custom-dataset-type".to_owned(),
    });
    line(
        "fixed schedule",
        match scheduled {
            Some(true) => "yes",
            Some(false) => "no",
            None => {
                unknown.as_deref().unwrap_or("not known before the first record is read (--first-record)")
            }
        },
    );
    out
}

/// Whether the run would play a recorded schedule, as far as the format tells.
pub(super) fn scheduled_by_format(format: Option<&str>) -> Option<bool> {
    let format = FileFormat::ALL.iter().copied().find(|known| Some(known.name()) == format)?;
    (!aiperf_dataset::format(format).promotes).then_some(false)
}
