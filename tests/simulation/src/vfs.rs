//! The simulated disk as a file system of SQLite.
//!
//! All `unsafe` code of this crate is here. It relies on what SQLite guarantees in the description of `sqlite3_vfs` and
//! `sqlite3_io_methods`: pointers to this file system and to files that it opened, names that end in 0, and buffers of
//! the stated lengths.

#![allow(non_snake_case, reason = "named like the methods of SQLite")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::mem::size_of;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::ffi;

use crate::disk::{Disk, Inode, Kind, Named};
use crate::files;
use crate::shared_memory::{NUM_LOCKS, SharedMemory};

/// Bytes of a region of shared memory.
const REGION: usize = 32 << 10;

/// A file that SQLite has open.
struct Handle {
    disk: Arc<Disk>,
    process: u64,
    owner: Option<usize>,
    inode: Inode,
    path: Option<PathBuf>,
    deletes: bool,
    /// Whether the first sync also makes its name durable, as SQLite does for new journals.
    syncs_name: bool,
    level: c_int,
    memory: Option<Arc<SharedMemory>>,
    shared_locks: [bool; NUM_LOCKS],
    own_locks: [bool; NUM_LOCKS],
}

#[repr(C)]
struct File {
    base: ffi::sqlite3_file,
    handle: *mut Handle,
}

