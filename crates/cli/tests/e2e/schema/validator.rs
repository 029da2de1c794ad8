//! As much of JSON Schema as the published schemas use. Stricter in one thing: members that no part of a schema knows
//! are problems, which for readers they are not.

use std::collections::BTreeSet;

use serde_json::Value;

/// What is wrong with `value`; nothing when it is valid.
pub(super) fn problems(schema: &Value, value: &Value) -> Vec<String> {
    let mut check = Check { root: schema, found: Vec::new() };
    let known = check.value(schema, value, "");
    check.unknown(value, &known, "");
    check.found
}

struct Check<'s> {
    root: &'s Value,
    found: Vec<String>,
}

/// Names of the members that some part of a schema has looked at.
type Known = BTreeSet<String>;

impl Check<'_> {
    fn wrong(&mut self, path: &str, what: &str) {
        self.found.push(format!("{path}: {what}"));
    }

    fn unknown(&mut self, value: &Value, known: &Known, path: &str) {
        for name in value.as_object().into_iter().flat_map(|object| object.keys()) {
            if !known.contains(name) {
                self.wrong(path, &format!("unknown member {name}"));
            }
        }
    }

    fn value(&mut self, schema: &Value, value: &Value, path: &str) -> Known {
        let mut known = Known::new();
        for (keyword, rule) in schema.as_object().unwrap() {
            match keyword.as_str() {
                "$schema" | "$id" | "$defs" | "title" | "description" | "examples" | "format" => {}
                "$ref" => {
                    let place = rule.as_str().and_then(|name| name.strip_prefix('#')).unwrap();
                    let target = self.root.pointer(place).unwrap_or_else(|| panic!("{place} is missing"));
                    known.extend(self.value(target, value, path));
                }
                "allOf" => {
                    for part in rule.as_array().unwrap() {
                        known.extend(self.value(part, value, path));
                    }
                }
                "oneOf" => self.one_of(rule.as_array().unwrap(), value, path),
                "type" => self.kind(rule.as_str().unwrap(), value, path),
                "const" => {
                    if value != rule {
                        self.wrong(path, &format!("not {rule}"));
                    }
                }
                "enum" => {
                    if !rule.as_array().unwrap().contains(value) {
                        self.wrong(path, &format!("none of {rule}"));
                    }
                }
                "required" => {
                    for name in rule.as_array().unwrap() {
                        if value.is_object() && value.get(name.as_str().unwrap()).is_none() {
                            self.wrong(path, &format!("no member {}", name.as_str().unwrap_or_default()));
                        }
                    }
                }
                "properties" => {
                    for (name, part) in rule.as_object().unwrap() {
                        if let Some(member) = value.get(name) {
                            known.insert(name.clone());
                            self.inside(part, member, &format!("{path}.{name}"));
                        }
                    }
                }
                "additionalProperties" => {
                    for (name, member) in value.as_object().into_iter().flatten() {
                        known.insert(name.clone());
                        self.inside(rule, member, &format!("{path}.{name}"));
                    }
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.inside(rule, item, &format!("{path}.{index}"));
                    }
                }
                "minimum" | "exclusiveMinimum" => {
                    let (limit, open) = (rule.as_f64().unwrap(), keyword != "minimum");
                    if value.as_f64().is_some_and(|value| value < limit || open && value <= limit) {
                        self.wrong(path, &format!("below {limit}"));
                    }
                }
                "minItems" | "maxItems" | "minProperties" => self.size(keyword, rule, value, path),
                other => panic!("the check does not know the keyword {other}"),
            }
        }
        // An object about whose members nothing is said may have any.
        if !["properties", "additionalProperties", "$ref", "allOf"]
            .iter()
            .any(|key| schema.get(key).is_some())
        {
            known.extend(value.as_object().into_iter().flat_map(|object| object.keys().cloned()));
        }
        known
    }

    /// A value below the top.
    fn inside(&mut self, schema: &Value, value: &Value, path: &str) {
        let known = self.value(schema, value, path);
        self.unknown(value, &known, path);
    }

    fn one_of(&mut self, parts: &[Value], value: &Value, path: &str) {
        let fits = parts.iter().filter(|part| {
            let mut check = Check { root: self.root, found: Vec::new() };
            check.inside(part, value, path);
            check.found.is_empty()
        });
        if fits.count() != 1 {
            self.wrong(path, &format!("not one of {parts:?}"));
        }
    }

    fn kind(&mut self, kind: &str, value: &Value, path: &str) {
        let fits = match kind {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            other => panic!("the check does not know the type {other}"),
        };
        if !fits {
            self.wrong(path, &format!("not of type {kind}: {value}"));
        }
    }

    fn size(&mut self, keyword: &str, rule: &Value, value: &Value, path: &str) {
        let size = value.as_array().map(Vec::len).or_else(|| value.as_object().map(serde_json::Map::len));
        let limit = rule.as_u64().unwrap();
        let Some(size) = size.map(|size| size as u64) else { return };
        if keyword == "maxItems" && size > limit || keyword != "maxItems" && size < limit {
            self.wrong(path, &format!("{size} members, {keyword} is {limit}"));
        }
    }
}
