//! Files that have their names only when they are whole.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// A file under a temporary name beside its final one, until [`place`](Self::place) renames it. Dropping it
/// before that removes it, so that a failure leaves no half file, and the old file of that name stays.
///
/// A path that exists and is no regular file, such as `/dev/stdout` or a pipe, is written directly.
///
/// ```
/// use gray_scott::files::whole::WholeFile;
/// use std::io::Write;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("notes.txt");
///
/// let mut file = WholeFile::create(&path)?;
/// file.write_all(b"all of it")?;
/// assert!(!path.exists());
/// file.place()?;
/// assert_eq!(std::fs::read(&path)?, b"all of it");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct WholeFile {
    file: BufWriter<File>,
    path: PathBuf,
    /// The name of the file until it is placed; `None` when it is placed, or is written directly.
    temporary: Option<PathBuf>,
}

impl WholeFile {
    /// Creates the file, empty.
    ///
    /// # Errors
    /// When the folder does not exist or cannot be written, or the path is a folder.
    pub fn create(path: &Path) -> io::Result<Self> {
        let direct = match fs::metadata(path) {
            Ok(old) if old.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(old) => !old.is_file(),
            Err(_) => false,
        };
        if direct {
            let file = File::options().write(true).open(path)?;
            return Ok(Self { file: BufWriter::new(file), path: path.to_owned(), temporary: None });
        }
        // The file behind a symbolic link is replaced, not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.{}.partial", std::process::id()));
        let file = BufWriter::new(File::create(&temporary)?);
        Ok(Self { file, path, temporary: Some(temporary) })
    }

    /// The final name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Another writer to this file, for code that keeps its writer. It must be flushed before the file is
    /// placed.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn writer(&self) -> io::Result<BufWriter<File>> {
        Ok(BufWriter::new(self.file.get_ref().try_clone()?))
    }

    /// Gives the file its final name. It replaces the file that had it.
    ///
    /// # Errors
    /// When the rest cannot be written, or the file cannot be renamed. The file is removed then.
    pub fn place(mut self) -> io::Result<()> {
        self.file.flush()?;
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, &self.path)?;
        }
        self.temporary = None;
        Ok(())
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Without the file there is nothing to remove, and nothing else can be done.
            let _ = fs::remove_file(temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_dropped_leaves_the_old_one_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        fs::write(&path, "old").unwrap();
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        file.flush().unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let kind = |path: &Path| WholeFile::create(path).unwrap_err().kind();
        assert_eq!(kind(folder.path()), io::ErrorKind::IsADirectory);
        assert_eq!(kind(&folder.path().join("none/a.txt")), io::ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn the_file_behind_a_link_is_replaced_and_a_device_is_written_directly() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut file = WholeFile::create(&link).unwrap();
        file.write_all(b"new").unwrap();
        file.place().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");

        let mut null = WholeFile::create(Path::new("/dev/null")).unwrap();
        null.write_all(b"gone").unwrap();
        null.place().unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
