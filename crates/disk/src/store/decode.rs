//! How is a chunk read in place?

use super::bytes::{CHECKSUM_BYTES, Cursor, Malformed, Packed, open};
use super::encode::{
    HAS_DROPPED, HAS_FEATURE_DIGESTS, HAS_TEXT_DIGESTS, SIMILARITY_GIVEN, SIMILARITY_OF_DISTANCE,
    SIMILARITY_ONE, similarity_of,
};
use super::types::{Chunk, Evidence};

/// The record of a chunk, with a verified checksum.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) first_row: u32,
    pub(super) batch: u64,
    /// Which digests it has, as flags.
    pub(super) flags: u8,
    pub(super) num_rows: u32,
    pub(super) num_documents: usize,
    /// The places of the documents among the rows, if some were dropped.
    places: Option<Packed<'a>>,
    sketch_bytes: usize,
    num_runs: usize,
    runs: Cursor<'a>,
    id_lengths: Packed<'a>,
    ids: &'a [u8],
    sketches: &'a [u8],
    shapes: Packed<'a>,
    num_features: Packed<'a>,
    has_content: Packed<'a>,
    text_digests: Option<&'a [[u8; 8]]>,
    feature_digests: Option<&'a [[u8; 16]]>,
    verdicts: Verdicts<'a>,
    levels: Levels<'a>,
}

/// Number of rows that a chunk covers, and the places of its documents among them if some were dropped.
fn rows_covered<'a>(
    cursor: &mut Cursor<'a>,
    flags: u8,
    num_documents: usize,
) -> Result<(u32, Option<Packed<'a>>), Malformed> {
    let (covered, places) = match flags & HAS_DROPPED {
        0 => (u32::try_from(num_documents).map_err(|_| Malformed)?, None),
        _ => {
            let covered = cursor.varint_u32()?;
            if num_documents >= covered as usize {
                return Err(Malformed);
            }
            (covered, Some(cursor.packed(num_documents)?))
        }
    };
    match covered {
        0 => Err(Malformed),
        _ => Ok((covered, places)),
    }
}

/// Skips runs of documents that arrived together; all documents are in one.
fn skip_runs(cursor: &mut Cursor<'_>, num_runs: usize, num_rows: usize) -> Result<(), Malformed> {
    let mut num_arrived = 0usize;
    for _ in 0..num_runs {
        num_arrived = num_arrived.saturating_add(cursor.varint_u32()? as usize);
        cursor.varint()?;
    }
    match num_arrived == num_rows {
        true => Ok(()),
        false => Err(Malformed),
    }
}

/// Which documents were removed, and the evidence of those.
#[derive(Debug, Clone, Copy)]
struct Verdicts<'a> {
    is_removed: &'a [u8],
    kept_rows: Packed<'a>,
    distances: Packed<'a>,
    forms: Packed<'a>,
    similarities: &'a [[u8; 8]],
}

impl<'a> Verdicts<'a> {
    fn read(cursor: &mut Cursor<'a>, num_documents: usize) -> Result<Self, Malformed> {
        let is_removed = cursor.take(num_documents.div_ceil(8))?;
        let num_removed = rank(is_removed, num_documents);
        let kept_rows = cursor.packed(num_removed)?;
        let distances = cursor.packed(num_removed)?;
        let forms = cursor.packed(num_removed)?;
        let num_given = num_given(forms, num_removed);
        Ok(Verdicts {
            is_removed,
            kept_rows,
            distances,
            forms,
            similarities: cursor.take(num_given * 8)?.as_chunks().0,
        })
    }

    fn is_removed(&self, i: usize) -> bool {
        (self.is_removed[i / 8] >> (i % 8)) & 1 == 1
    }
}

/// Number of explicit similarities of the first `end` removed documents.
fn num_given(forms: Packed<'_>, end: usize) -> usize {
    (0..end)
        .filter(|&i| forms.get(i) == SIMILARITY_GIVEN)
        .count()
}

