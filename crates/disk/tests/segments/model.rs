//! Documents in a plain list, and what a segment of them must return.

use likewise_core::parallel::Run;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use likewise_core::bands::BandKey;
use likewise_core::hash::mix64;
use likewise_core::isa::Isa;
use likewise_core::sketch::Signatures;
use likewise_disk::Error;
use likewise_disk::environment::{Files, PlainFiles};
use likewise_disk::segments::{
    BandPlan, Building, Expected, HammingPlan, RowSource, Segment, SegmentPlan, SourceRow,
    build_segment,
};
use likewise_disk::store::LiveSegment;
use likewise_hamming::Fingerprints;
use likewise_hamming::index::Reach;
use xxhash_rust::xxh3::xxh3_64;

pub static STOP: AtomicBool = AtomicBool::new(false);
pub const IDENTITY: [u8; 16] = *b"identity of this";
pub const SKETCH_ID: &str = "sketches-of-this-test";

#[derive(Debug, Clone)]
pub struct Document {
    pub id: String,
    pub sketch: Vec<u8>,
    pub leader: Option<u32>,
    pub is_gone: bool,
    pub is_found: bool,
    pub is_short: bool,
    pub class: Option<u64>,
    pub levels: Vec<(u16, u8)>,
}

/// All documents of a store.
#[derive(Debug, Clone)]
pub struct Model {
    pub plan: SegmentPlan,
    pub documents: Vec<Document>,
}

pub const BANDS: BandPlan = BandPlan {
    num_slots: 8,
    slot_bytes: 2,
    bands: 3,
    rows: 2,
};

pub const SIGNATURES: SegmentPlan = SegmentPlan {
    hamming: None,
    bands: Some(BANDS),
};

pub const FINGERPRINTS: SegmentPlan = SegmentPlan {
    hamming: Some(HammingPlan {
        bits: 64,
        within: 3,
        table_bytes: None,
    }),
    bands: None,
};

impl Model {
    /// Creates documents: one in four was removed because of an earlier or later one, one in nine is gone, and some
    /// cannot be found by their sketches. Slots have few values, so that buckets hold many documents.
    pub fn new(plan: SegmentPlan, num: u32) -> Self {
        let documents = (0..num).map(|row| {
            let random = |i: u64| mix64(u64::from(row) * 64 + i);
            let sketch = match plan.bands {
                Some(bands) => (0..u64::from(bands.num_slots))
                    .flat_map(|slot| ((random(slot) % 40) as u16).to_le_bytes())
                    .collect(),
                // Neighbors that differ in few bits.
                None => (mix64(u64::from(row) / 3) ^ 1 << (random(0) % 64))
                    .to_le_bytes()
                    .to_vec(),
            };
            let is_removed = random(20).is_multiple_of(4);
            let leader = is_removed.then(|| (random(21) % u64::from(num)) as u32);
            let is_first = !random(22).is_multiple_of(5);
            let levels = (0..3_u16)
                .filter(|&band| random(30 + u64::from(band)).is_multiple_of(6))
                .map(|band| (band, 1 + (random(40 + u64::from(band)) % 3) as u8));
            Document {
                // Some ids occur twice: the first document was removed by the user.
                id: format!("document {}", row - u32::from(row % 50 == 49)),
                sketch,
                leader,
                is_gone: random(23).is_multiple_of(9) || row % 50 == 48,
                is_found: is_first,
                is_short: random(25).is_multiple_of(3),
                class: is_first.then(|| random(24)),
                levels: levels.collect(),
            }
        });
        Model {
            plan,
            documents: documents.collect(),
        }
    }

    pub fn build(
        &self,
        dir: &Path,
        files: &dyn Files,
        rows: Range<u32>,
        memory_bytes: usize,
    ) -> Result<LiveSegment, Error> {
        let live = self.build_any(dir, files, rows, memory_bytes)?;
        Ok(live.expect("some row is not gone"))
    }

    pub fn build_any(
        &self,
        dir: &Path,
        files: &dyn Files,
        rows: Range<u32>,
        memory_bytes: usize,
    ) -> Result<Option<LiveSegment>, Error> {
        let building = Building {
            isa: Isa::Plain,
            run: Run {
                threads: 2,
                cancel: &STOP,
            },
            memory_bytes,
        };
        build_segment(dir, files, self, rows, &self.plan, building)
    }

