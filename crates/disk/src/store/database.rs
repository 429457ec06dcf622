//! How is the database opened, and what does it hold?
//!
//! Only the bundled SQLite library may open the file in this process: a plain open and close by other code would
//! release its locks.

use std::collections::BTreeMap;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::FromSql;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Params};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::events::ChangesTally;
use super::place::OpenMark;
use super::types::{Description, Durability, Keeps, Position};
use super::{bytes, place};
use crate::environment::Environment;
use crate::error::{Error, Result};

/// Key in `meta` for what upkeep dropped of gone documents.
pub(super) const DROPPINGS: &str = "droppings";
pub(super) const DATABASE_NAME: &str = "documents.sqlite";
/// `LIKW`, in the header of the database.
const APPLICATION_ID: i32 = 0x4c49_4b57;
const FORMAT_VERSION: i32 = 1;
/// Key in `meta` for the tally of all records of changes.
pub(super) const CHANGES_TALLY: &str = "changes";
/// How long to wait for a lock of the database. Writers exclude each other by a separate lock.
pub(super) const BUSY_WAIT: Duration = Duration::from_secs(10);
/// Records are never this long; greater lengths are damage.
const MAX_RECORD_BYTES: i32 = 512 << 20;
const CACHE_KIB: i32 = 8 << 10;

const SCHEMA: &str = "
CREATE TABLE meta (name TEXT PRIMARY KEY, data BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE chunks (first_row INTEGER PRIMARY KEY, num_rows INTEGER NOT NULL, data BLOB NOT NULL) STRICT;
CREATE TABLE contents (first_row INTEGER PRIMARY KEY, num_rows INTEGER NOT NULL, data BLOB NOT NULL) STRICT;
CREATE TABLE events (seq INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
CREATE TABLE changes (row INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
CREATE TABLE segments (name TEXT PRIMARY KEY, data BLOB NOT NULL) STRICT, WITHOUT ROWID;
";

/// Explains why a version of SQLite is refused: up to 3.51.2, commits can be lost; 3.52.0 was withdrawn.
pub(super) fn refused_version(version: i32) -> Option<String> {
    (version < 3_051_003 || version == 3_052_000).then(|| {
        format!(
            "SQLite {}.{}.{} is not safe here: 3.51.3 or later is needed, and not 3.52.0",
            version / 1_000_000,
            version / 1000 % 1000,
            version % 1000
        )
    })
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        let kind = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => io::ErrorKind::StorageFull,
            Some(ErrorCode::OutOfMemory) => io::ErrorKind::OutOfMemory,
            Some(ErrorCode::ReadOnly) => io::ErrorKind::ReadOnlyFilesystem,
            Some(ErrorCode::PermissionDenied) => io::ErrorKind::PermissionDenied,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                io::ErrorKind::ResourceBusy
            }
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::OperationInterrupted,
            ) => io::ErrorKind::Other,
            Some(ErrorCode::TooBig) => {
                return Error::invalid("documents", "a record would be greater than 512 MiB");
            }
            // A missing table or column, a value of another type, a broken page: no writer produces these.
            _ => {
                return Error::Damaged {
                    reason: format!("the database is damaged: {error}"),
                };
            }
        };
        Error::io("use the database", io::Error::new(kind, error))
    }
}

/// Runs a statement, prepared once for each connection.
pub(super) fn execute(
    connection: &Connection,
    sql: &str,
    params: impl Params,
) -> rusqlite::Result<usize> {
    connection.prepare_cached(sql)?.execute(params)
}

/// Returns the first column of the one row that a statement finds.
pub(super) fn value<T: FromSql>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
) -> rusqlite::Result<T> {
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row(params, |row| row.get(0))
}

/// Opens the database for writing; creates the file if it is absent.
pub(super) fn open_to_write(
    environment: &Environment,
    dir: &Path,
    durability: Durability,
) -> Result<Database> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = open(environment, &dir.join(DATABASE_NAME), flags)?;
    let set = |name: &str, value: i32| connection.pragma(None, name, value, |_| Ok(()));
    // A database of another application is not modified.
    if kind_of(&connection)? == Kind::Empty {
        // Allows free pages to be released; must be set before the first page is written.
        set("auto_vacuum", 2)?;
    }
    // Deleted data is overwritten.
    set("secure_delete", 1)?;
    // Read back: a system without shared memory does not support the log, and some wrappers change these settings.
    let journal: String =
        connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if journal != "wal" {
        return Err(Error::Unsupported {
            reason: format!(
                "SQLite cannot keep a write-ahead log here (its journal is {journal:?}): the file system has no shared memory"
            ),
        });
    }
    sync_by(&connection, durability == Durability::Commit)?;
    // Truncates the log after a burst.
    connection.pragma_update_and_check(None, "journal_size_limit", 64 << 20, |_| Ok(()))?;
    Ok(connection)
}

