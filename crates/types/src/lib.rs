//! The plain data that moves from room to room: conversations and their turns on the way out, request records
//! on the way back. Types only; every room that makes or reads them says what they mean there.

mod body;
mod branch;
mod conversation;
mod record;
pub mod shards;
mod usage;

pub use body::{Body, Characters, CountedText};
pub use branch::{BranchChild, BranchGroup, BranchPlan, BranchStart, Lineage, Spine, ThinkTime, TraceSource};
pub use conversation::{Content, ContextMode, Conversation, Media, MediaKind, Ranked, TextGroup, Turn};
pub use record::{
    Answer, CacheBustMarker, Channel, ContentEvent, HttpTrace, Identity, Packet, PhaseKind, PlanInstants,
    RawEvent, RawResponse, RequestError, RequestFacts, RequestRecord, TokenCounts, TransportFacts,
};
pub use shards::{ShardFault, Shards};
pub use usage::{SpecDecode, Usage};
