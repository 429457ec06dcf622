//! Segments compared with plain maps, damage of every byte, and files that fail.

mod damage;
mod faults;
mod layer;
mod lookups;
mod model;
