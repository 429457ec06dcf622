//! Parquet files assembled from separately encoded row groups.

pub(crate) mod compact;
pub mod damage;
pub mod join;
mod schema;
