//! JSON in the layout that templates written for Python expect.

use serde_json::Value;

/// Appends `value` as Python's `json.dumps(value, ensure_ascii=False, indent=indent)` writes it.
pub(crate) fn write(value: &Value, indent: Option<usize>, depth: usize, text: &mut String) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(index == 0, indent, depth + 1, text);
                write(item, indent, depth + 1, text);
            }
            close(indent, depth, text);
            text.push(']');
        }
        Value::Object(fields) if !fields.is_empty() => {
            text.push('{');
            for (index, (key, item)) in fields.iter().enumerate() {
                separate(index == 0, indent, depth + 1, text);
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push_str(": ");
                write(item, indent, depth + 1, text);
            }
            close(indent, depth, text);
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
}

fn separate(first: bool, indent: Option<usize>, depth: usize, text: &mut String) {
    match indent {
        Some(_) => {
            if !first {
                text.push(',');
            }
            close(indent, depth, text);
        }
        None if !first => text.push_str(", "),
        None => {}
    }
}

fn close(indent: Option<usize>, depth: usize, text: &mut String) {
    if let Some(width) = indent {
        text.push('\n');
        text.extend(std::iter::repeat_n(' ', width * depth));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(json: &str, indent: Option<usize>) -> String {
        let mut text = String::new();
        write(&serde_json::from_str(json).unwrap(), indent, 0, &mut text);
        text
    }

    #[test]
    fn layout_is_pythons() {
        let json = r#"{"b":[1,2.5,{"x":"<é&'\n\""}],"a":{},"c":[],"d":null,"e":true}"#;
        assert_eq!(
            written(json, None),
            r#"{"b": [1, 2.5, {"x": "<é&'\n\""}], "a": {}, "c": [], "d": null, "e": true}"#
        );
        assert_eq!(
            written(r#"{"a":[1,{"b":2}],"c":[]}"#, Some(2)),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ],\n  \"c\": []\n}"
        );
    }
}
