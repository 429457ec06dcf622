//! How is a weight table stored in a file?
//!
//! `FORMAT.md` describes every byte: a header, then features and weights, each followed by its checksum.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use likewise_core::features::{CellPlan, Entries, MAX_WEIGHT, table_id};
use likewise_core::hash::xxh3_64_with_seed;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::error::{Doing, Result};
use crate::sections::damaged;
use crate::whole::write_whole;

const MAGIC: &[u8; 8] = b"LWWEIGHT";
const VERSION: u32 = 1;
const VERSION_WITH_NAMES: u32 = 2;
/// Bytes before the rules.
const FIXED_BYTES: usize = 88;
const UNKNOWN: u64 = u64::MAX;
/// Features that are converted to bytes at a time.
const FEATURES_AT_ONCE: usize = 8192;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightFile {
    /// What determines the features, as canonical JSON; part of the identity of the table.
    pub rules: String,
    /// Weight of a feature that is not listed.
    pub default_weight: u8,
    /// Bit i is set if there are terms of i + 1 tokens (a lexicon).
    pub term_lengths: u64,
    pub num_documents: u64,
    pub num_incidences: u64,
    /// Number of distinct features counted, if known.
    pub num_features: Option<u64>,
    /// Features or cells, and their weights.
    pub entries: Entries,
    /// Listed words and slots that names of documents are read by.
    pub names: Option<Entries>,
}

impl WeightFile {
    pub fn id(&self) -> u128 {
        let id = table_id(self.rules.as_bytes(), self.default_weight, &self.entries);
        let Some(names) = &self.names else { return id };
        let of_names = table_id(&[], MAX_WEIGHT, names);
        xxh3_128(&[id.to_le_bytes(), of_names.to_le_bytes()].concat())
    }
}

/// Writes a table to a new file, which gets its name only when it is complete and synced.
pub fn write_weights(path: &Path, content: &WeightFile) -> Result<()> {
    let write_new = |file: &File| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        write_to(&mut out, content)?;
        out.into_inner()
            .map_err(std::io::IntoInnerError::into_error)?
            .sync_all()
    };
    write_whole(path, |file, _| write_new(file).doing("write"))
}

/// Returns the bytes that [`write_weights`] writes.
pub fn weights_to_bytes(content: &WeightFile) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write_to(&mut bytes, content).doing("write")?;
    Ok(bytes)
}

fn write_to(out: &mut impl Write, content: &WeightFile) -> std::io::Result<()> {
    let header = header(content);
    out.write_all(&header)?;
    out.write_all(&checksum(&header).to_le_bytes())?;
    write_entries(out, &content.entries)?;
    if let Some(names) = &content.names {
        out.write_all(&num_listed(names).to_le_bytes())?;
        write_entries(out, names)?;
    }
    Ok(())
}

fn num_listed(entries: &Entries) -> u64 {
    match entries {
        Entries::Listed { features, .. } => features.len() as u64,
        Entries::Cells { .. } => 0,
    }
}

fn write_entries(out: &mut impl Write, entries: &Entries) -> std::io::Result<()> {
    let (features, weights) = match entries {
        Entries::Listed { features, weights } => (&features[..], weights),
        Entries::Cells { weights, .. } => (&[][..], weights),
    };
    let mut hasher = Xxh3::new();
    let mut bytes = Vec::with_capacity(8 * FEATURES_AT_ONCE);
    for features in features.chunks(FEATURES_AT_ONCE) {
        bytes.clear();
        bytes.extend(features.iter().flat_map(|feature| feature.to_le_bytes()));
        hasher.update(&bytes);
        out.write_all(&bytes)?;
    }
    out.write_all(&hasher.digest().to_le_bytes())?;
    out.write_all(weights)?;
    out.write_all(&checksum(weights).to_le_bytes())
}

