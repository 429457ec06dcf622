//! What happens when pages of a mapped file can no longer be read?
//!
//! The system raises SIGBUS when a mapped file is truncated or its disk fails, and by default that signal ends the
//! process. A process-wide handler replaces the mapping with zeros and sets a flag instead. A search over it then ends
//! with a meaningless result, so the flag is checked before the result is used. Windows does not truncate a mapped
//! file.
//!
//! No signal is raised for the rest of the page where a truncated file ends, which becomes zeros, or for bytes that are
//! overwritten. To detect these changes, the size and modification time of the file are compared from time to time.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence};
use std::time::SystemTime;

use memmap2::Mmap;

/// Whether a mapped file has changed since it was mapped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fault(Option<Arc<Watched>>);

/// A mapped file, for as long as it is mapped.
#[derive(Debug)]
struct Watched {
    is_set: AtomicBool,
    file: File,
    /// Its size and modification time when it was mapped.
    was: (u64, Option<SystemTime>),
}

impl Watched {
    fn new(file: File) -> io::Result<Self> {
        Ok(Watched {
            is_set: AtomicBool::new(false),
            was: size_and_time(&file)?,
            file,
        })
    }
}

fn size_and_time(file: &File) -> io::Result<(u64, Option<SystemTime>)> {
    let metadata = file.metadata()?;
    Ok((metadata.len(), metadata.modified().ok()))
}

impl Fault {
    /// Returns the fault of the mapped file with these bytes; for other memory, one that is never set.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Fault(handler::watched(bytes))
    }

    /// Whether a read before this call found zeros in place of the file.
    pub(crate) fn is_set(&self) -> bool {
        // The reads must happen before the flag is checked.
        compiler_fence(Ordering::SeqCst);
        let watched = self.0.as_ref();
        watched.is_some_and(|watched| watched.is_set.load(Ordering::Acquire))
    }

    /// Compares the size and time of the file with those at mapping. Cost: about half a microsecond.
    pub(crate) fn look(&self) {
        if let Some(watched) = &self.0
            && size_and_time(&watched.file).is_ok_and(|now| now != watched.was)
        {
            watched.is_set.store(true, Ordering::Release);
        }
    }
}

/// A mapped file whose unreadable pages do not end the process.
pub(super) struct MappedFile {
    map: Mmap,
    _watched: Arc<Watched>,
}

impl MappedFile {
    pub(super) fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the mapping is read only. A writer creates each file under a unique name and only ever deletes it; if
        // another program truncates it, the flag is set.
        let map = unsafe { Mmap::map(file) }?;
        let watched = Arc::new(Watched::new(file.try_clone()?)?);
        handler::watch(&map, &watched)?;
        Ok(MappedFile {
            map,
            _watched: watched,
        })
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        handler::forget(&self.map);
    }
}

#[cfg(unix)]
mod handler {
    use std::io;
    use std::mem::MaybeUninit;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    use libc::{c_int, c_void, siginfo_t};

    use super::Watched;

    /// Mappings per block of the list.
    const BLOCK_SLOTS: usize = 64;

    /// A watched mapping. A free slot has no end.
    struct Slot {
        start: AtomicUsize,
        end: AtomicUsize,
        watched: AtomicPtr<Watched>,
    }

    impl Slot {
        const fn free() -> Self {
            Slot {
                start: AtomicUsize::new(0),
                end: AtomicUsize::new(0),
                watched: AtomicPtr::new(ptr::null_mut()),
            }
        }

        /// Start and end of the mapping, if this address is inside.
        fn range_with(&self, address: usize) -> Option<(usize, usize)> {
            let start = self.start.load(Ordering::Acquire);
            let end = self.end.load(Ordering::Acquire);
            let is_inside = (start..end).contains(&address);
            // The end could belong to another mapping that took the slot in between.
            (is_inside && self.start.load(Ordering::Acquire) == start).then_some((start, end))
        }
    }

    /// A list that the handler reads without a lock. It only grows.
    struct Block {
        slots: [Slot; BLOCK_SLOTS],
        next: AtomicPtr<Block>,
    }

