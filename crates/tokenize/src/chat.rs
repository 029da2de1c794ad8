//! Chat templates: how a server writes a list of messages as one text, and what that costs in tokens.

use std::sync::{Arc, OnceLock};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value as Jinja};
use serde_json::Value;

use crate::Tokenizer;
use crate::files::special_text;

/// The text of a template, or several by name, and the special tokens it may name.
#[derive(Clone, Debug, Default)]
pub(crate) struct TemplateSource {
    ordinary: String,
    with_tools: Option<String>,
    tokens: Vec<(String, String)>,
}

impl TemplateSource {
    pub(crate) fn one(text: String) -> TemplateSource {
        TemplateSource { ordinary: text, ..TemplateSource::default() }
    }

    /// `chat_template` of a tokenizer's configuration: a text, or a list of `{name, template}`.
    pub(crate) fn of_config(value: &Value) -> Option<TemplateSource> {
        if let Some(text) = value.as_str() {
            return Some(TemplateSource::one(text.to_owned()));
        }
        let named = |wanted: &str| {
            value.as_array()?.iter().find(|entry| entry["name"] == wanted)?["template"]
                .as_str()
                .map(str::to_owned)
        };
        let with_tools = named("tool_use");
        let ordinary = named("default").or_else(|| with_tools.clone())?;
        Some(TemplateSource { ordinary, with_tools, tokens: Vec::new() })
    }

    /// Adds the special tokens (`bos_token` …) of configuration objects; later ones win.
    pub(crate) fn with_tokens(mut self, objects: &[&Value]) -> TemplateSource {
        for object in objects {
            for key in object.as_object().into_iter().flat_map(serde_json::Map::keys) {
                if let (true, Some(text)) = (key.ends_with("_token"), special_text(object, key)) {
                    self.tokens.retain(|(known, _)| known != key);
                    self.tokens.push((key.clone(), text));
                }
            }
        }
        self
    }
}

/// Why a template gives no text.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The messages or tools are not JSON.
    #[error("the {what} given to the chat template are not JSON: {cause}")]
    NotJson {
        /// `messages` or `tools`.
        what: &'static str,
        /// Why.
        cause: serde_json::Error,
    },
    /// The template failed, or raised an exception of its own.
    #[error("the chat template of the tokenizer failed: {0}")]
    Render(String),
}

/// Tokens that a chat template adds, averaged over sample texts. Not whole numbers: round sums, not parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overhead {
    /// Once per request.
    pub fixed: f64,
    /// For each message.
    pub wrap: f64,
}

impl Overhead {
    /// Tokens added to a request of one message, rounded.
    pub fn first_turn(self) -> u64 {
        (self.fixed + self.wrap).round().max(0.0) as u64
    }

    /// Tokens added by a further message, rounded.
    pub fn later_turn(self) -> u64 {
        self.wrap.round().max(0.0) as u64
    }
}

/// The chat template of a tokenizer. A clone is another handle to the same template.
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    compiled: Arc<Compiled>,
    tokenizer: Tokenizer,
}

/// A template ready to render.
#[derive(Debug)]
pub(crate) struct Compiled {
    environment: Environment<'static>,
    has_tool_template: bool,
    overhead: OnceLock<Overhead>,
}

const ORDINARY: &str = "default";
const WITH_TOOLS: &str = "tool_use";

impl Compiled {
    pub(crate) fn new(source: &TemplateSource) -> Result<Compiled, String> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| full_message(&error))?);
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_filter("tojson", to_json);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", |format: &str| crate::strftime::now(format));
        for (name, text) in &source.tokens {
            environment.add_global(name.clone(), text.clone());
        }
        let add = |environment: &mut Environment<'static>, name, text: &str| {
            environment
                .add_template_owned(name, without_generation_marks(text))
                .map_err(|error| full_message(&error))
        };
        add(&mut environment, ORDINARY, &source.ordinary)?;
        if let Some(text) = &source.with_tools {
            add(&mut environment, WITH_TOOLS, text)?;
        }
        Ok(Compiled {
            environment,
            has_tool_template: source.with_tools.is_some(),
            overhead: OnceLock::new(),
        })
    }

    fn render(
        &self,
        messages: &Jinja,
        tools: Option<Jinja>,
        add_generation_prompt: bool,
    ) -> Result<String, Error> {
        let name = if tools.is_some() && self.has_tool_template { WITH_TOOLS } else { ORDINARY };
        let tools = tools.unwrap_or(Jinja::from(()));
        self.environment
            .get_template(name)?
            .render(minijinja::context! { messages, tools, add_generation_prompt, documents => () })
    }
}

