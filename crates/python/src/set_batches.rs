//! Data on feature sets without a sketch: counts of features, digests of texts, samples.

use likewise_core::features::{FeatureView, Shape, TextDigester};
use likewise_core::sketch::Sample;
use pyo3::prelude::*;

use crate::array::Array;
use crate::column::Kind;
use crate::door::{parse_isa, run};
use crate::errors::{Failure, Result};
use crate::features::FeatureRules;
use crate::sets::Rarity;
use crate::sketch::{Batch, Part, SketchBatch};
use crate::text_rules::TextRules;
use crate::texts::Texts;

/// Counts the documents of each feature of a batch of texts; the batch has no sketches, only the data that goes with
/// them.
#[pyfunction]
#[pyo3(signature = (texts, rules, rarity, *, threads=1, isa=None))]
pub fn count_sets(
    py: Python<'_>,
    texts: &Texts,
    rules: &FeatureRules,
    rarity: &Rarity,
    threads: usize,
    isa: Option<&str>,
) -> Result<SketchBatch> {
    let isa = parse_isa(isa)?;
    let batch = Batch {
        column: &texts.column,
        rules,
        sets: true,
        occurrences: false,
        threads,
        isa,
    };
    let rarity = &rarity.counts;
    run(py, texts.column.num_bytes, |cancel| {
        batch.sketch(cancel, || {
            |features: &[u64], _: &[u32], _: &mut Vec<u8>| rarity.add(features)
        })
    })?
    .into_batch(py)
}

/// Digests of the texts as normalized by the rules, in place of those of feature sets; the batch has no sketches.
#[pyfunction]
#[pyo3(signature = (texts, rules, *, threads=1, isa=None))]
pub fn digest_texts(
    py: Python<'_>,
    texts: &Texts,
    rules: &TextRules,
    threads: usize,
    isa: Option<&str>,
) -> Result<SketchBatch> {
    let isa = parse_isa(isa)?;
    let column = texts.column.as_ref();
    if column.kind != Kind::Text {
        return Err(Failure::input("method exact compares texts"));
    }
    run(py, column.num_bytes, |cancel| {
        let make_state = || TextDigester::new(rules.rules.clone(), isa);
        let parts = column.in_parts(
            threads,
            cancel,
            make_state,
            |digester, part: &mut Part<u8>, i| {
                let digest = digester.digest(column.get(i));
                let shape = match digest {
                    Some(_) => Shape::Full,
                    None => Shape::Empty,
                };
                part.digests.extend(digest.unwrap_or_default());
                part.num_features.push(u32::from(digest.is_some()));
                part.shapes.push(shape as u8);
            },
        )?;
        let mut all = Part::default();
        for part in parts {
            all.append(part);
        }
        Ok(all)
    })?
    .into_batch(py)
}

/// Of some texts: ends of their hashes, the hashes, totals, and whether the sample is the whole set.
type Sampled = (Vec<i64>, Vec<u64>, Vec<u64>, Vec<u8>);

/// Samples of feature sets: `(offsets, hashes, totals, whole)`; text i keeps `hashes[offsets[i]:offsets[i + 1]]`,
/// ascending.
#[pyfunction]
#[pyo3(signature = (texts, rules, *, kind, size, threads=1, isa=None))]
pub fn sample_sets(
    py: Python<'_>,
    texts: &Texts,
    rules: &FeatureRules,
    kind: &str,
    size: u64,
    threads: usize,
    isa: Option<&str>,
) -> Result<(Array, Array, Array, Array)> {
    let isa = parse_isa(isa)?;
    let sample = match (kind, u32::try_from(size)) {
        ("min-s", Ok(size)) if size > 0 => Sample::MinS(size),
        ("mod-m", _) if size > 0 => Sample::ModM(size),
        _ => {
            return Err(Failure::parameter(
                "kind",
                format!("{kind:?} of size {size} is none of min-s, mod-m of size 1 or more"),
            ));
        }
    };
    let column = texts.column.as_ref();
    rules.check(column)?;
    let (offsets, hashes, totals, whole) = run(py, column.num_bytes, |cancel| {
        let make_state = || rules.extractor(isa);
        let parts = column.in_parts(
            threads,
            cancel,
            make_state,
            |extractor, part: &mut Sampled, i| {
                let (ends, hashes, totals, whole) = part;
                let FeatureView {
                    features, weights, ..
                } = extractor.features(column.document(i));
                whole.push(u8::from(sample.collect(
                    features,
                    weights,
                    rules.rules.seed,
                    hashes,
                )));
                ends.push(hashes.len() as i64);
                totals.push(match weights.is_empty() {
                    true => features.len() as u64,
                    false => weights.iter().map(|&weight| u64::from(weight)).sum(),
                });
            },
        )?;
        let (mut offsets, mut hashes) = (vec![0], Vec::new());
        let (mut totals, mut whole) = (Vec::new(), Vec::new());
        for part in parts {
            let start = hashes.len() as i64;
            offsets.extend(part.0.iter().map(|end| start + end));
            hashes.extend(part.1);
            totals.extend(part.2);
            whole.extend(part.3);
        }
        Ok((offsets, hashes, totals, whole))
    })?;
    Ok((offsets.into(), hashes.into(), totals.into(), whole.into()))
}
