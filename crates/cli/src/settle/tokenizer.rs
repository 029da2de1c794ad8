//! What counts tokens.

use aiperf_config::{EndpointConfig, Target, TokenizerConfig, TokenizerSource};

use super::Note;
use crate::remote::tokenizers;
use crate::typed::Typed;
use crate::usage::UsageError;

pub(super) fn settle(
    typed: &Typed,
    model: &str,
    endpoint: &EndpointConfig,
    notes: &mut Vec<Note>,
) -> Result<TokenizerConfig, UsageError> {
    let source = match typed.text("--tokenizer") {
        Some("builtin") => TokenizerSource::Builtin,
        Some(name) if tokenizers::is_key(name) => {
            return Err(UsageError::Input {
                what: format!("--tokenizer: {}", tokenizers::KEY),
                fix: Some(tokenizers::IN_PLACE_OF_KEY.to_owned()),
            });
        }
        Some(name) => TokenizerSource::Named(name.to_owned()),
        None if matches!(endpoint.target, Target::Mock(_)) => {
            notes.push(Note::info(
                "the mock server is no real model: tokens are counted with the builtin tokenizer",
            ));
            TokenizerSource::Builtin
        }
        None if aiperf_tokenize::is_placeholder(model) => {
            notes.push(Note::warning(format!(
                "{model} is no model's name: tokens are counted with the builtin tokenizer; --tokenizer names another"
            )));
            TokenizerSource::Builtin
        }
        None => TokenizerSource::Named(model.to_owned()),
    };
    if typed.is_on("--tokenizer-trust-remote-code") {
        notes.push(Note::warning(
            "--tokenizer-trust-remote-code changes nothing: code of a repository is never run here",
        ));
    }
    Ok(TokenizerConfig {
        source,
        revision: typed.text("--tokenizer-revision").unwrap_or("main").to_owned(),
        apply_chat_template: typed.is_on("--apply-chat-template"),
    })
}
