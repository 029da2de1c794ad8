//! Marks that keep the prefix cache of a server from answering: a run of a conversation, with everything it starts,
//! carries one that no other run has.

use std::sync::Arc;

use aiperf_config::{CacheBust, RunConfig};
use aiperf_types::{CacheBustMarker, Content, Conversation, PhaseKind, TextGroup, Turn};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Makes the marks of a run of the program and puts them where they belong.
#[derive(Debug)]
pub(crate) struct CacheBuster {
    target: CacheBust,
    export_name: Arc<str>,
    /// New for each run of the program: the same seed a second time is not to be answered from the cache either.
    benchmark_id: Box<str>,
}

impl CacheBuster {
    /// That of a run, where it is to mark anything.
    pub(crate) fn of(config: &RunConfig) -> Option<CacheBuster> {
        config.dataset.cache_bust.map(|target| CacheBuster::new(target, &config.benchmark_id))
    }

    fn new(target: CacheBust, benchmark_id: &str) -> CacheBuster {
        CacheBuster { target, export_name: target.export_name().into(), benchmark_id: benchmark_id.into() }
    }

    /// The mark of run `run`: the first 12 hex digits of SHA-256 over the id of the benchmark and the number, or, where warmup is to be kept
    /// apart, one for all of it. `None` where nothing is marked.
    pub(crate) fn marker(&self, run: u64, phase: PhaseKind) -> Option<Arc<CacheBustMarker>> {
        let what = if !self.target.is_warmup_isolation() {
            let digest = Sha256::new()
                .chain_update("aiperf.cache_bust")
                .chain_update(self.benchmark_id.as_bytes())
                .chain_update(run.to_le_bytes())
                .finalize();
            let number = digest.iter().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
            format!("rid:{number:012x}")
        } else if phase == PhaseKind::Warmup {
            "warmup".to_owned()
        } else {
            return None;
        };
        let (text, target) = (self.target.mark(&what).into(), Arc::clone(&self.export_name));
        Some(Arc::new(CacheBustMarker { text, target }))
    }

    /// Marks every request of `conversation` that repeats nothing before it; the others repeat a marked one.
    pub(crate) fn mark(&self, conversation: &mut Conversation, marker: &CacheBustMarker) {
        let place = Place { mark: &marker.text, after: self.target.is_suffix() };
        let system = self.target.is_system();
        let every = !conversation.context_mode.accumulates();
        for (index, turn) in conversation.turns.iter_mut().enumerate() {
            let repeats = !every && !turn.reset_context && turn.keep_messages != Some(0);
            if index > 0 && repeats {
                continue;
            }
            // The prompt of the run comes in front of a system message of the data, with which it becomes one.
            let own = || has_role(turn, "system");
            match &mut conversation.system_message {
                Some(_) if system && (!place.after || !own()) => {}
                _ => place.turn(turn, system),
            }
        }
        let own = conversation.turns.first().is_some_and(|turn| has_role(turn, "system"));
        if let Some(message) =
            conversation.system_message.as_mut().filter(|_| system && !(place.after && own))
        {
            *message = place.text(message);
        }
    }
}

/// Whether a turn begins with a message of this role.
fn has_role(turn: &Turn, role: &str) -> bool {
    match &turn.content {
        Content::Parts { .. } => turn.role.as_deref().unwrap_or("user") == role,
        Content::Messages { messages, .. } => {
            messages.first().is_some_and(|message| role_of(message) == role)
        }
        Content::Payload(_) => false,
    }
}

