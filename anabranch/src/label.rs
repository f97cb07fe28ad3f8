//! Labels: how messages and graphs name buffers, host objects and tasks.

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::{borrow::Cow, fmt, panic::Location, ptr, sync::Arc};

/// The name of a buffer in messages: `buffer "u"`, or `buffer 3` for a buffer without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label(Arc<str>);

impl Label {
    pub(crate) fn named(name: impl fmt::Display) -> Self {
        Self(format!("buffer \"{name}\"").into())
    }

    pub(crate) fn numbered(number: u64) -> Self {
        Self(format!("buffer {number}").into())
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a task and the line that submitted it.
#[derive(Debug, PartialEq, Eq)]
pub struct TaskLabel {
    pub(crate) name: Cow<'static, str>,
    pub(crate) location: &'static Location<'static>,
}

impl Clone for TaskLabel {
    // Not derived, because that calls the function that clones a `Cow`. The name is usually a literal.
    #[inline]
    fn clone(&self) -> Self {
        let name = match self.name {
            Cow::Borrowed(literal) => Cow::Borrowed(literal),
            Cow::Owned(ref name) => Cow::Owned(name.clone()),
        };
        Self { name, location: self.location }
    }
}

impl TaskLabel {
    /// The name that the program gave.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The label, in recorded graphs, of a task that repeats its work this often.
    pub(crate) fn times(&self, times: u64) -> Self {
        match times {
            1 => self.clone(),
            _ => Self { name: format!("{} × {times}", self.name).into(), location: self.location },
        }
    }

    /// The line that submitted the task.
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }
}

/// With several nodes: the lines that have submitted tasks, so that this node can name the tasks that
/// messages of another node name.
#[derive(Default)]
pub(crate) struct Locations(Mutex<FxHashMap<usize, &'static Location<'static>>>);

impl Locations {
    /// Adds the line of a task.
    pub(crate) fn add(&self, label: &TaskLabel) {
        self.0.lock().insert(ptr::from_ref(label.location).addr(), label.location);
    }

    /// The label of a task that was submitted in this line. If no task was (in another build of the program,
    /// perhaps), the name has the line.
    #[track_caller]
    pub(crate) fn label(&self, name: &str, file: &str, line: u32, column: u32) -> TaskLabel {
        let is_here = |known: &&&'static Location<'static>| {
            (known.file(), known.line(), known.column()) == (file, line, column)
        };
        match self.0.lock().values().find(is_here) {
            Some(location) => TaskLabel { name: name.to_owned().into(), location },
            None => {
                TaskLabel { name: format!("{name} ({file}:{line})").into(), location: Location::caller() }
            }
        }
    }
}

impl fmt::Display for TaskLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task \"{}\" ({}:{})", self.name, self.location.file(), self.location.line())
    }
}