fn header(content: &WeightFile) -> Vec<u8> {
    let (kind, plan) = match &content.entries {
        Entries::Listed { features, .. } => (
            0u32,
            CellPlan {
                depth: 0,
                width: features.len() as u64,
            },
        ),
        Entries::Cells { plan, .. } => (1, *plan),
    };
    let mut header = MAGIC.to_vec();
    let version = match content.names {
        Some(_) => VERSION_WITH_NAMES,
        None => VERSION,
    };
    for value in [version, kind, u32::from(content.default_weight), plan.depth] {
        header.extend(value.to_le_bytes());
    }
    for value in [
        plan.width,
        content.term_lengths,
        content.num_documents,
        content.num_incidences,
        content.num_features.unwrap_or(UNKNOWN),
        content.rules.len() as u64,
    ] {
        header.extend(value.to_le_bytes());
    }
    header.extend(content.id().to_le_bytes());
    debug_assert_eq!(header.len(), FIXED_BYTES);
    header.extend(content.rules.as_bytes());
    header.resize(header.len().next_multiple_of(8), 0);
    header
}

/// Reads a file written by [`write_weights`].
pub fn read_weights(path: &Path) -> Result<WeightFile> {
    let mut file = File::open(path).doing("open")?;
    let metadata = file.metadata().doing("read the size")?;
    read_from(&mut file, metadata.len())
}

/// Reads the bytes returned by [`weights_to_bytes`].
pub fn weights_of_bytes(mut bytes: &[u8]) -> Result<WeightFile> {
    let num_bytes = bytes.len() as u64;
    read_from(&mut bytes, num_bytes)
}

fn read_from(source: &mut dyn Read, num_bytes: u64) -> Result<WeightFile> {
    let mut reader = Reader {
        left: num_bytes,
        source,
    };
    let header = reader.header()?;
    let (kind, default_weight, depth) = (
        u32_at(&header, 12),
        u32_at(&header, 16),
        u32_at(&header, 20),
    );
    let [
        width,
        term_lengths,
        num_documents,
        num_incidences,
        num_features,
        rules_len,
    ] = [24, 32, 40, 48, 56, RULES_LEN_AT].map(|at| u64_at(&header, at));
    let rules = header[FIXED_BYTES..FIXED_BYTES + rules_len as usize].to_vec();
    let rules = String::from_utf8(rules).map_err(|_| damaged("its rules are not UTF-8"))?;
    let plan = CellPlan { depth, width };
    let (num_listed, num_weights) = match kind {
        0 => (width, Some(width)),
        1 => (0, u64::from(depth).checked_mul(width)),
        _ => return Err(damaged(format!("it has the unknown kind {kind}"))),
    };
    let (features, weights) = reader.entries(num_listed, num_weights)?;
    let names = match u32_at(&header, VERSION_AT) {
        VERSION => None,
        _ => Some(reader.names()?),
    };
    if reader.left != 0 {
        return Err(damaged(format!("{} bytes follow its end", reader.left)));
    }
    let content = WeightFile {
        rules,
        default_weight: u8::try_from(default_weight)
            .ok()
            .filter(|&weight| weight <= MAX_WEIGHT)
            .ok_or_else(|| damaged("its header is damaged"))?,
        term_lengths,
        num_documents,
        num_incidences,
        num_features: (num_features != UNKNOWN).then_some(num_features),
        entries: match kind {
            0 => Entries::Listed { features, weights },
            _ => Entries::Cells { plan, weights },
        },
        names,
    };
    let id = u128::from(u64_at(&header, 72)) | u128::from(u64_at(&header, 80)) << 64;
    match content.id() == id {
        true => Ok(content),
        false => Err(damaged("its identity does not match its content")),
    }
}

struct Reader<'a> {
    source: &'a mut dyn Read,
    left: u64,
}

/// Places in the header: of the version, and of the length of the rules, which follow the fixed bytes.
const VERSION_AT: usize = 8;
const RULES_LEN_AT: usize = 64;

