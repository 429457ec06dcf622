//! Parquet files put together from row groups that were encoded apart.

pub(crate) mod compact;
pub mod damage;
pub mod join;
mod schema;
