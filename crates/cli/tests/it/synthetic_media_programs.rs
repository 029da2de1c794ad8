//! Generated media that an installed program encodes: MP3 and video.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::synthetic_media::{contents, profile_with};

/// The folder of an ffmpeg: the one that is installed, else one from the Python packages.
fn ffmpeg() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let installed = std::env::split_paths(&path).find(|folder| folder.join("ffmpeg").is_file());
        installed.unwrap_or_else(fetched)
    })
}

fn fetched() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ffmpeg-0.6");
    let (python, folder) = (root.join("bin/python"), root.join("ffmpeg"));
    let run = |command: &mut Command| {
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ffmpeg cannot be installed (python3-venv, pip): {text}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    if !folder.join("ffmpeg").exists() {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&root));
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "imageio-ffmpeg==0.6.*"]));
        let ask = "import imageio_ffmpeg; print(imageio_ffmpeg.get_ffmpeg_exe())";
        let program = run(Command::new(&python).args(["-c", ask]));
        std::fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink(program, folder.join("ffmpeg")).unwrap();
    }
    folder
}

/// What ffmpeg makes of a file, as raw data.
fn decoded(file: &[u8], wanted: &str) -> Vec<u8> {
    let mut input = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut input, file).unwrap();
    let output = Command::new(ffmpeg().join("ffmpeg"))
        .args(["-v", "error", "-i"])
        .arg(input.path())
        .args(wanted.split_whitespace())
        .arg("-")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn pixels(file: &[u8]) -> Vec<u8> {
    decoded(file, "-f rawvideo -pix_fmt rgb24")
}

/// Moments of sound of a file with so many channels at so many Hz.
fn moments(file: &[u8], channels: u32, rate: u32) -> usize {
    decoded(file, &format!("-f s16le -ac {channels} -ar {rate}")).len() / 2 / channels as usize
}

/// The bytes of the video at `part` of a message.
fn video(content: &Value, part: usize, kind: &str) -> Vec<u8> {
    assert_eq!(content[part]["type"], "video_url");
    let url = content[part]["video_url"]["url"].as_str().unwrap();
    STANDARD.decode(url.strip_prefix(&format!("data:video/{kind};base64,")).unwrap()).unwrap()
}

