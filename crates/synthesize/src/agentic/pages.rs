//! Pages to look at, each whole in itself: nothing is fetched.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{CacheStructure, Config, Outcome};
use crate::Column;

const STYLE: &str = include_str!("../../assets/style.css");
const REPORT: &str = include_str!("../../assets/report.html");
const EXPLORER: &str = include_str!("../../assets/cache_explorer.html");
const SIMULATION: &str = include_str!("../../assets/simulation.html");

/// Classes of a histogram.
const CLASSES: usize = 40;

fn page(template: &str, data: &Value) -> String {
    // `<` cannot end the script, and the two separators are no line ends in JSON but were in older JavaScript.
    let data = data
        .to_string()
        .replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    template.replacen("/*STYLE*/", STYLE, 1).replacen("/*DATA*/", &data, 1)
}

fn about(label: &str, outcome: &Outcome) -> String {
    format!("{label}: {} sessions, {} requests", outcome.sessions(), outcome.rows())
}

/// `report.html`: histograms of everything, and the course of the first sessions.
pub fn report(label: &str, outcome: &mut Outcome) -> String {
    let about = about(label, outcome);
    let mut ratios = outcome.first_hit_ratio.clone();
    ratios.append(&outcome.later_hit_ratio);
    let mut histograms = Vec::new();
    let mut add = |name: &str, unit: &str, column: &mut Column| {
        let histogram = column.histogram(CLASSES);
        let summary = column.summary().map(|of| {
            json!({
                "mean": of.mean, "std": of.std, "median": of.median, "p05": of.p05, "p25": of.p25, "p75": of.p75,
                "p95": of.p95, "p99": of.p99,
            })
        });
        histograms.push(json!({
            "name": name, "unit": unit, "summary": summary, "logarithmic": histogram.logarithmic,
            "edges": histogram.edges, "counts": histogram.counts,
        }));
    };
    add("Input length", "tokens per request", &mut outcome.context);
    add("Output length", "tokens per request", &mut outcome.output);
    add("Initial context", "tokens", &mut outcome.initial);
    add("New tokens", "tokens per later turn", &mut outcome.new_tokens);
    add("Delay", "ms", &mut outcome.delay);
    add("Turns", "per session", &mut outcome.turns);
    add("Blocks", "per request", &mut outcome.blocks);
    add("Estimated latency", "s per request", &mut outcome.latency);
    add("Estimated duration", "s per session", &mut outcome.duration);
    add("Cached prefix", "tokens per request", &mut outcome.prefix);
    add("Cached share of the input", "", &mut outcome.prefix_ratio);
    add("Hit rate", "share of blocks per request", &mut ratios);
    let courses: Vec<Value> = outcome
        .courses
        .iter()
        .map(|course| json!({"contexts": course.contexts, "hit_ratios": course.hit_ratios}))
        .collect();
    page(REPORT, &json!({"about": about, "histograms": histograms, "courses": courses}))
}

/// `cache_explorer.html`: the first sessions in blocks.
pub fn cache_explorer(structure: &CacheStructure) -> String {
    page(EXPLORER, &structure.to_json())
}

/// `simulation.html`: the sessions against a cache of limited size, in the browser.
pub fn simulation(label: &str, config: &Config, outcome: &Outcome) -> String {
    let mut about = about(label, outcome);
    if (outcome.simulated.len() as u64) < outcome.sessions() {
        // Writing to a string cannot fail.
        let _ = write!(about, "; the first {} sessions are simulated", outcome.simulated.len());
    }
    let sessions: Vec<Value> = outcome
        .simulated
        .iter()
        .map(|session| {
            let turns = session.turns.iter().map(|turn| json!([turn.new, turn.output, turn.delay_ms]));
            [json!(session.group)].into_iter().chain(turns).collect()
        })
        .collect();
    let size = u64::from(config.block_size);
    let layers = [config.layer1_blocks() * size, config.layer1_5_blocks() * size];
    page(SIMULATION, &json!({"about": about, "layers": layers, "sessions": sessions}))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::super::Synthesis;
    use super::*;

    fn pages(label: &str) -> [String; 3] {
        let synthesis = Synthesis::new(Config::default(), 20, 42).unwrap();
        let mut written = synthesis.write(&mut io::sink(), &mut |_| {}).unwrap();
        [
            report(label, &mut written.outcome),
            cache_explorer(&written.structure),
            simulation(label, synthesis.config(), &written.outcome),
        ]
    }

    #[test]
    fn pages_fetch_nothing() {
        for page in pages("default") {
            let rest = page.replace("http://www.w3.org/2000/svg", "");
            for sign in ["http:", "https:", "//cdn", " src=", " href=", "@import", "url("] {
                assert!(!rest.contains(sign), "{sign}");
            }
            assert!(!page.contains("/*DATA*/") && !page.contains("/*STYLE*/"));
            assert_eq!(page.matches("</script>").count(), 1);
        }
    }

    #[test]
    fn data_cannot_end_the_script() {
        for page in pages("</script><script>alert(1)//") {
            assert_eq!(page.matches("</script>").count(), 1);
        }
    }
}
