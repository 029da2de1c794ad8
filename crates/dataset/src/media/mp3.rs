//! MP3 files through an installed encoder: `lame`, or `ffmpeg`. None is compiled in: the libraries are under the LGPL, one of
//! them is C, and who wants MP3 has a package with either program.

use super::program::{Program, Scratch, how_to_install};
use super::wav::Shape;

/// An encoder that works.
#[derive(Clone, Debug)]
pub(crate) struct Mp3 {
    program: Program,
    is_lame: bool,
}

impl Mp3 {
    /// An encoder of this machine, tried with a moment of silence; else what to do.
    pub(crate) fn find() -> Result<Mp3, String> {
        let found = [("lame", true), ("ffmpeg", false)]
            .into_iter()
            .filter_map(|(name, is_lame)| Some(Mp3 { program: Program::find(name)?, is_lame }));
        let mut trouble = None;
        for encoder in found {
            match encoder.encode(Shape { rate: 16_000, channels: 1, depth: 16 }, 160, std::iter::repeat(0)) {
                Ok(_) => return Ok(encoder),
                Err(error) => trouble = trouble.or(Some(error)),
            }
        }
        Err(match trouble {
            Some(trouble) => {
                format!("the installed encoder cannot write it ({trouble}); {}", how_to_install("lame"))
            }
            None => format!(
                "it needs the program lame or ffmpeg, and neither is in PATH; {}",
                how_to_install("lame")
            ),
        })
    }

    /// A file of samples; see [`Shape::file`]. The encoder gets them with 16 bits.
    pub(crate) fn encode(
        &self,
        shape: Shape,
        count: usize,
        samples: impl Iterator<Item = i32>,
    ) -> Result<Vec<u8>, String> {
        let narrow = |sample: i32| {
            if shape.depth < 16 { sample << (16 - shape.depth) } else { sample >> (shape.depth - 16) }
        };
        let wav = Shape { depth: 16, ..shape }.file(count, samples.map(narrow));
        // The encoder goes back to the start to say how many samples there are, so it gets a file and not a pipe.
        let output = Scratch::new().map_err(|error| error.to_string())?;
        // Frames large enough for the tag that says where the sound ends: without it a clip of 8 kHz seems 0.15 s longer.
        let kbits = if shape.rate < 32_000 { "64" } else { "128" };
        let mut arguments: Vec<String> = Vec::with_capacity(24);
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        if self.is_lame {
            add(&["--quiet", "-b", kbits, "-"]);
        } else {
            add(&[
                "-hide_banner",
                "-loglevel",
                "error",
                "-y",
                "-f",
                "wav",
                "-i",
                "pipe:0",
                "-c:a",
                "libmp3lame",
            ]);
            add(&["-b:a", &format!("{kbits}k"), "-fflags", "+bitexact", "-flags:a", "+bitexact"]);
            add(&["-map_metadata", "-1", "-f", "mp3"]);
        }
        add(&[&output.path()]);
        self.program.run(&arguments, |pipe| pipe.write_all(&wav))?;
        output.read().map_err(|error| error.to_string())
    }
}
