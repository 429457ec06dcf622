//! Which rows have a key of this hash?
