//! What are the texts, ids and fields of a JSON Lines file?

/// Makes a visitor its own seed.
macro_rules! own_seed {
    ($visitor:ident, $method:ident) => {
        impl<'de> serde::de::DeserializeSeed<'de> for $visitor<'_> {
            type Value = <Self as serde::de::Visitor<'de>>::Value;

            fn deserialize<D>(self, deserializer: D) -> Result<Self::Value, D::Error>
            where
                D: serde::de::Deserializer<'de>,
            {
                deserializer.$method(self)
            }
        }
    };
}

pub(crate) mod capture;
mod escape;
mod nan;
mod parser;
pub mod piece;
pub mod rows;
pub mod rules;
pub mod tokens;
