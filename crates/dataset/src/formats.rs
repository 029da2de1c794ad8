//! One file per format.

pub(crate) mod inputs_json;
pub(crate) mod media;
pub(crate) mod mooncake;
pub(crate) mod multi_turn;
pub(crate) mod parts;
pub(crate) mod random_pool;
pub(crate) mod raw_payload;
pub(crate) mod single_turn;
