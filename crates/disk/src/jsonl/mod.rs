//! What are the texts, ids and fields of a JSON Lines file?

pub(crate) mod capture;
mod escape;
mod nan;
mod parser;
pub mod piece;
pub mod rows;
pub mod rules;
pub mod tokens;
