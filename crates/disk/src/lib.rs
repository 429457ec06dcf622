//! What touches files: line splitting, row parsing, copying of ranges.
