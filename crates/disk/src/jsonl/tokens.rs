//! How are tokens read that another program has produced?

use std::fmt;

use likewise_core::text::{
    begin_own_tokens, end_own_tokens, push_own_token, push_text_without_tokens,
};
use serde::de::{DeserializeSeed, Error, IgnoredAny, SeqAccess, Visitor};

use super::capture::push_lossy;
use super::nan::replace_non_numbers;
use super::rules::TokenRules;

/// Maximum weight of a token.
const MAX_WEIGHT: u8 = u8::MAX;
/// Bytes of the length of a document, with which its encoding begins.
const LENGTH_BYTES: usize = size_of::<u32>();

/// Encodes the list of tokens in a valid JSON value. The error is the reason, for people.
pub(super) fn encode_tokens(
    raw: &str,
    name: &str,
    rules: TokenRules,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    out.clear();
    begin_own_tokens(0, out);
    let mut deserializer = serde_json::Deserializer::from_str(raw);
    let list = List { rules, out };
    let length = list.deserialize(&mut deserializer).map_err(|error| {
        let message = error.to_string();
        let message = match replace_non_numbers(raw) {
            Some(_) => "a weight is NaN or infinite, not a number of at least 0",
            None => message
                .split(" at line 1 column ")
                .next()
                .unwrap_or(&message),
        };
        format!("field \"{name}\": {message}")
    })?;
    end_own_tokens(0, out);
    out[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Whether a list of no tokens was encoded.
pub(super) fn has_no_tokens(encoded: &[u8]) -> bool {
    encoded.len() == LENGTH_BYTES
}

/// Encodes the text of a document without tokens.
pub(super) fn encode_text(text: &str, out: &mut Vec<u8>) {
    out.clear();
    begin_own_tokens(text.chars().count() as u32, out);
    push_text_without_tokens(text, out);
}

/// Deserializes a list: appends all its tokens and returns their total number of Unicode scalars.
struct List<'a> {
    rules: TokenRules,
    out: &'a mut Vec<u8>,
}

own_seed!(List, deserialize_any);

impl<'de> Visitor<'de> for List<'_> {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.rules.are_weighted {
            true => "a list of [token, weight] pairs",
            false => "a list of tokens",
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<u32, A::Error> {
        let List { rules, out } = self;
        let mut length = 0u32;
        loop {
            let found = match rules.are_weighted {
                true => list.next_element_seed(Pair { rules, out })?,
                false => list.next_element_seed(Token(out))?,
            };
            let Some(scalars) = found else {
                return Ok(length);
            };
            length = length.saturating_add(scalars);
        }
    }
}

/// Deserializes a pair: appends a token with its weight.
struct Pair<'a> {
    rules: TokenRules,
    out: &'a mut Vec<u8>,
}

own_seed!(Pair, deserialize_any);

impl<'de> Visitor<'de> for Pair<'_> {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a [token, weight] pair")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<u32, A::Error> {
        let Pair { rules, out } = self;
        let start = out.len();
        let of_two = || A::Error::custom("a [token, weight] pair does not have two values");
        let scalars = pair.next_element_seed(Token(out))?.ok_or_else(of_two)?;
        let seed = Weight {
            rules,
            token: &out[start + 5..],
        };
        let weight = pair.next_element_seed(seed)?.ok_or_else(of_two)?;
        out[start] = weight;
        match pair.next_element::<IgnoredAny>()? {
            Some(_) => Err(of_two()),
            None => Ok(scalars),
        }
    }
}

/// Deserializes a token of weight 1. It is read as bytes, since a lone surrogate would be rejected in a str.
struct Token<'a>(&'a mut Vec<u8>);

own_seed!(Token, deserialize_bytes);

impl<'de> Visitor<'de> for Token<'_> {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token (a string)")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<u32, E> {
        let mut lossy = String::new();
        let token = match std::str::from_utf8(bytes) {
            Ok(token) => token,
            Err(_) => {
                push_lossy(bytes, &mut lossy);
                &lossy
            }
        };
        match push_own_token(token.as_bytes(), 1, self.0) {
            true => Ok(token.chars().count() as u32),
            false => Err(E::custom("a token has 4 GB or more")),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<u32, A::Error> {
        Err(A::Error::custom(
            "a token is a list, not a string; [token, weight] pairs require --weights own",
        ))
    }
}

/// Deserializes a weight as a whole number, applying the scale.
struct Weight<'a> {
    rules: TokenRules,
    token: &'a [u8],
}

impl Weight<'_> {
    fn refused<E: Error>(&self, weight: impl fmt::Display, why: impl fmt::Display) -> E {
        let token = String::from_utf8_lossy(self.token);
        E::custom(format!("the weight of {token:?} is {weight}, {why}"))
    }

    fn of_whole<E: Error>(&self, weight: i128) -> Result<u8, E> {
        match self.rules.scale {
            Some(_) => self.of_real(weight as f64),
            None => u8::try_from(weight).map_err(|_| {
                let why = format!("not an integer from 0 to {MAX_WEIGHT}");
                self.refused(weight, why)
            }),
        }
    }

    fn of_real<E: Error>(&self, weight: f64) -> Result<u8, E> {
        let Some(scale) = self.rules.scale else {
            let why = format!(
                "not an integer from 0 to {MAX_WEIGHT}; for real weights set --weight-scale"
            );
            return Err(self.refused(weight, why));
        };
        if weight < 0.0 {
            return Err(self.refused(weight, "not a number of at least 0"));
        }
        let scaled = (weight * scale).round_ties_even();
        match scaled <= f64::from(MAX_WEIGHT) {
            true => Ok(scaled as u8),
            false => {
                let why = format!(
                    "{scaled} when scaled; the limit is {MAX_WEIGHT}. Use a smaller --weight-scale"
                );
                Err(self.refused(weight, why))
            }
        }
    }
}

own_seed!(Weight, deserialize_any);

impl Visitor<'_> for Weight<'_> {
    type Value = u8;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a weight (a number)")
    }

    fn visit_u64<E: Error>(self, weight: u64) -> Result<u8, E> {
        self.of_whole(i128::from(weight))
    }

    fn visit_i64<E: Error>(self, weight: i64) -> Result<u8, E> {
        self.of_whole(i128::from(weight))
    }

    fn visit_f64<E: Error>(self, weight: f64) -> Result<u8, E> {
        self.of_real(weight)
    }
}