/// Buckets above level 0.
#[derive(Debug, Clone, Copy)]
struct Levels<'a> {
    num: usize,
    positions: Packed<'a>,
    bands: Packed<'a>,
    levels: Packed<'a>,
}

impl<'a> Levels<'a> {
    fn read(cursor: &mut Cursor<'a>, num_documents: usize) -> Result<Self, Malformed> {
        let num = cursor.size()?;
        // At most all bands of every document.
        if num > num_documents << 16 {
            return Err(Malformed);
        }
        Ok(Levels {
            num,
            positions: cursor.packed(num)?,
            bands: cursor.packed(num)?,
            levels: cursor.packed(num)?,
        })
    }

    /// The positions of documents with bands and levels.
    fn all(self) -> impl Iterator<Item = (usize, (u16, u8))> {
        (0..self.num).map(move |j| {
            let level = (self.bands.get(j) as u16, self.levels.get(j) as u8);
            (self.positions.get(j) as usize, level)
        })
    }
}

impl<'a> View<'a> {
    /// Reads the record of the chunk that begins at `first_row`.
    pub(super) fn new(
        record: &'a [u8],
        first_row: u32,
        sketch_bytes: usize,
    ) -> Result<Self, Malformed> {
        open(record, u64::from(first_row))?;
        View::of_proven(record, first_row, sketch_bytes)
    }

    /// Same as [`new`](Self::new), for a record whose checksum was verified before.
    pub(super) fn of_proven(
        record: &'a [u8],
        first_row: u32,
        sketch_bytes: usize,
    ) -> Result<Self, Malformed> {
        let mut cursor = Cursor(record.get(CHECKSUM_BYTES..).ok_or(Malformed)?);
        let batch = cursor.u64()?;
        let flags = cursor.byte()?;
        if flags & !(HAS_TEXT_DIGESTS | HAS_FEATURE_DIGESTS | HAS_DROPPED) != 0 {
            return Err(Malformed);
        }
        let num_documents = cursor.count()?;
        let (num_rows_covered, places) = rows_covered(&mut cursor, flags, num_documents)?;
        // From here on, a row means a remaining one.
        let num_rows = num_documents;
        let num_runs = cursor.count()?;
        let runs = cursor;
        skip_runs(&mut cursor, num_runs, num_rows)?;
        let id_lengths = cursor.packed(num_rows)?;
        let num_id_bytes = (0..num_rows)
            .map(|i| id_lengths.get(i) as usize)
            .try_fold(0usize, usize::checked_add)
            .ok_or(Malformed)?;
        // Read in the order of the fields.
        let view = View {
            first_row,
            batch,
            flags: flags & !HAS_DROPPED,
            num_rows: num_rows_covered,
            num_documents,
            places,
            sketch_bytes,
            num_runs,
            runs,
            id_lengths,
            ids: cursor.take(num_id_bytes)?,
            sketches: cursor.take(num_rows.checked_mul(sketch_bytes).ok_or(Malformed)?)?,
            shapes: cursor.packed(num_rows)?,
            num_features: cursor.packed(num_rows)?,
            has_content: cursor.packed(num_rows)?,
            text_digests: match flags & HAS_TEXT_DIGESTS {
                0 => None,
                _ => Some(cursor.take(num_rows * 8)?.as_chunks().0),
            },
            feature_digests: match flags & HAS_FEATURE_DIGESTS {
                0 => None,
                _ => Some(cursor.take(num_rows * 16)?.as_chunks().0),
            },
            verdicts: Verdicts::read(&mut cursor, num_rows)?,
            levels: Levels::read(&mut cursor, num_rows)?,
        };
        cursor.end()?;
        Ok(view)
    }

    pub(super) fn row(&self, i: usize) -> u32 {
        let place = self.places.map_or(i as u32, |places| places.get(i));
        self.first_row.saturating_add(place)
    }