/// Runs with ffmpeg in the path and a place for temporary files, which must be empty afterwards.
fn run(arguments: &str, folder: &str, directory: &Path) -> (Option<i32>, String) {
    let temporary = directory.join("temporary");
    std::fs::create_dir_all(&temporary).unwrap();
    let environment = [("PATH", ffmpeg()), ("TMPDIR", &temporary)];
    let output = profile_with(&environment, arguments, folder, directory);
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "nothing is left behind");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn each_turn_has_its_videos_and_they_come_again_on_other_threads() {
    let directory = tempfile::tempdir().unwrap();
    let flags = "--random-seed 5 --num-conversations 2 --num-dataset-entries 2 --video-width 96 --video-height 96 \
                 --video-duration 0.8 --video-batch-size 2 --image-width-mean 2 --image-height-mean 2 \
                 --video-synth-type grid-clock";
    for (folder, more) in
        [("one", "--concurrency 1 --workers-max 1"), ("two", "--concurrency 2 --workers-max 2")]
    {
        let (code, text) = run(&format!("{flags} {more}"), folder, directory.path());
        assert_eq!(code, Some(0), "{text}");
    }
    let (one, two) = (contents(&directory.path().join("one")), contents(&directory.path().join("two")));
    assert_eq!(one.len(), 2);
    assert!(one == two);
    let kinds: Vec<&str> =
        one[0].as_array().unwrap().iter().map(|part| part["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "image_url", "video_url", "video_url"]);
    let first = video(&one[0], 2, "webm");
    assert_eq!(first[..4], [0x1a, 0x45, 0xdf, 0xa3]);
    assert!(first != video(&one[0], 3, "webm") && first != video(&one[1], 2, "webm"));
    // 0.8 s at 4 frames a second are three of them, and they are those that were drawn: dark, with a light ring.
    let frames = pixels(&first);
    assert_eq!(frames.len(), 3 * 96 * 96 * 3);
    let at = |x: usize, y: usize| frames[(y * 96 + x) * 3];
    assert!(at(90, 90) < 70 && at(48, 10) > 110, "{} {}", at(90, 90), at(48, 10));
    let summary = std::fs::read(directory.path().join("one/profile_export_aiperf.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    let dataset = &summary["input_config"]["datasets"][0];
    assert_eq!(dataset["video"]["synth_type"], "grid-clock");
    assert_eq!(dataset["video"]["width"], 96);
}

#[test]
fn an_mp4_has_its_index_in_front_and_its_sound() {
    let directory = tempfile::tempdir().unwrap();
    let flags = "--num-conversations 1 --num-dataset-entries 1 --concurrency 1 --video-width 32 --video-height 32 --video-duration 0.5 \
                 --video-format mp4 --video-audio-num-channels 2 --video-audio-sample-rate 48000 --video-audio-depth 24";
    let (code, text) = run(flags, "out", directory.path());
    assert_eq!(code, Some(0), "{text}");
    let file = video(&contents(&directory.path().join("out"))[0], 1, "mp4");
    let find = |name: &[u8]| file.windows(4).position(|four| four == name).unwrap();
    assert!(find(b"moov") < find(b"mdat"));
    assert_eq!(pixels(&file).len(), 2 * 32 * 32 * 3);
    let moments = moments(&file, 2, 48_000);
    assert!((22_000..27_000).contains(&moments), "{moments} of 24000");
}

#[test]
fn a_clip_in_mp3_is_as_long_as_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let flags = "--num-conversations 2 --num-dataset-entries 2 --concurrency 1 --audio-length-mean 0.5 --audio-format mp3 --audio-depths 8 \
                 --audio-depths 24 --audio-sample-rates 8 --audio-sample-rates 44.1 --audio-batch-size 3";
    let (code, text) = run(flags, "out", directory.path());
    assert_eq!(code, Some(0), "{text}");
    for content in contents(&directory.path().join("out")) {
        for part in &content.as_array().unwrap()[1..] {
            assert_eq!(part["input_audio"]["format"], "mp3");
            let file = STANDARD.decode(part["input_audio"]["data"].as_str().unwrap()).unwrap();
            let moments = moments(&file, 1, 48_000);
            assert!((19_200..28_800).contains(&moments), "{moments} of 24000");
        }
    }
    let summary = std::fs::read(directory.path().join("out/profile_export_aiperf.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    let seconds = summary["audio_duration"]["avg"].as_f64().unwrap();
    assert!((seconds - 0.5).abs() < 1e-3, "{seconds}");
}

#[test]
fn what_the_program_cannot_encode_is_refused_before_anything_is_sent() {
    let directory = tempfile::tempdir().unwrap();
    for (flags, words) in [
        ("--video-codec nosuch", ["nosuch", "--video-codec"]),
        ("--video-codec libx264", ["libx264", "--video-format"]),
    ] {
        let line = format!(
            "--num-conversations 1 --num-dataset-entries 1 --video-width 32 --video-height 24 {flags}"
        );
        let (code, text) = run(&line, "out", directory.path());
        assert_eq!(code, Some(2), "{text}");
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
        assert!(!directory.path().join("out/profile_export_raw.jsonl").exists());
    }
}

#[test]
fn a_missing_program_is_named_with_how_to_install_it() {
    let directory = tempfile::tempdir().unwrap();
    let nothing = directory.path().join("empty");
    std::fs::create_dir(&nothing).unwrap();
    for (flags, names) in [
        ("--video-width 8 --video-height 8", &["ffmpeg", "--video-width", "install"][..]),
        ("--audio-length-mean 1 --audio-format mp3", &["lame or ffmpeg", "--audio-format mp3", "install"]),
    ] {
        let output = profile_with(&[("PATH", &nothing)], flags, "out", directory.path());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(names.iter().all(|name| text.contains(name)), "{text}");
    }
}
