//! Model names that stand for no model.

const WHOLE: [&str; 7] = ["test", "mock", "fake", "dummy", "example", "sample", "placeholder"];
const PARTS: [&str; 10] = [
    "target-model",
    "mock-",
    "-mock",
    "fake-",
    "-fake",
    "test-model",
    "your-model",
    "my-model",
    "model-name",
    "model-id",
];

/// Whether a model name is only a stand-in (`mock-model`, `test`, `your-model-name`), so that no tokenizer of
/// that name can be meant. Names with a slash or those of paths are never stand-ins.
pub fn is_placeholder(model: &str) -> bool {
    if model.contains(['/', '\\']) || model.starts_with(['.', '~']) {
        return false;
    }
    let name = model.to_lowercase().replace('_', "-");
    WHOLE.contains(&name.as_str()) || PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stand_ins_are_told_from_models() {
        for name in
            ["test", "Mock", "mock-model", "MY_MODEL", "gpt-fake-1", "your_model_name", "target-model"]
        {
            assert!(is_placeholder(name), "{name}");
        }
        for name in
            ["gpt2", "meta/mock-model", "./mock", "~mock", "tester", "o200k_base", "a\\mock-", "samples"]
        {
            assert!(!is_placeholder(name), "{name}");
        }
    }
}
