//! Tokenizers from files: a `tokenizer.json` beside its configuration, in a folder or in a hub cache.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::fs;
use std::path::Path;

use aiperf_tokenize::{OpenOptions, Overhead, Tokenizer, TokenizerError};
use serde_json::Value;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/byte-bpe");

fn open(source: &str) -> Result<Tokenizer, TokenizerError> {
    Tokenizer::open(source, &OpenOptions { revision: None, hub_caches: Some(Vec::new()) })
}

fn expected() -> Value {
    serde_json::from_str(include_str!("data/byte-bpe/expected.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as u32).collect()
}

#[test]
fn a_folder_and_its_file_give_the_expected_tokens() {
    for source in [FOLDER.to_owned(), format!("{FOLDER}/tokenizer.json")] {
        let tokenizer = open(&source).unwrap();
        let expected = expected();
        assert_eq!(u64::from(tokenizer.vocab_size()), expected["vocab_size"].as_u64().unwrap());
        let added = tokenizer.num_special_tokens_to_add();
        assert_eq!(added, expected["num_special_tokens_to_add"].as_u64().unwrap());
        for case in expected["cases"].as_array().unwrap() {
            let text = case["text"].as_str().unwrap();
            let mut tokens = Vec::new();
            tokenizer.encode(text, &mut tokens);
            assert_eq!(tokens, numbers(&case["ids_no_special"]), "{text:?}");
            assert_eq!(tokenizer.count(text) + added, case["n_with_special"].as_u64().unwrap(), "{text:?}");
            assert_eq!(tokenizer.decode(&tokens), case["decoded"].as_str().unwrap());
        }
        assert_eq!(tokenizer.block_separator(), Some(0));
        assert_eq!((tokenizer.body_tokens(100), tokenizer.body_tokens(1)), (99, 1));
        assert_eq!((tokenizer.name(), tokenizer.revision()), (source.as_str(), None));
    }
}

#[test]
fn the_chat_template_gives_the_expected_text_tokens_and_cost() {
    let tokenizer = open(FOLDER).unwrap();
    let chat = &expected()["chat"];
    let template = tokenizer.chat_template().unwrap();
    let text = template.render(&chat["messages"].to_string(), None, true).unwrap();
    assert_eq!(text, chat["text"].as_str().unwrap());
    let mut tokens = Vec::new();
    tokenizer.encode(&text, &mut tokens);
    assert_eq!(tokens, numbers(&chat["ids"]));
    let cost = &expected()["chat_overhead"];
    let overhead = template.overhead();
    let figure = |key: &str| cost[key].as_f64().unwrap();
    let expected = Overhead { fixed: figure("per_request_fixed"), wrap: figure("per_message_wrap") };
    assert_eq!(overhead, expected);
    assert_eq!((overhead.first_turn(), overhead.later_turn()), (11, 7));
    assert!(Tokenizer::builtin().chat_template().is_none());
}

/// A copy of the small tokenizer with another template.
fn with_template(template: &Value) -> (tempfile::TempDir, Tokenizer) {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(format!("{FOLDER}/tokenizer.json"), folder.path().join("tokenizer.json")).unwrap();
    let config =
        serde_json::json!({"chat_template": template, "bos_token": {"content": "<s>"}, "eos_token": "</s>"});
    fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).unwrap();
    let tokenizer = open(folder.path().to_str().unwrap()).unwrap();
    (folder, tokenizer)
}

#[test]
fn templates_written_for_python_render() {
    let template = "{%- set ns = namespace(system='') %}\n{%- for m in messages %}\n    {%- if m.role == 'system' %}\n\
        {%- set ns.system = m['content'] %}{% continue %}\n    {%- endif %}\n  {% generation %}{{ m.role.upper() }}: \
        {{ m.content.split('|')[-1].strip() }}{% endgeneration %}\n{{ m.get('missing', 'none') }}\n{%- endfor %}\n\
        {{- bos_token }}{{ eos_token }}{{ tools | tojson if tools else '' }}{{ ns.system }}\n\
        {%- if not messages %}{{ raise_exception('no messages') }}{% endif %}{{ strftime_now('%%') }}\n";
    let (_folder, tokenizer) = with_template(&template.into());
    let template = tokenizer.chat_template().unwrap();
    let messages = r#"[{"role":"system","content":"S"},{"role":"user","content":"a| b "}]"#;
    let text = template.render(messages, Some(r#"[{"b":1,"a":"<é>"}]"#), true).unwrap();
    assert_eq!(text, "USER: bnone<s></s>[{\"b\": 1, \"a\": \"<é>\"}]S%");
    let error = template.render("[]", None, true).unwrap_err().to_string();
    assert!(error.contains("no messages"), "{error}");
    assert!(template.render("[", None, true).unwrap_err().to_string().contains("messages"));
}

#[test]
fn the_tool_template_is_used_when_there_are_tools() {
    let list = serde_json::json!([{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools"}]);
    let (folder, tokenizer) = with_template(&list);
    let template = tokenizer.chat_template().unwrap();
    assert_eq!(template.render("[]", None, true).unwrap(), "plain");
    assert_eq!(template.render("[]", Some("[{}]"), true).unwrap(), "tools");
    // A template that does not render messages has no cost that could be known.
    assert_eq!(template.overhead(), Overhead::default());
    fs::write(folder.path().join("chat_template.jinja"), "from the file\n").unwrap();
    let tokenizer = open(folder.path().to_str().unwrap()).unwrap();
    assert_eq!(tokenizer.chat_template().unwrap().render("[]", None, true).unwrap(), "from the file");
}

#[test]
fn a_template_that_cannot_be_read_says_why() {
    let (_folder, tokenizer) = with_template(&"{% if %}".into());
    assert!(tokenizer.chat_template().is_none());
    assert!(tokenizer.chat_template_fault().unwrap().contains("default"));
    let (_folder, tokenizer) = with_template(&"{{ messages }}".into());
    assert_eq!(tokenizer.chat_template_fault(), None);
}

fn copy_to(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for name in ["tokenizer.json", "tokenizer_config.json"] {
        fs::copy(format!("{FOLDER}/{name}"), folder.join(name)).unwrap();
    }
}

#[test]
fn a_repository_in_the_hub_cache_opens_by_branch_tag_and_commit() {
    let cache = tempfile::tempdir().unwrap();
    let commit = "00112233445566778899aabbccddeeff00112233";
    let repository = cache.path().join("models--org--name");
    copy_to(&repository.join("snapshots").join(commit));
    fs::create_dir_all(repository.join("refs")).unwrap();
    fs::write(repository.join("refs/main"), commit).unwrap();
    fs::write(repository.join("refs/v1.0"), commit).unwrap();
    let open = |revision: Option<&str>| {
        let options = OpenOptions {
            revision: revision.map(str::to_owned),
            hub_caches: Some(vec![cache.path().to_owned()]),
        };
        Tokenizer::open("org/name", &options)
    };
    for revision in [None, Some("main"), Some("v1.0"), Some(commit)] {
        let tokenizer = open(revision).unwrap();
        assert_eq!((tokenizer.name(), tokenizer.revision()), ("org/name", Some(commit)));
    }
    let error = open(Some("v2.0")).unwrap_err();
    assert!(matches!(error, TokenizerError::NotCached { .. }));
}

#[test]
fn what_is_not_cached_says_where_it_was_sought_and_what_to_do() {
    let cache = tempfile::tempdir().unwrap();
    let options = OpenOptions { revision: None, hub_caches: Some(vec![cache.path().to_owned()]) };
    let text = Tokenizer::open("org/name", &options).unwrap_err().to_string();
    let place = cache.path().join("models--org--name/refs/main");
    for part in [
        place.to_str().unwrap(),
        "hf download org/name tokenizer.json",
        "give --tokenizer a PATH",
        "`builtin`",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn inference_perf_127_a_bare_name_is_no_reason_to_ask_the_hub() {
    // https://github.com/kubernetes-sigs/inference-perf/issues/127
    let text = open("llama").unwrap_err().to_string();
    assert!(text.contains("`llama`") && text.contains("builtin") && text.contains("ORG/llama"), "{text}");
}

#[test]
fn paths_that_lead_nowhere_are_no_hub_names() {
    for path in ["./nowhere", "/no/where", "a/b/c", "some/tokenizer.json"] {
        assert!(matches!(open(path), Err(TokenizerError::PathNotFound(_))), "{path}");
    }
}

#[test]
fn files_of_other_kinds_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["weights.bin", "tokenization_kimi.py"] {
        fs::write(folder.path().join(name), "x").unwrap();
    }
    let text = open(folder.path().to_str().unwrap()).unwrap_err().to_string();
    for part in
        ["tokenizer.json", "tokenizer.model", "weights.bin", "tokenization_kimi.py", "never run", "builtin"]
    {
        assert!(text.contains(part), "{text}");
    }
    let file = folder.path().join("weights.bin");
    assert!(matches!(open(file.to_str().unwrap()), Err(TokenizerError::UnsupportedFile(_))));
    fs::write(folder.path().join("tokenizer.json"), "{}").unwrap();
    let error = open(folder.path().to_str().unwrap()).unwrap_err();
    assert!(matches!(error, TokenizerError::Invalid { .. }), "{error}");
}

/// <https://github.com/vllm-project/guidellm> (troubleshooting), vllm-bench's README: repositories such as Kimi's have
/// code that is to be run. It never is, and the message names every way out.
#[test]
fn guidellm_troubleshooting_a_repository_that_brings_code_is_not_run_and_the_ways_out_are_named() {
    let cache = tempfile::tempdir().unwrap();
    let commit = "00112233445566778899aabbccddeeff00112233";
    let repository = cache.path().join("models--moonshotai--Kimi-K2");
    let snapshot = repository.join("snapshots").join(commit);
    fs::create_dir_all(&snapshot).unwrap();
    fs::create_dir_all(repository.join("refs")).unwrap();
    fs::write(repository.join("refs/main"), commit).unwrap();
    let trace = cache.path().join("was-run");
    let code = format!("open({:?}, 'w')\n", trace.display().to_string());
    for (name, text) in [
        ("tokenization_kimi.py", code.as_str()),
        (
            "tokenizer_config.json",
            r#"{"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", null]}}"#,
        ),
    ] {
        fs::write(snapshot.join(name), text).unwrap();
    }
    let options = OpenOptions { revision: None, hub_caches: Some(vec![cache.path().to_owned()]) };
    let text = Tokenizer::open("moonshotai/Kimi-K2", &options).unwrap_err().to_string();
    for part in ["tokenization_kimi.py", "never run", "compatible repository", "`builtin`"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!trace.exists());
}
