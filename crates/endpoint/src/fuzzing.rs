//! Entry points for a fuzzer, each a plain function of bytes that panics on a broken promise. The test suite runs
//! them over the corpus in `tests/corpus` and over mutations of it; a libFuzzer target is one line each:
//! `fuzz_target!(|data: &[u8]| aiperf_endpoint::fuzzing::sse(data));`

use aiperf_clock::Mono;
use aiperf_config::EndpointKind;
use aiperf_types::{Answer, Body, RequestError};
use serde_json::value::RawValue;

use crate::json::Scanner;
use crate::{BodyDecoder, ReadPlan, Reader, Reading};

/// One of those that rank stands for all: they are read alike.
const KINDS: [EndpointKind; 4] =
    [EndpointKind::Chat, EndpointKind::Completions, EndpointKind::Embeddings, EndpointKind::HfTeiRankings];

fn read<'a>(kind: EndpointKind, content_type: &str, reads: impl IntoIterator<Item = &'a [u8]>) -> Reading {
    let plan = ReadPlan {
        keep_raw: true,
        keep_transcript: true,
        keep_history: true,
        ..ReadPlan::new(kind, content_type == "text/event-stream")
    };
    let mut reader = Reader::new(&plan, content_type);
    for read in reads {
        reader.push(read, Mono(1));
    }
    reader.finish(Mono(2))
}

/// All of a reading that may not depend on how the bytes were cut.
fn essence(reading: &Reading) -> (Option<RequestError>, String) {
    let Answer { coalesced_events: _, .. } = &reading.answer;
    let answer = Answer { coalesced_events: 0, ..reading.answer.clone() };
    (reading.error.clone(), format!("{answer:?} {:?}", reading.reply.as_ref().map(crate::Reply::message)))
}

/// A stream is read the same whole, byte by byte, and cut in two at a place that the data choose.
///
/// # Panics
/// When it is not.
pub fn sse(data: &[u8]) {
    for kind in KINDS {
        let whole = read(kind, "text/event-stream", [data]);
        let bytes = read(kind, "text/event-stream", data.chunks(1));
        assert_eq!(essence(&whole), essence(&bytes));
        let cut =
            data.iter().fold(data.len(), |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)))
                % (data.len() + 1);
        let halves = read(kind, "text/event-stream", [&data[..cut], &data[cut..]]);
        assert_eq!(essence(&whole), essence(&halves));
    }
}

/// The scanner takes for JSON what `serde_json` takes for JSON.
///
/// # Panics
/// When it does not.
pub fn json(data: &[u8]) {
    let mut scanner = Scanner::new(data);
    let ours = scanner.skip().and_then(|()| scanner.end());
    let nesting = data.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    if std::str::from_utf8(data).is_ok() && nesting < 500 {
        let theirs = serde_json::from_slice::<&RawValue>(data);
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?}: {ours:?}, {theirs:?}", String::from_utf8_lossy(data));
    }
}

/// Chunks (here parted by `0xff`) that follow one another in one stream are read as each would be alone.
///
/// # Panics
/// When they are not.
pub fn chunks(data: &[u8]) {
    for kind in [EndpointKind::Chat, EndpointKind::Completions] {
        let events: Vec<Vec<u8>> = data
            .split(|byte| *byte == 0xff)
            .filter(|chunk| !chunk.iter().any(|byte| matches!(byte, b'\n' | b'\r')))
            .map(|chunk| [b"data: ", chunk, b"\n\n"].concat())
            .collect();
        let alone = |event: &Vec<u8>| read(kind, "text/event-stream", [event.as_slice()]);
        // What follows a failure or the end is not read, alone or not.
        let ends = |event: &Vec<u8>| {
            let reading = alone(event);
            let done = reading.answer.stream_complete == Some(true) && reading.answer.finish_reason.is_none();
            done || reading.error.is_some_and(|error| error.kind != "InvalidInferenceResultError")
        };
        let count = events.iter().position(ends).unwrap_or(events.len());
        let together = read(kind, "text/event-stream", events[..count].iter().map(Vec::as_slice)).answer;
        let alone: Vec<Answer> = events[..count].iter().map(|event| alone(event).answer).collect();
        let joined = |part: fn(&Answer) -> &str| alone.iter().map(part).collect::<String>();
        let channels = |answer: &Answer| answer.content.iter().map(|event| event.channel).collect::<Vec<_>>();
        assert_eq!(alone.iter().flat_map(channels).collect::<Vec<_>>(), channels(&together));
        // With several choices the text is ordered by choice, not by arrival.
        if !data.windows(7).any(|window| window == b"\"index\"")
            && !data.windows(3).any(|window| window == b"},{")
        {
            assert_eq!(joined(|answer| &answer.text), together.text);
        }
        assert_eq!(joined(|answer| &answer.reasoning), together.reasoning);
    }
}

