//! Flags of the group "Accuracy".

use super::{Flag, Group, Kind, Later};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new("--accuracy-benchmark", &["--accuracy-benchmark"], Group::Accuracy, Kind::Choice)
        .value("NAME")
        .choices(&[
            "mmlu",
            "mmlu-pro",
            "aime",
            "hellaswag",
            "bigbench",
            "aime24",
            "aime25",
            "math-500",
            "gsm8-k",
            "gpqa-diamond",
            "lcb-codegeneration",
        ])
        .not_yet(Later::Accuracy)
        .help("Grade answers against a benchmark"),
    Flag::new("--accuracy-tasks", &["--accuracy-tasks"], Group::Accuracy, Kind::Texts)
        .value("NAME")
        .not_yet(Later::Accuracy)
        .help("Tasks of it"),
    Flag::new("--accuracy-n-shots", &["--accuracy-n-shots"], Group::Accuracy, Kind::Count { min: 0 })
        .value("N")
        .not_yet(Later::Accuracy)
        .help("Examples in the prompt"),
    Flag::new(
        "--accuracy-enable-cot",
        &["--accuracy-enable-cot", "--accuracy-no-enable-cot"],
        Group::Accuracy,
        Kind::Switch,
    )
    .not_yet(Later::Accuracy)
    .help("Ask for a chain of thought"),
    Flag::new("--accuracy-grader", &["--accuracy-grader"], Group::Accuracy, Kind::Choice)
        .value("NAME")
        .choices(&[
            "exact-match",
            "math",
            "multiple-choice",
            "code-execution",
            "lighteval-expr",
            "lighteval-latex",
            "lighteval-gpqa",
            "lighteval-gsm8-k",
            "mmlu-pro",
        ])
        .not_yet(Later::Accuracy)
        .help("How answers are graded"),
    Flag::new("--accuracy-system-prompt", &["--accuracy-system-prompt"], Group::Accuracy, Kind::Text)
        .value("NAME")
        .not_yet(Later::Accuracy)
        .help("System prompt of it"),
    Flag::new("--accuracy-verbose", &["--accuracy-verbose"], Group::Accuracy, Kind::Switch)
        .default("False")
        .not_yet(Later::Accuracy)
        .help("Show each grade"),
];
