//! gzip and zstd: decompressing a file piece by piece, compressing kept lines.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Mutex;

use likewise_disk as disk;
use likewise_disk::parquet::{Damage, FooterJoin};
use pyo3::prelude::*;

use crate::array::take;
use crate::door::{Object, held, run, run_short};
use crate::errors::{Failure, On, Result};
use crate::jsonl::{open, write_lines};

/// A compressed file that is being decompressed into a plain one.
#[pyclass(frozen, module = "likewise._native")]
pub struct PackedFile {
    unpacker: Mutex<disk::Unpacker>,
    path: PathBuf,
}

fn codec_of(name: &str) -> Result<disk::Codec> {
    disk::Codec::from_name(name).map_err(|error| Failure::parameter("codec", error.to_string()))
}

#[pymethods]
impl PackedFile {
    #[new]
    #[pyo3(signature = (path, spool, *, codec, max_bytes, max_ratio, threads=1))]
    fn new(
        path: PathBuf,
        spool: PathBuf,
        codec: &str,
        max_bytes: u64,
        max_ratio: u64,
        threads: usize,
    ) -> Result<Self> {
        let limits = disk::UnpackLimits {
            max_bytes,
            max_ratio: max_ratio.max(1),
        };
        let target = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&spool)
            .on(&spool)?;
        let unpacker =
            disk::Unpacker::open(open(&path)?, target, codec_of(codec)?, limits, threads)
                .on(&path)?;
        Ok(PackedFile {
            unpacker: Mutex::new(unpacker),
            path,
        })
    }

    /// Decompresses about `piece_bytes` more: `(offset, length, compressed bytes)` of whole lines in the plain file;
    /// None at the end.
    fn next_piece(&self, py: Python<'_>, piece_bytes: u64) -> Result<Option<(u64, u64, u64)>> {
        let piece = run(py, (piece_bytes / 16) as usize, |_| {
            held(&self.unpacker, "reader")?
                .next_piece(piece_bytes)
                .on(&self.path)
        })?;
        Ok(piece.map(|piece| (piece.offset, piece.length, piece.num_packed)))
    }

    /// After the last piece: why the file cannot be decompressed to its end, and the number of plain bytes; None if it
    /// can.
    fn damage(&self) -> Result<Option<(String, u64)>> {
        let unpacker = held(&self.unpacker, "reader")?;
        Ok(unpacker
            .damage()
            .map(|(reason, num_plain)| (reason.to_owned(), num_plain)))
    }
}

/// Writes byte ranges of `source` consecutively into `target`, compressed; returns the bytes written.
#[pyfunction]
#[pyo3(signature = (source, target, offsets, lengths, *, codec, threads=1))]
pub fn pack_lines(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    offsets: &Object<'_>,
    lengths: &Object<'_>,
    codec: &str,
    threads: usize,
) -> Result<u64> {
    let codec = Some(codec_of(codec)?);
    write_lines(py, &source, &target, offsets, lengths, codec, threads)
}

#[pyclass(frozen, module = "likewise._native")]
pub struct ParquetJoin {
    join: Mutex<FooterJoin>,
}

fn failed(damage: Damage) -> Failure {
    Failure::input(damage.to_string())
}

#[pymethods]
impl ParquetJoin {
    #[new]
    #[pyo3(signature = (footer=None))]
    fn new(footer: Option<&[u8]>) -> Result<Self> {
        let join = match footer {
            Some(footer) => FooterJoin::described_by(footer).map_err(failed)?,
            None => FooterJoin::default(),
        };
        Ok(ParquetJoin {
            join: Mutex::new(join),
        })
    }

    /// Joins one more complete file: returns the range of its bytes to write next.
    fn add(&self, py: Python<'_>, file: &Object<'_>) -> Result<(usize, usize)> {
        take!(file: u8);
        let bytes = file;
        let range = run_short(py, |_| held(&self.join, "join")?.add(bytes).map_err(failed))?;
        Ok((range.start, range.end))
    }

    /// The last bytes of the joined file.
    fn finish(&self, py: Python<'_>) -> Result<Vec<u8>> {
        run_short(py, |_| held(&self.join, "join")?.finish().map_err(failed))
    }
}