/// Opens the database of a store for checkpoints; never creates it.
pub(super) fn open_to_checkpoint(environment: &Environment, dir: &Path) -> Result<Database> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = open(environment, &dir.join(DATABASE_NAME), flags)?;
    // Checkpoints are always synced, even if commits are not.
    sync_by(&connection, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

fn sync_by(connection: &Connection, each_commit: bool) -> Result<()> {
    set_synchronous(connection, each_commit)?;
    if cfg!(target_os = "macos") {
        // On this system, fsync does not reach the disk.
        for name in ["fullfsync", "checkpoint_fullfsync"] {
            connection.pragma_update(None, name, 1)?;
        }
    }
    Ok(())
}

/// Sets whether each commit waits for the disk.
pub(super) fn set_synchronous(connection: &Connection, full: bool) -> Result<()> {
    let wanted = if full { 2 } else { 1 };
    connection.pragma_update(None, "synchronous", wanted)?;
    let found: i32 = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    match found == wanted {
        true => Ok(()),
        false => Err(Error::Unsupported {
            reason: format!("SQLite was set to synchronous={wanted} and has {found}"),
        }),
    }
}

pub(super) fn open_to_read(environment: &Environment, dir: &Path) -> Result<Database> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let opened = open(environment, &dir.join(DATABASE_NAME), flags).and_then(|connection| {
        // The first access needs the shared memory next to the database.
        connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i32>(0))?;
        Ok(connection)
    });
    match opened {
        Err(error @ Error::Io { .. }) => {
            match place::unchanging(environment.files.as_ref(), dir, DATABASE_NAME)? {
                Some(uri) => open(environment, &uri, flags | OpenFlags::SQLITE_OPEN_URI),
                None => Err(error),
            }
        }
        opened => opened,
    }
}

/// Returns how far the pages of the database reach without its log, by sealed records, or `None` if unknown.
pub(super) fn reach_without_log(environment: &Environment, dir: &Path) -> Option<Position> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let uri = place::without_log(&dir.join(DATABASE_NAME))?;
    let connection = open(environment, &uri, flags).ok()?;
    let last = |sql: &str| -> Option<(i64, u32, Vec<u8>)> {
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        connection.query_row(sql, [], row).ok()
    };
    let proven = |number: i64, record: &[u8]| {
        let number = u64::try_from(number).ok()?;
        bytes::open(record, number).ok().map(|_| number)
    };
    let chunk =
        last("SELECT first_row, num_rows, data FROM chunks ORDER BY first_row DESC LIMIT 1");
    let num_rows = chunk.and_then(|(first_row, num_rows, record)| {
        let first_row = u32::try_from(proven(first_row, &record)?).ok()?;
        first_row.checked_add(num_rows)
    });
    let event = last("SELECT seq, 0, data FROM events ORDER BY seq DESC LIMIT 1");
    let last_event = event.and_then(|(number, _, record)| proven(number, &record));
    Some(Position {
        num_rows: num_rows.unwrap_or(0),
        last_event: last_event.unwrap_or(0),
        expired_below: 0,
    })
}

pub(super) fn connect(
    environment: &Environment,
    path: &Path,
    flags: OpenFlags,
) -> Result<Connection> {
    match &environment.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs.as_str()),
        None => Connection::open_with_flags(path, flags),
    }
    .map_err(Error::from)
}

/// A connection that is counted among those of the process.
pub(super) struct Database {
    connection: Connection,
    _mark: OpenMark,
}

impl Deref for Database {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

fn open(environment: &Environment, path: &Path, flags: OpenFlags) -> Result<Database> {
    if let Some(reason) = refused_version(rusqlite::version_number()) {
        return Err(Error::Unsupported { reason });
    }
    let mark = OpenMark::new()?;
    let connection = connect(environment, path, flags)?;
    connection.busy_timeout(BUSY_WAIT)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_RECORD_BYTES)?;
    connection.set_prepared_statement_cache_capacity(64);
    // A damaged file must not affect what is executed.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)
        .and_then(|_| connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false))?;
    for (name, value) in [
        ("cell_size_check", 1),
        ("mmap_size", 0),
        ("cache_size", -CACHE_KIB),
    ] {
        // Some pragmas return a row, some do not.
        connection.pragma(None, name, value, |_| Ok(()))?;
    }
    Ok(Database {
        connection,
        _mark: mark,
    })
}

/// What the header of the database identifies it as.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing was ever committed to it.
    Empty,
    Store,
}

/// Returns the kind of the database, from its header; [`Error::Unsupported`] for another.
pub(super) fn kind_of(connection: &Connection) -> Result<Kind> {
    let number = |name| -> Result<i32> {
        connection
            .pragma_query_value(None, name, |row| row.get(0))
            .map_err(Error::from)
    };
    let (application, version) = (number("application_id")?, number("user_version")?);
    if application == APPLICATION_ID && version == FORMAT_VERSION {
        return Ok(Kind::Store);
    }
    let reason = match application {
        0 if number("schema_version")? == 0 => return Ok(Kind::Empty),
        APPLICATION_ID => format!(
            "the database has format {version}; this version reads only format {FORMAT_VERSION}"
        ),
        _ => "the database belongs to another application".to_owned(),
    };
    Err(Error::Unsupported { reason })
}

