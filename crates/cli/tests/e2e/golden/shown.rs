//! The console report and the raw records against the reference's.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Case, REGISTRY};
use crate::support::{Results, keys};

/// A table of metrics: its title and the names of its rows, units included, in order.
type Table = (String, Vec<String>);

fn tables(text: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.contains("AIPerf | ") {
            tables.push((line.trim().trim_start_matches("NVIDIA ").to_owned(), Vec::new()));
            // The table of errors is the business of its case.
            inside = !line.contains("Error");
        } else if let (true, Some(cells)) = (inside, line.strip_prefix('│')) {
            let name = cells.split('│').next().unwrap_or_default().trim();
            let rows = &mut tables.last_mut().unwrap().1;
            match rows.last_mut() {
                // A unit on a line of its own belongs to the name above it.
                Some(last) if name.starts_with('(') => *last = format!("{last} {name}"),
                _ => rows.push(name.to_owned()),
            }
        } else if line.starts_with('└') {
            inside = false;
        }
    }
    tables
}

/// Headers in the registry for which `wanted` holds.
fn headers(wanted: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    let registry: Vec<Value> = serde_json::from_str(REGISTRY).unwrap();
    let headers = registry.iter().filter(|metric| wanted(metric));
    headers.map(|metric| metric["header"].as_str().unwrap().to_owned()).collect()
}

impl Case {
    pub(super) fn assert_console_has_the_rows(&self, results: &Results) {
        let of = |tags: &[&str]| headers(|metric| tags.contains(&metric["tag"].as_str().unwrap()));
        let unplaced = headers(|metric| metric["display_order"].is_null());
        let is_one_of = |row: &str, headers: &BTreeSet<String>| {
            row.rsplit_once(" (").is_some_and(|(header, _)| headers.contains(header)) || headers.contains(row)
        };
        let kept = |text: &str, without: &BTreeSet<String>| -> Vec<Table> {
            tables(text)
                .into_iter()
                .map(|(title, rows)| {
                    (title, rows.into_iter().filter(|row| !is_one_of(row, without)).collect::<Vec<_>>())
                })
                .filter(|(title, rows)| !rows.is_empty() || title.contains("Error"))
                .collect()
        };
        let name =
            self.prefix.map_or("profile_export_console.txt".to_owned(), |name| format!("{name}_console.txt"));
        let text = results.text(&name);
        let theirs = kept(self.reference.console, &of(self.left_out));
        let ours = kept(&text, &of(self.added));
        assert_eq!(
            ours.iter().map(|table| &table.0).collect::<Vec<_>>(),
            theirs.iter().map(|table| &table.0).collect::<Vec<_>>()
        );
        for ((title, ours), (_, theirs)) in ours.iter().zip(&theirs) {
            let placed = |rows: &[String]| {
                rows.iter().filter(|row| !is_one_of(row, &unplaced)).cloned().collect::<Vec<_>>()
            };
            let set = |rows: &[String]| rows.iter().cloned().collect::<BTreeSet<_>>();
            assert_eq!(placed(ours), placed(theirs), "{title}");
            assert_eq!(set(ours), set(theirs), "{title}");
            assert_eq!(ours.len(), theirs.len(), "{title}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 140));
    }

    pub(super) fn assert_raw_lines_have_the_structure(&self, results: &Results) {
        let name =
            self.prefix.map_or("profile_export_raw.jsonl".to_owned(), |name| format!("{name}_raw.jsonl"));
        let number = |line: &Value| {
            let metadata = &line["metadata"];
            (metadata["phase_index"].as_u64().unwrap(), metadata["session_num"].as_u64().unwrap())
        };
        let mut theirs: Vec<Value> =
            self.reference.raw.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut ours = results.lines(&name);
        theirs.sort_by_key(number);
        ours.sort_by_key(number);
        assert_eq!(ours.len(), theirs.len());
        for (theirs, ours) in theirs.iter().zip(&ours) {
            assert_eq!(ours["metadata"]["x_request_id"], ours["request_headers"]["X-Request-ID"]);
            assert_eq!(ours["request_headers"]["X-Session-Affinity"], "<redacted>");
            if theirs.get("error").is_none() && ours.get("error").is_none() {
                assert_raw_line_is_alike(theirs, ours);
            }
        }
    }
}

fn assert_raw_line_is_alike(theirs: &Value, ours: &Value) {
    let responses = |line: &Value| line["responses"].as_array().cloned().unwrap_or_default();
    let kinds = |line: &Value| -> BTreeSet<String> {
        responses(line).iter().map(|response| keys(response).join(",")).collect()
    };
    let packets = |line: &Value| -> Vec<String> {
        responses(line)
            .iter()
            .flat_map(|response| response["packets"].as_array().cloned().unwrap_or_default())
            .map(|packet| packet["name"].to_string())
            .collect()
    };
    assert_eq!(keys(ours), keys(theirs));
    assert_eq!(keys(&ours["payload"]), keys(&theirs["payload"]));
    assert_eq!(keys(&ours["request_headers"]), keys(&theirs["request_headers"]));
    assert_eq!(kinds(ours), kinds(theirs));
    assert_eq!(packets(ours), packets(theirs));
}
