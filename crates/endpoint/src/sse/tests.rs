//! One answer for every cut of the bytes and every line ending.

use super::*;
use proptest::prelude::*;

/// What a splitter told, with the number of the read that completed it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    read: usize,
    name: String,
    data: Option<String>,
    comment: String,
    fields: Vec<(String, String)>,
}

#[derive(Default)]
struct Record {
    read: usize,
    fields: Vec<(String, String)>,
    told: Vec<Told>,
    overflows: usize,
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Sink for Record {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.fields.push((lossy(name), lossy(value)));
    }

    fn field_continued(&mut self, value: &[u8]) {
        let (_, last) = self.fields.last_mut().unwrap();
        last.push('\n');
        last.push_str(&lossy(value));
    }

    fn event(&mut self, event: Event<'_>) {
        self.told.push(Told {
            read: self.read,
            name: lossy(event.name),
            data: event.data.map(lossy),
            comment: lossy(event.comment),
            fields: std::mem::take(&mut self.fields),
        });
    }

    fn overflow(&mut self) {
        self.overflows += 1;
    }
}

fn split<'a>(reads: impl IntoIterator<Item = &'a [u8]>) -> Vec<Told> {
    let mut splitter = Splitter::default();
    let mut record = Record::default();
    for read in reads {
        splitter.push(read, &mut record);
        record.read += 1;
    }
    // What the end of the stream completes came with the last read.
    record.read = record.read.saturating_sub(1);
    splitter.finish(&mut record);
    record.told
}

fn data(text: &str) -> Vec<Option<String>> {
    split([text.as_bytes()]).into_iter().map(|told| told.data).collect()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

/// Cuts `bytes` at each of `cuts` and compares with one byte per read.
fn same_for_cuts(bytes: &[u8], cuts: &[usize]) -> Result<(), TestCaseError> {
    let single = split(bytes.chunks(1));
    let mut starts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).chain([0]).collect();
    starts.sort_unstable();
    starts.dedup();
    starts.retain(|start| *start < bytes.len());
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    let reads: Vec<&[u8]> = starts.iter().zip(ends).map(|(start, end)| &bytes[*start..end]).collect();
    let mut told = split(reads);
    // The read that completed an event must be the one that holds the byte that completed it.
    let read_of = |byte: usize| starts.iter().rposition(|start| *start <= byte).unwrap_or(0);
    prop_assert_eq!(
        told.iter().map(|told| told.read).collect::<Vec<_>>(),
        single.iter().map(|told| read_of(told.read)).collect::<Vec<_>>()
    );
    for (one, other) in told.iter_mut().zip(&single) {
        one.read = other.read;
    }
    prop_assert_eq!(told, single);
    Ok(())
}

#[test]
fn every_line_ending_ends_a_line() {
    for end in ["\n", "\r", "\r\n"] {
        let text =
            format!("data: one{end}{end}: note{end}data: two{end}data:three{end}{end}data: four{end}{end}");
        assert_eq!(data(&text), some(&["one", "two\nthree", "four"]), "{end:?}");
    }
    assert_eq!(
        data("data: one\r\rdata: two\n\r\ndata: three\r\n\rdata: four\n\n"),
        some(&["one", "two", "three", "four"])
    );
}

#[test]
fn a_byte_order_mark_is_dropped_once() {
    assert_eq!(data("\u{feff}data: one\n\ndata: two\n\n"), some(&["one", "two"]));
    assert_eq!(data("\u{feff}\u{feff}data: one\n\n"), [None]);
    assert_eq!(split(["data: x\n\n".as_bytes()]).len(), 1);
    assert_eq!(split([&b"\xef\xbb"[..], &b"data: x\n\n"[..]])[0].data, None);
}

#[test]
fn only_cr_and_lf_end_lines() {
    let text = "data: a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\ndata: g\n\n";
    assert_eq!(data(text), some(&["a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\ng"]));
}

#[test]
fn lines_of_data_join_and_one_space_is_dropped() {
    assert_eq!(data("data:a\ndata:  b\ndata:\ndata\n\n"), some(&["a\n b\n\n"]));
    assert_eq!(data("data\n\n"), some(&[""]));
    assert_eq!(data("data: a\n\n\n\n\ndata: b\n\n"), some(&["a", "b"]));
}

#[test]
fn fields_have_exact_names_and_unknown_ones_are_ignored() {
    // Names are compared as they are: `Data` is not `data`.
    let told =
        split([&b"event: first\nevent: message\nid: 7\nretry: 10\nData: x\nfoo: bar\ndata: y\n\n"[..]]);
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].name.as_str(), told[0].data.as_deref()), ("message", Some("y")));
    let names: Vec<&str> = told[0].fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["event", "event", "id", "retry", "Data", "foo", "data"]);
}

// https://github.com/triton-inference-server/triton_distributed/pull/264
#[test]
fn triton_distributed_264_bare_comments_are_no_data() {
    let told = split([&b": keep-alive\n\n:\n\ndata: x\n\n: bye\n\n"[..]]);
    let data: Vec<Option<&str>> = told.iter().map(|told| told.data.as_deref()).collect();
    assert_eq!(data, [None, None, Some("x"), None]);
    assert_eq!(told[0].comment, "keep-alive");
    assert_eq!(told[0].fields, [("comment".to_owned(), "keep-alive".to_owned())]);
}

