//! Builds a segment of synthetic documents, queries it, and prints times and sizes:
//! `bench_segments FOLDER ROWS simhash|BANDSxROWS [MEMORY_BYTES [THREADS]]`.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use likewise_core::bands::BandKey;
use likewise_core::hash::mix64;
use likewise_core::isa::Isa;
use likewise_core::parallel::Run;
use likewise_core::sketch::Signatures;
use likewise_disk::Error;
use likewise_disk::environment::PlainFiles;
use likewise_disk::segments::{
    BandPlan, Building, Expected, HammingPlan, RowSource, Segment, SegmentPlan, SourceRow,
    build_segment, unlink_segments,
};
use xxhash_rust::xxh3::xxh3_64;

/// Documents that are computed from their rows; one in ten was removed.
struct Made {
    bands: Option<BandPlan>,
}

impl Made {
    fn sketch(&self, row: u32, out: &mut Vec<u8>) {
        out.clear();
        let num_words = self
            .bands
            .map_or(1, |plan| plan.num_slots * plan.slot_bytes / 8);
        for word in 0..num_words {
            out.extend(mix64(u64::from(row) << 8 | u64::from(word)).to_le_bytes());
        }
    }
}

impl RowSource for Made {
    fn identity(&self) -> [u8; 16] {
        [1; 16]
    }

    fn sketch_id(&self) -> &str {
        "made up"
    }

    fn last_event(&self) -> u64 {
        0
    }

    fn batch_before(&self, _: u32) -> Result<u64, Error> {
        Ok(1)
    }

    fn each_row(
        &self,
        rows: Range<u32>,
        each: &mut dyn FnMut(&SourceRow<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut sketch = Vec::new();
        for row in rows {
            self.sketch(row, &mut sketch);
            let id = id_of(row);
            let is_removed = row % 10 == 9;
            each(&SourceRow {
                row,
                id: &id,
                sketch: &sketch,
                leader: is_removed.then(|| row - 1 - row % 7),
                is_gone: false,
                is_found: true,
                is_short: false,
                class: Some(mix64(u64::from(row))),
                levels: &[],
            })?;
        }
        Ok(())
    }
}

fn id_of(row: u32) -> String {
    format!("{:024x}", mix64(u64::from(row)))
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, num_rows, kind, rest @ ..] = arguments.as_slice() else {
        println!("bench_segments FOLDER ROWS simhash|BANDSxROWS [MEMORY_BYTES [THREADS]]");
        return Ok(());
    };
    let number = |i: usize, default: usize| -> usize {
        rest.get(i).and_then(|a| a.parse().ok()).unwrap_or(default)
    };
    let dir = PathBuf::from(folder).join("segments");
    let num_rows: u32 = num_rows.parse().unwrap_or(100_000);
    let bands = kind.split_once('x').map(|(bands, rows)| BandPlan {
        num_slots: 128,
        slot_bytes: 2,
        bands: bands.parse().unwrap_or(16),
        rows: rows.parse().unwrap_or(8),
    });
    let plan = SegmentPlan {
        hamming: bands.is_none().then_some(HammingPlan {
            bits: 64,
            within: 3,
            table_bytes: Some(12),
        }),
        bands,
    };
    let stop = AtomicBool::new(false);
    let building = Building {
        isa: Isa::best(),
        run: Run {
            threads: number(1, 2),
            cancel: &stop,
        },
        memory_bytes: number(0, 256 << 20),
    };
    let source = Made { bands };
    let start = Instant::now();
    source.each_row(0..num_rows, &mut |_| Ok(()))?;
    println!(
        "one pass over the source: {:.2} s",
        start.elapsed().as_secs_f64()
    );
    let start = Instant::now();
    let live = build_segment(&dir, &PlainFiles, &source, 0..num_rows, &plan, building)?;
    let live = live.ok_or_else(|| Error::invalid("rows", "there are none"))?;
    let build_s = start.elapsed().as_secs_f64();
    println!(
        "build: {build_s:.2} s, {:.0} rows/s",
        f64::from(num_rows) / build_s
    );
    let expected = Expected {
        identity: [1; 16],
        sketch_id: "made up",
        batch: 1,
    };
    let start = Instant::now();
    let segment = Segment::open(&dir, &PlainFiles, &live, &expected, false, &stop)?;
    println!("open: {:.2} ms", 1e3 * start.elapsed().as_secs_f64());
    for (name, num_bytes) in segment.sizes() {
        println!(
            "{name}: {:.3} bytes a row",
            num_bytes as f64 / f64::from(num_rows)
        );
    }
    let num_asked = 1_000_000;
    for round in ["first", "second"] {
        let known: Vec<u64> = (0..num_asked)
            .map(|i| xxh3_64(id_of((mix64(i) % u64::from(num_rows)) as u32).as_bytes()))
            .collect();
        let strange: Vec<u64> = (0..num_asked).map(|i| mix64(i << 33)).collect();
        for (name, hashes) in [("known", &known), ("strange", &strange)] {
            let mut found = Vec::new();
            let start = Instant::now();
            for batch in hashes.chunks(1000) {
                segment.rows_of_ids(batch, &mut found)?;
            }
            let many_s = start.elapsed().as_secs_f64();
            let mut rows = Vec::new();
            let start = Instant::now();
            for &hash in hashes {
                segment.rows_of_id(hash, &mut rows)?;
            }
            let single_s = start.elapsed().as_secs_f64();
            println!(
                "{round} time, {name} ids: {:.1} M/s in batches, {:.1} M/s one by one, {:.4} rows each",
                num_asked as f64 / many_s / 1e6,
                num_asked as f64 / single_s / 1e6,
                rows.len() as f64 / num_asked as f64
            );
        }
    }
    if let Some(plan) = bands {
        ask_bands(&source, &segment, &plan, num_rows)?;
    }
    unlink_segments(&dir, &PlainFiles, &[live.name])
}

/// Looks up all buckets, of existing documents and of others.
fn ask_bands(
    source: &Made,
    segment: &Segment,
    plan: &BandPlan,
    num_rows: u32,
) -> Result<(), Error> {
    let num_documents = 20_000_u32;
    let shape = Signatures {
        bytes: &[],
        num_slots: 128,
        slot_bytes: 2,
    };
    for (name, first) in [("known", 0), ("strange", num_rows)] {
        let mut sketch = Vec::new();
        let mut keys = vec![Vec::new(); plan.bands as usize];
        for i in 0..num_documents {
            let row = first + (mix64(u64::from(i)) % u64::from(num_rows)) as u32;
            source.sketch(row, &mut sketch);
            for (band, keys) in keys.iter_mut().enumerate() {
                keys.push(BandKey::new(&shape, band as u32, plan.rows, 0).of(&sketch));
            }
        }
        for round in ["first", "second"] {
            let mut found = Vec::new();
            let start = Instant::now();
            for at in (0..num_documents as usize).step_by(1000) {
                for (band, keys) in keys.iter().enumerate() {
                    segment.buckets(band as u32, &keys[at..at + 1000], &mut found)?;
                }
            }
            let many_s = start.elapsed().as_secs_f64();
            println!(
                "{round} time, all bands of {name} documents: {:.0} documents/s in batches, {:.2} rows each",
                f64::from(num_documents) / many_s,
                found.len() as f64 / f64::from(num_documents)
            );
        }
    }
    Ok(())
}