/// A disk that is registered with SQLite until this is dropped. No connection may be open then.
pub struct Registered {
    vfs: Box<ffi::sqlite3_vfs>,
    name: CString,
    disk: *const Disk,
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(x_close),
    xRead: Some(x_read),
    xWrite: Some(x_write),
    xTruncate: Some(x_truncate),
    xSync: Some(x_sync),
    xFileSize: Some(x_file_size),
    xLock: Some(x_lock),
    xUnlock: Some(x_unlock),
    xCheckReservedLock: Some(x_check_reserved_lock),
    xFileControl: Some(x_file_control),
    xSectorSize: Some(x_sector_size),
    xDeviceCharacteristics: Some(x_device_characteristics),
    xShmMap: Some(x_shm_map),
    xShmLock: Some(x_shm_lock),
    xShmBarrier: Some(x_shm_barrier),
    xShmUnmap: Some(x_shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

impl Registered {
    /// Registers the disk with SQLite.
    pub fn new(disk: &Arc<Disk>) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = CString::new(format!("simulated-{number}")).unwrap_or_default();
        let disk = Arc::into_raw(disk.clone());
        let mut vfs = Box::new(ffi::sqlite3_vfs {
            iVersion: 2,
            szOsFile: size_of::<File>() as c_int,
            mxPathname: 512,
            pNext: ptr::null_mut(),
            zName: name.as_ptr(),
            pAppData: disk.cast_mut().cast(),
            xOpen: Some(x_open),
            xDelete: Some(x_delete),
            xAccess: Some(x_access),
            xFullPathname: Some(x_full_pathname),
            xDlOpen: None,
            xDlError: None,
            xDlSym: None,
            xDlClose: None,
            xRandomness: Some(x_randomness),
            xSleep: Some(x_sleep),
            xCurrentTime: Some(x_current_time),
            xGetLastError: Some(x_get_last_error),
            xCurrentTimeInt64: Some(x_current_time_int64),
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        });
        // SAFETY: the structure, its name and the disk live until `drop` removes the registration.
        let code = unsafe { ffi::sqlite3_vfs_register(&raw mut *vfs, 0) };
        assert_eq!(code, ffi::SQLITE_OK, "SQLite takes a file system");
        Registered { vfs, name, disk }
    }

    /// The registered name.
    pub fn name(&self) -> String {
        self.name.to_string_lossy().into_owned()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // SAFETY: it was registered by `new`, which also leaked the reference to the disk; no connection uses either
        // any more.
        unsafe {
            ffi::sqlite3_vfs_unregister(&raw mut *self.vfs);
            drop(Arc::from_raw(self.disk));
        }
    }
}

/// Seeds the random numbers of SQLite for the whole process.
pub fn seed_sqlite(seed: u64) {
    let seed = (seed ^ (seed >> 32)) as c_int | 1;
    let none: *mut ffi::sqlite3 = ptr::null_mut();
    // SAFETY: this operation takes an integer and a connection, which may be null.
    unsafe {
        ffi::sqlite3_initialize();
        ffi::sqlite3_test_control(ffi::SQLITE_TESTCTRL_PRNG_SEED, seed, none);
    }
}

/// # Safety
/// `vfs` must belong to a `Registered`.
unsafe fn disk_of(vfs: *mut ffi::sqlite3_vfs) -> Arc<Disk> {
    // SAFETY: guaranteed by the caller; the pointer came from `Arc::into_raw` and its reference is still held, so
    // another can be counted.
    unsafe {
        let disk = (*vfs).pAppData.cast_const().cast::<Disk>();
        Arc::increment_strong_count(disk);
        Arc::from_raw(disk)
    }
}

/// # Safety
/// `name` must end in 0.
unsafe fn path_of(name: *const c_char) -> PathBuf {
    // SAFETY: guaranteed by the caller.
    let name = unsafe { CStr::from_ptr(name) };
    PathBuf::from(name.to_string_lossy().into_owned())
}

/// # Safety
/// `file` must have been opened by `x_open` and not closed; no other reference to its handle may be in use.
unsafe fn handle_of<'a>(file: *mut ffi::sqlite3_file) -> &'a mut Handle {
    // SAFETY: guaranteed by the caller.
    unsafe { &mut *(*file.cast::<File>()).handle }
}

fn code_of(error: &io::Error, otherwise: c_int) -> c_int {
    match error.kind() {
        io::ErrorKind::StorageFull => ffi::SQLITE_FULL,
        _ => otherwise,
    }
}

unsafe extern "C" fn x_open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite provides space for a `File`, and checks the methods even if opening failed.
    unsafe { (*file).pMethods = ptr::null() };
    // SAFETY: SQLite calls this with the file system that was registered.
    let disk = unsafe { disk_of(vfs) };
    let path = match name.is_null() {
        true => None,
        // SAFETY: names end in 0.
        false => Some(unsafe { path_of(name) }),
    };
    let scheduler = disk.scheduler();
    let owner = scheduler.current();
    let process = disk.state().process;
    let creates = flags & ffi::SQLITE_OPEN_CREATE != 0;
    let opened = disk
        .begin(process, owner, Kind::Other, "open", [flags as usize, 0, 0])
        .and_then(|mut state| {
            let Some(path) = &path else {
                return Ok(state.make_node());
            };
            match state.file(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && creates => {
                    let inode = state.make_node();
                    state.make_name(path, Named::File(inode))?;
                    Ok(inode)
                }
                found => found,
            }
        });
    let Ok(inode) = opened else {
        return ffi::SQLITE_CANTOPEN;
    };
    let journals =
        ffi::SQLITE_OPEN_WAL | ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL;
    let handle = Box::new(Handle {
        disk,
        process,
        owner,
        inode,
        deletes: flags & ffi::SQLITE_OPEN_DELETEONCLOSE != 0,
        syncs_name: creates && flags & journals != 0,
        path,
        level: ffi::SQLITE_LOCK_NONE,
        memory: None,
        shared_locks: [false; NUM_LOCKS],
        own_locks: [false; NUM_LOCKS],
    });
    // SAFETY: as above; `out_flags` is null or writable.
    unsafe {
        (*file.cast::<File>()).handle = Box::into_raw(handle);
        (*file).pMethods = &raw const METHODS;
        if !out_flags.is_null() {
            *out_flags = flags;
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn x_close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite closes what it opened, once.
    let mut handle = unsafe { Box::from_raw((*file.cast::<File>()).handle) };
    handle.unlock(ffi::SQLITE_LOCK_NONE);
    handle.leave_memory();
    if handle.deletes
        && let Some(path) = &handle.path
    {
        let mut state = handle.disk.state();
        if state.process == handle.process {
            let _ = state.unlink(path);
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn x_read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    amount: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: the file is open.
    let handle = unsafe { handle_of(file) };
    // SAFETY: the buffer has that many bytes.
    let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), amount as usize) };
    let offset = offset as usize;
    let detail = [handle.inode, offset, buffer.len()];
    let Ok(state) = handle.begin(Kind::Read, "read", detail) else {
        return ffi::SQLITE_IOERR_READ;
    };
    let all = state.bytes(handle.inode);
    let found = &all[offset.min(all.len())..(offset + buffer.len()).min(all.len())];
    buffer[..found.len()].copy_from_slice(found);
    if found.len() == buffer.len() {
        return ffi::SQLITE_OK;
    }
    buffer[found.len()..].fill(0);
    ffi::SQLITE_IOERR_SHORT_READ
}

unsafe extern "C" fn x_write(
    file: *mut ffi::sqlite3_file,
    buffer: *const c_void,
    amount: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: the file is open.
    let handle = unsafe { handle_of(file) };
    // SAFETY: the buffer has that many bytes.
    let buffer = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), amount as usize) };
    let offset = offset as usize;
    let detail = [handle.inode, offset, buffer.len()];
    match handle.begin(Kind::Write, "write", detail) {
        Ok(mut state) => {
            state.write(handle.inode, offset, buffer);
            ffi::SQLITE_OK
        }
        Err(error) => {
            let mut state = handle.disk.state();
            if state.process == handle.process {
                state.fail_write(handle.inode, offset, buffer);
            }
            code_of(&error, ffi::SQLITE_IOERR_WRITE)
        }
    }
}