impl Reader<'_> {
    /// Reads the header with the rules, followed by its checksum, of a version that is known.
    fn header(&mut self) -> Result<Vec<u8>> {
        let mut header = self.take(FIXED_BYTES as u64)?;
        if !header.starts_with(MAGIC) {
            return Err(damaged("not a weight table"));
        }
        let version = u32_at(&header, VERSION_AT);
        if !(VERSION..=VERSION_WITH_NAMES).contains(&version) {
            return Err(damaged(format!(
                "its version is {version}; this one reads versions {VERSION} and {VERSION_WITH_NAMES}"
            )));
        }
        let padded = u64_at(&header, RULES_LEN_AT)
            .checked_next_multiple_of(8)
            .ok_or_else(|| damaged("its header is damaged"))?;
        header.extend(self.take(padded)?);
        self.check(&header)?;
        Ok(header)
    }

    fn names(&mut self) -> Result<Entries> {
        let num_names = u64_at(&self.take(8)?, 0);
        let (features, weights) = self.entries(num_names, Some(num_names))?;
        Ok(Entries::Listed { features, weights })
    }

    /// Reads listed features and weights, each followed by its checksum.
    fn entries(
        &mut self,
        num_listed: u64,
        num_weights: Option<u64>,
    ) -> Result<(Vec<u64>, Vec<u8>)> {
        let num_bytes = num_listed
            .checked_mul(8)
            .ok_or_else(|| damaged("its header is damaged"))?;
        let bytes = self.take(num_bytes)?;
        self.check(&bytes)?;
        let features = bytes
            .chunks_exact(8)
            .map(|bytes| u64_at(bytes, 0))
            .collect();
        drop(bytes);
        let weights = self.take(num_weights.ok_or_else(|| damaged("its header is damaged"))?)?;
        self.check(&weights)?;
        Ok((features, weights))
    }

    /// Reads `num_bytes` bytes; never allocates more memory than the file can fill.
    fn take(&mut self, num_bytes: u64) -> Result<Vec<u8>> {
        if num_bytes > self.left {
            return Err(damaged("it ends too early"));
        }
        self.left -= num_bytes;
        let mut bytes = vec![0; num_bytes as usize];
        self.source.read_exact(&mut bytes).doing("read")?;
        Ok(bytes)
    }

    fn check(&mut self, bytes: &[u8]) -> Result<()> {
        let expected = self.take(8)?;
        match u64_at(&expected, 0) == checksum(bytes) {
            true => Ok(()),
            false => Err(damaged("a checksum is wrong")),
        }
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, 0)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or([0; 4]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or([0; 8]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples() -> [WeightFile; 3] {
        let listed = WeightFile {
            rules: "{\"shingle\":2}".to_owned(),
            default_weight: 15,
            term_lengths: 0,
            num_documents: 7,
            num_incidences: 19,
            num_features: Some(11),
            entries: Entries::Listed {
                features: vec![1, 5, u64::MAX],
                weights: vec![3, 1, 14],
            },
            names: None,
        };
        let named = WeightFile {
            names: Some(Entries::Listed {
                features: vec![2, 3],
                weights: vec![0, 9],
            }),
            ..listed.clone()
        };
        let cells = WeightFile {
            num_features: None,
            entries: Entries::Cells {
                plan: CellPlan { depth: 2, width: 5 },
                weights: (1..=10).collect(),
            },
            ..listed.clone()
        };
        [listed, named, cells]
    }

    #[test]
    fn what_was_written_is_read() {
        let directory =
            std::env::temp_dir().join(format!("likewise-weights-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for (i, content) in examples().iter().enumerate() {
            let path = directory.join(format!("{i}.weights"));
            write_weights(&path, content).unwrap();
            assert_eq!(&read_weights(&path).unwrap(), content);
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!(weights_to_bytes(content).unwrap(), bytes);
            assert_eq!(&weights_of_bytes(&bytes).unwrap(), content);
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 1;
                std::fs::write(&path, changed).unwrap();
                assert!(
                    read_weights(&path).is_err(),
                    "byte {at} of example {i} changed unseen"
                );
                std::fs::write(&path, &bytes[..at]).unwrap();
                assert!(
                    read_weights(&path).is_err(),
                    "cut at {at} of example {i} unseen"
                );
            }
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
