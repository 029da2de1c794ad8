//! Pictures that generated images are made of: those of the program, or those of a folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::media::picture::Picture;
use crate::{DatasetError, Note};

/// Drawn for this program: crates/dataset/assets/draw.py.
const ASSETS: [(&str, &[u8]); 4] = [
    ("chart.png", include_bytes!("../../assets/chart.png")),
    ("colours.png", include_bytes!("../../assets/colours.png")),
    ("page.png", include_bytes!("../../assets/page.png")),
    ("scene.png", include_bytes!("../../assets/scene.png")),
];
/// Endings of files that are looked at.
const ENDINGS: [&str; 3] = ["png", "jpg", "jpeg"];
/// Bytes that decoded pictures may take, and as many for finished images.
const MOST_KEPT: usize = 64 << 20;
/// Bytes of a file in which the size of a picture is looked for.
const HEAD: u64 = 1 << 20;

/// Pictures in the order of their names.
pub(super) struct Pictures {
    list: Vec<Source>,
    /// Where they come from, for messages.
    place: String,
    /// Bytes of the decoded pictures that are kept.
    kept: AtomicUsize,
    finished: Mutex<Finished>,
    retired: Vec<String>,
}

struct Source {
    file: File,
    /// What was read, where that is kept; `None` is a file that cannot be read.
    picture: OnceLock<Option<Arc<Picture>>>,
}

enum File {
    Bundled(&'static [u8]),
    Path(PathBuf),
}

/// Finished images by picture, size and format: sizes that do not vary make each of them once.
#[derive(Default)]
struct Finished {
    images: HashMap<(usize, u16, u16, bool), Arc<str>>,
    bytes: usize,
}

impl Pictures {
    /// Those that come with the program.
    pub(super) fn bundled() -> Pictures {
        let list = ASSETS.iter().map(|(_, bytes)| Source::new(File::Bundled(bytes))).collect();
        Pictures::new(list, "the bundled pictures".into(), Vec::new())
    }

    /// The files of a folder, not those of folders in it.
    pub(super) fn of_folder(folder: &Path) -> Result<Pictures, DatasetError> {
        let refuse = |reason: String| {
            DatasetError::Unsuitable(format!("--image-source {}: {reason}", folder.display()))
        };
        let entries = std::fs::read_dir(folder).map_err(|error| {
            refuse(format!(
                "cannot read the folder ({error}); give noise, assets, or a folder of PNG and JPEG files"
            ))
        })?;
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| refuse(format!("cannot read the folder ({error})")))?.path();
            let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
            if ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str())) && path.is_file() {
                paths.push(path);
            }
        }
        if paths.is_empty() {
            return Err(refuse("no .png, .jpg or .jpeg file is directly in it; name another folder".into()));
        }
        paths.sort();
        let (mut list, mut retired) = (Vec::new(), Vec::new());
        for path in paths {
            match head(&path).and_then(|head| Picture::check_head(&head)) {
                Ok(()) => list.push(Source::new(File::Path(path))),
                Err(reason) => retired.push(format!("{} ({reason})", path.display())),
            }
        }
        if let (true, Some(first)) = (list.is_empty(), retired.first()) {
            return Err(refuse(format!("no file in it can be read as a picture, the first is {first}")));
        }
        Ok(Pictures::new(list, format!("--image-source {}", folder.display()), retired))
    }

    fn new(list: Vec<Source>, place: String, retired: Vec<String>) -> Pictures {
        Pictures { list, place, kept: AtomicUsize::new(0), finished: Mutex::default(), retired }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// What there is to say about files that were left out.
    pub(super) fn note(&self) -> Option<Note> {
        (!self.retired.is_empty()).then(|| Note::PicturesRetired { files: self.retired.clone() })
    }

    /// The image of picture `index` in a size and format, as `encode` makes it; the same for the same arguments. A
    /// file that turns out to be damaged gives its place to the next one in the order of names.
    pub(super) fn image(
        &self,
        index: usize,
        size: (u16, u16),
        is_png: bool,
        encode: impl FnOnce(&Picture) -> Result<String, DatasetError>,
    ) -> Result<Arc<str>, DatasetError> {
        let places = (index..self.list.len()).chain(0..index);
        for place in places {
            let key = (place, size.0, size.1, is_png);
            if let Some(image) = self.finished().images.get(&key) {
                return Ok(image.clone());
            }
            let Some(picture) = self.picture(place) else { continue };
            let image: Arc<str> = encode(&picture.resized(size.0, size.1))?.into();
            let mut finished = self.finished();
            if finished.bytes + image.len() <= MOST_KEPT {
                finished.bytes += image.len();
                finished.images.insert(key, image.clone());
            }
            return Ok(image);
        }
        Err(DatasetError::Unsuitable(format!(
            "{}: no file in it can be read as a picture any more; name another folder",
            self.place
        )))
    }

    fn finished(&self) -> std::sync::MutexGuard<'_, Finished> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn picture(&self, place: usize) -> Option<Arc<Picture>> {
        let source = &self.list[place];
        if let Some(known) = source.picture.get() {
            return known.clone();
        }
        let picture = source.read().map(Arc::new);
        let size = picture.as_ref().map_or(0, |picture| picture.pixels.len());
        if self.kept.fetch_add(size, Ordering::Relaxed) + size <= MOST_KEPT {
            let _ = source.picture.set(picture.clone());
        } else {
            self.kept.fetch_sub(size, Ordering::Relaxed);
        }
        picture
    }
}