unsafe extern "C" fn x_truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    // SAFETY: the file is open.
    let handle = unsafe { handle_of(file) };
    let detail = [handle.inode, size as usize, 0];
    match handle.begin(Kind::Other, "truncate", detail) {
        Ok(mut state) => {
            state.resize(handle.inode, size as usize);
            ffi::SQLITE_OK
        }
        Err(_) => ffi::SQLITE_IOERR_TRUNCATE,
    }
}

unsafe extern "C" fn x_sync(file: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    // SAFETY: the file is open.
    let handle = unsafe { handle_of(file) };
    let synced = files::sync(&handle.disk, handle.process, handle.owner, handle.inode);
    if let Err(error) = synced {
        return code_of(&error, ffi::SQLITE_IOERR_FSYNC);
    }
    if handle.syncs_name {
        let parent = handle.path.as_deref().and_then(Path::parent);
        let parent = parent.unwrap_or(Path::new("/")).to_owned();
        let synced = handle
            .begin(Kind::Sync, "sync directory", [0; 3])
            .and_then(|mut state| state.sync_directory(&parent));
        if synced.is_err() {
            return ffi::SQLITE_IOERR_DIR_FSYNC;
        }
        handle.syncs_name = false;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn x_file_size(file: *mut ffi::sqlite3_file, size: *mut i64) -> c_int {
    // SAFETY: the file is open.
    let handle = unsafe { handle_of(file) };
    match handle.begin(Kind::Read, "size", [handle.inode, 0, 0]) {
        Ok(state) => {
            // SAFETY: SQLite provides space for the result.
            unsafe { *size = state.bytes(handle.inode).len() as i64 };
            ffi::SQLITE_OK
        }
        Err(_) => ffi::SQLITE_IOERR_FSTAT,
    }
}

unsafe extern "C" fn x_lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: the file is open.
    unsafe { handle_of(file) }.lock(level)
}

unsafe extern "C" fn x_unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: the file is open.
    unsafe { handle_of(file) }.unlock(level);
    ffi::SQLITE_OK
}

