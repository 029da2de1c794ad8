//! What notes say.

use super::*;

#[test]
fn every_note_says_how_many_and_what_happens() {
    let cases = [
        (Note::OutputLengthRaised { turns: 3 }, NoteLevel::Warning, "3 turn(s)", "1 is sent"),
        (Note::InputLengthRaised { turns: 3 }, NoteLevel::Warning, "3 turn(s)", "1 token is sent"),
        (
            Note::KeysOfBodies { keys: vec!["model", "top_p"] },
            NoteLevel::Warning,
            "not used: model, top_p;",
            "\"extra\": {\"model\": …}",
        ),
        (Note::DelayNotFinite { turns: 2 }, NoteLevel::Warning, "2 turn(s)", "left out"),
        (
            Note::LongDelay { longest_ms: 61_500.0 },
            NoteLevel::Warning,
            "61.5 s",
            "--inter-turn-delay-cap-seconds",
        ),
        (Note::OutputLengthCapped { turns: 6 }, NoteLevel::Info, "6 turn(s)", "cap is sent"),
        (Note::LongerThanAsked { rows: 8 }, NoteLevel::Info, "8 row(s)", "left out"),
        (
            Note::RowsOfTable { read: 9, kept: 7, skipped: 2, first: 4 },
            NoteLevel::Warning,
            "9 row(s) read, 7 kept, 2 skipped",
            "line 4",
        ),
        (Note::Histories { repeated: 3, added: 2 }, NoteLevel::Info, "3 session(s)", "sent alone"),
        (
            Note::ParametersReplayed { names: vec!["seed".into(), "top_p".into()] },
            NoteLevel::Info,
            "seed, top_p",
            "as captured",
        ),
        (
            Note::RowsOfTable { read: 9, kept: 9, skipped: 0, first: 0 },
            NoteLevel::Info,
            "9 row(s)",
            "all kept",
        ),
        (Note::NothingToReshape, NoteLevel::Warning, "multipliers", "nothing"),
        (Note::OutsideWindow { rows: 7 }, NoteLevel::Info, "7 row(s)", "left out"),
        (Note::SessionsCutByWindow { sessions: 4 }, NoteLevel::Warning, "4 session(s)", "no timestamp"),
        (Note::ExtraBesidePayload { rows: 5 }, NoteLevel::Warning, "5 row(s)", "`extra` is not"),
        (
            Note::KeysNotRead { keys: vec![("max_tokens", "output_length"), ("hash_id", "hash_ids")] },
            NoteLevel::Warning,
            "max_tokens (did you mean output_length?), hash_id (did you mean hash_ids?)",
            "--input-columns output_length=max_tokens,hash_ids=hash_id reads",
        ),
        (Note::CanceledRows { rows: 6 }, NoteLevel::Info, "6 row(s)", "sent like the others"),
        (Note::NotSampled { rows: 8 }, NoteLevel::Info, "8 row(s)", "left out"),
        (
            Note::ExtraInputOverwritten { key: "min_tokens", flag: "--no-force-min-tokens" },
            NoteLevel::Warning,
            "`min_tokens`",
            "overwrite it; --no-force-min-tokens",
        ),
        (
            Note::PicturesRetired { files: vec!["a.png (it is empty)".into()] },
            NoteLevel::Debug,
            "1 file(s)",
            "left out: a.png",
        ),
        (
            Note::RowsNotCopied { reason: "no space left in /tmp".into() },
            NoteLevel::Warning,
            "(no space left in /tmp)",
            "TMPDIR",
        ),
        (Note::PayloadNotStreaming, NoteLevel::Warning, "--streaming", "not be streamed"),
        (
            Note::ImitatedUpTo { benchmark: "vllm", texts: 4 },
            NoteLevel::Warning,
            "the first 4 texts",
            "the others are of our own drawing",
        ),
        (
            Note::SeedFolded { seed: 1 << 32, folded: 1 },
            NoteLevel::Warning,
            "--random-seed 4294967296",
            "those of seed 1",
        ),
        (
            Note::SplitsDropped { dropped: vec!["test".into(), "validation".into()] },
            NoteLevel::Info,
            "train is read",
            "left out: test, validation",
        ),
        (
            Note::FilesSkipped { names: (0..10).map(|number| format!("{number}.txt")).collect() },
            NoteLevel::Info,
            "skipped",
            "7.txt and 2 more",
        ),
    ];
    assert_said(cases);
}

#[test]
fn what_is_said_of_times_names_the_place_and_what_follows() {
    assert_said([
        (
            Note::Undated { rounds: 3, first: "t.jsonl:7".into() },
            NoteLevel::Warning,
            "3 round(s)",
            "left out (the first at t.jsonl:7)",
        ),
        (
            Note::TimesGoBack { requests: 2, first: "t.json: requests[3]".into() },
            NoteLevel::Warning,
            "2 request(s)",
            "(the first: t.json: requests[3])",
        ),
        (
            Note::EventsWithoutTime { events: 2, first: "t.jsonl:7".into() },
            NoteLevel::Warning,
            "2 event(s)",
            "passed over (the first at t.jsonl:7)",
        ),
        (
            Note::FirstWithoutTime { at: "t.jsonl:1".into(), field: "timestamp" },
            NoteLevel::Warning,
            "t.jsonl:1: field `timestamp`",
            "sent without their recorded schedule",
        ),
    ]);
}

/// Level, count and consequence of notes.
fn assert_said<'t>(cases: impl IntoIterator<Item = (Note, NoteLevel, &'t str, &'t str)>) {
    for (note, level, count, consequence) in cases {
        let text = note.to_string();
        assert_eq!(note.level(), level);
        assert!(text.contains(count) && text.contains(consequence) && !text.ends_with('.'), "{text}");
    }
}
