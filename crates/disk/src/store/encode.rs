//! How is a chunk of documents written?

use super::bytes::{BitWriter, begin, put_packed, put_varint, seal};
use super::types::{Chunk, ChunkRow, DocumentRow, Evidence, NewContent, NewRows};

pub(super) const MAX_CHUNK_ROWS: usize = 1000;
/// Maximum size of a chunk in bytes, except for large documents. SQLite stores 489 bytes of such a record in a shared
/// page of 4096, and the rest in overflow pages of 4092, of which this size fills four.
pub(super) const CHUNK_BYTES: usize = 489 + 4 * 4092;

pub(super) const HAS_TEXT_DIGESTS: u8 = 1;
pub(super) const HAS_FEATURE_DIGESTS: u8 = 2;
/// Chunk flag: some of its rows were dropped, so it lists the remaining ones.
pub(super) const HAS_DROPPED: u8 = 4;

/// Encoding of a similarity: its bits follow.
pub(super) const SIMILARITY_GIVEN: u32 = 0;
pub(super) const SIMILARITY_ONE: u32 = 1;
/// Encoding of a similarity: it is 1 - distance / bits of a sketch.
pub(super) const SIMILARITY_OF_DISTANCE: u32 = 2;

/// Approximate minimum size of a document in a chunk, without its id.
pub(super) fn row_bytes(sketch_bytes: usize, has_text: bool, has_features: bool) -> usize {
    sketch_bytes + 1 + 8 * usize::from(has_text) + 16 * usize::from(has_features)
}

/// End of the longest run of documents from position `begin` on that should fit in a chunk: at least one, at most `most`.
fn end_of_chunk(rows: &NewRows<'_>, begin: usize, most: usize) -> usize {
    let mut num_bytes = 0;
    let fits = |document: &&DocumentRow<'_>| {
        let has_text = document.text_digest.is_some();
        num_bytes +=
            row_bytes(document.sketch.len(), has_text, rows.has_digests) + document.id.len();
        num_bytes <= CHUNK_BYTES
    };
    let documents = rows.documents[begin..].iter();
    begin + documents.take(most).take_while(fits).count().max(1)
}

impl Chunk {
    /// Returns the longest run of documents from position `begin` on that should fit, at most `most`, and its end. None
    /// arrived before `arrival_s`.
    pub(super) fn of(
        rows: &NewRows<'_>,
        begin: usize,
        first_row: u32,
        batch: u64,
        arrival_s: u64,
        most: usize,
    ) -> (Self, usize) {
        let end = end_of_chunk(rows, begin, most);
        let documents = &rows.documents[begin..end];
        let span = first_row..first_row + documents.len() as u32;
        let mut chunk = Chunk {
            span: span.clone(),
            batch,
            ..Chunk::default()
        };
        for (row, document) in span.zip(documents) {
            chunk.push(ChunkRow {
                document: DocumentRow {
                    row,
                    arrival_s: document.arrival_s.max(arrival_s),
                    ..*document
                },
                feature_digest: rows.has_digests.then_some(document.digest),
                has_content: !matches!(document.content, NewContent::Absent),
                is_gone: false,
            });
        }
        (chunk, end)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        begin(out);
        out.extend_from_slice(&self.batch.to_le_bytes());
        let has_dropped = self.span.len() != self.rows.len();
        out.push(
            (HAS_TEXT_DIGESTS * u8::from(self.text_digests.is_some()))
                | (HAS_FEATURE_DIGESTS * u8::from(self.feature_digests.is_some()))
                | (HAS_DROPPED * u8::from(has_dropped)),
        );
        put_varint(out, self.rows.len() as u64);
        if has_dropped {
            put_varint(out, self.span.len() as u64);
            put_packed(out, self.rows.iter().map(|row| row - self.span.start));
        }
        let runs = || self.arrivals_s.chunk_by(|a, b| a == b);
        put_varint(out, runs().count() as u64);
        let mut last_s = 0;
        for run in runs() {
            put_varint(out, run.len() as u64);
            put_varint(out, run[0] - last_s);
            last_s = run[0];
        }
        put_packed(out, (0..self.rows.len()).map(|i| self.id(i).len() as u32));
        out.extend_from_slice(self.ids.as_bytes());
        out.extend_from_slice(&self.sketches);
        put_packed(out, self.shapes.iter().map(|&shape| u32::from(shape)));
        put_packed(out, self.num_features.iter().copied());
        put_packed(out, self.has_content.iter().map(|&has| u32::from(has)));
        for digest in self.text_digests.iter().flatten() {
            out.extend_from_slice(&digest.to_le_bytes());
        }
        for digest in self.feature_digests.iter().flatten() {
            out.extend_from_slice(&digest.to_le_bytes());
        }
        self.encode_verdicts(out);
        let levels = || {
            let levels = (0..).zip(&self.levels);
            levels.flat_map(|(position, all)| all.iter().map(move |level| (position, level)))
        };
        put_varint(out, levels().count() as u64);
        put_packed(out, levels().map(|(position, _)| position));
        put_packed(out, levels().map(|(_, level)| u32::from(level.0)));
        put_packed(out, levels().map(|(_, level)| u32::from(level.1)));
        seal(out, u64::from(self.span.start));
    }

    fn encode_verdicts(&self, out: &mut Vec<u8>) {
        let mut bits = BitWriter::new(out);
        for verdict in &self.verdicts {
            bits.put(u64::from(verdict.is_some()), 1);
        }
        bits.end();
        let sketch_bits = 8 * self.sketches.len() / self.shapes.len().max(1);
        let removed = self.verdicts.iter().flatten();
        put_packed(out, removed.clone().map(|evidence| evidence.kept_row));
        put_packed(
            out,
            removed.clone().map(|evidence| {
                evidence
                    .distance
                    .map_or(0, |distance| u32::from(distance) + 1)
            }),
        );
        let form = |evidence: &Evidence| form_of(evidence, sketch_bits);
        put_packed(out, removed.clone().map(form));
        for evidence in removed.filter(|evidence| form(evidence) == SIMILARITY_GIVEN) {
            out.extend_from_slice(&evidence.similarity.to_bits().to_le_bytes());
        }
    }
}

pub(super) fn similarity_of(distance: u32, sketch_bits: usize) -> f64 {
    1.0 - f64::from(distance) / sketch_bits as f64
}

fn form_of(evidence: &Evidence, sketch_bits: usize) -> u32 {
    let bits = evidence.similarity.to_bits();
    if bits == 1f64.to_bits() {
        return SIMILARITY_ONE;
    }
    match evidence.distance {
        Some(distance) if bits == similarity_of(u32::from(distance), sketch_bits).to_bits() => {
            SIMILARITY_OF_DISTANCE
        }
        _ => SIMILARITY_GIVEN,
    }
}