    impl Block {
        const fn new() -> Self {
            Block {
                slots: [const { Slot::free() }; BLOCK_SLOTS],
                next: AtomicPtr::new(ptr::null_mut()),
            }
        }

        fn next(&self) -> Option<&'static Block> {
            // SAFETY: the pointer is null or refers to a leaked block.
            unsafe { self.next.load(Ordering::Acquire).as_ref() }
        }
    }

    static FIRST: Block = Block::new();
    /// Held while the list is changed.
    static CHANGES: Mutex<()> = Mutex::new(());
    /// The previous SIGBUS action of the process; never freed.
    static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());
    /// Whether a signal that was sent by a process was passed on.
    static WAS_PASSED_ON: AtomicBool = AtomicBool::new(false);

    fn changes() -> MutexGuard<'static, ()> {
        CHANGES.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slots() -> impl Iterator<Item = &'static Slot> {
        let blocks = std::iter::successors(Some(&FIRST), |block| block.next());
        blocks.flat_map(|block| &block.slots)
    }

    /// Returns the file of these mapped bytes.
    pub(super) fn watched(bytes: &[u8]) -> Option<Arc<Watched>> {
        let _changes = changes();
        let address = bytes.as_ptr() as usize;
        let slot = slots().find(|slot| slot.range_with(address).is_some())?;
        let watched = slot.watched.load(Ordering::Acquire).cast_const();
        // SAFETY: it came from an `Arc` that the mapping holds, and a mapping is forgotten under the same lock before
        // the `Arc` is dropped.
        unsafe {
            Arc::increment_strong_count(watched);
            Some(Arc::from_raw(watched))
        }
    }

    /// From this call on, sets the flag if pages of these bytes cannot be read.
    pub(super) fn watch(bytes: &[u8], watched: &Arc<Watched>) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let _changes = changes();
        install()?;
        let slot = match slots().find(|slot| slot.end.load(Ordering::Relaxed) == 0) {
            Some(slot) => slot,
            None => &add_block().slots[0],
        };
        let start = bytes.as_ptr() as usize;
        slot.watched
            .store(Arc::as_ptr(watched).cast_mut(), Ordering::Release);
        slot.start.store(start, Ordering::Release);
        slot.end.store(start + bytes.len(), Ordering::Release);
        Ok(())
    }

    fn add_block() -> &'static Block {
        let block: &'static Block = Box::leak(Box::new(Block::new()));
        let last = std::iter::successors(Some(&FIRST), |block| block.next()).last();
        let last = last.unwrap_or(&FIRST);
        last.next
            .store(ptr::from_ref(block).cast_mut(), Ordering::Release);
        block
    }

    /// Stops watching, before the bytes are unmapped.
    pub(super) fn forget(bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let _changes = changes();
        let start = bytes.as_ptr() as usize;
        if let Some(slot) = slots().find(|slot| slot.range_with(start).is_some()) {
            slot.end.store(0, Ordering::Release);
            slot.start.store(0, Ordering::Release);
        }
    }

    /// Installs our handler for the process, also if another one has replaced it since.
    fn install() -> io::Result<()> {
        let ours = on_bus_error as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
        let mut present = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: only queries; a structure of zeros is valid, and it is filled if the call succeeds.
        let present = unsafe {
            if libc::sigaction(libc::SIGBUS, ptr::null(), present.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            present.assume_init()
        };
        if present.sa_sigaction == ours {
            return Ok(());
        }
        // An earlier one may be in use by a thread inside the handler.
        PREVIOUS.store(Box::into_raw(Box::new(present)), Ordering::Release);
        // SAFETY: a structure of zeros is valid and all relevant fields are set; the handler is async-signal-safe.
        let done = unsafe {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            action.sa_sigaction = ours;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut())
        };
        match done {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Replaces a watched mapping with zeros, or calls the previous handler; takes no lock and allocates nothing.
    extern "C" fn on_bus_error(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the system passes a valid structure.
        let (is_sent, address) = unsafe { ((*info).si_code <= 0, (*info).si_addr() as usize) };
        if !is_sent && replace_by_zeros(address) {
            return;
        }
        // SAFETY: the pointer is null or refers to a leaked structure.
        let previous = unsafe { PREVIOUS.load(Ordering::Acquire).as_ref() };
        let known = previous.filter(|action| action.sa_sigaction > libc::SIG_IGN);
        // A handler that raises the signal again, to end the process, must not receive it twice.
        let is_again = is_sent && WAS_PASSED_ON.swap(true, Ordering::AcqRel);
        match known {
            Some(action) if !is_again && action.sa_flags & libc::SA_SIGINFO != 0 => {
                // SAFETY: a handler with this flag has this signature.
                let handle: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                    unsafe { std::mem::transmute(action.sa_sigaction) };
                handle(signal, info, context);
            }
            Some(action) if !is_again => {
                // SAFETY: a handler without the flag has this signature.
                let handle: extern "C" fn(c_int) =
                    unsafe { std::mem::transmute(action.sa_sigaction) };
                handle(signal);
            }
            _ => {
                // SAFETY: both calls are allowed in a handler. The failed access is repeated, or the signal is raised
                // again, which ends the process.
                unsafe {
                    libc::signal(signal, libc::SIG_DFL);
                    if is_sent {
                        libc::raise(signal);
                    }
                }
            }
        }
    }

    /// If the address is in a watched mapping, replaces the whole mapping with zeros and returns true.
    fn replace_by_zeros(address: usize) -> bool {
        for slot in slots() {
            let Some((start, end)) = slot.range_with(address) else {
                continue;
            };
            // SAFETY: the mapping is in use by this thread, so it cannot be forgotten now, and it holds its flag.
            if let Some(watched) = unsafe { slot.watched.load(Ordering::Acquire).as_ref() } {
                watched.is_set.store(true, Ordering::Release);
            }
            // The whole mapping at once: single pages could create too many mappings.
            // SAFETY: the range is one of our mappings, stays read only, and is unmapped as a whole later. Data read
            // from it is not used, because the flag is set.
            let zeros = unsafe {
                libc::mmap(
                    start as *mut c_void,
                    end - start,
                    libc::PROT_READ,
                    libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            return zeros != libc::MAP_FAILED;
        }
        false
    }
}

#[cfg(not(unix))]
mod handler {
    use std::io;
    use std::sync::Arc;

    use super::Watched;

    pub(super) fn watched(_: &[u8]) -> Option<Arc<Watched>> {
        None
    }

    pub(super) fn watch(_: &[u8], _: &Arc<Watched>) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn forget(_: &[u8]) {}
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::thread;

    use super::*;

    #[test]
    fn a_truncated_mapping_has_zeros_and_says_so_in_any_thread() {
        let path = std::env::temp_dir().join(format!("likewise-mapping-{}", std::process::id()));
        fs::write(&path, vec![7_u8; 1 << 20]).unwrap();
        let open = || MappedFile::new(&File::open(&path).unwrap()).unwrap();
        // More mappings than a block of the list holds, so that the list grows.
        let others: Vec<MappedFile> = (0..150).map(|_| open()).collect();
        let (cut, first) = (open(), &others[0]);
        let (fault, other) = (Fault::of(cut.as_ref()), Fault::of(first.as_ref()));
        let sum = |map: &MappedFile| map.as_ref().iter().map(|&b| u64::from(b)).sum::<u64>();
        assert_eq!(sum(&cut), 7 << 20);
        assert!(!fault.is_set());
        OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(5000)
            .unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    assert!(sum(&cut) < 7 << 20);
                    assert!(fault.is_set());
                });
            }
        });
        // The first pages are still there, and no other page was read; the last of them has lost its end.
        assert_eq!(first.as_ref()[0], 7);
        assert_eq!(first.as_ref()[6000], 0);
        assert!(!other.is_set());
        other.look();
        assert!(other.is_set());
        drop((cut, others));
        assert!(!Fault::of(&[1, 2, 3]).is_set());
        fs::remove_file(&path).unwrap();
    }
}