impl Source {
    fn new(file: File) -> Source {
        Source { file, picture: OnceLock::new() }
    }

    fn read(&self) -> Option<Picture> {
        match &self.file {
            File::Bundled(bytes) => Picture::decode(bytes).ok(),
            File::Path(path) => std::fs::read(path).ok().and_then(|bytes| Picture::decode(&bytes).ok()),
        }
    }
}

fn head(path: &Path) -> Result<Vec<u8>, String> {
    use std::io::Read as _;
    let mut head = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(HEAD).read_to_end(&mut head).map_err(|error| error.to_string())?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stop;

    /// Red, green and blue of the one colour of an image.
    fn colour(pictures: &Pictures, index: usize) -> String {
        let image = pictures.image(index, (1, 1), true, |picture| Ok(format!("{:?}", picture.pixels)));
        image.unwrap().to_string()
    }

    fn plain(colour: [u8; 3]) -> Picture {
        Picture { width: 2, height: 2, pixels: colour.repeat(4) }
    }

    #[test]
    fn the_bundled_pictures_are_four_of_photo_size_and_small() {
        let pictures = Pictures::bundled();
        assert_eq!(pictures.len(), 4);
        assert!(pictures.note().is_none());
        for (name, bytes) in ASSETS {
            assert!(bytes.len() <= 200_000, "{name}");
            let picture = Picture::decode(bytes).unwrap();
            assert_eq!(picture.width.max(picture.height), 1024, "{name}");
        }
        let all: std::collections::BTreeSet<String> = (0..4).map(|index| colour(&pictures, index)).collect();
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn a_folder_gives_its_pictures_in_the_order_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
        write("c.PNG", &plain([3, 3, 3]).stored_png());
        write("a.jpeg", &plain([9, 9, 9]).jpeg(&Stop::default()).unwrap());
        // What a file is, is in its first bytes.
        write("b.jpg", &plain([2, 2, 2]).stored_png());
        write("no.gif", b"GIF89a");
        write("no.txt", b"words");
        std::fs::create_dir(folder.path().join("d.png")).unwrap();
        let pictures = Pictures::of_folder(folder.path()).unwrap();
        assert_eq!(pictures.len(), 3);
        assert!(pictures.note().is_none());
        assert_eq!([1, 2].map(|index| colour(&pictures, index)), ["[2, 2, 2]", "[3, 3, 3]"]);
    }

    #[test]
    fn files_that_cannot_be_read_are_retired_and_the_next_one_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
        let png = plain([5, 6, 7]).stored_png();
        write("a.png", b"no picture");
        write("b.png", &png);
        // Its head is fine.
        write("c.png", &png[..45]);
        let pictures = Pictures::of_folder(folder.path()).unwrap();
        assert_eq!(pictures.len(), 2);
        let note = pictures.note().unwrap().to_string();
        assert!(note.contains("a.png") && note.contains("neither PNG nor JPEG"), "{note}");
        assert_eq!([0, 1].map(|index| colour(&pictures, index)), ["[5, 6, 7]", "[5, 6, 7]"]);
        std::fs::remove_file(folder.path().join("b.png")).unwrap();
        let pictures = Pictures::of_folder(folder.path()).unwrap();
        let error = pictures.image(0, (1, 1), true, |_| Ok(String::new())).unwrap_err().to_string();
        assert!(error.contains("no file in it can be read"), "{error}");
    }

    #[test]
    fn a_folder_without_pictures_is_refused_with_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| match Pictures::of_folder(path) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{} must be refused", path.display()),
        };
        assert!(refused(&folder.path().join("none")).contains("cannot read the folder"));
        std::fs::write(folder.path().join("a.txt"), "x").unwrap();
        assert!(refused(folder.path()).contains("no .png, .jpg or .jpeg file"));
        std::fs::write(folder.path().join("a.png"), "x").unwrap();
        let text = refused(folder.path());
        assert!(text.contains("no file in it can be read") && text.contains("a.png"), "{text}");
    }
}