/// The description as it is stored: JSON.
#[derive(Serialize, Deserialize)]
struct Described {
    recipe: String,
    recipe_id: String,
    sketch_id: String,
    sketch_bytes: u32,
    keeps: String,
    made_by: String,
}

const KEEPS: [(Keeps, &str); 3] = [
    (Keeps::Sketch, "sketch"),
    (Keeps::Shingles, "shingles"),
    (Keeps::Text, "text"),
];

/// Creates the tables of an empty database, in one transaction.
pub(super) fn make(connection: &Connection, description: &Description) -> Result<()> {
    let transaction = connection.unchecked_transaction()?;
    connection.execute_batch(SCHEMA)?;
    connection
        .pragma_update(None, "application_id", APPLICATION_ID)
        .and_then(|()| connection.pragma_update(None, "user_version", FORMAT_VERSION))?;
    let described = Described {
        recipe: description.recipe_json.clone(),
        recipe_id: description.recipe_id.clone(),
        sketch_id: description.sketch_id.clone(),
        sketch_bytes: description.sketch_bytes,
        keeps: KEEPS
            .iter()
            .find(|(keeps, _)| *keeps == description.keeps)
            .map_or("", |(_, name)| name)
            .to_owned(),
        made_by: format!(
            "likewise {}, SQLite {}",
            env!("CARGO_PKG_VERSION"),
            rusqlite::version()
        ),
    };
    let json =
        serde_json::to_vec(&described).map_err(|e| Error::invalid("description", e.to_string()))?;
    set_meta(connection, "description", &json)?;
    let identity: [u8; 16] = connection.query_row("SELECT randomblob(16)", [], |row| row.get(0))?;
    set_meta(connection, "identity", &identity)?;
    for (name, value) in &description.attached {
        set_meta(connection, &attached_name(name), value)?;
    }
    // The number 0 as encoded by `put_varint`.
    set_meta(connection, "expired_below", &[0])?;
    set_meta(connection, CHANGES_TALLY, &ChangesTally::default().encode())?;
    set_meta(connection, "num_old_events", &[0])?;
    set_meta(connection, DROPPINGS, &[0, 0])?;
    set_meta(connection, "swept", &[0, 0])?;
    transaction.commit().map_err(Error::from)
}

pub(super) fn describe(connection: &Connection) -> Result<(Description, [u8; 16])> {
    let damaged = |what: &str| Error::Damaged {
        reason: format!("the database is damaged: its {what} cannot be read"),
    };
    let json = meta(connection, "description")?.ok_or_else(|| damaged("description"))?;
    let described: Described = serde_json::from_slice(&json).map_err(|_| damaged("description"))?;
    let keeps = KEEPS
        .iter()
        .find(|(_, name)| *name == described.keeps)
        .ok_or_else(|| damaged("description"))?
        .0;
    let identity = meta(connection, "identity")?
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| damaged("identity"))?;
    let description = Description {
        recipe_json: described.recipe,
        recipe_id: described.recipe_id,
        sketch_id: described.sketch_id,
        sketch_bytes: described.sketch_bytes,
        keeps,
        attached: BTreeMap::new(),
    };
    Ok((description, identity))
}

/// Returns the key in `meta` of the caller's data.
pub(super) fn attached_name(name: &str) -> String {
    format!("attached:{name}")
}

/// Returns the value of a key in `meta`.
pub(super) fn meta(connection: &Connection, name: &str) -> Result<Option<Vec<u8>>> {
    let record: Option<Vec<u8>> =
        value(connection, "SELECT data FROM meta WHERE name = ?1", [name]).optional()?;
    Ok(match record {
        Some(record) => Some(bytes::open(&record, xxh3_64(name.as_bytes()))?.to_vec()),
        None => None,
    })
}

pub(super) fn set_meta(connection: &Connection, name: &str, value: &[u8]) -> Result<()> {
    let mut record = Vec::new();
    bytes::begin(&mut record);
    record.extend_from_slice(value);
    bytes::seal(&mut record, xxh3_64(name.as_bytes()));
    execute(
        connection,
        "INSERT OR REPLACE INTO meta (name, data) VALUES (?1, ?2)",
        (name, &record),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_with_known_losses_are_refused() {
        for (version, is_refused) in [
            (3_044_006, true),
            (3_051_002, true),
            (3_051_003, false),
            (3_052_000, true),
            (3_052_001, false),
            (3_053_002, false),
        ] {
            assert_eq!(refused_version(version).is_some(), is_refused, "{version}");
        }
        assert!(refused_version(3_051_002).unwrap().contains("3.51.2 "));
        assert_eq!(refused_version(rusqlite::version_number()), None);
    }
}
