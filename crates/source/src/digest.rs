//! Digests: of whole texts, and of streams while they are written.

use std::fmt::Write as _;

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// The sha256 of `bytes`, in hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

/// A digest that somebody promised of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// sha256 of the bytes, 64 hexadecimal digits.
    Sha256(String),
    /// sha1 of `blob <length>\0` and the bytes, 40 hexadecimal digits.
    GitBlob(String),
}

/// What a finished stream was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digests {
    /// Bytes.
    pub(crate) size: u64,
    /// sha256, in hexadecimal.
    pub(crate) sha256: String,
    /// The git blob digest, when it was asked for.
    pub(crate) git: Option<String>,
}

/// Digests of a stream.
pub(crate) struct Digester {
    size: u64,
    sha256: Context,
    git: Option<Context>,
}

impl Digester {
    /// Of a stream of unknown content; `git_length` is its length when its git blob digest is wanted.
    pub(crate) fn new(git_length: Option<u64>) -> Digester {
        let git = git_length.map(|length| {
            let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
            context.update(format!("blob {length}\0").as_bytes());
            context
        });
        Digester { size: 0, sha256: Context::new(&SHA256), git }
    }

    /// Takes the next bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        self.sha256.update(bytes);
        if let Some(git) = &mut self.git {
            git.update(bytes);
        }
    }

    /// The digests.
    pub(crate) fn finish(self) -> Digests {
        Digests {
            size: self.size,
            sha256: hex(self.sha256.finish().as_ref()),
            git: self.git.map(|git| hex(git.finish().as_ref())),
        }
    }
}

impl Digests {
    /// Whether they keep a promise; with the digest found and the one promised when not.
    pub(crate) fn check(&self, promise: &Promise) -> Result<(), (String, String)> {
        let (found, promised) = match promise {
            Promise::Sha256(promised) => (Some(&self.sha256), promised),
            Promise::GitBlob(promised) => (self.git.as_ref(), promised),
        };
        match found {
            Some(found) if found == promised => Ok(()),
            found => Err((short(found.map_or("none", String::as_str)), short(promised))),
        }
    }
}

/// The first 12 digits.
pub(crate) fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_sha256sum_and_git() {
        let mut digester = Digester::new(Some(6));
        digester.update(b"hel");
        digester.update(b"lo\n");
        let digests = digester.finish();
        assert_eq!(digests.size, 6);
        assert_eq!(digests.sha256, "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
        assert_eq!(digests.git.as_deref(), Some("ce013625030ba8dba906f756967f9e9ca394464a"));
        assert!(digests.check(&Promise::GitBlob("ce013625030ba8dba906f756967f9e9ca394464a".into())).is_ok());
        assert_eq!(
            digests.check(&Promise::Sha256("0".repeat(64))),
            Err(("5891b5b522d5".into(), "000000000000".into()))
        );
    }
}