impl ChatTemplate {
    pub(crate) fn new(compiled: Arc<Compiled>, tokenizer: Tokenizer) -> ChatTemplate {
        ChatTemplate { compiled, tokenizer }
    }

    /// The text of a request. `messages_json` is the JSON array of messages; `tools_json` that of tool
    /// definitions.
    pub fn render(
        &self,
        messages_json: &str,
        tools_json: Option<&str>,
        add_generation_prompt: bool,
    ) -> Result<String, TemplateError> {
        let parse = |what, text| {
            serde_json::from_str::<Value>(text).map_err(|cause| TemplateError::NotJson { what, cause })
        };
        let messages = parse("messages", messages_json)?;
        let tools = tools_json.map(|text| parse("tools", text)).transpose()?;
        self.render_values(&messages, tools.as_ref(), add_generation_prompt)
    }

    /// As [`ChatTemplate::render`], with JSON that is parsed already.
    pub fn render_values(
        &self,
        messages: &Value,
        tools: Option<&Value>,
        add_generation_prompt: bool,
    ) -> Result<String, TemplateError> {
        let tools = tools.filter(|tools| !tools.is_null()).map(|tools| Jinja::from(Serde(tools)));
        self.compiled
            .render(&Jinja::from(Serde(messages)), tools, add_generation_prompt)
            .map_err(|error| TemplateError::Render(full_message(&error)))
    }

    /// What the template adds to the tokens of the messages themselves; found once. Nothing where the template
    /// cannot render plain messages, or the figures make no sense.
    pub fn overhead(&self) -> Overhead {
        *self.compiled.overhead.get_or_init(|| self.measure_overhead().unwrap_or_default())
    }

    fn measure_overhead(&self) -> Option<Overhead> {
        const SAMPLES: [&str; 4] = [
            "Shall I compare thee to a summer's day?",
            "hello world",
            "Name three rivers of the north and say where each of them meets the sea.",
            "x = [1, 2, 3]",
        ];
        let special = self.tokenizer.num_special_tokens_to_add() as f64;
        let mut sum = Overhead::default();
        for sample in SAMPLES {
            let user = serde_json::json!({"role": "user", "content": sample});
            let assistant = serde_json::json!({"role": "assistant", "content": sample});
            let tokens = |messages: Value| {
                let text = self.render_values(&messages, None, true).ok()?;
                Some(self.tokenizer.count(&text) as f64)
            };
            let one = tokens(Value::from(vec![user.clone()]))?;
            let three = tokens(Value::from(vec![user.clone(), assistant, user]))?;
            let bare = self.tokenizer.count(sample) as f64;
            let wrap = (three - one - 2.0 * bare) / 2.0;
            let fixed = one - bare - wrap - special;
            if wrap < 0.0 || fixed < 0.0 {
                return None;
            }
            sum.wrap += wrap;
            sum.fixed += fixed;
        }
        let count = SAMPLES.len() as f64;
        Some(Overhead { fixed: sum.fixed / count, wrap: sum.wrap / count })
    }
}

/// An error with its causes in one line.
fn full_message(error: &Error) -> String {
    let mut message = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        message = format!("{message}: {inner}");
        cause = inner.source();
    }
    message
}

fn raise_exception(message: &str) -> Result<Jinja, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message.to_owned()))
}

#[expect(clippy::needless_pass_by_value, reason = "the signature of a filter")]
/// JSON as Python writes it (a space after commas and colons, characters as they are), indented where asked.
fn to_json(value: &Jinja, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let _: Option<bool> = options.get("ensure_ascii")?;
    options.assert_all_used()?;
    let value = serde_json::to_value(value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, "no JSON").with_source(error))?;
    let mut text = String::new();
    crate::python_json::write(&value, indent, 0, &mut text);
    Ok(text)
}

/// The template without `{% generation %}` and `{% endgeneration %}`, which mark spans for training and write
/// nothing.
fn without_generation_marks(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at);
        kept.push_str(before);
        let Some(end) = tag.find("%}") else { break };
        let inner = tag[2..end].trim_matches(['-', '+']).trim();
        if inner == "generation" || inner == "endgeneration" {
            // What the mark did to white space around it stays: an empty comment with its signs.
            kept.push_str("{#");
            kept.push_str(if tag[2..end].starts_with('-') { "-" } else { "" });
            kept.push_str(if tag[2..end].ends_with('-') { " -" } else { " " });
            kept.push_str("#}");
        } else {
            kept.push_str(&tag[..end + 2]);
        }
        rest = &tag[end + 2..];
    }
    kept.push_str(rest);
    kept
}
