//! Recorded tool definitions, as the tools of a chat body.

use super::attributes::{Field, unwrapped, write_compact};
use crate::json::{self, Fault};

const DEFINITIONS: &str = "gen_ai.tool.definitions";

/// The list of tools of a chat body; `None` when there are none.
pub(super) fn read(definitions: &Field<'_>) -> Result<Option<String>, Fault> {
    let definitions = definitions.inner(DEFINITIONS)?;
    if definitions.is_empty() {
        return Ok(None);
    }
    let list = json::list(DEFINITIONS, &definitions)?;
    let mut out = String::from("[");
    for (number, definition) in list.into_iter().enumerate() {
        if number > 0 {
            out.push(',');
        }
        tool(definition, &mut out).map_err(|fault| fault.within(format!("{DEFINITIONS}[{number}]")))?;
    }
    out.push(']');
    Ok((out.len() > 2).then_some(out))
}

fn tool(text: &str, out: &mut String) -> Result<(), Fault> {
    let [kind, function, name, description, parameters, strict] =
        json::object(text, &["type", "function", "name", "description", "parameters", "strict"])?;
    if let Some(kind) = kind {
        let kind = json::string("type", kind)?;
        if kind != "function" {
            let rule = format!("is {}; only functions can be replayed", json::excerpt(&kind));
            return Err(Fault::new("type", rule));
        }
    }
    out.push_str("{\"type\":\"function\",\"function\":");
    match (function, name) {
        (Some(function), _) if function.starts_with('{') => write_compact(function, out),
        (_, Some(name)) => {
            json::check_string("name", name)?;
            // Schemas differ from tool to tool, so that some exports keep them as text.
            let parameters = parameters.map(|text| unwrapped("parameters", text)).transpose()?;
            if let Some(parameters) = &parameters {
                json::object::<0>(parameters, &[]).map_err(|fault| fault.within("parameters"))?;
            }
            let fields = [
                ("name", Some(name)),
                ("description", description),
                ("parameters", parameters.as_deref()),
                ("strict", strict),
            ];
            let mut before = '{';
            for (key, value) in fields.into_iter().filter_map(|(key, value)| Some((key, value?))) {
                out.push(before);
                before = ',';
                out.push('"');
                out.push_str(key);
                out.push_str("\":");
                write_compact(value, out);
            }
            out.push('}');
        }
        _ => {
            return Err(Fault::new(
                "name",
                "is missing; a tool has a name, or a nested `function` that has one",
            ));
        }
    }
    out.push('}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(definitions: &str) -> Result<Option<String>, Fault> {
        let inside = super::read(&Field::Text(definitions.into()));
        assert_eq!(super::read(&Field::Json(definitions.into())), inside);
        inside
    }

    #[test]
    fn flat_and_nested_definitions_become_the_same_tools() {
        let flat = r#"[{"type":"function","name":"f","description":"d","parameters":{"z": 1, "a": 2}}]"#;
        let nested = r#"[{"type": "function", "function": {"name":"f","description":"d","parameters":{"z": 1, "a": 2}}}]"#;
        let as_text = r#"[{"name":"f","description":"d","parameters":"{\"z\": 1, \"a\": 2}"}]"#;
        let tools =
            r#"[{"type":"function","function":{"name":"f","description":"d","parameters":{"z":1,"a":2}}}]"#;
        for definitions in [flat, nested, as_text] {
            assert_eq!(read(definitions).unwrap().unwrap(), tools);
            let quoted = Value::from(definitions).to_string();
            assert_eq!(super::read(&Field::Json(quoted.into())).unwrap().unwrap(), tools);
        }
        assert_eq!(read("[]").unwrap(), None);
        assert_eq!(super::read(&Field::Text("".into())).unwrap(), None);
    }

    #[test]
    fn what_is_no_function_is_refused_with_its_place() {
        for (definition, field) in [
            (json!({"type": "web_search", "name": "w"}), "gen_ai.tool.definitions[0].type"),
            (json!({"type": "function"}), "gen_ai.tool.definitions[0].name"),
            (json!({"type": "function", "name": 7}), "gen_ai.tool.definitions[0].name"),
            (json!({"name": "n", "parameters": "x"}), "gen_ai.tool.definitions[0].parameters"),
        ] {
            assert_eq!(read(&json!([definition]).to_string()).unwrap_err().field, field, "{definition}");
        }
        assert!(read("{}").is_err());
    }
}
