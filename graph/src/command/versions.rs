//! Versions: several memories of one buffer on this node.
//!
//! A complete overwrite of a buffer whose contents are still being read, or a discard of such contents,
//! leaves the memory to its readers and goes on with another memory. This is a local matter of each node:
//! neither the transfers nor the contents depend on it. The memories are numbered from 0, and there are never
//! more than [`Versions::set_max`] says.

use super::{buffer::Reader, types::CommandId};
use smallvec::SmallVec;

/// Whether a command of this node is known to be done.
pub(super) type Done<'a> = &'a dyn Fn(CommandId) -> bool;

/// A memory without current contents.
struct Spare {
    version: u32,
    /// The commands that still use it, and where.
    users: Vec<Reader>,
}

/// The memories of a buffer on this node.
pub(super) struct Versions {
    max: usize,
    current: u32,
    /// The memory that was left longest ago comes first.
    spare: Vec<Spare>,
    /// Commands that read the current memory and do not delay leaving it: pushes, which end soon or with the
    /// exchange of all nodes, and commands that used it before it became the current one.
    ignored: SmallVec<[CommandId; 8]>,
    /// Whether the contents were discarded, and nothing was written since.
    pub(super) is_discarded: bool,
}

/// The number of ignored commands above which those that read nothing any more are forgotten.
const IGNORED: usize = 64;

impl Versions {
    pub(super) fn new() -> Self {
        Self { max: 1, current: 0, spare: Vec::new(), ignored: SmallVec::new(), is_discarded: false }
    }

    /// Sets the largest number of memories. Memories above it that exist already stay.
    pub(super) fn set_max(&mut self, max: usize) {
        self.max = max.max(1);
    }

    /// Whether there may be several memories.
    pub(super) fn are_several(&self) -> bool {
        self.max > 1
    }

    /// The number of the current memory.
    pub(super) fn current(&self) -> u32 {
        self.current
    }

    /// Whether a reader of the current memory is a reason to leave it.
    pub(super) fn counts(&self, reader: CommandId, done: Done<'_>) -> bool {
        !self.ignored.contains(&reader) && !done(reader)
    }

    /// Notes that a push reads the current memory. `readers` gives all commands that do.
    pub(super) fn ignore<I: Iterator<Item = CommandId>>(&mut self, push: CommandId, readers: impl Fn() -> I) {
        if self.ignored.len() > IGNORED {
            self.ignored.retain(|known| readers().any(|reader| reader == *known));
        }
        self.ignored.push(push);
    }

    /// Leaves the current memory to these users. Makes an unused memory, a new one, or the one that was left
    /// longest ago the current one, and returns the commands that still use it.
    pub(super) fn leave(&mut self, users: Vec<Reader>, done: Done<'_>) -> Vec<Reader> {
        let unused = self.spare.iter().position(|spare| spare.users.iter().all(|(_, user)| done(*user)));
        let next = match unused {
            Some(at) => self.spare.remove(at),
            None if self.spare.len() + 1 < self.max => {
                Spare { version: self.spare.len() as u32 + 1, users: Vec::new() }
            }
            None => self.spare.remove(0),
        };
        self.spare.push(Spare { version: self.current, users });
        self.current = next.version;
        let mut users = next.users;
        users.retain(|(_, user)| !done(*user));
        self.ignored = users.iter().map(|(_, user)| *user).collect();
        users
    }
}
