//! What does a compressed file hold, piece by piece?

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Codec, Frames, UnpackLimits};
use crate::error::{Doing, Error, Result};
use crate::lines::MAX_PIECE_BYTES;
use crate::position::{read_exact_at, write_all_at};
use likewise_core::error::invalid_if;

/// Bytes decompressed at a time.
const BLOCK_BYTES: usize = 1 << 20;

/// Bytes of the compressed file read at a time.
const READ_BYTES: usize = 256 << 10;

/// Zstandard windows up to 128 MB are accepted, as in its own tool: a frame determines how much memory it takes.
const MAX_WINDOW_LOG: u32 = 27;

const GZIP_MAGIC: u8 = 0x1f;

/// The ratio is not checked below this size: small files of one repeated line are harmless.
const FREE_BYTES: u64 = 64 << 20;

/// Decompresses a file into a plain one, a piece at a time.
pub struct Unpacker {
    input: Input,
    threads: usize,
    spool: File,
    codec: Codec,
    limits: UnpackLimits,
    num_read: Arc<AtomicU64>,
    /// The part of `num_read` that earlier pieces account for.
    num_reported: u64,
    block: Vec<u8>,
    num_unpacked: u64,
    piece_start: u64,
    /// Ends of pieces that were not returned yet, each after a line end; they depend only on the plain bytes.
    cuts: VecDeque<u64>,
    /// The last of all cuts so far.
    last_cut: u64,
    piece_bytes: u64,
    is_done: bool,
    /// Why the file cannot be decompressed to its end.
    damage: Option<String>,
    /// Whether all compressed data precede the damage, so that the last line is complete even without a newline.
    is_behind_all: bool,
}

/// The source of the plain bytes.
enum Input {
    Stream(Box<dyn Read + Send>),
    /// Frames, in parallel; when that ends, a decoder takes over the file.
    Frames(Frames, File),
}

/// Whole lines that were added to the plain file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unpacked {
    pub offset: u64,
    pub length: u64,
    /// Number of compressed bytes read for it.
    pub num_packed: u64,
}

struct Counted {
    file: File,
    num_read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let num_read = self.file.read(buffer)?;
        self.num_read.fetch_add(num_read as u64, Ordering::Relaxed);
        Ok(num_read)
    }
}

impl Unpacker {
    /// Starts to decompress `source` into `spool`, an empty file.
    pub fn open(
        mut source: File,
        spool: File,
        codec: Codec,
        limits: UnpackLimits,
        threads: usize,
    ) -> Result<Self> {
        let num_read = Arc::new(AtomicU64::new(0));
        let failure = |e| Error::io("read", e);
        let size = source.metadata().map_err(failure)?.len();
        let damage =
            (size == 0).then(|| format!("the file is empty: there is no {} header", codec.name()));
        let frames = Frames::new(source.try_clone().map_err(failure)?, size);
        let input = if codec == Codec::Zstd && frames.is_worthwhile() {
            Input::Frames(frames, source)
        } else {
            // On systems where a positioned read moves the cursor, it is no longer at the start.
            source.rewind().map_err(failure)?;
            Input::Stream(decoder(source, codec, &num_read)?)
        };
        Ok(Unpacker {
            input,
            threads,
            spool,
            codec,
            limits,
            num_read,
            num_reported: 0,
            block: vec![0; BLOCK_BYTES],
            num_unpacked: 0,
            piece_start: 0,
            cuts: VecDeque::new(),
            last_cut: 0,
            piece_bytes: 1,
            is_done: damage.is_some(),
            damage,
            is_behind_all: false,
        })
    }

