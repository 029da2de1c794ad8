//! Every public data set, one row each.

use super::chats::{self, Columns};
use super::instruction::{self, Prompt};
use super::questions::{self, Asked};
use super::{Converter, Fault, Job, asr, exgentic, mmvu, sharegpt};

/// Makes the converter of a set.
pub type Make = for<'a> fn(Job<'a>) -> Result<Box<dyn Converter + 'a>, Fault>;

/// Says what is wrong with keys and values of `--dataset-filter`, and what there is.
pub type CheckFilters = fn(&[(String, String)]) -> Result<(), String>;

/// Where a set lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The shards of a split in a repository of the Hub.
    Hub {
        /// `owner/name`.
        repo: &'static str,
        /// The commit that is always read; otherwise the newest of `main`.
        revision: Option<&'static str>,
    },
    /// One file of a repository of the Hub.
    HubFile {
        /// `owner/name`.
        repo: &'static str,
        /// The file.
        path: &'static str,
    },
    /// One file of a repository of GitHub at a commit.
    GitHub {
        /// `owner/name`.
        repo: &'static str,
        /// The commit.
        commit: &'static str,
        /// The file.
        path: &'static str,
    },
    /// A repository that `--hf-weka-dataset` names.
    Named,
}

/// What the rows of a set become.
#[derive(Clone, Copy, Debug)]
pub enum Reading {
    /// Conversations, by a converter.
    Rows(Make),
    /// Whole traces of agents, each row one, by the code that reads such files.
    Traces,
}

/// Which settings of a run a set can follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `--hf-subset`.
    Subset,
    /// `--fixed-schedule`: it has times.
    Schedule,
    /// Tokens are counted while it is read.
    Tokens,
    /// It is read only with a bound, given by one of three flags.
    NeedsBound,
    /// Its requests are lists of messages, which few endpoints take.
    Messages,
    /// Its requests carry images, audio or video, which few endpoints take.
    Media,
    /// `--max-context-length` warns of requests that are longer.
    ContextLimit,
}

/// A public data set.
#[derive(Clone, Copy, Debug)]
pub struct PublicSet {
    /// The name on the command line.
    pub name: &'static str,
    /// Where it lies.
    pub place: Place,
    /// The split that is read.
    pub split: &'static str,
    /// The subset that is read, where there are several.
    pub subset: Option<&'static str>,
    /// What is read of a row, in a few words.
    pub record: &'static str,
    /// Shards are read as far as they are needed, not fetched whole.
    pub streamed: bool,
    /// Its terms must be accepted first.
    pub gated: bool,
    /// Its licence, where it is known.
    pub licence: Option<&'static str>,
    /// What it is, in one line.
    pub about: &'static str,
    /// The settings it follows.
    pub settings: &'static [Setting],
    /// Checks `--dataset-filter`, where the set can be filtered.
    pub filters: Option<CheckFilters>,
    /// What its rows become.
    pub reading: Reading,
}

impl PublicSet {
    /// A set of the Hub with nothing special: the train split, not streamed, whole traces.
    const fn new(name: &'static str, repo: &'static str, about: &'static str) -> PublicSet {
        PublicSet {
            name,
            place: Place::Hub { repo, revision: None },
            split: "train",
            subset: None,
            record: "",
            streamed: false,
            gated: false,
            licence: None,
            about,
            settings: &[Setting::Subset],
            filters: None,
            reading: Reading::Traces,
        }
    }

    /// A set of whole traces.
    const fn traces(name: &'static str, repo: &'static str, about: &'static str) -> PublicSet {
        PublicSet {
            record: "whole trace",
            settings: &[Setting::Subset, Setting::Schedule, Setting::Messages],
            ..PublicSet::new(name, repo, about)
        }
    }

    /// A set whose requests carry media.
    const fn media(name: &'static str, repo: &'static str, about: &'static str) -> PublicSet {
        PublicSet { settings: &[Setting::Subset, Setting::Media], ..PublicSet::new(name, repo, about) }
    }

    /// Whether it follows `setting`.
    pub fn follows(&self, setting: Setting) -> bool {
        self.settings.contains(&setting)
    }

    /// The repository on the Hub, where it has one.
    pub const fn repo(&self) -> Option<&'static str> {
        match self.place {
            Place::Hub { repo, .. } | Place::HubFile { repo, .. } => Some(repo),
            Place::GitHub { .. } | Place::Named => None,
        }
    }

    /// The commit that is always read, where it is fixed.
    pub const fn revision(&self) -> Option<&'static str> {
        match self.place {
            Place::Hub { revision, .. } => revision,
            Place::GitHub { commit, .. } => Some(commit),
            _ => None,
        }
    }
}

