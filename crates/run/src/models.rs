//! What the server says of the models that it serves.

use std::time::Duration;

use aiperf_load::transport::Question;
use serde_json::Value;

/// How long an answer may take: what it says is worth no longer wait.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where servers say how many tokens a model takes, input and output together: vLLM and `SGLang`, LM Studio, gateways.
const CONTEXT_KEYS: [&str; 3] = ["max_model_len", "max_context_length", "context_length"];

/// Asks for the list of `/v1/models`. Nothing is tried again.
pub(crate) struct Models {
    question: Question,
}

impl Models {
    /// With a question whose path is that of the list.
    pub(crate) fn new(question: Question) -> Models {
        Models { question }
    }

    fn list(&self) -> Option<Value> {
        serde_json::from_slice(&self.question.ask(PATIENCE)?).ok()
    }

    /// The names of all models; `None` when the server does not say.
    pub(crate) fn names(&self) -> Option<Vec<String>> {
        Some(entries(&self.list()?).iter().filter_map(|entry| id(entry)).map(str::to_owned).collect())
    }

    /// Tokens that the context of `model` holds; `None` when the server does not say.
    pub(crate) fn context(&self, model: &str) -> Option<u64> {
        context(&self.list()?, model)
    }
}

fn entries(list: &Value) -> &[Value] {
    list.get("data").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn id(entry: &Value) -> Option<&str> {
    entry.get("id")?.as_str()
}

fn context(list: &Value, model: &str) -> Option<u64> {
    let entry = entries(list).iter().find(|entry| id(entry) == Some(model))?;
    CONTEXT_KEYS.iter().find_map(|key| entry.get(key)?.as_u64()).filter(|tokens| *tokens > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn inference_benchmarker_26_the_models_of_the_server_are_named() {
        let list = json!({"object": "list", "data": [
            {"id": "llama", "permission": [{"id": "modelperm-1"}]}, {"id": "qwen"}, {"name": "none"}, 5]});
        let names: Vec<&str> = entries(&list).iter().filter_map(id).collect();
        assert_eq!(names, ["llama", "qwen"]);
        for none in [json!({"object": "list"}), json!([]), json!("models"), json!({"data": {"id": "llama"}})]
        {
            assert!(entries(&none).is_empty());
        }
    }

    #[test]
    fn the_context_of_a_model_is_what_its_server_calls_so() {
        let list = json!({"data": [
            {"id": "a", "max_model_len": 32_768}, {"id": "b", "context_length": 8_192}, {"id": "c"},
            {"id": "d", "max_model_len": null, "max_context_length": 4_096}, {"id": "e", "max_model_len": 0}]});
        let of = |model| context(&list, model);
        assert_eq!([of("a"), of("b"), of("d")], [Some(32_768), Some(8_192), Some(4_096)]);
        assert_eq!([of("c"), of("e"), of("other")], [None; 3]);
    }
}
