//! The card of a data set on the Hub: which files are which split of which subset, by the `configs` of the YAML at the
//! top of its `README.md`. Read as far as cards go: block lists and mappings, lists in brackets, plain and quoted words.

/// One subset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subset {
    /// Its name.
    pub(crate) name: String,
    /// The one that is read when none is named.
    pub(crate) is_default: bool,
    /// The folder its patterns start from.
    pub(crate) folder: Option<String>,
    /// Split and pattern of its files; no split is `train`.
    pub(crate) files: Vec<(Option<String>, String)>,
}

/// The subsets that a card declares; none where it declares none or cannot be read.
pub(crate) fn subsets(card: &str) -> Vec<Subset> {
    let mut subsets = Vec::new();
    let lines = configs(card);
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let Some(dash) = line.item else {
            at += 1;
            continue;
        };
        // An item ends where another one begins at its depth.
        let length =
            lines[at + 1..].iter().take_while(|line| line.item != Some(dash) && line.indent > dash).count();
        subsets.push(subset(&lines[at..=at + length]));
        at += 1 + length;
    }
    subsets.retain(|subset| !subset.name.is_empty());
    subsets
}

/// A line of the block.
#[derive(Debug)]
struct Line<'a> {
    /// Where its text begins, after dashes.
    indent: usize,
    /// Where its first dash is.
    item: Option<usize>,
    text: &'a str,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Line<'a> {
        let start = line.len() - line.trim_start_matches(' ').len();
        let mut rest = &line[start..];
        let mut indent = start;
        let mut item = None;
        while rest == "-" || rest.starts_with("- ") {
            item = item.or(Some(indent));
            let after = rest[1..].trim_start_matches(' ');
            indent += rest.len() - after.len();
            rest = after;
        }
        Line { indent, item, text: rest.trim_end() }
    }

    /// A key and what stands behind it.
    fn pair(&self) -> Option<(&'a str, &'a str)> {
        let (key, value) = self.text.split_once(':')?;
        (value.is_empty() || value.starts_with(' ')).then(|| (key.trim(), value.trim()))
    }
}

/// The lines of the block `configs`.
fn configs(card: &str) -> Vec<Line<'_>> {
    let card = card.strip_prefix('\u{feff}').unwrap_or(card);
    let mut lines = card.lines().map(|line| line.trim_end_matches('\r'));
    if lines.next() != Some("---") {
        return Vec::new();
    }
    let block = lines.take_while(|line| *line != "---" && *line != "...");
    let block = block.skip_while(|line| line.trim_end() != "configs:").skip(1);
    block
        .take_while(|line| line.starts_with([' ', '-']) || line.is_empty())
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
        .map(Line::of)
        .collect()
}

fn subset(lines: &[Line<'_>]) -> Subset {
    let mut subset = Subset::default();
    let depth = lines[0].indent;
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at += 1;
        let Some((key, value)) = line.pair().filter(|_| line.indent == depth) else { continue };
        match key {
            "config_name" => subset.name = word(value),
            "default" => subset.is_default = word(value).eq_ignore_ascii_case("true"),
            "data_dir" => subset.folder = Some(word(value)),
            "data_files" => {
                let below =
                    lines[at..].iter().take_while(|line| line.item.is_some() || line.indent > depth).count();
                subset.files = if value.is_empty() {
                    files(&lines[at..at + below])
                } else {
                    words(value).into_iter().map(|pattern| (None, pattern)).collect()
                };
                at += below;
            }
            _ => {}
        }
    }
    subset
}

/// Of a list: patterns, or mappings of `split` and `path`, the latter one or a list; or one mapping from split to path.
fn files(lines: &[Line<'_>]) -> Vec<(Option<String>, String)> {
    let mut found = Vec::new();
    let mut split: Option<String> = None;
    let mut paths: Vec<String> = Vec::new();
    let mut close = |split: &mut Option<String>, paths: &mut Vec<String>| {
        let split = split.take();
        found.extend(paths.drain(..).map(|path| (split.clone(), path)));
    };
    let outer = lines.iter().filter_map(|line| line.item).min();
    for line in lines {
        if line.item.is_some() && line.item == outer {
            close(&mut split, &mut paths);
        }
        match line.pair() {
            Some(("split", value)) => split = Some(word(value)),
            Some(("path", value)) => paths.extend(words(value)),
            Some((key, value)) if outer.is_none() => {
                close(&mut split, &mut paths);
                split = Some(word(key));
                paths.extend(words(value));
            }
            Some(_) => {}
            None => paths.push(word(line.text)),
        }
    }
    close(&mut split, &mut paths);
    found
}

/// A word without its quotes.
fn word(text: &str) -> String {
    let text = text.split(" #").next().unwrap_or(text).trim();
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)) {
            return inner.to_owned();
        }
    }
    text.to_owned()
}

/// One word, or those of a list in brackets.
fn words(text: &str) -> Vec<String> {
    match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        Some(inner) => inner.split(',').map(word).filter(|word| !word.is_empty()).collect(),
        None if text.is_empty() => Vec::new(),
        None => vec![word(text)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_card_are_read_in_every_form_that_cards_use() {
        let card = "---\nlicense: mit\ndataset_info:\n- config_name: main\n  features:\n  - name: q\n    dtype: string\n\
                    configs:\n- config_name: main\n  data_files:\n  - split: train\n    path: main/train-*\n  - split: \"test\"\n    path:\n    \
                    - main/test-*\n    - 'main/more-*'\n- config_name: socratic\n  default: true\n  data_dir: soc\n  data_files: [a.jsonl, \"b.jsonl\"]\n\
                    - config_name: plain\n  data_files: x.json # all\n- config_name: listed\n  data_files:\n  - one.parquet\n  - two.parquet\n\
                    - config_name: mapped\n  data_files:\n    validation: v/*.parquet\ntags:\n- math\n---\n# Card\n";
        let files = |split: Option<&str>, path: &str| (split.map(str::to_owned), path.to_owned());
        let subsets = subsets(card);
        let names: Vec<&str> = subsets.iter().map(|subset| subset.name.as_str()).collect();
        assert_eq!(names, ["main", "socratic", "plain", "listed", "mapped"]);
        assert_eq!(
            subsets[0].files,
            [
                files(Some("train"), "main/train-*"),
                files(Some("test"), "main/test-*"),
                files(Some("test"), "main/more-*")
            ]
        );
        assert!(subsets[1].is_default && !subsets[0].is_default);
        assert_eq!(subsets[1].folder.as_deref(), Some("soc"));
        assert_eq!(subsets[1].files, [files(None, "a.jsonl"), files(None, "b.jsonl")]);
        assert_eq!(subsets[2].files, [files(None, "x.json")]);
        assert_eq!(subsets[3].files, [files(None, "one.parquet"), files(None, "two.parquet")]);
        assert_eq!(subsets[4].files, [files(Some("validation"), "v/*.parquet")]);
    }

    #[test]
    fn a_card_without_subsets_declares_none() {
        for card in [
            "",
            "# Title\n",
            "---\nlicense: mit\n---\n",
            "---\nconfigs:\n",
            "---\nconfigs:\n- x\n  - y: [\n---",
        ] {
            assert!(subsets(card).is_empty(), "{card}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_card_is_too_odd(card in "(---\n)?(configs:\n)?([ -]{0,4}[a-z_]{0,9}:?[ \\[\\]\"',*#]{0,3}[a-z]{0,3}\n){0,12}") {
            subsets(&card);
        }
    }
}