    /// Makes all possible queries: each answer must be right, or an error, which is returned.
    pub fn ask(&self, segment: &Segment) -> Result<(), Error> {
        let rows = segment.rows();
        let mut out = Vec::new();
        let mut expect = |found: Result<Vec<u32>, Error>,
                          holds: &dyn Fn(&Document) -> bool|
         -> Result<(), Error> {
            out.clear();
            out.extend(found?.into_iter().filter(|&row| holds(self.at(row))));
            let expected: Vec<u32> = rows.clone().filter(|&row| holds(self.at(row))).collect();
            assert_eq!(out, expected);
            Ok(())
        };
        for row in rows.clone() {
            let document = self.at(row);
            let hash = xxh3_64(document.id.as_bytes());
            expect(collect(|out| segment.rows_of_id(hash, out)), &|other| {
                other.id == document.id && !other.is_gone
            })?;
            let is_kept = document.leader.is_none() && !document.is_gone;
            assert_eq!(segment.is_kept(row)?, is_kept);
            assert_eq!(segment.holds(row)?, !document.is_gone);
            assert_eq!(
                segment.is_found(row)?,
                document.is_found && !document.is_gone
            );
            assert_eq!(
                segment.is_short(row)?,
                document.is_short && !document.is_gone
            );
            if let Some(class) = document.class {
                expect(collect(|out| segment.rows_of_class(class, out)), &|other| {
                    other.class == Some(class) && !other.is_gone
                })?;
            }
            for band in 0..self.plan.bands.map_or(0, |bands| bands.bands) {
                let Some(key) = key_of(document, band) else {
                    continue;
                };
                expect(collect(|out| segment.bucket(band, key, out)), &|other| {
                    key_of(other, band) == Some(key)
                })?;
            }
        }
        for leader in 0..self.documents.len() as u32 {
            let found = collect(|out| segment.members(leader, out))?;
            let expected: Vec<u32> = rows
                .clone()
                .filter(|&row| self.at(row).leader == Some(leader) && !self.at(row).is_gone)
                .collect();
            assert_eq!(found, expected);
        }
        let held = rows.filter(|&row| !self.at(row).is_gone);
        assert_eq!(segment.num_rows as usize, held.count());
        match segment.hamming() {
            Some(_) => self.ask_fingerprints(segment),
            None => Ok(()),
        }
    }

    fn ask_fingerprints(&self, segment: &Segment) -> Result<(), Error> {
        let rows = segment.rows();
        let set = segment.hamming().unwrap();
        let code = |row: u32| {
            let bytes = self.at(row).sketch.as_slice();
            u64::from_le_bytes(bytes.try_into().unwrap())
        };
        let queries: Vec<u64> = rows.clone().map(code).collect();
        let queries = Fingerprints::new(&queries, 64);
        let found = set
            .search(queries, Reach::new(3, Isa::Plain, Run::alone(&STOP)))
            .map_err(|error| match error {
                likewise_core::error::Error::Damaged => Error::Damaged {
                    reason: segment.damage().unwrap(),
                },
                other => other.into(),
            })?;
        for (i, row) in rows.clone().enumerate() {
            let range = found.offsets[i] as usize..found.offsets[i + 1] as usize;
            let near: Vec<u32> = found.rows[range]
                .iter()
                .map(|&near| segment.row_at(near).unwrap())
                .collect();
            let expected: Vec<u32> = rows
                .clone()
                .filter(|&other| {
                    let document = self.at(other);
                    let distance = (code(other) ^ code(row)).count_ones();
                    document.is_found && !document.is_gone && distance <= 3
                })
                .collect();
            assert_eq!(near, expected);
        }
        Ok(())
    }

    fn at(&self, row: u32) -> &Document {
        &self.documents[row as usize]
    }
}

/// Returns the key of a document in a band, if it has one.
pub fn key_of(document: &Document, band: u32) -> Option<u64> {
    let level = document
        .levels
        .iter()
        .find(|(other, _)| u32::from(*other) == band)
        .map_or(0, |&(_, level)| level);
    let is_member = document.is_found && !document.is_gone && level < 3;
    is_member.then(|| {
        let shape = Signatures {
            bytes: &[],
            num_slots: 8,
            slot_bytes: 2,
        };
        BandKey::new(&shape, band, 2, u32::from(level)).of(&document.sketch)
    })
}

pub fn collect(find: impl FnOnce(&mut Vec<u32>) -> Result<(), Error>) -> Result<Vec<u32>, Error> {
    let mut out = Vec::new();
    find(&mut out).map(|()| out)
}

impl RowSource for Model {
    fn identity(&self) -> [u8; 16] {
        IDENTITY
    }

    fn sketch_id(&self) -> &str {
        SKETCH_ID
    }

    fn last_event(&self) -> u64 {
        7
    }

    fn batch_before(&self, end: u32) -> Result<u64, Error> {
        Ok(batch_before(end))
    }

    fn each_row(
        &self,
        rows: Range<u32>,
        each: &mut dyn FnMut(&SourceRow<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for row in rows {
            let document = &self.documents[row as usize];
            each(&SourceRow {
                row,
                id: &document.id,
                sketch: &document.sketch,
                leader: document.leader,
                is_gone: document.is_gone,
                is_found: document.is_found,
                is_short: document.is_short,
                class: document.class,
                levels: &document.levels,
            })?;
        }
        Ok(())
    }
}

pub fn batch_before(end: u32) -> u64 {
    mix64(u64::from(end))
}

pub fn open(dir: &Path, live: &LiveSegment, verify: bool) -> Result<Segment, Error> {
    let expected = Expected {
        identity: IDENTITY,
        sketch_id: SKETCH_ID,
        batch: batch_before(live.rows.end),
    };
    Segment::open(dir, &PlainFiles, live, &expected, verify, &STOP)
}

/// A directory that is deleted when the test succeeds.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("likewise-segments-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn segments(&self) -> PathBuf {
        self.0.join("segments")
    }

    /// Names of the files in the directory of segments.
    pub fn names(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.segments()) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
