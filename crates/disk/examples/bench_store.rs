//! How fast and how small is the store? `bench_store DIR [MILLIONS [commit]]`: batches of 1,000 documents, single ones,
//! reads, a scan.
#![allow(missing_docs)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use likewise_disk::Error;
use likewise_disk::store::{
    Description, DocumentRow, Dropping, Durability, Evidence, Keeps, NewRows, Store,
};

const BATCH: usize = 1000;

struct Batch {
    ids: Vec<String>,
    sketches: Vec<u8>,
    digests: Vec<u64>,
    verdicts: Vec<Option<Evidence>>,
}

fn mix(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d049bb133111eb);
    mixed ^ (mixed >> 31)
}

fn batch(first: u64, count: usize, id_bytes: usize) -> Batch {
    let rows = first..first + count as u64;
    let of_digits = |row: u64| format!("{:016x}{:016x}", mix(row), mix(!row));
    Batch {
        ids: rows
            .clone()
            .map(|row| of_digits(row)[..id_bytes].to_owned())
            .collect(),
        sketches: rows
            .clone()
            .flat_map(|row| mix(row + (1 << 40)).to_le_bytes())
            .collect(),
        digests: rows.clone().map(|row| mix(row + (2 << 40))).collect(),
        // One in five is a duplicate.
        verdicts: rows
            .map(|row| {
                (row % 5 == 4).then(|| Evidence {
                    kept_row: (mix(row) % (row + 1)) as u32,
                    similarity: 1.0 - (row % 4) as f64 / 64.0,
                    distance: Some((row % 4) as u16),
                })
            })
            .collect(),
    }
}

fn append(store: &mut Store, batch: &Batch) -> Result<(), Error> {
    let documents: Vec<DocumentRow<'_>> = (batch.ids.iter().enumerate())
        .map(|(i, id)| DocumentRow {
            id,
            sketch: &batch.sketches[8 * i..8 * (i + 1)],
            num_features: 100 + (batch.digests[i] % 900) as u32,
            text_digest: Some(batch.digests[i]),
            verdict: batch.verdicts[i],
            arrival_s: 1_700_000_000,
            ..DocumentRow::default()
        })
        .collect();
    let rows = NewRows {
        documents: &documents,
        ..NewRows::default()
    };
    store.append(&rows, &[]).map(|_| ())
}

fn quantiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    format!(
        "p50 {:.1} us, p99 {:.1} us, most {:.1} us",
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().unwrap_or_else(|| "bench-store".to_owned()));
    let millions: usize = arguments.next().map_or(1, |text| text.parse().unwrap_or(1));
    let durability = match arguments.next().as_deref() {
        Some("commit") => Durability::Commit,
        _ => Durability::Interval(Duration::from_millis(200)),
    };
    let description = Description {
        recipe_json: "{}".to_owned(),
        recipe_id: "r".to_owned(),
        sketch_id: "s".to_owned(),
        sketch_bytes: 8,
        keeps: Keeps::Sketch,
        attached: Default::default(),
    };
    for id_bytes in [24, 32] {
        let _ = std::fs::remove_dir_all(&dir);
        let mut store = Store::create(&dir, &description, durability)?;
        println!("-- ids of {id_bytes} bytes, {durability:?}");
        let mut times = Vec::new();
        let mut whole = Duration::ZERO;
        for i in 0..millions * 1_000_000 / BATCH {
            let batch = batch((i * BATCH) as u64, BATCH, id_bytes);
            let begin = Instant::now();
            append(&mut store, &batch)?;
            times.push(begin.elapsed());
            whole += begin.elapsed();
            if (i + 1) % (1_000_000 / BATCH) == 0 {
                println!(
                    "{} million: {}",
                    (i + 1) * BATCH / 1_000_000,
                    quantiles(std::mem::take(&mut times))
                );
            }
        }
        let n = store.num_rows();
        println!("append: {:.0} rows/s", f64::from(n) / whole.as_secs_f64());
        let sizes = store.sizes()?;
        println!(
            "{:.2} bytes a document; {sizes:?}",
            sizes.database_bytes as f64 / f64::from(n)
        );
        let begin = Instant::now();
        let mut sum = 0;
        store.scan(0..n, |chunk| {
            sum += chunk.sketches.len();
            Ok(())
        })?;
        println!(
            "scan: {:.2e} rows/s ({sum} bytes)",
            f64::from(n) / begin.elapsed().as_secs_f64()
        );
        let times = (0..20_000u64)
            .map(|i| {
                let row = (mix(i) % u64::from(n)) as u32;
                let begin = Instant::now();
                let id = store.row(row).map(|row| row.id.len());
                assert_eq!(id.ok(), Some(id_bytes));
                begin.elapsed()
            })
            .collect();
        println!("row: {}", quantiles(times));
        let reader = store.reader()?;
        let times = (0..20_000u64)
            .map(|_| {
                let begin = Instant::now();
                let _ = reader.changed();
                begin.elapsed()
            })
            .collect();
        println!("changed: {}", quantiles(times));
        let mut times = Vec::new();
        for i in 0..20_000 {
            let batch = batch(u64::from(n) + i, 1, id_bytes);
            let begin = Instant::now();
            append(&mut store, &batch)?;
            times.push(begin.elapsed());
        }
        println!("single: {}", quantiles(times));
        let begin = Instant::now();
        let mut from_row = Some(n - n % 1000);
        while let Some(row) = from_row {
            from_row = store.compact_chunks(row, Dropping::NOTHING)?.next_row;
        }
        println!(
            "joined 20,000 single ones in {:?}; {:?}",
            begin.elapsed(),
            store.sizes()?
        );
        drop(store);
        let begin = Instant::now();
        let store = Store::open(&dir, durability)?;
        println!("open: {:?}", begin.elapsed());
        drop(store);
    }
    std::fs::remove_dir_all(&dir).map_err(|e| Error::io("delete", e))
}
