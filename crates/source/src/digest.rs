//! Digests: of whole texts, and of streams while they are written.

use std::fmt::Write as _;

use crc_fast::CrcAlgorithm;
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

/// Every digest that a Hub promises, of bytes that are here.
pub(crate) fn digests_of(bytes: &[u8]) -> Digests {
    let mut digester = Digester::new(Wanted { git_length: Some(bytes.len() as u64), checksum: None });
    digester.update(bytes);
    digester.finish()
}

/// Who promises a digest that no manifest names.
pub(crate) const ITS_SOURCE: &str = "its source";

/// A digest that somebody promised of a file, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// sha256 of the bytes.
    Sha256(String),
    /// sha1 of `blob <length>\0` and the bytes.
    GitBlob(String),
    /// A checksum that a store keeps beside an object.
    Stored(Checksum, String),
}

impl Promise {
    /// The name of the digest.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Promise::Sha256(_) => "sha256",
            Promise::GitBlob(_) => "git blob id",
            Promise::Stored(checksum, _) => checksum.name(),
        }
    }

    /// The checksum that must be computed for it alone: a sha256 is there anyway.
    pub(crate) fn checksum(&self) -> Option<Checksum> {
        match self {
            Promise::Stored(checksum, _) => Some(*checksum),
            Promise::Sha256(_) | Promise::GitBlob(_) => None,
        }
    }
}

/// The checksums of S3 besides sha256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksum {
    Sha1,
    Crc32,
    Crc32c,
    Crc64Nvme,
}

impl Checksum {
    /// Each of them, the strongest first.
    pub(crate) const ALL: [Checksum; 4] =
        [Checksum::Sha1, Checksum::Crc64Nvme, Checksum::Crc32c, Checksum::Crc32];

    /// As headers spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Checksum::Sha1 => "sha1",
            Checksum::Crc32 => "crc32",
            Checksum::Crc32c => "crc32c",
            Checksum::Crc64Nvme => "crc64nvme",
        }
    }

    /// Bytes.
    pub(crate) fn length(self) -> usize {
        match self {
            Checksum::Sha1 => 20,
            Checksum::Crc32 | Checksum::Crc32c => 4,
            Checksum::Crc64Nvme => 8,
        }
    }
}

/// A checksum of a stream.
enum Summer {
    Sha1(Context),
    Crc(crc_fast::Digest),
}

impl Summer {
    fn new(checksum: Checksum) -> Summer {
        let crc = |algorithm| Summer::Crc(crc_fast::Digest::new(algorithm));
        match checksum {
            Checksum::Sha1 => Summer::Sha1(Context::new(&SHA1_FOR_LEGACY_USE_ONLY)),
            Checksum::Crc32 => crc(CrcAlgorithm::Crc32IsoHdlc),
            Checksum::Crc32c => crc(CrcAlgorithm::Crc32Iscsi),
            Checksum::Crc64Nvme => crc(CrcAlgorithm::Crc64Nvme),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Summer::Sha1(context) => context.update(bytes),
            Summer::Crc(digest) => digest.update(bytes),
        }
    }

    /// The last `length` bytes of the sum.
    fn finish(self, length: usize) -> String {
        match self {
            Summer::Sha1(context) => hex(context.finish().as_ref()),
            Summer::Crc(digest) => hex(&digest.finalize().to_be_bytes()[size_of::<u64>() - length..]),
        }
    }
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
    /// The checksum that was asked for.
    pub(crate) stored: Option<(Checksum, String)>,
}

/// What is computed of a stream besides its sha256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The length of the stream, when its git blob digest is wanted.
    pub(crate) git_length: Option<u64>,
    /// A checksum of a store.
    pub(crate) checksum: Option<Checksum>,
}

/// Digests of a stream.
pub(crate) struct Digester {
    size: u64,
    sha256: Context,
    git: Option<Context>,
    stored: Option<(Checksum, Summer)>,
}

impl Digester {
    /// Of a stream of unknown content.
    pub(crate) fn new(wanted: Wanted) -> Digester {
        let git = wanted.git_length.map(|length| {
            let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
            context.update(format!("blob {length}\0").as_bytes());
            context
        });
        let stored = wanted.checksum.map(|checksum| (checksum, Summer::new(checksum)));
        Digester { size: 0, sha256: Context::new(&SHA256), git, stored }
    }

    /// Takes the next bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        self.sha256.update(bytes);
        if let Some(git) = &mut self.git {
            git.update(bytes);
        }
        if let Some((_, summer)) = &mut self.stored {
            summer.update(bytes);
        }
    }

    /// The digests.
    pub(crate) fn finish(self) -> Digests {
        Digests {
            size: self.size,
            sha256: hex(self.sha256.finish().as_ref()),
            git: self.git.map(|git| hex(git.finish().as_ref())),
            stored: self.stored.map(|(checksum, summer)| (checksum, summer.finish(checksum.length()))),
        }
    }
}

impl Digests {
    /// Those of a file that is known by its sha256 alone.
    pub(crate) fn known(size: u64, sha256: String) -> Digests {
        Digests { size, sha256, ..Digests::default() }
    }

    /// Whether they keep a promise; with the digest found and the one promised when not.
    pub(crate) fn check(&self, promise: &Promise) -> Result<(), (Box<str>, Box<str>)> {
        let (found, promised) = match promise {
            Promise::Sha256(promised) => (Some(&self.sha256), promised),
            Promise::GitBlob(promised) => (self.git.as_ref(), promised),
            Promise::Stored(checksum, promised) => {
                let found = self.stored.as_ref().filter(|(found, _)| found == checksum);
                (found.map(|(_, sum)| sum), promised)
            }
        };
        match found {
            Some(found) if found == promised => Ok(()),
            found => Err((short(found.map_or("none", String::as_str)), short(promised))),
        }
    }
}

/// The first 12 digits.
pub(crate) fn short(digest: &str) -> Box<str> {
    digest.chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_sha256sum_and_git() {
        let mut digester = Digester::new(Wanted { git_length: Some(6), checksum: None });
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

    #[test]
    fn checksums_are_those_of_the_catalogue() {
        for (checksum, sum) in [
            (Checksum::Crc32, "cbf43926"),
            (Checksum::Crc32c, "e3069283"),
            (Checksum::Crc64Nvme, "ae8b14860a799888"),
            (Checksum::Sha1, "f7c3bc1d808e04732adf679965ccc34ca7ae3441"),
        ] {
            let mut digester = Digester::new(Wanted { git_length: None, checksum: Some(checksum) });
            digester.update(b"1234");
            digester.update(b"");
            digester.update(b"56789");
            let digests = digester.finish();
            assert_eq!(digests.stored, Some((checksum, sum.to_owned())));
            assert_eq!(sum.len(), checksum.length() * 2);
            assert!(digests.check(&Promise::Stored(checksum, sum.into())).is_ok());
            let other = Checksum::ALL.into_iter().find(|other| *other != checksum).unwrap();
            assert_eq!(digests.check(&Promise::Stored(other, sum.into())).unwrap_err().0.as_ref(), "none");
        }
    }
}
