//! Labels: how messages and graphs name buffers, host objects and tasks.

use std::{borrow::Cow, fmt, panic::Location, sync::Arc};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskLabel {
    pub(crate) name: Cow<'static, str>,
    pub(crate) location: &'static Location<'static>,
}

impl TaskLabel {
    /// The name that the program gave.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The line that submitted the task.
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }
}

impl fmt::Display for TaskLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task \"{}\" ({}:{})", self.name, self.location.file(), self.location.line())
    }
}
