//! Generated images, audio and video, from the flags to the wire.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{settle_line, settled};

fn profile(arguments: &str, folder: &str, directory: &Path) -> Output {
    profile_with(&[], arguments, folder, directory)
}

pub(crate) fn profile_with(
    environment: &[(&str, &Path)],
    arguments: &str,
    folder: &str,
    directory: &Path,
) -> Output {
    Command::new(env!("CARGO_BIN_EXE_aiperf"))
        .env_clear()
        .envs(environment.iter().copied())
        .args([
            "profile",
            "--model",
            "m",
            "--url",
            "mock://?ttft=0ms&itl=0ms",
            "--tokenizer",
            "builtin",
            "--ui",
            "none",
        ])
        .args(["--export-level", "raw", "--artifact-dir", folder])
        .args(if arguments.contains("--isl 0") || arguments.contains("--batch-size 0") {
            &[][..]
        } else {
            &["--isl", "12"]
        })
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The contents of all user messages, in the order of sessions and turns.
pub(crate) fn contents(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("profile_export_raw.jsonl")).unwrap();
    let mut records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    records.sort_by_key(|record| {
        let metadata = &record["metadata"];
        (metadata["conversation_id"].to_string(), metadata["turn_index"].as_u64())
    });
    records
        .iter()
        .map(|record| record["payload"]["messages"].as_array().unwrap().last().unwrap()["content"].clone())
        .collect()
}

