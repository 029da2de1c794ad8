//! The public data sets among them.

use aiperf_dataset::formats;
use aiperf_dataset::public::{Place, PublicSet, Setting, find, sets};
use serde_json::{Value, json};

use super::{columns, unknown};
use crate::exit::ExitStatus;
use crate::print;

/// Where a set lies.
fn source(set: &PublicSet) -> String {
    match set.place {
        Place::Hub { repo, .. } => format!("hf://datasets/{repo}"),
        Place::HubFile { repo, path } => format!("hf://datasets/{repo}/{path}"),
        Place::GitHub { repo, path, .. } => format!("https://github.com/{repo}, {path}"),
        Place::Named => "the repository of --hf-weka-dataset".to_owned(),
    }
}

fn facts(set: &PublicSet) -> Value {
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "name": set.name,
        "about": set.about,
        "source": source(set),
        "revision": set.revision(),
        "split": known(set.split),
        "subset": set.subset,
        "record": set.record,
        "streamed": set.streamed,
        "gated": set.gated,
        "licence": set.licence,
        "filters": set.filters.is_some(),
        "fixed_schedule": set.follows(Setting::Schedule),
    })
}

pub(super) fn all_facts() -> Vec<Value> {
    sets().iter().map(facts).collect()
}

/// A line for each.
pub(super) fn list() -> String {
    let rows: Vec<[String; 2]> = std::iter::once(["public data set".to_owned(), "what it is".to_owned()])
        .chain(sets().iter().map(|set| [set.name.to_owned(), set.about.to_owned()]))
        .collect();
    format!("\n{}", columns(&rows))
}

/// What is said of one.
pub(crate) fn lines(set: &PublicSet) -> Vec<[String; 2]> {
    let yes = |answer: bool| if answer { "yes" } else { "no" }.to_owned();
    let mut rows = vec![
        ["name".to_owned(), set.name.to_owned()],
        ["what it is".to_owned(), set.about.to_owned()],
        ["source".to_owned(), source(set)],
        [
            "revision".to_owned(),
            set.revision().unwrap_or("the newest of main, recorded in the results").to_owned(),
        ],
    ];
    if !set.split.is_empty() {
        rows.push(["split".to_owned(), set.split.to_owned()]);
    }
    if let Some(subset) = set.subset {
        rows.push(["subset".to_owned(), subset.to_owned()]);
    }
    rows.push(["read of a row".to_owned(), set.record.to_owned()]);
    rows.push(["streamed".to_owned(), yes(set.streamed)]);
    if set.gated {
        rows.push(["gated".to_owned(), "yes: its terms must be accepted on the Hub".to_owned()]);
    }
    if let Some(licence) = set.licence {
        rows.push(["licence".to_owned(), licence.to_owned()]);
    }
    rows.push(["--fixed-schedule".to_owned(), yes(set.follows(Setting::Schedule))]);
    rows
}

/// Says all about one, or that there is none.
pub(super) fn details(asked: &str, plain: &str, as_json: bool) -> ExitStatus {
    let Some(set) = find(asked) else {
        let names =
            formats().iter().map(aiperf_dataset::Format::name).chain(sets().iter().map(|set| set.name));
        let unknown = unknown("data set format or public data set", asked, plain, names);
        print::err(&format!("error: {unknown}\n"));
        return ExitStatus::Usage;
    };
    if as_json {
        print::json(&facts(set), true);
    } else {
        print::out(&columns(&lines(set)));
    }
    ExitStatus::Success
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_listed_with_where_it_lies() {
        let text = list();
        for set in sets() {
            let listed = text.lines().any(|line| line.split(' ').next() == Some(set.name));
            assert!(listed, "{}", set.name);
        }
        let facts = facts(find("spec_al_gsm8k").unwrap());
        assert_eq!(facts["source"], "hf://datasets/openai/gsm8k");
        assert_eq!(
            (&facts["split"], &facts["subset"], &facts["licence"]),
            (&json!("test"), &json!("main"), &json!("MIT"))
        );
        assert!(facts["revision"].is_null() && facts["streamed"] == false);
    }
}
