//! What every kind of tokenizer file can do.

/// A vocabulary that was read from a file. Immutable and shared between threads.
pub(crate) trait Vocabulary: Send + Sync {
    /// Number of tokens of `text`, none added.
    fn count(&self, text: &str) -> u64 {
        let mut tokens = Vec::new();
        self.encode(text, &mut tokens);
        tokens.len() as u64
    }

    /// Appends the tokens of `text`, none added. Text that spells an added token is that token.
    fn encode(&self, text: &str, tokens: &mut Vec<u32>);

    /// Appends the bytes of `tokens`; numbers that stand for no token are left out.
    fn decode_into(&self, tokens: &[u32], bytes: &mut Vec<u8>);

    /// Token numbers are below this.
    fn size(&self) -> u32;

    /// How many tokens a server adds to a bare text.
    fn added_by_template(&self) -> u64;

    /// Whether a number stands for text.
    fn decodes(&self, token: u32) -> bool;

    /// Whether a number is a special token.
    fn is_special(&self, token: u32) -> bool;

    /// Bytes of a token's text, where tokens are bytes put one after the other.
    fn token_len(&self, token: u32) -> Option<usize>;

    /// Whether a text may be cut at every lone space between visible ASCII characters.
    fn splits_at_seams(&self) -> bool;

    /// The number of the token that is spelled so.
    fn token(&self, text: &str) -> Option<u32>;
}