/// Whole bodies of every kind and authored payloads are taken without harm.
///
/// # Panics
/// When a body depends on how it was cut, or a payload is changed.
pub fn body(data: &[u8]) {
    for kind in KINDS {
        let whole = read(kind, "application/json", [data]);
        let bytes = read(kind, "application/json", data.chunks(1));
        assert_eq!(essence(&whole), essence(&bytes));
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let rendered = crate::format::payload(text, EndpointKind::Chat);
        assert_eq!(Body::to_bytes(&rendered.body), text);
    }
}

/// Bytes that claim to be compressed are decoded or refused.
pub fn compressed(data: &[u8]) {
    for encoding in ["gzip", "deflate"] {
        let Some(mut decoder) = BodyDecoder::new(encoding) else { continue };
        let mut out = Vec::new();
        for read in data.chunks(7) {
            if decoder.decode(read, &mut out).is_err() {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;

    fn all(data: &[u8]) {
        sse(data);
        json(data);
        chunks(data);
        body(data);
        compressed(data);
    }

    fn corpus() -> Vec<Vec<u8>> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(files.len() >= 10);
        files.into_iter().map(|file| std::fs::read(file).unwrap()).collect()
    }

    #[test]
    fn the_corpus_breaks_no_promise() {
        for data in corpus() {
            all(&data);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        #[test]
        fn mutations_of_the_corpus_break_no_promise(
            (data, changes) in (select(corpus()), prop::collection::vec((any::<usize>(), any::<u8>(), 0u8..4), 1..6)),
        ) {
            let mut data = data;
            for (at, byte, what) in changes {
                let at = at % (data.len() + 1);
                match what {
                    0 => data.insert(at, byte),
                    1 if at < data.len() => { data.remove(at); }
                    2 if at < data.len() => data[at] = byte,
                    _ => data.truncate(at.max(8)),
                }
            }
            all(&data);
        }

        #[test]
        fn anything_json_like_is_judged_as_serde_json_does(
            text in r#"([\[\]{}:,"\\ \t0-9.eE+\-]|true|false|null|\\u[0-9a-fD]{4}|"[a-z]{0,3}"|"a":){0,30}"#,
        ) {
            json(text.as_bytes());
        }

        #[test]
        fn chunks_that_are_almost_alike_are_told_apart(
            picks in prop::collection::vec((0usize..6, 0usize..8), 1..8),
        ) {
            let texts = ["a", " hello", "", "x\\ny", "\\\"", "\u{e9}", "b\",\"content\":\"c", "\\ud83d\\ude00"];
            let mut data = Vec::new();
            for (shape, text) in picks {
                let text = texts[text];
                let delta = match shape {
                    0 | 1 => format!(r#"{{"content":"{text}"}}"#),
                    2 => format!(r#"{{"reasoning_content":"{text}"}}"#),
                    3 => format!(r#"{{"content":"{text}","reasoning":""}}"#),
                    4 => format!(r#"{{"content":"{text}","tool_calls":[]}}"#),
                    _ => format!(r#"{{"content":"{text}","tool_calls":[{{"function":{{"name":"{text}"}}}}]}}"#),
                };
                if !data.is_empty() {
                    data.push(0xff);
                }
                let text_key = if shape == 1 { format!(r#","text":"{text}""#) } else { String::new() };
                data.extend_from_slice(
                    format!(r#"{{"object":"chat.completion.chunk","choices":[{{"delta":{delta}{text_key}}}]}}"#).as_bytes(),
                );
            }
            chunks(&data);
            let completions = String::from_utf8_lossy(&data).replace("chat.completion.chunk", "text_completion");
            chunks(completions.as_bytes());
        }
    }

    #[test]
    fn deep_nesting_is_refused_without_recursion() {
        for open in ["[", "{\"a\":"] {
            let deep = open.repeat(100_000);
            all(deep.as_bytes());
            all(format!("data: {{\"x\":{deep}\n\n").as_bytes());
        }
    }
}
