//! The next step after each fault.

use super::Problem;
use crate::digest::ITS_SOURCE;
use crate::settings::OFFLINE_VARIABLE;

impl Problem {
    /// The next step.
    pub fn fix(&self) -> String {
        match self {
            Problem::Grammar { fix, .. }
            | Problem::NotFound { fix, .. }
            | Problem::Denied { fix, .. }
            | Problem::Unexpected { fix, .. }
            | Problem::Untrusted { fix, .. }
            | Problem::NoManifest { fix, .. }
            | Problem::Unreadable { fix, .. }
            | Problem::Layout { fix, .. } => fix.clone(),
            Problem::RevisionNotFound(_) => {
                "List the branches and tags of the repository on the Hub; a slash in a revision is written %2F".into()
            }
            Problem::Gated { token: false, .. } => {
                "Accept its terms on the Hub, then set HF_TOKEN to a token of that account".into()
            }
            Problem::Gated { token: true, .. } => {
                "Accept its terms on the Hub with the account of this HF_TOKEN".into()
            }
            Problem::Expired { .. } => "Generate a new URL".into(),
            Problem::Connect { host, named_by, .. } => of_no_connection(host, *named_by),
            Problem::NotHttp { is_https: false, .. } => {
                "Check the address and its port, and whether a proxy answers in the place of the server".into()
            }
            Problem::NotHttp { is_https: true, .. } => {
                "Check the address and its port; if the server has no TLS, try http://".into()
            }
            Problem::Answered { .. } => "Retry later".into(),
            Problem::RateLimited { seconds, .. } => format!("Retry later, in {seconds} s"),
            Problem::NotAHub { .. } => {
                "Check HF_ENDPOINT, and whether a proxy answers in the place of the Hub".into()
            }
            Problem::Redirect { .. } => {
                "Use the address that it leads to, or ask the publisher to serve the file directly".into()
            }
            Problem::EndlessRedirect(_) => {
                "Ask the publisher to serve the file directly: the address leads back to itself, or on and on".into()
            }
            Problem::BadManifest { rule, .. } => format!("Ask the publisher to correct it: {rule}"),
            Problem::NeedsVersion { spec, .. } => format!("Use a version of AIPerf that is {spec}"),
            Problem::NeedsEndpoint { .. } => "Change --endpoint-type to one of them".into(),
            Problem::FormatConflict { .. } => "Drop --custom-dataset-type, or correct it".into(),
            Problem::UnknownFormat(_) => {
                "List the formats of this version with `aiperf plugins custom-dataset-loader`".into()
            }
            Problem::Empty(_) => "Ask the publisher for the data, or point at another file".into(),
            Problem::NeedsStop => {
                "Add --conversation-num, --request-count or --benchmark-duration".into()
            }
            Problem::UnsafeName { .. } => "Ask the publisher to rename it".into(),
            Problem::TooMuch(_) => "Point at a smaller folder, or at one file".into(),
            Problem::Changed(_) => "Run again to use the new version".into(),
            Problem::Digest { by, .. } if by == ITS_SOURCE => {
                "Run again; if it stays so, the file is damaged where it is kept, or on its way here".into()
            }
            Problem::Digest { .. } => {
                "Tell the publisher: the file or the digest of its manifest is stale".into()
            }
            Problem::CutShort { .. } => "Run again".into(),
            Problem::NotTheFile { .. } => {
                "Run again; if it stays so, a proxy or a page for a sign-in answers in its place".into()
            }
            Problem::Offline(_) => {
                "Unset AIPERF_DATASET_REMOTE_OFFLINE, HF_HUB_OFFLINE and TRANSFORMERS_OFFLINE, or download it once \
                 online"
                    .into()
            }
            Problem::Damaged(_) => {
                "Run once online, which downloads it again, or bring the cache from where it is whole".into()
            }
            Problem::Locked(_) => {
                "Wait for the other run, or stop it: a lock ends with the process that holds it. On a network file \
                 system that kept one, delete the lock file if no other process downloads"
                    .into()
            }
            Problem::DiskFull { variable, .. } => {
                format!("Free some space, or set {variable} to a directory with more")
            }
            Problem::CannotWrite { variable, .. } => {
                format!("Make it writable, or set {variable} to another directory")
            }
            Problem::CannotRead { .. } => "Check its permissions, or delete it to download it again".into(),
            Problem::CannotEnter { variable, .. } => {
                format!("Check its permissions, or set {variable} to another directory")
            }
            Problem::Setting { .. } => "Correct the variable, or unset it".into(),
            Problem::Interrupted => "Run again; nothing was left behind".into(),
        }
    }
}

/// `named_by` is the setting that names the host, or the proxy before it.
fn of_no_connection(host: &str, named_by: Option<&str>) -> String {
    let setting = match named_by {
        Some(variable) if variable.to_ascii_uppercase().ends_with("_PROXY") => {
            format!("{variable}, which names the proxy")
        }
        Some(setting) => format!("{setting}, which names this host"),
        None if host.contains(".amazonaws.com") => {
            "HTTPS_PROXY, name the store in AWS_ENDPOINT_URL_S3 if it is not that of AWS".into()
        }
        None => "HTTPS_PROXY".into(),
    };
    format!("Check the network and {setting}, or set {OFFLINE_VARIABLE}=1 to use what is in the cache")
}
