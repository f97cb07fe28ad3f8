//! The commands that the symbols of a transition stand for.

use crate::command::{
    interned::ExtraReaders,
    types::{CommandDependency, CommandId},
};
use smallvec::SmallVec;

/// The commands that the symbols of a transition stand for when it is applied.
pub(super) struct Bindings<'a> {
    /// The command of each symbol in the states before the transition. Later symbols stand for the new
    /// commands.
    pub(super) ids: &'a [CommandId],
    /// The extra readers of the states before the transition, by ascending symbol.
    pub(super) extra_readers: &'a [(u32, CommandId)],
    /// The number of the first new command.
    pub(super) first: u64,
}

impl Bindings<'_> {
    /// The last command that the symbol stands for.
    #[inline]
    pub(super) fn last(&self, symbol: u32) -> CommandId {
        match self.ids.get(symbol as usize - 1) {
            Some(&id) => id,
            None => CommandId(self.first + u64::from(symbol) - 1 - self.ids.len() as u64),
        }
    }

    /// The other commands that the symbol stands for.
    fn others(&self, symbol: u32) -> impl Iterator<Item = CommandId> {
        let from = self.extra_readers.partition_point(|(of, _)| *of < symbol);
        self.extra_readers[from..]
            .iter()
            .take_while(move |(of, _)| *of == symbol)
            .map(|(_, command)| *command)
    }

    /// The dependencies of a new command.
    #[inline]
    pub(super) fn dependencies(&self, of: &[CommandDependency]) -> SmallVec<[CommandDependency; 4]> {
        let last = |d: &CommandDependency| CommandDependency { on: self.last(d.on.0 as u32), ..*d };
        let mut found = of.iter().map(last).collect();
        if !self.extra_readers.is_empty() {
            self.add_others(of, &mut found);
        }
        found
    }

    #[inline(never)]
    fn add_others(&self, of: &[CommandDependency], to: &mut SmallVec<[CommandDependency; 4]>) {
        for dependency in of {
            let others = self.others(dependency.on.0 as u32);
            to.extend(others.map(|on| CommandDependency { on, ..*dependency }));
        }
    }

    /// Appends the extra readers of a state after the transition, by ascending symbol. `ids` and
    /// `extra_readers` are symbols of the transition.
    #[inline(never)]
    pub(super) fn add_extra_readers(
        &self,
        ids: &[u32],
        extra_readers: &[(u32, CommandId)],
        to: &mut ExtraReaders,
    ) {
        let mut more = extra_readers.iter().peekable();
        for (symbol, &before) in (1..).zip(ids) {
            to.extend(self.others(before).map(|command| (symbol, command)));
            while let Some((_, before)) = more.next_if(|(of, _)| *of == symbol) {
                let before = before.0 as u32;
                to.extend(self.others(before).chain([self.last(before)]).map(|command| (symbol, command)));
            }
        }
    }
}