unsafe extern "C" fn x_check_reserved_lock(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: the file is open.
    let handle = unsafe { handle_of(file) };
    let mut state = handle.disk.state();
    // SAFETY: SQLite provides space for the result.
    unsafe { *out = c_int::from(state.node(handle.inode).locks.reserved) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn x_file_control(_: *mut ffi::sqlite3_file, _: c_int, _: *mut c_void) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn x_sector_size(_: *mut ffi::sqlite3_file) -> c_int {
    4096
}

unsafe extern "C" fn x_device_characteristics(_: *mut ffi::sqlite3_file) -> c_int {
    // What SQLite assumes of the system's files.
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn x_shm_map(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    _: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: the file is open.
    let handle = unsafe { handle_of(file) };
    let region = region as usize;
    let memory = match &handle.memory {
        Some(memory) => memory.clone(),
        None => {
            let Ok(mut state) = handle.begin(Kind::Write, "map", [handle.inode, 0, 0]) else {
                return ffi::SQLITE_IOERR_SHMOPEN;
            };
            let memory = state.shared_memory.entry(handle.inode).or_default().clone();
            drop(state);
            memory.state().num_users += 1;
            handle.memory = Some(memory.clone());
            memory
        }
    };
    let mut shared = memory.state();
    while extend != 0 && shared.regions.len() <= region {
        shared.regions.push(vec![0; REGION / 8].into_boxed_slice());
    }
    let address = match shared.regions.get_mut(region) {
        Some(region) => region.as_mut_ptr().cast(),
        None => ptr::null_mut(),
    };
    // SAFETY: SQLite provides space for the result.
    unsafe { *out = address };
    ffi::SQLITE_OK
}

unsafe extern "C" fn x_shm_lock(
    file: *mut ffi::sqlite3_file,
    offset: c_int,
    num: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: the file is open.
    unsafe { handle_of(file) }.lock_memory(offset as usize, num as usize, flags)
}

unsafe extern "C" fn x_shm_barrier(_: *mut ffi::sqlite3_file) {}

unsafe extern "C" fn x_shm_unmap(file: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    // SAFETY: the file is open.
    unsafe { handle_of(file) }.leave_memory();
    ffi::SQLITE_OK
}

impl Handle {
    fn begin(
        &self,
        kind: Kind,
        what: &str,
        detail: [usize; 3],
    ) -> io::Result<std::sync::MutexGuard<'_, crate::disk::State>> {
        self.disk
            .begin(self.process, self.owner, kind, what, detail)
    }

    fn lock(&mut self, level: c_int) -> c_int {
        if self.level >= level {
            return ffi::SQLITE_OK;
        }
        let mut state = self.disk.state();
        if state.process != self.process || state.death.is_some() {
            return ffi::SQLITE_IOERR_LOCK;
        }
        let locks = &mut state.node(self.inode).locks;
        if self.level == ffi::SQLITE_LOCK_NONE {
            if locks.pending || locks.exclusive {
                return ffi::SQLITE_BUSY;
            }
            locks.shared += 1;
            self.level = ffi::SQLITE_LOCK_SHARED;
        }
        if level >= ffi::SQLITE_LOCK_RESERVED && self.level < ffi::SQLITE_LOCK_RESERVED {
            if locks.reserved {
                return ffi::SQLITE_BUSY;
            }
            locks.reserved = true;
            self.level = ffi::SQLITE_LOCK_RESERVED;
        }
        if level == ffi::SQLITE_LOCK_EXCLUSIVE {
            locks.pending = true;
            self.level = ffi::SQLITE_LOCK_PENDING;
            if locks.shared > 1 {
                return ffi::SQLITE_BUSY;
            }
            locks.exclusive = true;
            self.level = ffi::SQLITE_LOCK_EXCLUSIVE;
        }
        ffi::SQLITE_OK
    }

    fn unlock(&mut self, level: c_int) {
        let mut state = self.disk.state();
        let before = std::mem::replace(&mut self.level, level);
        if state.process != self.process || before <= level {
            return;
        }
        let locks = &mut state.node(self.inode).locks;
        if before >= ffi::SQLITE_LOCK_EXCLUSIVE {
            locks.exclusive = false;
        }
        if before >= ffi::SQLITE_LOCK_PENDING {
            locks.pending = false;
        }
        if before >= ffi::SQLITE_LOCK_RESERVED {
            locks.reserved = false;
        }
        if level == ffi::SQLITE_LOCK_NONE {
            locks.shared -= 1;
        }
    }

    fn lock_memory(&mut self, offset: usize, num: usize, flags: c_int) -> c_int {
        let Some(memory) = &self.memory else {
            return ffi::SQLITE_IOERR_SHMLOCK;
        };
        let is_dead = {
            let state = self.disk.state();
            state.process != self.process || state.death.is_some()
        };
        let mut shared = memory.state();
        let range = offset..offset + num;
        if flags & ffi::SQLITE_SHM_UNLOCK != 0 {
            for lock in range {
                if std::mem::take(&mut self.own_locks[lock]) {
                    shared.locks[lock] = 0;
                }
                if std::mem::take(&mut self.shared_locks[lock]) {
                    shared.locks[lock] -= 1;
                }
            }
            return ffi::SQLITE_OK;
        }
        if is_dead {
            return ffi::SQLITE_IOERR_SHMLOCK;
        }
        let is_shared = flags & ffi::SQLITE_SHM_SHARED != 0;
        for lock in range.clone() {
            let others = shared.locks[lock] - i32::from(self.shared_locks[lock]);
            let is_free = match is_shared {
                true => others >= 0,
                false => others == 0,
            };
            if !is_free && !self.own_locks[lock] {
                return ffi::SQLITE_BUSY;
            }
        }
        for lock in range {
            match is_shared {
                true if !self.shared_locks[lock] => {
                    shared.locks[lock] += 1;
                    self.shared_locks[lock] = true;
                }
                true => {}
                false => {
                    shared.locks[lock] = -1;
                    self.own_locks[lock] = true;
                }
            }
        }
        ffi::SQLITE_OK
    }

    fn leave_memory(&mut self) {
        if self.memory.is_none() {
            return;
        }
        self.lock_memory(0, NUM_LOCKS, ffi::SQLITE_SHM_UNLOCK);
        let Some(memory) = self.memory.take() else {
            return;
        };
        let mut shared = memory.state();
        shared.num_users -= 1;
        if shared.num_users == 0 {
            let mut state = self.disk.state();
            if state.process == self.process {
                state.shared_memory.remove(&self.inode);
            }
        }
    }
}

unsafe extern "C" fn x_delete(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    sync: c_int,
) -> c_int {
    // SAFETY: SQLite calls this with the file system that was registered, and with a name that ends in 0.
    let (disk, path) = unsafe { (disk_of(vfs), path_of(name)) };
    let process = disk.state().process;
    let result = disk
        .begin(process, None, Kind::Other, "delete", [0; 3])
        .and_then(|mut state| {
            state.unlink(&path)?;
            match (sync != 0, path.parent()) {
                (true, Some(parent)) => state.sync_directory(parent),
                _ => Ok(()),
            }
        });
    match result {
        Ok(()) => ffi::SQLITE_OK,
        Err(error) if error.kind() == io::ErrorKind::NotFound => ffi::SQLITE_IOERR_DELETE_NOENT,
        Err(_) => ffi::SQLITE_IOERR_DELETE,
    }
}

unsafe extern "C" fn x_access(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    _: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls this with the file system that was registered, and with a name that ends in 0.
    let (disk, path) = unsafe { (disk_of(vfs), path_of(name)) };
    let process = disk.state().process;
    match disk.begin(process, None, Kind::Read, "access", [0; 3]) {
        Ok(state) => {
            // SAFETY: SQLite provides space for the result.
            unsafe { *out = c_int::from(state.named(&path).is_ok()) };
            ffi::SQLITE_OK
        }
        Err(_) => ffi::SQLITE_IOERR_ACCESS,
    }
}

unsafe extern "C" fn x_full_pathname(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    room: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: the name ends in 0.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul();
    if bytes.len() > room as usize {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: there is space for that many bytes, and they do not overlap the name.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr().cast(), out, bytes.len()) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn x_randomness(_: *mut ffi::sqlite3_vfs, num: c_int, out: *mut c_char) -> c_int {
    // SAFETY: there is space for that many bytes. They are never used: `seed_sqlite` was called.
    unsafe { ptr::write_bytes(out, 7, num as usize) };
    num
}

unsafe extern "C" fn x_sleep(_: *mut ffi::sqlite3_vfs, microseconds: c_int) -> c_int {
    microseconds
}

/// A Julian day of this century.
const JULIAN_DAYS: i64 = 2_461_000;

unsafe extern "C" fn x_current_time(_: *mut ffi::sqlite3_vfs, out: *mut f64) -> c_int {
    // SAFETY: SQLite provides space for the result.
    unsafe { *out = JULIAN_DAYS as f64 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn x_current_time_int64(_: *mut ffi::sqlite3_vfs, out: *mut i64) -> c_int {
    // SAFETY: SQLite provides space for the result.
    unsafe { *out = JULIAN_DAYS * 86_400_000 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn x_get_last_error(_: *mut ffi::sqlite3_vfs, _: c_int, _: *mut c_char) -> c_int {
    0
}