    /// Decompresses about `piece_bytes` more, up to a line end or the end of the file; `None` at the end, or at damage,
    /// which [`damage`](Self::damage) then reports, after whole lines.
    pub fn next_piece(&mut self, piece_bytes: u64) -> Result<Option<Unpacked>> {
        invalid_if(
            piece_bytes == 0 || piece_bytes > MAX_PIECE_BYTES,
            "piece_bytes",
            || format!("{piece_bytes} is outside 1..{MAX_PIECE_BYTES}"),
        )?;
        self.piece_bytes = piece_bytes;
        while !self.is_done && self.cuts.is_empty() {
            self.unpack_block()?;
        }
        let end = match (self.cuts.pop_front(), &self.damage) {
            (Some(end), _) => end,
            (None, Some(_)) if !self.is_behind_all => self.last_line_end()?,
            (None, _) => self.num_unpacked,
        };
        if end == self.piece_start {
            return Ok(None);
        }
        let num_read = self.num_read.load(Ordering::Relaxed);
        let piece = Unpacked {
            offset: self.piece_start,
            length: end - self.piece_start,
            num_packed: num_read - self.num_reported,
        };
        self.piece_start = end;
        self.num_reported = num_read;
        Ok(Some(piece))
    }

    /// Why the file cannot be decompressed to its end, and the number of plain bytes, once all pieces are returned.
    pub fn damage(&self) -> Option<(&str, u64)> {
        self.damage
            .as_deref()
            .map(|reason| (reason, self.num_unpacked))
    }

    /// End of the last whole line that was not returned yet, or the start of the piece if there is none.
    fn last_line_end(&self) -> Result<u64> {
        let mut end = self.num_unpacked;
        let mut block = Vec::new();
        while end > self.piece_start {
            let start = self.piece_start.max(end.saturating_sub(BLOCK_BYTES as u64));
            block.resize((end - start) as usize, 0);
            read_exact_at(&self.spool, &mut block, start).doing("read")?;
            if let Some(at) = memchr::memrchr(b'\n', &block) {
                return Ok(start + at as u64 + 1);
            }
            end = start;
        }
        Ok(end)
    }

    /// Whether frames are currently decompressed as a whole.
    #[cfg(test)]
    pub(super) fn is_by_frames(&self) -> bool {
        matches!(self.input, Input::Frames(..))
    }

    fn unpack_block(&mut self) -> Result<()> {
        let Input::Frames(frames, _) = &mut self.input else {
            return self.stream_block();
        };
        let wave = frames.next_wave(self.threads)?;
        self.num_read.store(frames.position, Ordering::Relaxed);
        if wave.is_empty() {
            return self.leave_frames();
        }
        for plain in wave {
            self.take(&plain)?;
        }
        Ok(())
    }

    fn leave_frames(&mut self) -> Result<()> {
        let Input::Frames(frames, source) = &mut self.input else {
            return Ok(());
        };
        let failure = |e| Error::io("read", e);
        if frames.position == source.metadata().map_err(failure)?.len() {
            self.is_done = true;
            return Ok(());
        }
        let mut source = source.try_clone().map_err(failure)?;
        source
            .seek(SeekFrom::Start(frames.position))
            .map_err(failure)?;
        self.input = Input::Stream(decoder(source, self.codec, &self.num_read)?);
        Ok(())
    }

