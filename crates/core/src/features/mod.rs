//! What are the weighted features of a text?
