//! What are the tokens of a text?