    pub(super) fn num_below(&self, row: u32) -> usize {
        let place = row.saturating_sub(self.first_row);
        let Some(places) = self.places else {
            return (place as usize).min(self.num_documents);
        };
        let (mut low, mut high) = (0, self.num_documents);
        while low < high {
            let middle = low + (high - low) / 2;
            match places.get(middle) < place {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Returns the index of the document of a row, or `None` if it was dropped.
    pub(super) fn position_of(&self, row: u32) -> Option<usize> {
        let i = self.num_below(row);
        (i < self.num_documents && self.row(i) == row).then_some(i)
    }

    pub(super) fn id(&self, i: usize) -> Result<&'a str, Malformed> {
        let begin: usize = (0..i).map(|j| self.id_lengths.get(j) as usize).sum();
        let end = begin + self.id_lengths.get(i) as usize;
        str::from_utf8(&self.ids[begin..end]).map_err(|_| Malformed)
    }

    pub(super) fn sketch(&self, i: usize) -> &'a [u8] {
        &self.sketches[i * self.sketch_bytes..(i + 1) * self.sketch_bytes]
    }

    pub(super) fn shape(&self, i: usize) -> u8 {
        self.shapes.get(i) as u8
    }

    pub(super) fn num_features(&self, i: usize) -> u32 {
        self.num_features.get(i)
    }

    /// Whether a feature set or a text of the document was stored.
    pub(super) fn has_content(&self, i: usize) -> bool {
        self.has_content.get(i) != 0
    }

    pub(super) fn text_digest(&self, i: usize) -> Option<u64> {
        self.text_digests.map(|all| u64::from_le_bytes(all[i]))
    }

    pub(super) fn feature_digest(&self, i: usize) -> Option<u128> {
        self.feature_digests.map(|all| u128::from_le_bytes(all[i]))
    }

    /// Evidence of a removed document at the time of its commit.
    pub(super) fn verdict(&self, i: usize) -> Result<Option<Evidence>, Malformed> {
        if !self.verdicts.is_removed(i) {
            return Ok(None);
        }
        let nth = rank(self.verdicts.is_removed, i);
        let num_given = num_given(self.verdicts.forms, nth);
        self.evidence(nth, num_given).map(Some)
    }

    /// Evidence of removed document `nth`, which is preceded by `num_given` explicit similarities.
    fn evidence(&self, nth: usize, num_given: usize) -> Result<Evidence, Malformed> {
        let verdicts = &self.verdicts;
        let distance = verdicts.distances.get(nth).checked_sub(1);
        let similarity = match (verdicts.forms.get(nth), distance) {
            (SIMILARITY_GIVEN, _) => {
                f64::from_le_bytes(*verdicts.similarities.get(num_given).ok_or(Malformed)?)
            }
            (SIMILARITY_ONE, _) => 1.0,
            (SIMILARITY_OF_DISTANCE, Some(distance)) => {
                similarity_of(distance, 8 * self.sketch_bytes)
            }
            _ => return Err(Malformed),
        };
        Ok(Evidence {
            kept_row: verdicts.kept_rows.get(nth),
            similarity,
            distance: distance
                .map(u16::try_from)
                .transpose()
                .map_err(|_| Malformed)?,
        })
    }

    /// Returns the buckets of a document above level 0.
    pub(super) fn levels_of(&self, i: usize) -> Vec<(u16, u8)> {
        let own = self.levels.all().filter(|&(position, _)| position == i);
        own.map(|(_, level)| level).collect()
    }

    /// Returns runs of documents that arrived together, and their arrival times.
    pub(super) fn arrivals_s(&self) -> Result<Vec<(u32, u64)>, Malformed> {
        let mut cursor = self.runs;
        let mut arrival_s = 0u64;
        (0..self.num_runs)
            .map(|_| {
                let count = cursor.varint_u32()?;
                arrival_s = arrival_s.wrapping_add(cursor.varint()?);
                Ok((count, arrival_s))
            })
            .collect()
    }

    /// Returns the arrival time of a document in seconds since 1970.
    pub(super) fn arrival_s(&self, i: usize) -> Result<u64, Malformed> {
        let mut begin = 0;
        for (count, arrival_s) in self.arrivals_s()? {
            begin += count as usize;
            if i < begin {
                return Ok(arrival_s);
            }
        }
        Err(Malformed)
    }

    /// Returns these documents as they were committed, column by column.
    pub(super) fn unpack(&self) -> Result<Chunk, Malformed> {
        let documents = 0..self.num_documents;
        let span = self.first_row..self.first_row.checked_add(self.num_rows).ok_or(Malformed)?;
        let rows: Vec<u32> = documents.clone().map(|i| self.row(i)).collect();
        let ids = str::from_utf8(self.ids).map_err(|_| Malformed)?;
        let mut end = 0;
        let of_id = |i| {
            end += self.id_lengths.get(i);
            end
        };
        let id_ends: Vec<u32> = documents.clone().map(of_id).collect();
        let mut levels = vec![Vec::new(); rows.len()];
        for (position, level) in self.levels.all() {
            levels.get_mut(position).ok_or(Malformed)?.push(level);
        }
        let is_whole = rows.is_sorted_by(|a, b| a < b)
            && rows.last().is_none_or(|last| span.contains(last))
            && id_ends
                .iter()
                .all(|&end| ids.is_char_boundary(end as usize));
        if !is_whole {
            return Err(Malformed);
        }
        let mut arrivals_s = Vec::with_capacity(rows.len());
        for (count, arrival_s) in self.arrivals_s()? {
            arrivals_s.extend(std::iter::repeat_n(arrival_s, count as usize));
        }
        Ok(Chunk {
            span,
            gone: vec![false; rows.len()],
            rows,
            batch: self.batch,
            id_ends,
            ids: ids.to_owned(),
            sketches: self.sketches.to_vec(),
            shapes: documents.clone().map(|i| self.shape(i)).collect(),
            num_features: documents.clone().map(|i| self.num_features(i)).collect(),
            has_content: documents.clone().map(|i| self.has_content(i)).collect(),
            text_digests: documents.clone().map(|i| self.text_digest(i)).collect(),
            feature_digests: documents.map(|i| self.feature_digest(i)).collect(),
            verdicts: self.verdicts()?,
            levels,
            arrivals_s,
        })
    }

    /// Appends the documents that `is_kept` selects to a chunk that ends where this one begins, with its flags.
    pub(super) fn join(
        &self,
        joined: &mut Chunk,
        is_kept: impl Fn(u32) -> bool,
    ) -> Result<(), Malformed> {
        let chunk = self.unpack()?;
        joined.batch = self.batch;
        joined.span.end = chunk.span.end;
        let kept = chunk
            .documents()
            .filter(|document| is_kept(document.document.row));
        kept.for_each(|document| joined.push(document));
        Ok(())
    }

    fn verdicts(&self) -> Result<Vec<Option<Evidence>>, Malformed> {
        let (mut nth, mut num_given) = (0, 0);
        let of = |i: usize| {
            if !self.verdicts.is_removed(i) {
                return Ok(None);
            }
            let evidence = self.evidence(nth, num_given)?;
            num_given += usize::from(self.verdicts.forms.get(nth) == SIMILARITY_GIVEN);
            nth += 1;
            Ok(Some(evidence))
        };
        (0..self.num_documents).map(of).collect()
    }
}

/// Number of ones among the first `end` bits.
fn rank(bits: &[u8], end: usize) -> usize {
    let whole: u32 = bits[..end / 8].iter().map(|byte| byte.count_ones()).sum();
    let rest = match end % 8 {
        0 => 0,
        left => (bits[end / 8] & ((1 << left) - 1)).count_ones(),
    };
    (whole + rest) as usize
}
