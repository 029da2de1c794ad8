//! Pictures that are sent as they were recorded: kinds that servers read and nothing here decodes.

/// The media type of a picture by its first bytes; `None` for any other file, for PNG and JPEG, and where the head is not
/// whole or says that more bytes belong to it than are there.
pub(crate) fn media_type(file: &[u8]) -> Option<&'static str> {
    let number = |at: usize| {
        let bytes = file.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let is = |at: usize, mark: &[u8]| file.get(at..).is_some_and(|rest| rest.starts_with(mark));
    if is(0, b"RIFF") && is(8, b"WEBPVP8") {
        return (number(4)? <= file.len() - 8).then_some("image/webp");
    }
    if is(0, b"GIF87a") || is(0, b"GIF89a") {
        let size = file.get(6..10)?;
        return (file.len() > 13 && size[..2] != [0, 0] && size[2..] != [0, 0]).then_some("image/gif");
    }
    if is(0, b"BM") {
        return (number(2)? == file.len()).then_some("image/bmp");
    }
    if is(0, b"II*\0") || is(0, b"MM\0*") {
        return (file.len() > 8).then_some("image/tiff");
    }
    if is(4, b"ftyp") {
        let brands = [(&b"avif"[..], "image/avif"), (b"avis", "image/avif"), (b"heic", "image/heic")];
        return brands.into_iter().find(|(brand, _)| is(8, brand)).map(|(_, kind)| kind);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_known_by_its_head_and_what_is_cut_short_is_none() {
        let webp = b"RIFF\x14\0\0\0WEBPVP8L\x07\0\0\0\x2f\0\0\0\0\x88\x88\0";
        assert_eq!(webp.len(), 28);
        let gif = b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
        let bmp = b"BM\x1e\0\0\0\0\0\0\0\x1a\0\0\0\x0c\0\0\0\x01\0\x01\0\x01\0\x18\0\0\0\xff\0";
        for (file, kind) in [
            (&webp[..], Some("image/webp")),
            (&webp[..27], None),
            (&webp[..10], None),
            (gif, Some("image/gif")),
            (&gif[..10], None),
            (b"GIF89a\0\0\x01\0\x80\0\0;", None),
            (bmp, Some("image/bmp")),
            (&bmp[..29], None),
            (b"BM", None),
            (b"II*\0\x08\0\0\0\0\0", Some("image/tiff")),
            (b"MM\0*\0\0\0\x08\0\0", Some("image/tiff")),
            (b"MM\0*", None),
            (b"\0\0\0\x1cftypavif\0\0\0\0", Some("image/avif")),
            (b"\0\0\0\x1cftypheic\0\0\0\0", Some("image/heic")),
            (b"\0\0\0\x1cftypisom\0\0\0\0", None),
            (b"\x89PNG\r\n\x1a\n", None),
            (b"\xff\xd8\xff", None),
            (b"RIFF\x04\0\0\0WAVE", None),
            (b"", None),
        ] {
            assert_eq!(media_type(file), kind, "{file:?}");
        }
    }
}
