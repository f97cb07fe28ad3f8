//! With several nodes: the copies between the memory of this node and that of its devices, among the commands
//! of the node.
//!
//! The graph of commands has one memory for each node, so a copy is no command. A drawing shows it after the
//! command that has written what it copies, and before the commands that read that in the memory it goes to,
//! whether they wait for it or it is done already.

use super::change::{NodeAccess, Touched};
use anabranch_graph::{BufferId, MemoryId};
use anabranch_grid::Region;
use rustc_hash::FxHashMap;

/// A copy, as it is drawn.
pub(super) struct DrawnCopy<'a> {
    pub(super) key: String,
    pub(super) copy: &'a NodeAccess,
    pub(super) label: &'a str,
    /// The keys of the commands and copies that it comes after.
    pub(super) after: Vec<String>,
}

/// The commands and copies that have written the current contents of buffers.
#[derive(Default)]
pub(super) struct NodeCopies {
    /// What has written the current contents of each version of each buffer.
    of: FxHashMap<BufferId, FxHashMap<u32, Written>>,
    /// The number of copies so far.
    count: u64,
}

/// What has written the current contents of a version.
#[derive(Default)]
struct Written {
    /// The commands: a region and a key.
    commands: Vec<(Region<3>, String)>,
    /// The copies: the memory that each one wrote, the region, and the key.
    copies: Vec<(MemoryId, Region<3>, String)>,
}

impl Written {
    /// The keys of the copies that have brought parts of a region to a memory.
    fn brought(&self, memory: MemoryId, region: &Region<3>) -> impl Iterator<Item = &String> {
        let copies = self.copies.iter();
        let copies = copies.filter(move |(to, part, _)| *to == memory && part.intersects(region));
        copies.map(|(_, _, key)| key)
    }

    /// Takes a region out of the copies to some memories.
    fn forget(&mut self, region: &Region<3>, is_of: impl Fn(MemoryId) -> bool) {
        for (_, part, _) in self.copies.iter_mut().filter(|(memory, ..)| is_of(*memory)) {
            *part = part.difference(region);
        }
        self.copies.retain(|(_, part, _)| !part.is_empty());
    }
}

impl NodeCopies {
    pub(super) fn remove_buffer(&mut self, buffer: BufferId) {
        self.of.remove(&buffer);
    }

    fn written(&mut self, access: &NodeAccess) -> &mut Written {
        self.of.entry(access.buffer).or_default().entry(access.version).or_default()
    }

    /// The copies that come before a command with this key, on the node with this prefix of keys, and the
    /// keys of all copies that it comes after.
    pub(super) fn touch<'a>(
        &mut self,
        prefix: &str,
        key: &str,
        touched: &'a Touched,
    ) -> (Vec<DrawnCopy<'a>>, Vec<String>) {
        let mut drawn = Vec::new();
        for (label, from, copy) in &touched.copies {
            self.count += 1;
            let own = format!("{prefix}copy{}", self.count);
            let to = if *from == MemoryId::HOST { touched.memory } else { MemoryId::HOST };
            let written = self.written(copy);
            let commands = written.commands.iter().filter(|(part, _)| part.intersects(&copy.region));
            let mut after: Vec<_> = commands.map(|(_, key)| key.clone()).collect();
            if after.is_empty() {
                // What has written it ended before the buffer met a device, or is among these.
                after.extend(touched.after.iter().map(|id| format!("{prefix}{id}")));
            }
            after.extend(written.brought(*from, &copy.region).cloned());
            // An earlier copy of the same elements has failed.
            written.forget(&copy.region, |memory| memory == to);
            written.copies.push((to, copy.region.clone(), own.clone()));
            drawn.push(DrawnCopy { key: own, copy, label: label.name(), after });
        }
        let mut needed = Vec::new();
        for read in &touched.reads {
            let brought: Vec<_> = self.written(read).brought(touched.memory, &read.region).cloned().collect();
            needed.extend(brought.into_iter().filter(|key| !needed.contains(key)).collect::<Vec<_>>());
        }
        for write in &touched.writes {
            let written = self.written(write);
            written.forget(&write.region, |_| true);
            for (part, _) in &mut written.commands {
                *part = part.difference(&write.region);
            }
            written.commands.retain(|(part, _)| !part.is_empty());
            written.commands.push((write.region.clone(), key.to_owned()));
        }
        (drawn, needed)
    }
}
