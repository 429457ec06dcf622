//! The online index: has a document been seen before, and of which is it a near-duplicate?
