//! The binding: arguments in, interpreter lock released, core called, arrays out.

// A function has as many arguments as the call from Python.
#![allow(clippy::too_many_arguments)]

mod array;
mod arrow;
mod bands;
mod bloom;
mod cluster;
mod column;
mod csv;
mod document_counter;
mod door;
mod errors;
mod features;
mod groups;
mod hamming_index;
mod hamming_join;
mod hamming_plan;
mod index;
mod index_given;
mod items;
mod jsonl;
mod manual_clock;
mod moved;
mod packed;
mod references;
mod repeats;
mod rewrite;
mod searcher;
mod sets;
mod sketch;
mod texts;
mod verify;
mod weights;

use pyo3::prelude::*;

/// Version of the sketch bytes: any change of them needs a new version.
const SKETCH_VERSION: u32 = 1;

#[pymodule(gil_used = true)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::array::Array;
    #[pymodule_export]
    use super::bands::{
        SampledBands, min_equal_slots, num_equal, plan_bands, s_curve, search_bands,
    };
    #[pymodule_export]
    use super::bloom::{
        BloomJoin, bloom_features, bloom_signatures, bloom_similarities, largest_set, sketch_bloom,
    };
    #[pymodule_export]
    use super::cluster::{ClusterDecision, ClusterRestoring, ClusterRule, cluster_gets};
    #[pymodule_export]
    use super::csv::{CsvReader, CsvSplitter, csv_header, read_csv_texts};
    #[pymodule_export]
    use super::document_counter::{DocumentCounter, TextSample, term_features};
    #[pymodule_export]
    use super::door::use_isa;
    #[pymodule_export]
    use super::features::{
        Dictionary, FeatureRules, StopWords, TextRules, features, normalize, tokens,
    };
    #[pymodule_export]
    use super::groups::{Components, EqualKeys, Leaders, components, decide_range};
    #[pymodule_export]
    use super::hamming_index::{HammingSet, build_hamming_file};
    #[pymodule_export]
    use super::hamming_join::{
        join_fingerprints, predicted_join_seconds, stream_joined_files, stream_joined_fingerprints,
    };
    #[pymodule_export]
    use super::hamming_plan::{bit_statistics, distances, plan_limits, radius_for, survey_plans};
    #[pymodule_export]
    use super::index::OnlineIndex;
    #[pymodule_export]
    use super::index_given::index_attached;
    #[pymodule_export]
    use super::items::ItemTable;
    #[pymodule_export]
    use super::jsonl::{
        JsonlPiece, JsonlRules, checksum, copy_lines, jsonl_pieces, range_checksum,
        read_jsonl_piece, read_jsonl_texts,
    };
    #[pymodule_export]
    use super::manual_clock::ManualClock;
    #[pymodule_export]
    use super::moved::{MovedDocuments, RowNumbers};
    #[pymodule_export]
    use super::packed::{PackedFile, ParquetJoin, pack_lines};
    #[pymodule_export]
    use super::references::{RarestFeatures, ReferenceSets};
    #[pymodule_export]
    use super::repeats::{RepeatedWindows, SeenTwice, cut_parts, cut_words, equal_stretches};
    #[pymodule_export]
    use super::rewrite::{cut_texts, rewrite_csv_rows, rewrite_jsonl_rows};
    #[pymodule_export]
    use super::searcher::{Candidates, Searcher};
    #[pymodule_export]
    use super::sets::{PrefixJoin, Rarity, count_sets, digest_texts, sample_sets};
    #[pymodule_export]
    use super::sketch::{
        SketchBatch, minhash_features, simhash_features, sketch_minhash, sketch_simhash,
    };
    #[pymodule_export]
    use super::texts::Texts;
    #[pymodule_export]
    use super::verify::{
        FeatureSets, align_sequences, align_texts, aligned_diff, distinct_documents,
    };
    #[pymodule_export]
    use super::weights::WeightTable;

    #[pymodule_init]
    fn constants(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("TEXT_VERSION", likewise_core::text::TEXT_VERSION)?;
        module.add("SHORT_FEATURES", likewise_core::verify::SHORT_FEATURES)?;
        module.add("SKETCH_VERSION", super::SKETCH_VERSION)?;
        module.add("ISA", likewise_core::isa::Isa::best().name())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
