//! Which bytes a run used, for the log and the results.

use serde_json::{Value, json};

use crate::digest::{sha256_hex, short};
use crate::error::printable;
use crate::fetch::LocalFile;
use crate::plan::{FormatSource, ManifestMark, Plan};
use crate::protocol::Node;

/// What was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// As typed, credentials hidden.
    pub reference: String,
    /// The reference that names the version, where one can.
    pub resolved_reference: String,
    /// The version.
    pub version: Option<String>,
    /// The format.
    pub format: Option<String>,
    /// Who named it.
    pub format_source: Option<FormatSource>,
    /// Name, size and digest of each file.
    pub files: Vec<(String, u64, String)>,
    /// The manifest or sidecar.
    pub manifest: Option<ManifestMark>,
    /// Only the cache was used.
    pub offline: bool,
    /// The options that stand in for a manifest when the exact reference is used.
    options: Option<String>,
}

impl Provenance {
    pub(crate) fn of(plan: &Plan, files: &[LocalFile]) -> Provenance {
        // A sidecar is found again beside the file; the manifest of a folder is not.
        let of_manifest = plan.manifest.is_some() && matches!(plan.found.node, Node::Folder);
        let supplied = plan.format_source == Some(FormatSource::Manifest) || plan.block_size.is_some();
        let options = (of_manifest && supplied && !plan.is_folder()).then(|| {
            let format = plan.format.map(|name| format!("--custom-dataset-type {name}"));
            let block_size = plan.block_size.map(|size| format!("--isl-block-size {size}"));
            [format, block_size].into_iter().flatten().collect::<Vec<_>>().join(" ")
        });
        Provenance {
            reference: plan.reference.redacted(),
            resolved_reference: plan.resolved_reference.clone(),
            version: plan.version.clone(),
            format: plan.format.map(str::to_owned),
            format_source: plan.format_source,
            files: files
                .iter()
                .zip(&plan.files)
                .map(|(local, entry)| (entry.path.clone(), local.size, local.sha256.clone()))
                .collect(),
            manifest: plan.manifest.clone(),
            offline: plan.offline,
            options,
        }
    }

    /// Notes the format that was found in the data, where nobody named one.
    pub fn detected(&mut self, format: &str) {
        if self.format.is_none() {
            self.format = Some(format.to_owned());
            self.format_source = Some(FormatSource::Detected);
        }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, size, _)| size).sum()
    }

    /// One digest for all files.
    pub fn sha256(&self) -> String {
        match self.files.as_slice() {
            [(_, _, sha256)] => sha256.clone(),
            files => {
                let mut lines: Vec<String> =
                    files.iter().map(|(path, _, sha256)| format!("{path}\0{sha256}\n")).collect();
                lines.sort_unstable();
                sha256_hex(lines.concat().as_bytes())
            }
        }
    }

    /// The lines of the run's log.
    pub fn lines(&self) -> Vec<String> {
        let version = self
            .version
            .as_deref()
            .map_or("none", |version| version.strip_prefix("versionId:").unwrap_or(version));
        let mut lines = vec![format!(
            "Remote dataset {}: using {} (version {version}, {} file(s), {} bytes, sha256 {})",
            self.reference,
            self.resolved_reference,
            self.files.len(),
            self.bytes(),
            short(&self.sha256())
        )];
        if let Some(options) = &self.options {
            lines.push(format!("Options that go with {}: {options}", self.resolved_reference));
        }
        lines.iter().map(|line| printable(line)).collect()
    }

    /// `metadata.dataset` of the results.
    pub fn json(&self) -> Value {
        let mut value = json!({
            "reference": self.reference,
            "resolved_reference": self.resolved_reference,
            "resolved_version": self.version,
            "format": self.format,
            "format_source": self.format_source.map(FormatSource::name),
            "files": self.files.iter().map(|(path, size, sha256)| {
                json!({ "path": path, "size": size, "sha256": sha256 })
            }).collect::<Vec<_>>(),
            "manifest": self.manifest.as_ref().map(ManifestMark::json),
        });
        if self.offline {
            value["offline"] = json!(true);
        }
        value
    }
}