fn role_of(message: &RawValue) -> String {
    let value: Option<Value> = serde_json::from_str(message.get()).ok();
    value.and_then(|value| value.get("role")?.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A mark, in front of what it marks or after it.
struct Place<'a> {
    mark: &'a str,
    after: bool,
}

impl Place<'_> {
    fn text(&self, text: &str) -> Arc<str> {
        let (first, second) = if self.after { (text, self.mark) } else { (self.mark, text) };
        [first, second].concat().into()
    }

    fn turn(&self, turn: &mut Turn, system: bool) {
        // Its count is not that of the text any more.
        turn.text_tokens = None;
        match &mut turn.content {
            Content::Parts { texts, .. } => {
                match texts.iter_mut().flat_map(|group| &mut group.contents).next() {
                    Some(text) => *text = self.text(text),
                    None => texts.push(TextGroup { name: None, contents: vec![self.mark.trim().into()] }),
                }
            }
            Content::Messages { messages, .. } => {
                let of = |role: &str| messages.iter().position(|message| role_of(message) == role);
                let at = if system { of("system") } else { None }.or_else(|| of("user")).unwrap_or(0);
                if let Some(message) = messages.get_mut(at)
                    && let Some(marked) = self.message(message)
                {
                    *message = marked;
                }
            }
            // Sent byte for byte; the options refuse such data.
            Content::Payload(_) => {}
        }
    }

    fn message(&self, message: &RawValue) -> Option<Box<RawValue>> {
        let mut value: Value = serde_json::from_str(message.get()).ok()?;
        let content = value.as_object_mut()?.entry("content").or_insert(Value::Null);
        match content {
            Value::String(text) => *text = self.text(text).as_ref().into(),
            Value::Array(parts) => self.parts(parts),
            _ => *content = self.mark.trim().into(),
        }
        to_raw_value(&value).ok()
    }

    fn parts(&self, parts: &mut Vec<Value>) {
        let is_text = |part: &Value| part.get("text").is_some_and(Value::is_string);
        if let Some(text) = parts.iter_mut().find(|part| is_text(part)).and_then(|part| part.get_mut("text"))
        {
            *text = self.text(text.as_str().unwrap_or_default()).as_ref().into();
            return;
        }
        let part = json!({"type": "text", "text": self.mark.trim()});
        parts.insert(if self.after { parts.len() } else { 0 }, part);
    }
}

#[cfg(test)]
mod tests {
    use aiperf_types::{ContextMode, Media, MediaKind};

    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn authored(messages: &[&str]) -> Turn {
        let messages = messages.iter().map(|text| raw(text)).collect();
        Turn { content: Content::Messages { messages, tools: None }, text_tokens: Some(9), ..Turn::default() }
    }

    fn said(text: &str) -> Turn {
        Turn { content: Content::text(text), text_tokens: Some(9), ..Turn::default() }
    }

    /// What `target` makes of a conversation; its system message, and the turns as text.
    fn marked(target: CacheBust, mut conversation: Conversation) -> (Option<String>, Vec<String>) {
        let buster = CacheBuster::new(target, "b");
        let text = target.mark("M").into();
        buster.mark(&mut conversation, &CacheBustMarker { text, target: "t".into() });
        let turns = conversation.turns.iter().map(|turn| match &turn.content {
            Content::Parts { texts, .. } => texts
                .iter()
                .flat_map(|group| &group.contents)
                .map(AsRef::as_ref)
                .collect::<Vec<_>>()
                .join("|"),
            Content::Messages { messages, .. } => {
                messages.iter().map(|message| message.get()).collect::<Vec<_>>().join("|")
            }
            Content::Payload(payload) => payload.get().to_owned(),
        });
        (conversation.system_message.as_deref().map(str::to_owned), turns.collect())
    }

    fn conversation(turns: Vec<Turn>) -> Conversation {
        Conversation { turns, ..Conversation::default() }
    }

    #[test]
    fn the_first_turn_alone_is_marked_where_later_ones_repeat_it() {
        let turns = || conversation(vec![said("one"), said("two")]);
        assert_eq!(marked(CacheBust::FirstTurnPrefix, turns()).1, ["[M]\n\none", "two"]);
        assert_eq!(marked(CacheBust::FirstTurnSuffix, turns()).1, ["one\n\n[M]", "two"]);
        let alone = Conversation { context_mode: ContextMode::MessageArrayWithResponses, ..turns() };
        assert_eq!(marked(CacheBust::FirstTurnPrefix, alone).1, ["[M]\n\none", "[M]\n\ntwo"]);
        let mut anew = turns();
        anew.turns[1].reset_context = true;
        assert_eq!(marked(CacheBust::SystemPrefix, anew).1, ["[M]\n\none", "[M]\n\ntwo"]);
        let mut emptied = turns();
        emptied.turns[1].keep_messages = Some(0);
        assert_eq!(marked(CacheBust::SystemPrefix, emptied).1, ["[M]\n\none", "[M]\n\ntwo"]);
        let mut kept = turns();
        kept.turns[1].keep_messages = Some(1);
        assert_eq!(marked(CacheBust::SystemPrefix, kept).1, ["[M]\n\none", "two"]);
    }

    #[test]
    fn the_count_of_a_marked_text_is_not_taken_from_the_data() {
        let buster = CacheBuster::new(CacheBust::FirstTurnPrefix, "b");
        let mut talk = conversation(vec![said("one"), said("two")]);
        buster.mark(&mut talk, &buster.marker(0, PhaseKind::Profiling).unwrap());
        assert_eq!((talk.turns[0].text_tokens, talk.turns[1].text_tokens), (None, Some(9)));
    }

