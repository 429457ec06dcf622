//! How is a snapshot taken while documents are being added?

use likewise_core::error::invalid_if;
use likewise_core::parallel::Cancel;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use rusqlite::OpenFlags;
use rusqlite::backup::{Backup, StepResult};

use super::database::{DATABASE_NAME, connect};
use super::{Store, place};
use crate::error::{Doing, Result};

/// Pages between checks of the cancel flag: 4 MiB.
const STEP_PAGES: i32 = 1024;

impl Store {
    /// Copies the current database into a new or empty directory, while the writer continues; synced on return, and
    /// named only when complete. The copy has the identity of the original and lists the same segments, which are
    /// rebuilt if missing.
    pub fn snapshot(&self, to: &Path, cancel: &AtomicBool) -> Result<()> {
        let files = self.environment.files.as_ref();
        files.create_dir_all(to).doing("make the directory")?;
        let to = place::settle(files, to)?;
        let entries = files.list(&to).doing("read the directory")?;
        invalid_if(!entries.is_empty(), "path", || {
            format!("{} is not empty", to.display())
        })?;
        let unfinished_name = format!(".{DATABASE_NAME}.unfinished");
        let unfinished = to.join(&unfinished_name);
        let result = self
            .read_together(|store| store.copy_pages(&unfinished, cancel))
            .and_then(|()| {
                // No connection of this process has it open any more, so this releases no locks.
                files
                    .sync(&unfinished)
                    .and_then(|()| files.rename(&unfinished, &to.join(DATABASE_NAME)))
                    .doing("finish the copy")
            })
            .and_then(|()| place::sync_directory(files, &to))
            .and_then(|()| {
                to.parent()
                    .map_or(Ok(()), |parent| place::sync_directory(files, parent))
            });
        if result.is_err() {
            // The first error is more informative than an error of the cleanup. SQLite leaves a journal where it could
            // not write.
            for suffix in ["", "-journal"] {
                let _ = files.unlink(&to.join(format!("{unfinished_name}{suffix}")));
            }
        }
        result
    }

    fn copy_pages(&self, to: &Path, cancel: &AtomicBool) -> Result<()> {
        // Read before copying, so that the state is fixed: a copy of a changing state would restart at each commit.
        self.read_position()?;
        let mut copy = connect(&self.environment, to, OpenFlags::default())?;
        let backup = Backup::new(&self.connection, &mut copy)?;
        loop {
            cancel.check()?;
            match backup.step(STEP_PAGES)? {
                StepResult::Done => return Ok(()),
                StepResult::More => {}
                // The locks are those of the copy's file, which nobody else has open.
                _ => std::thread::yield_now(),
            }
        }
    }
}
