//! Generated videos: frames that are drawn here and encoded by an installed ffmpeg, as data URLs.

use aiperf_config::{SyntheticVideo, VideoContainer, VideoKind};
use aiperf_tokenize::seed::{Rng as _, Stream, Streams, below};
use aiperf_types::{Media, MediaKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::audio::noise;
use super::canvas::Canvas;
use crate::media::program::{Program, Scratch, how_to_install};
use crate::media::wav::Shape;
use crate::{DatasetError, Stop};

/// Seconds in which a shape crosses the frame.
const CROSSING: f64 = 4.0;

/// Makes the videos of entries. Frames are drawn from one stream, sound from another.
pub(super) struct Video {
    shape: SyntheticVideo,
    ffmpeg: Program,
    frames: Streams,
    sounds: Streams,
}

/// The streams of one entry.
pub(super) struct Draws {
    frames: Stream,
    sounds: Stream,
}

impl Video {
    /// Looks for ffmpeg, and has it encode one frame.
    pub(super) fn new(
        shape: SyntheticVideo,
        streams: impl Fn(&str) -> Streams,
    ) -> Result<Video, DatasetError> {
        let Some(ffmpeg) = Program::find("ffmpeg") else {
            return Err(DatasetError::Unsuitable(format!(
                "--video-width and --video-height generate videos, which needs the program ffmpeg, and it is not in \
                 PATH; {}",
                how_to_install("ffmpeg")
            )));
        };
        let video = Video { shape, ffmpeg, frames: streams("videos"), sounds: streams("video_sounds") };
        let mut draws = video.draws(0);
        video.encode(&mut draws, 1, &Stop::default()).map_err(|error| {
            DatasetError::Unsuitable(format!(
                "ffmpeg cannot make a video of {} ({error}); {}, or try another size, codec or format",
                video.described(),
                "check --video-codec, --video-audio-codec and --video-format"
            ))
        })?;
        Ok(video)
    }

    pub(super) fn draws(&self, entry: u64) -> Draws {
        Draws { frames: self.frames.at(entry), sounds: self.sounds.at(entry) }
    }

    /// Appends the videos of the next turn.
    pub(super) fn turn(
        &self,
        draws: &mut Draws,
        media: &mut Vec<Media>,
        stop: &Stop,
    ) -> Result<(), DatasetError> {
        for _ in 0..self.shape.count {
            stop.go_on()?;
            let bytes = self.encode(draws, self.shape.frames(), stop);
            // What was given up is too short.
            stop.go_on()?;
            let bytes = bytes.map_err(|error| {
                DatasetError::Prompt(format!("cannot make a video of {}: {error}", self.described()))
            })?;
            let mut url = format!("data:video/{};base64,", self.shape.container.name());
            STANDARD.encode_string(bytes, &mut url);
            media.push(Media { kind: MediaKind::Video, name: None, content: url.into(), uuid: None });
        }
        Ok(())
    }

    fn described(&self) -> String {
        let shape = &self.shape;
        let sound = shape.sound.as_ref().map(|sound| format!(" with sound in {}", sound.codec));
        let container = shape.container.name();
        format!(
            "{}x{} in {} as {container}{}",
            shape.width,
            shape.height,
            shape.codec,
            sound.unwrap_or_default()
        )
    }

    fn encode(&self, draws: &mut Draws, frames: u64, stop: &Stop) -> Result<Vec<u8>, String> {
        let text = |error: std::io::Error| format!("no temporary file: {error}");
        let shape = &self.shape;
        let sound = shape.sound.as_ref().map(|sound| {
            let wav = Shape { rate: sound.sample_rate, channels: sound.channels.into(), depth: sound.depth };
            let moments = frames as f64 / f64::from(shape.fps) * f64::from(sound.sample_rate);
            let count = moments as usize * usize::from(sound.channels);
            Scratch::holding(&wav.file(count, noise(&mut draws.sounds, wav, stop)))
        });
        let sound = sound.transpose().map_err(text)?;
        let output = Scratch::new().map_err(text)?;
        let arguments = {
            let sound = sound.as_ref().map(Scratch::path);
            self.arguments(sound.as_deref(), &output.path())
        };
        let scene = Scene::draw(shape, &mut draws.frames);
        let mut canvas = Canvas::new(shape.width, shape.height);
        self.ffmpeg.run(&arguments, |pipe| {
            for number in 0..frames {
                stop.go_on().map_err(std::io::Error::other)?;
                scene.frame(number, &mut canvas, &mut draws.frames);
                pipe.write_all(canvas.bytes())?;
            }
            Ok(())
        })?;
        output.read().map_err(text)
    }

    fn arguments(&self, sound: Option<&str>, output: &str) -> Vec<String> {
        let shape = &self.shape;
        let mut arguments: Vec<String> = Vec::with_capacity(48);
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        add(&["-hide_banner", "-loglevel", "error", "-y"]);
        add(&["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", &format!("{}x{}", shape.width, shape.height)]);
        add(&["-r", &shape.fps.to_string(), "-i", "pipe:0"]);
        if let (Some(path), Some(settings)) = (sound, &shape.sound) {
            add(&["-f", "wav", "-i", path, "-map", "0:v", "-map", "1:a", "-c:a", &settings.codec]);
        }
        add(&["-c:v", &shape.codec, "-pix_fmt", "yuv420p"]);
        // What takes most of the time; the picture is not worth it.
        if shape.codec.starts_with("libvpx") {
            add(&["-deadline", "realtime", "-cpu-used", "8"]);
        }
        // The same frames are the same file: one thread, no names of versions, no random ids.
        add(&["-threads", "1", "-fflags", "+bitexact", "-flags:v", "+bitexact", "-flags:a", "+bitexact"]);
        add(&["-map_metadata", "-1"]);
        if shape.container == VideoContainer::Mp4 {
            add(&["-movflags", "+faststart"]);
        }
        add(&["-f", shape.container.name(), output]);
        arguments
    }
}

/// What a video shows, with where it begins.
struct Scene {
    kind: VideoKind,
    fps: f64,
    /// Where each shape begins, as shares of its way.
    starts: [f64; 3],
}

impl Scene {
    fn draw(shape: &SyntheticVideo, stream: &mut Stream) -> Scene {
        let starts = [(); 3].map(|()| below(stream, 1000) as f64 / 1000.0);
        Scene { kind: shape.kind, fps: f64::from(shape.fps), starts }
    }

    fn frame(&self, number: u64, canvas: &mut Canvas, stream: &mut Stream) {
        match self.kind {
            VideoKind::MovingShapes => self.moving_shapes(number, canvas),
            VideoKind::GridClock => self.grid_clock(number, canvas),
            VideoKind::Noise => stream.fill_bytes(canvas.bytes_mut()),
        }
    }

    /// Black ground; a red disc crosses, a green square falls, a blue disc takes the diagonal; what leaves on one side
    /// comes back on the other.
    fn moving_shapes(&self, number: u64, canvas: &mut Canvas) {
        let (width, height) = (f64::from(canvas.width()), f64::from(canvas.height()));
        let size = width.min(height) / 8.0;
        let way = |start: f64| (start + number as f64 / self.fps / CROSSING).fract();
        let [red, green, blue] = self.starts.map(way);
        canvas.fill([0, 0, 0]);
        canvas.wrapped(red * width, height / 4.0, size, |canvas, x, y| canvas.disc(x, y, size, [255, 0, 0]));
        canvas.wrapped(width / 2.0, green * height, size, |canvas, x, y| {
            canvas.square(x, y, size, [0, 255, 0]);
        });
        canvas
            .wrapped(blue * width, blue * height, size, |canvas, x, y| canvas.disc(x, y, size, [0, 0, 255]));
    }

    /// Dark ground with a grid, a dial with two hands, the number of the frame.
    fn grid_clock(&self, number: u64, canvas: &mut Canvas) {
        const GRID: usize = 32;
        let (width, height) = (f64::from(canvas.width()), f64::from(canvas.height()));
        canvas.fill([24, 26, 32]);
        canvas.grid(GRID, [56, 60, 70]);
        let (x, y) = (width / 2.0, height / 2.0);
        let radius = width.min(height) * 0.4;
        canvas.disc(x, y, radius, [210, 214, 222]);
        canvas.disc(x, y, radius * 0.94, [36, 40, 48]);
        let turns = self.starts[0] * 12.0 + number as f64 / self.fps;
        let hand = |length: f64, turns: f64| {
            let angle = turns * std::f64::consts::TAU;
            (x + radius * length * angle.sin(), y - radius * length * angle.cos())
        };
        let thick = (radius / 24.0).max(0.5);
        canvas.line((x, y), hand(0.5, turns / 12.0), thick * 1.6, [120, 200, 255]);
        canvas.line((x, y), hand(0.85, turns), thick, [255, 190, 90]);
        let scale = (canvas.height() / 120).max(1);
        canvas.number(number, usize::from(scale) * 4, usize::from(scale), [255, 255, 255]);
    }
}

#[cfg(test)]
mod tests {
    use aiperf_config::VideoSound;

    use super::*;

    fn shape(kind: VideoKind) -> SyntheticVideo {
        SyntheticVideo {
            count: 1,
            width: 64,
            height: 48,
            seconds: 1.0,
            fps: 4,
            kind,
            container: VideoContainer::Webm,
            codec: "libvpx-vp9".into(),
            sound: None,
        }
    }

    fn scene(kind: VideoKind) -> Scene {
        Scene { starts: [0.0, 0.0, 0.5], ..Scene::draw(&shape(kind), &mut Streams::new(1, "v").at(0)) }
    }

    fn frame(scene: &Scene, number: u64) -> Canvas {
        let mut canvas = Canvas::new(64, 48);
        scene.frame(number, &mut canvas, &mut Streams::new(1, "n").at(number));
        canvas
    }

    #[test]
    fn shapes_move_and_come_back_where_they_began() {
        let scene = scene(VideoKind::MovingShapes);
        let first = frame(&scene, 0);
        // The red disc lies across the left edge, so half of it is on the right.
        assert_eq!((first.at(1, 12), first.at(62, 12)), ([255, 0, 0], [255, 0, 0]));
        assert_eq!((first.at(32, 1), first.at(32, 46)), ([0, 255, 0], [0, 255, 0]));
        assert_eq!((first.at(31, 23), first.at(20, 30)), ([0, 0, 255], [0, 0, 0]));
        let later = frame(&scene, 4);
        assert_eq!((later.at(16, 12), later.at(1, 12)), ([255, 0, 0], [0, 0, 0]));
        assert_eq!(later.at(32, 13), [0, 255, 0]);
        assert_eq!(later.at(48, 36), [0, 0, 255]);
        assert!(frame(&scene, 16).bytes() == first.bytes());
    }

    #[test]
    fn a_clock_runs_on_a_grid_and_counts_frames() {
        let scene = scene(VideoKind::GridClock);
        let (first, next) = (frame(&scene, 0), frame(&scene, 1));
        assert_eq!(
            (first.at(32, 1), first.at(63, 47), first.at(63, 32)),
            ([56, 60, 70], [24, 26, 32], [56, 60, 70])
        );
        // Both hands up, then the long one to the right.
        assert_eq!(first.at(32, 12), [255, 190, 90]);
        assert_eq!((next.at(44, 24), next.at(32, 12)), ([255, 190, 90], [36, 40, 48]));
        assert!(first.bytes() != next.bytes());
    }

    #[test]
    fn noise_is_new_in_every_frame() {
        let scene = scene(VideoKind::Noise);
        assert!(frame(&scene, 0).bytes() != frame(&scene, 1).bytes());
        let mean =
            frame(&scene, 0).bytes().iter().map(|byte| f64::from(*byte)).sum::<f64>() / (64.0 * 48.0 * 3.0);
        assert!((120.0..135.0).contains(&mean), "{mean}");
    }

    #[test]
    fn ffmpeg_is_told_what_comes_and_what_is_wanted() {
        let sound = VideoSound { channels: 2, sample_rate: 48_000, depth: 16, codec: "libopus".into() };
        let shape = SyntheticVideo {
            container: VideoContainer::Mp4,
            codec: "libx264".into(),
            sound: Some(sound),
            ..shape(VideoKind::Noise)
        };
        let ffmpeg = Program { path: "/usr/bin/ffmpeg".into() };
        let video = |shape| Video {
            shape,
            ffmpeg: ffmpeg.clone(),
            frames: Streams::new(1, "v"),
            sounds: Streams::new(1, "s"),
        };
        let words = video(shape).arguments(Some("SOUND"), "OUT").join(" ");
        for part in [
            "-f rawvideo -pix_fmt rgb24 -s 64x48 -r 4 -i pipe:0",
            "-f wav -i SOUND -map 0:v -map 1:a -c:a libopus",
            "-c:v libx264 -pix_fmt yuv420p",
            "-movflags +faststart -f mp4 OUT",
        ] {
            assert!(words.contains(part), "{words}");
        }
        assert!(!words.contains("-deadline"));
        let words = video(self::shape(VideoKind::Noise)).arguments(None, "OUT").join(" ");
        assert!(words.contains("-c:v libvpx-vp9") && words.ends_with("-f webm OUT"), "{words}");
        assert!(!words.contains("faststart") && !words.contains("-c:a"), "{words}");
    }
}