    #[test]
    fn a_system_message_is_marked_wherever_it_stands() {
        let system = |turn| Conversation { system_message: Some("be".into()), ..conversation(vec![turn]) };
        assert_eq!(
            marked(CacheBust::SystemPrefix, system(said("one"))),
            (Some("[M]\n\nbe".into()), vec!["one".into()])
        );
        assert_eq!(
            marked(CacheBust::SystemSuffix, system(said("one"))),
            (Some("be\n\n[M]".into()), vec!["one".into()])
        );
        assert_eq!(marked(CacheBust::FirstTurnPrefix, system(said("one"))).0.unwrap(), "be");
        // Prompt and message become one: what comes last in it is the message of the data.
        let own = || authored(&[r#"{"role":"system","content":"own"}"#, r#"{"role":"user","content":"hi"}"#]);
        let (prompt, turns) = marked(CacheBust::SystemSuffix, system(own()));
        assert_eq!(prompt.unwrap(), "be");
        assert_eq!(turns, [r#"{"role":"system","content":"own\n\n[M]"}|{"role":"user","content":"hi"}"#]);
        assert_eq!(marked(CacheBust::SystemPrefix, system(own())).0.unwrap(), "[M]\n\nbe");
        let (_, turns) = marked(CacheBust::WarmupIsolationSystem, conversation(vec![own()]));
        assert_eq!(turns, [r#"{"role":"system","content":"[M]\n\nown"}|{"role":"user","content":"hi"}"#]);
        let (_, turns) = marked(CacheBust::FirstTurnPrefix, conversation(vec![own()]));
        assert_eq!(turns, [r#"{"role":"system","content":"own"}|{"role":"user","content":"[M]\n\nhi"}"#]);
    }

    #[test]
    fn parts_are_marked_in_their_first_text_or_get_one() {
        let of = |target, content: &str| {
            let message = format!(r#"{{"role":"user","content":{content}}}"#);
            let (_, turns) = marked(target, conversation(vec![authored(&[&message])]));
            turns[0].clone()
        };
        let image = r#"{"type":"image_url","image_url":{"url":"u"}}"#;
        assert_eq!(
            of(CacheBust::FirstTurnSuffix, &format!(r#"[{image},{{"type":"text","text":"a"}}]"#)),
            format!(r#"{{"role":"user","content":[{image},{{"type":"text","text":"a\n\n[M]"}}]}}"#)
        );
        let mark = r#"{"type":"text","text":"[M]"}"#;
        assert_eq!(
            of(CacheBust::FirstTurnPrefix, &format!("[{image}]")),
            format!(r#"{{"role":"user","content":[{mark},{image}]}}"#)
        );
        assert_eq!(
            of(CacheBust::FirstTurnSuffix, &format!("[{image}]")),
            format!(r#"{{"role":"user","content":[{image},{mark}]}}"#)
        );
        assert_eq!(of(CacheBust::FirstTurnPrefix, "null"), r#"{"role":"user","content":"[M]"}"#);
        let media = vec![Media { kind: MediaKind::Image, name: None, content: "u".into(), uuid: None }];
        let turn = Turn { content: Content::Parts { texts: Vec::new(), media }, ..Turn::default() };
        assert_eq!(marked(CacheBust::FirstTurnPrefix, conversation(vec![turn])).1, ["[M]"]);
    }

    #[test]
    fn marks_follow_run_and_benchmark_and_isolation_marks_the_phase() {
        let text = |target, id, run, phase| {
            let marker = CacheBuster::new(target, id).marker(run, phase)?;
            Some(marker.text.to_string())
        };
        let of = |id, run, phase| text(CacheBust::SystemPrefix, id, run, phase).unwrap();
        let one = of("a", 1, PhaseKind::Warmup);
        assert_eq!(one, of("a", 1, PhaseKind::Profiling));
        assert!(one != of("a", 2, PhaseKind::Warmup) && one != of("b", 1, PhaseKind::Warmup));
        let isolated = |phase| text(CacheBust::WarmupIsolationFirstTurn, "a", 1, phase);
        assert_eq!(isolated(PhaseKind::Warmup).unwrap(), "[warmup]\n\n");
        assert_eq!(isolated(PhaseKind::Profiling), None);
    }
}