/// The prompt of Blazedit, as other tools write it.
const BLAZEDIT: &str = "Given a code file, please apply the change requests and generate the new file.\n\nOriginal \
                        file:\n```python\n{code}\n```\n\nChange request:\n{change_request}\n\nPlease generate the new \
                        code file in the \"New file\" section below.";

macro_rules! prompt {
    ($column:literal) => {
        Reading::Rows(|_| Ok(instruction::make(Prompt::Column($column))))
    };
}

const EXGENTIC: &str = "Exgentic/agent-llm-traces";
const EXGENTIC_V2: &str = "Exgentic/agent-llm-traces-v2";
/// The settings of recorded sessions.
const RECORDED: &[Setting] =
    &[Setting::Schedule, Setting::NeedsBound, Setting::Messages, Setting::ContextLimit];

static SETS: [PublicSet; 42] = [
    PublicSet {
        place: Place::Hub { repo: EXGENTIC, revision: Some("70036b93a04e61b0ea2706a68b962f4f26774587") },
        record: "recorded agent session",
        streamed: true,
        licence: Some("CDLA-Permissive-2.0"),
        settings: RECORDED,
        filters: Some(|filters| exgentic::check_filters(exgentic::Version::V1, filters)),
        reading: Reading::Rows(|job| exgentic::make(exgentic::Version::V1, job)),
        ..PublicSet::new(
            "exgentic",
            EXGENTIC,
            "Recorded agent sessions, 22 pairs of harness and source model",
        )
    },
    PublicSet {
        place: Place::Hub { repo: EXGENTIC_V2, revision: Some("4b8ad4ab198438e5a170f9171c19c6a2cf7c1814") },
        record: "recorded agent session",
        streamed: true,
        settings: RECORDED,
        filters: Some(|filters| exgentic::check_filters(exgentic::Version::V2, filters)),
        reading: Reading::Rows(|job| exgentic::make(exgentic::Version::V2, job)),
        ..PublicSet::new(
            "exgentic_v2",
            EXGENTIC_V2,
            "Recorded agent sessions of six benchmarks, 23 pairs of harness and source model",
        )
    },
    PublicSet {
        place: Place::HubFile {
            repo: "anon8231489123/ShareGPT_Vicuna_unfiltered",
            path: "ShareGPT_V3_unfiltered_cleaned_split.json",
        },
        record: "pairs of conversations: questions of 4 to 1,024 tokens, answers of 4 or more, at most 2,048 together",
        settings: &[Setting::Tokens],
        reading: Reading::Rows(sharegpt::make),
        ..PublicSet::new(
            "sharegpt",
            "",
            "Conversations of people with ChatGPT, with the recorded answer lengths as limits",
        )
    },
    PublicSet {
        record: "problem",
        reading: prompt!("problem"),
        ..PublicSet::new(
            "aimo",
            "AI-MO/NuminaMath-TIR",
            "Mathematical problems with tool-integrated solutions",
        )
    },
    PublicSet {
        record: "problem",
        reading: prompt!("problem"),
        ..PublicSet::new("aimo_aime", "AI-MO/aimo-validation-aime", "90 problems of the AIME competitions")
    },
    PublicSet {
        record: "problem",
        reading: prompt!("problem"),
        ..PublicSet::new(
            "aimo_numina_cot",
            "AI-MO/NuminaMath-CoT",
            "Mathematical problems with chains of thought",
        )
    },
    PublicSet {
        record: "problem",
        reading: prompt!("problem"),
        ..PublicSet::new(
            "aimo_numina_1_5",
            "AI-MO/NuminaMath-1.5",
            "Mathematical problems of competitions, second edition",
        )
    },
    PublicSet {
        split: "val",
        record: "question + image",
        reading: Reading::Rows(|_| Ok(instruction::with_image(Prompt::Column("question"), "image"))),
        ..PublicSet::media(
            "mmstar",
            "Lin-Chen/MMStar",
            "Questions about images that cannot be answered without them",
        )
    },
    PublicSet {
        split: "validation",
        record: "question, choices + video",
        reading: Reading::Rows(|_| Ok(mmvu::make())),
        ..PublicSet::media("mmvu", "yale-nlp/MMVU", "Expert questions about videos")
    },
    PublicSet {
        record: "conversation + images",
        reading: Reading::Rows(|_| {
            Ok(chats::make(Columns { messages: "conversation", content: "content", image: "images" }))
        }),
        streamed: true,
        gated: true,
        ..PublicSet::media(
            "vision_arena",
            "lmarena-ai/VisionArena-Chat",
            "Conversations of people with vision models",
        )
    },
    PublicSet {
        subset: Some("sharegpt4o"),
        record: "conversations + image",
        reading: Reading::Rows(|_| {
            Ok(chats::make(Columns { messages: "conversations", content: "value", image: "image" }))
        }),
        streamed: true,
        ..PublicSet::media("llava_onevision", "lmms-lab/LLaVA-OneVision-Data", "Instructions about images")
    },
    PublicSet {
        place: Place::GitHub {
            repo: "hemingkx/Spec-Bench",
            commit: "fd2c1cd7d2201ef71db4c5f4e455008f017967bf",
            path: "data/spec_bench/question.jsonl",
        },
        split: "",
        record: "first of turns",
        settings: &[],
        reading: Reading::Rows(|_| Ok(questions::make("turns", Asked::First))),
        ..PublicSet::new("spec_bench", "", "Questions of six tasks for speculative decoding")
    },
    PublicSet {
        split: "test",
        subset: Some("main"),
        record: "question",
        licence: Some("MIT"),
        reading: prompt!("question"),
        ..PublicSet::new("spec_al_gsm8k", "openai/gsm8k", "1,319 word problems of school mathematics")
    },
    PublicSet {
        split: "test",
        record: "problem",
        licence: Some("MIT"),
        reading: prompt!("problem"),
        ..PublicSet::new("spec_al_math500", "HuggingFaceH4/MATH-500", "500 problems of the MATH test set")
    },
    PublicSet {
        split: "test",
        record: "prompt",
        licence: Some("MIT"),
        reading: prompt!("prompt"),
        ..PublicSet::new("spec_al_humaneval", "openai/openai_humaneval", "164 Python functions to complete")
    },
    PublicSet {
        split: "test",
        subset: Some("full"),
        record: "text",
        licence: Some("CC-BY-4.0"),
        reading: prompt!("text"),
        ..PublicSet::new("spec_al_mbpp", "google-research-datasets/mbpp", "500 short Python tasks")
    },
    PublicSet {
        record: "all of prompt",
        licence: Some("Apache-2.0"),
        reading: Reading::Rows(|_| Ok(questions::make("prompt", Asked::All))),
        ..PublicSet::new(
            "spec_al_mtbench",
            "HuggingFaceH4/mt_bench_prompts",
            "80 questions of MT-Bench with their follow-ups",
        )
    },
    PublicSet {
        record: "instruction",
        reading: prompt!("instruction"),
        ..PublicSet::new("instruct_coder", "likaixin/InstructCoder", "Instructions to edit code")
    },
    PublicSet {
        record: "code, change_request",
        reading: Reading::Rows(|_| Ok(instruction::make(Prompt::Template(BLAZEDIT)))),
        ..PublicSet::new(
            "blazedit_5k",
            "vdaita/edit_5k_char",
            "Code files of 5,000 characters with a change to make",
        )
    },
    PublicSet {
        record: "code, change_request",
        reading: Reading::Rows(|_| Ok(instruction::make(Prompt::Template(BLAZEDIT)))),
        ..PublicSet::new(
            "blazedit_10k",
            "vdaita/edit_10k_char",
            "Code files of 10,000 characters with a change to make",
        )
    },
    PublicSet {
        split: "test",
        subset: Some("clean"),
        record: "audio",
        reading: Reading::Rows(|_| Ok(asr::make("audio"))),
        streamed: true,
        ..PublicSet::media("librispeech", "openslr/librispeech_asr", "Read English audiobooks")
    },
    PublicSet {
        split: "test",
        subset: Some("en"),
        record: "audio",
        reading: Reading::Rows(|_| Ok(asr::make("audio"))),
        streamed: true,
        ..PublicSet::media("voxpopuli", "facebook/voxpopuli", "Speeches of the European Parliament")
    },
    PublicSet {
        split: "test",
        subset: Some("xs"),
        record: "audio",
        reading: Reading::Rows(|_| Ok(asr::make("audio"))),
        streamed: true,
        gated: true,
        ..PublicSet::media("gigaspeech", "speechcolab/gigaspeech", "Audiobooks, podcasts and videos")
    },
    PublicSet {
        split: "test",
        subset: Some("ihm"),
        record: "audio",
        reading: Reading::Rows(|_| Ok(asr::make("audio"))),
        streamed: true,
        ..PublicSet::media("ami", "edinburghcstr/ami", "Meetings, by the microphones of the speakers")
    },
    PublicSet {
        split: "test",
        subset: Some("test"),
        record: "audio",
        reading: Reading::Rows(|_| Ok(asr::make("audio"))),
        streamed: true,
        gated: true,
        ..PublicSet::media("spgispeech", "kensho/spgispeech", "Earnings calls")
    },
    PublicSet::traces(
        "semianalysis_cc_traces_weka",
        "semianalysisai/cc-traces-weka-no-subagents-051826",
        "98 traces of coding agents, 22.8k requests, without subagents",
    ),
    PublicSet::traces(
        "semianalysis_cc_traces_weka_no_subagents",
        "semianalysisai/cc-traces-weka-no-subagents-051826",
        "98 traces of coding agents, 22.8k requests, without subagents",
    ),
    PublicSet::traces(
        "semianalysis_cc_traces_weka_with_subagents",
        "semianalysisai/cc-traces-weka-062126",
        "The newest traces of coding agents with their subagents: those of 062126",
    ),
    PublicSet::traces(
        "semianalysis_cc_traces_weka_with_subagents_256k",
        "semianalysisai/cc-traces-weka-062126-256k",
        "The newest traces of coding agents with their subagents, up to 256k tokens: those of 062126",
    ),
    PublicSet::traces(
        "semianalysis_cc_traces_weka_with_subagents_060226",
        "semianalysisai/cc-traces-weka-with-subagents-060226",
        "225 traces of coding agents with their subagents",
    ),
    PublicSet::traces(
        "semianalysis_cc_traces_weka_with_subagents_060226_256k",
        "semianalysisai/cc-traces-weka-with-subagents-060226-256k",
        "Traces of coding agents with their subagents, up to 256k tokens",
    ),
    PublicSet::traces(
        "semianalysis_cc_traces_weka_with_subagents_060526",
        "semianalysisai/cc-traces-weka-with-subagents-060526",
        "336 traces of coding agents with their subagents",
    ),
    PublicSet::traces(
        "semianalysis_cc_traces_weka_with_subagents_060526_256k",
        "semianalysisai/cc-traces-weka-with-subagents-060526-256k",
        "Traces of coding agents with their subagents, up to 256k tokens",
    ),
    PublicSet::traces(
        "semianalysis_cc_traces_weka_with_subagents_060826",
        "semianalysisai/cc-traces-weka-with-subagents-060826",
        "391 traces of coding agents with their subagents",
    ),
    PublicSet::traces(
        "semianalysis_cc_traces_weka_with_subagents_060826_256k",
        "semianalysisai/cc-traces-weka-with-subagents-060826-256k",
        "Traces of coding agents with their subagents, up to 256k tokens",
    ),
    PublicSet::traces(
        "semianalysis_cc_traces_weka_061326",
        "semianalysisai/cc-traces-weka-061326",
        "183 traces of coding agents, 45.0k requests",
    ),
    PublicSet::traces(
        "semianalysis_cc_traces_weka_061326_256k",
        "semianalysisai/cc-traces-weka-061326-256k",
        "Traces of coding agents, up to 256k tokens",
    ),
    PublicSet::traces(
        "semianalysis_cc_traces_weka_061526",
        "semianalysisai/cc-traces-weka-061526",
        "233 traces of coding agents, 61.0k requests",
    ),
    PublicSet::traces(
        "semianalysis_cc_traces_weka_061526_256k",
        "semianalysisai/cc-traces-weka-061526-256k",
        "232 traces of coding agents up to 256k tokens, 44.2k requests",
    ),
    PublicSet::traces(
        "semianalysis_cc_traces_weka_062126",
        "semianalysisai/cc-traces-weka-062126",
        "393 traces of coding agents, 98.8k requests",
    ),
    PublicSet::traces(
        "semianalysis_cc_traces_weka_062126_256k",
        "semianalysisai/cc-traces-weka-062126-256k",
        "Traces of coding agents up to 256k tokens, 68.3k requests",
    ),
    PublicSet {
        place: Place::Named,
        ..PublicSet::traces("weka_hf", "", "Traces of coding agents from the repository of --hf-weka-dataset")
    },
];

/// Every set.
pub fn sets() -> &'static [PublicSet] {
    &SETS
}

/// The set of this name; `-` and `_` are the same, and so are letters of either case.
pub fn find(name: &str) -> Option<&'static PublicSet> {
    let plain = name.trim().to_ascii_lowercase().replace('-', "_");
    SETS.iter().find(|set| set.name == plain)
}

/// Names of all sets.
pub const NAMES: &[&str] = &{
    let mut names = [""; SETS.len()];
    let mut at = 0;
    while at < SETS.len() {
        names[at] = SETS[at].name;
        at += 1;
    }
    names
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_told_apart_and_found_however_they_are_spelt() {
        assert_eq!(NAMES.iter().collect::<BTreeSet<_>>().len(), 42);
        for set in sets() {
            assert_eq!(find(&set.name.replace('_', "-").to_uppercase()).unwrap().name, set.name);
            assert!(set.repo().is_none_or(|repo| repo.split_once('/').is_some()), "{}", set.name);
            assert!(
                !set.about.ends_with('.') && !set.about.is_empty() && !set.record.is_empty(),
                "{}",
                set.name
            );
        }
        assert!(find("gsm8k").is_none());
    }
}
