//! The XML that S3 answers with.

use serde::Deserialize;

/// An error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct ErrorBody {
    /// `NoSuchKey`, …
    pub(crate) code: String,
    /// The region of the bucket, when the request went to another.
    pub(crate) region: String,
}

/// A page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Page {
    is_truncated: bool,
    next_continuation_token: Option<String>,
    encoding_type: Option<String>,
    contents: Vec<Item>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct Item {
    #[serde(rename = "Key", default)]
    key: String,
    #[serde(rename = "ETag", default)]
    etag: String,
    #[serde(rename = "Size")]
    size: u64,
}

/// An object as a listing names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) key: String,
    pub(crate) etag: String,
    pub(crate) size: u64,
}

/// What an error's body says; nothing when it is no such XML.
pub(crate) fn error(bytes: &[u8]) -> ErrorBody {
    std::str::from_utf8(bytes).ok().and_then(|text| quick_xml::de::from_str(text).ok()).unwrap_or_default()
}

impl Page {
    /// Reads a page; `None` when it is none.
    pub(crate) fn read(bytes: &[u8]) -> Option<Page> {
        let text = std::str::from_utf8(bytes).ok()?;
        // The reader takes any root; a page of HTML is not an empty folder.
        if !text.contains("<ListBucketResult") {
            return None;
        }
        quick_xml::de::from_str(text).ok()
    }

    /// Its objects (folders' placeholders are none), and the token of the next page.
    pub(crate) fn take(self) -> Option<(Vec<Listed>, Option<String>)> {
        let encoded = self.encoding_type.as_deref() == Some("url");
        let mut listed = Vec::with_capacity(self.contents.len());
        for Item { key, etag, size } in self.contents {
            let key = if encoded { decoded(&key)? } else { key };
            if !(size == 0 && key.ends_with('/')) {
                listed.push(Listed { key, etag, size });
            }
        }
        Some((listed, self.next_continuation_token.filter(|token| self.is_truncated && !token.is_empty())))
    }

    /// Whether more pages follow that this one does not name.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_truncated && self.next_continuation_token.as_deref().is_none_or(str::is_empty)
    }
}

/// A key of a listing that is encoded like a form.
fn decoded(key: &str) -> Option<String> {
    let spaces = key.replace('+', " ");
    percent_encoding::percent_decode_str(&spaces).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pages_are_decoded_and_placeholders_of_folders_are_no_files() {
        let text = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult \
            xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name><EncodingType>url</EncodingType>\
            <IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;1</NextContinuationToken>\
            <Contents><Key>a%20b+c%2Bd</Key><ETag>&quot;e-1&quot;</ETag><Size>3</Size><Owner><ID>x</ID></Owner></Contents>\
            <Contents><Key>p/</Key><Size>0</Size></Contents></ListBucketResult>";
        let (listed, next) = Page::read(text).unwrap().take().unwrap();
        assert_eq!(listed, [Listed { key: "a b c+d".into(), etag: "\"e-1\"".into(), size: 3 }]);
        assert_eq!(next.as_deref(), Some("t&1"));
        assert_eq!(Page::read(b"<html><body>x</body></html>"), None);
        let last =
            Page::read(b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>").unwrap();
        assert_eq!(last.take().unwrap(), (vec![], None));
        let cut =
            Page::read(b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>").unwrap();
        assert!(cut.is_cut());
    }

    #[test]
    fn errors_are_read_and_anything_else_is_an_empty_one() {
        let found =
            error(b"<Error><Code>NoSuchKey</Code><Message>x</Message><Region>eu-west-1</Region></Error>");
        assert_eq!(found, ErrorBody { code: "NoSuchKey".into(), region: "eu-west-1".into() });
        assert_eq!(error(b"<html>"), ErrorBody::default());
        assert_eq!(error(b"\xff"), ErrorBody::default());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(inner in "[<>&;/a-zA-Z0-9=\"' !?-]{0,80}") {
            let _ = error(inner.as_bytes());
            let page = format!("<ListBucketResult>{inner}</ListBucketResult>");
            let _ = Page::read(page.as_bytes()).and_then(Page::take);
        }
    }
}