#[test]
fn each_turn_has_its_images_and_clips_and_they_come_again_on_other_threads() {
    let directory = tempfile::tempdir().unwrap();
    let flags = "--random-seed 5 --num-conversations 6 --num-dataset-entries 6 --conversation-turn-mean 2 --image-width-mean 40 \
                 --image-width-stddev 5 --image-height-mean 24 --image-batch-size 2 --image-format random \
                 --audio-length-mean 0.05 --audio-sample-rates 8 --audio-sample-rates 16 --audio-depths [8,24]";
    for (folder, more) in
        [("one", "--concurrency 1 --workers-max 1"), ("two", "--concurrency 6 --workers-max 2")]
    {
        let output = profile(&format!("{flags} {more}"), folder, directory.path());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let (one, two) = (contents(&directory.path().join("one")), contents(&directory.path().join("two")));
    assert_eq!(one.len(), 12);
    assert_eq!(one, two);
    for content in &one {
        let parts = content.as_array().unwrap();
        let kinds: Vec<&str> = parts.iter().map(|part| part["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["text", "image_url", "image_url", "input_audio"]);
        let url = parts[1]["image_url"]["url"].as_str().unwrap();
        assert!(
            url.starts_with("data:image/png;base64,iVBOR") || url.starts_with("data:image/jpeg;base64,/9j/")
        );
        assert_eq!(parts[3]["input_audio"]["format"], "wav");
        assert!(parts[3]["input_audio"]["data"].as_str().unwrap().starts_with("UklGR"));
    }
    let summary = std::fs::read(directory.path().join("one/profile_export_aiperf.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    let dataset = &summary["input_config"]["datasets"][0];
    assert_eq!(dataset["images"]["width"]["stddev"], 5.0);
    assert_eq!(dataset["audio"]["depths"], serde_json::json!([8, 24]));
    // Each turn has one clip of 0.05 s and two images; the second request repeats those of the first.
    let seconds = summary["audio_duration"]["avg"].as_f64().unwrap();
    assert!((seconds - 0.05).abs() < 1e-6, "{seconds}");
    assert_eq!(summary["num_images"]["avg"], 3.0);
    assert!(summary["rtfx"]["max"].as_f64().unwrap() > 0.0);
}

#[test]
fn pictures_go_round_in_the_order_of_their_names_whoever_makes_them() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("pictures");
    std::fs::create_dir(&folder).unwrap();
    // The smallest PNG files there are: one pixel, grey.
    for (name, pixel) in [("b.png", 0x80), ("c.png", 0xff), ("a.png", 0x00)] {
        std::fs::write(folder.join(name), grey_pixel(pixel)).unwrap();
    }
    std::fs::write(folder.join("damaged.png"), "words").unwrap();
    let flags = "--random-seed 5 --num-conversations 70 --num-dataset-entries 70 --conversation-turn-mean 2 \
                 --conversation-turn-stddev 1 --image-width-mean 2 --image-height-mean 2 --image-batch-size 2 \
                 --image-source pictures --image-source-sampling sequential-cycle";
    let urls = |name: &str, more: &str| {
        let output = profile(&format!("{flags} {more}"), name, directory.path());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let contents = contents(&directory.path().join(name));
        let urls = contents.iter().flat_map(|content| [&content[1], &content[2]]);
        urls.map(|part| part["image_url"]["url"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let one = urls("one", "--concurrency 1 --workers-max 1");
    let two = urls("two", "--concurrency 9 --workers-max 2");
    assert!(one.len() >= 140);
    assert!(one == two);
    for (at, url) in one.iter().enumerate() {
        assert!(*url == one[at % 3], "{at}");
    }
    assert_eq!(one[..3].iter().collect::<std::collections::BTreeSet<_>>().len(), 3);

    let output =
        profile("--image-width-mean 2 --image-height-mean 2 --image-source none", "x", directory.path());
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("--image-source none") && text.contains("cannot read the folder"), "{text}");
}

/// A PNG file of one grey pixel.
fn grey_pixel(value: u8) -> Vec<u8> {
    fn crc(bytes: &[u8]) -> u32 {
        let step = |crc: u32, byte: &u8| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
        };
        !bytes.iter().fold(!0, step)
    }
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    // One row without filter, stored; then Adler's checksum of its two bytes.
    let (low, high) = (1 + u16::from(value), 2 + u16::from(value));
    let mut data = vec![0x78, 0x01, 1, 2, 0, 0xfd, 0xff, 0, value];
    data.extend_from_slice(&high.to_be_bytes());
    data.extend_from_slice(&low.to_be_bytes());
    for (kind, body) in
        [(b"IHDR", &[0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0][..]), (b"IDAT", &data), (b"IEND", &[])]
    {
        let chunk = [&kind[..], body].concat();
        file.extend_from_slice(&(body.len() as u32).to_be_bytes());
        file.extend_from_slice(&chunk);
        file.extend_from_slice(&crc(&chunk).to_be_bytes());
    }
    file
}

#[test]
fn images_and_clips_leave_the_texts_alone() {
    let directory = tempfile::tempdir().unwrap();
    let flags = "--random-seed 5 --num-conversations 3 --num-dataset-entries 3 --concurrency 1";
    for (folder, more) in
        [("plain", ""), ("media", "--image-width-mean 4 --image-height-mean 4 --audio-length-mean 0.02")]
    {
        assert_eq!(profile(&format!("{flags} {more}"), folder, directory.path()).status.code(), Some(0));
    }
    let plain = contents(&directory.path().join("plain"));
    let media = contents(&directory.path().join("media"));
    assert_eq!(plain, media.iter().map(|content| content[0]["text"].clone()).collect::<Vec<_>>());
}

#[test]
fn media_are_sent_without_text_where_a_length_or_a_number_of_texts_is_0() {
    let directory = tempfile::tempdir().unwrap();
    let turns = "--num-conversations 2 --num-dataset-entries 2 --conversation-turn-mean 2 --concurrency 1";
    for (folder, flags, kinds) in [
        ("images", "--isl 0 --image-width-mean 4 --image-height-mean 4", &["image_url"][..]),
        (
            "both",
            "--batch-size 0 --audio-length-mean 0.02 --image-width-mean 4 --image-height-mean 4 --osl 3",
            &["image_url", "input_audio"],
        ),
    ] {
        let output = profile(&format!("{turns} {flags}"), folder, directory.path());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let contents = contents(&directory.path().join(folder));
        assert_eq!(contents.len(), 4);
        for content in contents {
            let parts = content.as_array().unwrap();
            let found: Vec<&str> = parts.iter().map(|part| part["type"].as_str().unwrap()).collect();
            assert_eq!(found, kinds, "{flags}");
        }
    }
}

#[test]
fn what_is_missing_or_out_of_range_is_named() {
    for (line, parts) in [
        ("--image-width-mean 5", &["--image-width-mean", "--image-height-mean"][..]),
        ("--image-height-mean 5", &["--image-height-mean", "--image-width-mean"]),
        ("--image-batch-size 2", &["--image-batch-size", "--image-width-mean"]),
        ("--image-format png", &["--image-format", "--image-width-mean"]),
        ("--image-width-mean 5 --image-height-mean 99999", &["--image-height-mean", "16384"]),
        (
            "--image-width-mean 5 --image-width-stddev 1e9 --image-height-mean 5",
            &["--image-width-stddev", "16384"],
        ),
        (
            "--image-width-mean 16384 --image-height-mean 16384",
            &["--image-width-mean, --image-height-mean come to 268435456 pixels", "100000000 at most"],
        ),
        (
            "--image-width-mean 5 --image-height-mean 5 --image-height-stddev 9000 --image-batch-size 4e9",
            &["--image-height-stddev", "--image-batch-size", "pixels of images in one conversation"],
        ),
        (
            "--image-width-mean 1 --image-height-mean 1 --conversation-turn-mean 200000",
            &["--conversation-turn-mean", "1 to 100000"],
        ),
        ("--audio-length-mean 1 --audio-length-stddev 1e9", &["--audio-length-stddev", "0 to 3600"]),
        (
            "--audio-length-mean 3600 --audio-sample-rates 768000 --audio-depths 32 --audio-num-channels 2",
            &["--audio-length-mean, --audio-sample-rates", "bytes of sound", "300000000 at most"],
        ),
        (
            "--audio-length-mean 0.01 --audio-batch-size 4000000000",
            &["--audio-batch-size", "bytes of sound in one conversation"],
        ),
        ("--video-width 16384 --video-height 16384", &["pixels of a frame", "100000000 at most"]),
        (
            "--video-width 8 --video-height 8 --video-batch-size 4000000000",
            &["--video-batch-size", "pixels of videos in one conversation"],
        ),
        (
            "--video-width 640 --video-height 480 --video-duration 3600 --video-fps 1000",
            &["--video-width, --video-height, --video-duration, --video-fps come to"],
        ),
        (
            "--video-width 8 --video-height 8 --video-duration 3600 --video-audio-num-channels 2 --video-audio-sample-rate 384000",
            &["bytes of sound in one video", "--video-audio-sample-rate"],
        ),
        ("--audio-batch-size 2", &["--audio-batch-size", "--audio-length-mean"]),
        ("--audio-length-mean 0.001", &["--audio-length-mean", "0.01"]),
        ("--audio-length-mean 1 --audio-depths 12", &["--audio-depths", "8, 16, 24 or 32"]),
        ("--audio-length-mean 1 --audio-sample-rates fast", &["--audio-sample-rates", "fast"]),
        ("--audio-length-mean 1 --audio-num-channels 3", &["--audio-num-channels 3"]),
        (
            "--audio-length-mean 1 --audio-format mp3 --audio-sample-rates 96",
            &["--audio-sample-rates 96", "MP3", "44.1, 48 kHz"],
        ),
        ("--image-source assets", &["--image-source", "--image-width-mean"]),
        (
            "--image-width-mean 5 --image-height-mean 5 --image-source-sampling shuffle-cycle",
            &["--image-source-sampling", "--image-source noise", "assets"],
        ),
        ("--image-source assets --input-file @mooncake_hash.jsonl", &["--image-source", "--input-file"]),
        ("--video-batch-size 1", &["--video-batch-size", "--video-width"]),
        ("--video-width 8", &["--video-width", "--video-height"]),
        ("--video-height 8", &["--video-height", "--video-width"]),
        ("--video-width 8 --video-height 20000", &["--video-height 20000", "16384"]),
        ("--video-width 8 --video-height 8 --video-fps 5000", &["--video-fps 5000"]),
        ("--video-width 8 --video-height 8 --video-duration 4000", &["--video-duration 4000"]),
        (
            "--video-width 8 --video-height 8 --video-audio-codec libopus",
            &["--video-audio-codec", "--video-audio-num-channels 0"],
        ),
        ("--video-width 8 --video-height 8 --video-audio-num-channels 3", &["--video-audio-num-channels 3"]),
        (
            "--video-width 8 --video-height 8 --video-audio-num-channels 1 --video-audio-sample-rate 10",
            &["--video-audio-sample-rate 10"],
        ),
        (
            "--video-width 8 --video-height 8 --video-audio-num-channels 1 --video-audio-codec aac",
            &["aac", "WebM", "--video-format mp4"],
        ),
        ("--video-width 8 --video-height 8 --endpoint-type embeddings", &["--video-width", "embeddings"]),
        ("--video-fps 8 --input-file @mooncake_hash.jsonl", &["--video-fps", "--input-file"]),
        (
            "--image-width-mean 5 --image-height-mean 5 --endpoint-type completions",
            &["--image-width-mean", "completions"],
        ),
        ("--audio-length-mean 1 --endpoint-type embeddings", &["--audio-length-mean", "embeddings"]),
        (
            "--image-width-mean 5 --image-height-mean 5 --input-file @mooncake_hash.jsonl",
            &["--image-width-mean", "--input-file"],
        ),
    ] {
        let Err(error) = settle_line(line) else { panic!("{line} must be refused") };
        let report = error.report();
        for part in parts {
            assert!(report.contains(part), "{line}: {report}");
        }
    }
}

#[test]
fn zero_is_off() {
    for line in [
        &["--image-width-mean", "0", "--image-height-mean", "5"][..],
        &["--image-batch-size", "0", "--image-width-mean", "5"],
        &["--audio-batch-size", "0"],
        &["--audio-length-mean", "0"],
        &["--video-batch-size", "0", "--video-width", "5"],
    ] {
        let aiperf_config::DatasetSource::Synthetic(synthetic) = settled(line).config.dataset.source else {
            panic!("{line:?}")
        };
        assert_eq!(synthetic.media, aiperf_config::SyntheticMedia::default(), "{line:?}");
    }
}

#[test]
fn what_a_size_of_0_leaves_without_effect_is_told() {
    let told = |line: &str| -> Vec<String> {
        settle_line(line)
            .unwrap()
            .notes
            .into_iter()
            .filter(|note| note.warning)
            .map(|note| note.text)
            .collect()
    };
    for (line, text) in [
        (
            "--image-width-mean 0 --image-height-mean 5",
            "--image-width-mean 0 switches generated images off: --image-height-mean changes nothing",
        ),
        (
            "--batch-size-image 0 --image-width-mean 5 --image-format png",
            "--batch-size-image 0 switches generated images off: --image-width-mean, --image-format change nothing",
        ),
        (
            "--audio-length-mean 0 --audio-format wav",
            "--audio-length-mean 0 switches generated audio off: --audio-format changes nothing",
        ),
        (
            "--video-batch-size 0 --video-width 5",
            "--video-batch-size 0 switches generated video off: --video-width changes nothing",
        ),
    ] {
        assert_eq!(told(line), [text], "{line}");
    }
    for line in
        ["--image-width-mean 0 --image-height-mean 0", "--audio-batch-size 0", "--audio-length-mean 0"]
    {
        assert_eq!(told(line), Vec::<String>::new(), "{line}");
    }
}

#[test]
fn videos_and_clips_have_the_documented_defaults() {
    let line = ["--video-width", "8", "--video-height", "6", "--audio-length-mean", "1"];
    let aiperf_config::DatasetSource::Synthetic(synthetic) = settled(&line).config.dataset.source else {
        panic!()
    };
    let video = synthetic.media.video.unwrap();
    assert_eq!((video.count, video.width, video.height), (1, 8, 6));
    assert_eq!((video.seconds, video.fps, video.frames()), (5.0, 4, 20));
    assert_eq!((video.kind, video.container.name()), (aiperf_config::VideoKind::MovingShapes, "webm"));
    assert_eq!((video.codec.as_str(), video.sound), ("libvpx-vp9", None));
    let audio = synthetic.media.audio.unwrap();
    assert_eq!(
        (audio.count, audio.sample_rates, audio.depths, audio.channels),
        (1, vec![16_000], vec![16], 1)
    );
    let sound = |more: &[&str]| {
        let line = [&line[..4], &["--video-audio-num-channels", "2"], more].concat();
        let aiperf_config::DatasetSource::Synthetic(synthetic) = settled(&line).config.dataset.source else {
            panic!()
        };
        synthetic.media.video.unwrap().sound.unwrap()
    };
    let webm = sound(&[]);
    assert_eq!((webm.channels, webm.sample_rate, webm.depth), (2, 44_100, 16));
    assert_eq!(
        (webm.codec.as_str(), sound(&["--video-format", "mp4"]).codec.as_str()),
        ("libvorbis", "libopus")
    );
    // Less than a frame is one.
    let line = [&line[..4], &["--video-duration", "0.1"]].concat();
    let aiperf_config::DatasetSource::Synthetic(synthetic) = settled(&line).config.dataset.source else {
        panic!()
    };
    assert_eq!(synthetic.media.video.unwrap().frames(), 1);
}