    fn stream_block(&mut self) -> Result<()> {
        let Input::Stream(input) = &mut self.input else {
            return Ok(());
        };
        let (mut filled, mut failure) = (0, None);
        // The block is filled before it is written: a decoder may return as little as 32 kB at once.
        while filled < self.block.len() {
            match input.read(&mut self.block[filled..]) {
                Ok(0) => {
                    self.is_done = true;
                    break;
                }
                Ok(num_bytes) => filled += num_bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let block = std::mem::take(&mut self.block);
        let taken = self.take(&block[..filled]);
        self.block = block;
        taken?;
        if let Some(error) = failure {
            self.is_behind_all = error.kind() == io::ErrorKind::InvalidInput;
            self.damage = Some(self.reason(error)?);
            self.is_done = true;
        }
        Ok(())
    }

    /// Appends plain bytes.
    fn take(&mut self, plain: &[u8]) -> Result<()> {
        write_all_at(&self.spool, plain, self.num_unpacked).doing("write")?;
        let mut from = (self.last_cut + self.piece_bytes - 1).max(self.num_unpacked);
        while from < self.num_unpacked + plain.len() as u64 {
            let rest = &plain[(from - self.num_unpacked) as usize..];
            let Some(at) = memchr::memchr(b'\n', rest) else {
                break;
            };
            self.last_cut = from + at as u64 + 1;
            self.cuts.push_back(self.last_cut);
            from = self.last_cut + self.piece_bytes - 1;
        }
        self.num_unpacked += plain.len() as u64;
        self.check_limits()
    }

    fn check_limits(&self) -> Result<()> {
        let (unpacked, read) = (self.num_unpacked, self.num_read.load(Ordering::Relaxed));
        if unpacked > self.limits.max_bytes {
            return Err(Error::Damaged {
                reason: format!(
                    "it unpacks to more than {} bytes, which --max-unpacked allows",
                    self.limits.max_bytes
                ),
            });
        }
        if unpacked > FREE_BYTES && unpacked / self.limits.max_ratio > read {
            return Err(Error::Damaged {
                reason: format!(
                    "{read} bytes of it unpack to {unpacked}, over {} times as many, as in a decompression bomb; where that \
                     is right, allow more with --max-unpack-ratio",
                    self.limits.max_ratio
                ),
            });
        }
        Ok(())
    }

    /// Returns what is wrong with the file, or an error if the system failed.
    fn reason(&self, error: io::Error) -> Result<String> {
        // Errors of the system have a number; errors of a decoder have none.
        if error.raw_os_error().is_some() {
            return Err(Error::io("read", error));
        }
        let (name, unpacked) = (self.codec.name(), self.num_unpacked);
        let read = self.num_read.load(Ordering::Relaxed);
        Ok(match error.kind() {
            io::ErrorKind::UnexpectedEof => format!(
                "the file is cut: it ends inside its {name} data, at byte {read}; {unpacked} bytes were unpacked"
            ),
            io::ErrorKind::InvalidInput => error.to_string(),
            _ => format!(
                "the file is damaged ({error}) in the first {read} bytes of its {name} data; {unpacked} bytes were unpacked"
            ),
        })
    }
}

/// The consecutive members of a gzip file.
struct GzipMembers {
    /// `None` between two members.
    member: Option<flate2::bufread::GzDecoder<BufReader<Counted>>>,
}

impl Read for GzipMembers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let num_bytes = member.read(buffer)?;
            if num_bytes > 0 || buffer.is_empty() {
                return Ok(num_bytes);
            }
            let Some(member) = self.member.take() else {
                break;
            };
            let mut rest = member.into_inner();
            skip_padding(&mut rest)?;
            let next = rest.fill_buf()?;
            if next.first().is_some_and(|&byte| byte != GZIP_MAGIC) {
                let num_behind = next.len() as u64;
                let at = rest.get_ref().num_read.load(Ordering::Relaxed) - num_behind;
                let reason = format!(
                    "there are trailing bytes after the gzip stream, from byte {at} on; all before them was unpacked"
                );
                return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
            }
            if !next.is_empty() {
                self.member = Some(flate2::bufread::GzDecoder::new(rest));
            }
        }
        Ok(0)
    }
}

/// Skips zeros after a member, with which tapes and some tools fill the last block; gzip ignores them, too.
fn skip_padding(rest: &mut impl BufRead) -> io::Result<()> {
    loop {
        let next = rest.fill_buf()?;
        let num_zeros = next.iter().take_while(|&&byte| byte == 0).count();
        if num_zeros == 0 {
            return Ok(());
        }
        rest.consume(num_zeros);
    }
}

fn decoder(source: File, codec: Codec, num_read: &Arc<AtomicU64>) -> Result<Box<dyn Read + Send>> {
    let counted = Counted {
        file: source,
        num_read: num_read.clone(),
    };
    let buffered = BufReader::with_capacity(READ_BYTES, counted);
    Ok(match codec {
        Codec::Gzip => Box::new(GzipMembers {
            member: Some(flate2::bufread::GzDecoder::new(buffered)),
        }),
        Codec::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered).doing("read")?;
            decoder.window_log_max(MAX_WINDOW_LOG).doing("read")?;
            Box::new(decoder)
        }
    })
}