#[test]
fn a_name_and_a_comment_belong_to_one_event_only() {
    let told = split([&b"event: error\n: first\n: second\ndata: x\n\ndata: y\n\n"[..]]);
    assert_eq!((told[0].name.as_str(), told[0].comment.as_str()), ("error", "first"));
    assert_eq!((told[1].name.as_str(), told[1].comment.as_str()), ("", ""));
}

#[test]
fn an_event_without_its_blank_line_is_delivered_at_the_end() {
    assert_eq!(data("data: one\n\ndata: two"), some(&["one", "two"]));
    assert_eq!(data("data: one\ndata: two\n"), some(&["one\ntwo"]));
    assert_eq!(data("data: one\n\n"), some(&["one"]));
    assert_eq!(data(""), Vec::<Option<String>>::new());
}

#[test]
fn a_raw_line_break_inside_an_object_is_mended() {
    assert_eq!(data("data: {\"a\":\"b\nc\"}\n\n"), some(&["{\"a\":\"b\\nc\"}"]));
    assert_eq!(data("data: {\"a\":\"b\n: c\nevent: d\n\n"), some(&["{\"a\":\"b\\n: c\\nevent: d"]));
    assert_eq!(data("data: {\"a\":\n\"b\":1}\n\n"), some(&["{\"a\":\n\"b\":1}"]));
    assert_eq!(
        data("data: {\"a\":\n  1,\n  \"b\\\\\":\"x\\\"\ny\"\n}\n\n"),
        some(&["{\"a\":\n  1,\n  \"b\\\\\":\"x\\\"\\ny\"\n}"])
    );
    // Between lines of data a comment stays a comment, and a closed object takes nothing more.
    assert_eq!(data("data: {\"a\":\n: note\ndata: 1}\n\n"), some(&["{\"a\":\n1}"]));
    assert_eq!(data("data: {\"a\":1}\nx: y\n\n"), some(&["{\"a\":1}"]));
    assert_eq!(data("data: [1,\n2]\n\n"), some(&["[1,"]));
}

#[test]
fn an_event_over_16_mib_ends_the_stream() {
    let line = vec![b'x'; MAX_EVENT - 6];
    let run = |reads: &[&[u8]]| {
        let mut splitter = Splitter::default();
        let mut record = Record::default();
        for read in reads {
            splitter.push(read, &mut record);
        }
        splitter.finish(&mut record);
        (record.told.len(), record.overflows)
    };
    assert_eq!(run(&[b"data: ", &line, b"\n\n"]), (1, 0));
    assert_eq!(run(&[b"data: ", &line, b"xxxxxxx\n\ndata: y\n\n"]), (0, 1));
    assert_eq!(run(&[b"data: ", &line, b"\ndata: xxxxxxx\n\ndata: y\n\n"]), (0, 1));
}

/// Pieces that streams are made of, the nasty ones often.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"data: ".to_vec()),
        2 => Just(b"\n".to_vec()),
        2 => Just(b"\r".to_vec()),
        2 => Just(b"\r\n".to_vec()),
        2 => Just(b"\n\n".to_vec()),
        1 => Just(b"data:".to_vec()),
        1 => Just(b"data".to_vec()),
        1 => Just(b"event: error".to_vec()),
        1 => Just(b": ".to_vec()),
        1 => Just(b"\xef\xbb\xbf".to_vec()),
        1 => Just("\u{2028}é\u{1F600}".as_bytes().to_vec()),
        3 => Just(br#"{"a":"b"}"#.to_vec()),
        2 => Just(br#"{"a":"#.to_vec()),
        1 => Just(b"\"".to_vec()),
        1 => Just(b"\\".to_vec()),
        1 => Just(b"}".to_vec()),
        1 => Just(b"[DONE]".to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn the_same_events_for_every_cut(bytes in pieces(), cuts in prop::collection::vec(any::<usize>(), 0..12)) {
        same_for_cuts(&bytes, &cuts)?;
    }

    // Parity backlog of the reference, P1.23: line ends, repeated `data:` lines and fields were read in several ways.
    #[test]
    fn aiperf_parity_backlog_p1_23_the_same_events_for_every_line_ending(
        lines in prop::collection::vec(prop_oneof![Just(""), Just("data: x"), Just("data:"), Just(": c"), Just("event: e"), Just("data: {\"a\":"), Just("1}")], 0..20),
        ends in prop::collection::vec(prop_oneof![Just("\n"), Just("\r\n"), Just("\r")], 20),
    ) {
        let join = |ends: &mut dyn Iterator<Item = &'static str>| -> String {
            lines.iter().map(|line| (*line).to_owned() + ends.next().unwrap()).collect()
        };
        // A lone CR before an empty line that ends in LF would be one CRLF.
        let mut ends = ends;
        for index in 1..lines.len() {
            if lines[index].is_empty() && ends[index - 1] == "\r" {
                ends[index] = "\r";
            }
        }
        let told = |text: &str| split([text.as_bytes()]);
        prop_assert_eq!(told(&join(&mut ends.iter().copied())), told(&join(&mut std::iter::repeat("\n"))));
    }
}

#[test]
fn every_single_cut_of_a_hard_stream() {
    let text = "\u{feff}: hi\r\n\r\ndata: {\"t\":\"é\u{1F600}\u{2028}\"}\r\n\r\nevent: x\rdata: a\rdata: b\r\rdata: {\"u\":\"v\nw\"}\n\ndata: [DONE]";
    for first in 0..=text.len() {
        for second in first..=text.len() {
            same_for_cuts(text.as_bytes(), &[first, second]).unwrap();
        }
    }
}
