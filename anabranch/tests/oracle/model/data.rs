//! The buffers and host objects of the model.

use crate::program::{Order, Shape, initial, mix};
use anabranch::grid::Region;

#[derive(Clone, Copy)]
pub(super) struct Cell {
    pub(super) value: u64,
    pub(super) written: bool,
    /// The step that poisoned this cell.
    pub(super) poison: Option<usize>,
    /// Whether the part of a task that was to write this cell last has not. On one node the part is the task.
    pub(super) lost: bool,
}

pub(super) struct Buffer {
    pub(super) shape: Shape,
    pub(super) cells: Vec<Cell>,
}

impl Buffer {
    pub(super) fn new(slot: usize, shape: Shape) -> Self {
        let cell =
            |at| Cell { value: initial(slot, at), written: shape.initialised, poison: None, lost: false };
        Self { shape, cells: (0..shape.whole().len()).map(cell).collect() }
    }

    pub(super) fn at(&self, point: [usize; 3]) -> usize {
        let [_, rows, cols] = self.shape.extent;
        (point[0] * rows + point[1]) * cols + point[2]
    }

    pub(super) fn cells<'a>(&'a self, region: &'a Region<3>) -> impl Iterator<Item = &'a Cell> {
        region.boxes().iter().flat_map(|range| range.points()).map(|p| &self.cells[self.at(p.0)])
    }

    /// Marks cells as written, or as not.
    pub(super) fn set_lost(&mut self, region: &Region<3>, lost: bool) {
        for p in region.boxes().iter().flat_map(|range| range.points()) {
            let at = self.at(p.0);
            self.cells[at].lost = lost;
        }
    }

    pub(super) fn discard(&mut self) {
        self.cells.iter_mut().for_each(|cell| (cell.written, cell.poison, cell.lost) = (false, None, false));
    }
}

#[derive(Clone, Default)]
pub(super) struct Object {
    pub(super) hash: u64,
    pub(super) sum: u64,
    pub(super) relaxed: u64,
    /// The poison of the last sequential task.
    pub(super) last: Option<usize>,
    /// The poison of each task that used the object since.
    pub(super) since: Vec<Option<usize>>,
    /// Whether a task has failed that may have changed it or not.
    pub(super) lost: bool,
}

impl Object {
    pub(super) fn numbers(&self) -> [u64; 3] {
        [self.hash, self.sum, self.relaxed]
    }

    /// What a task does to the object, and to its hash if the order permits that.
    pub(super) fn touch(&mut self, order: Order, hash: &mut u64) {
        match order {
            Order::Sequential => {
                self.hash = mix(mix(self.hash, *hash), mix(self.sum, self.relaxed));
                *hash = self.hash;
            }
            Order::Exclusive => self.sum = self.sum.wrapping_add(mix(*hash, 1)),
            Order::Relaxed => self.relaxed = self.relaxed.wrapping_add(mix(*hash, 2)),
        }
    }

    /// A task with an effect of this order has ended, and poisons the object if it did not succeed.
    pub(super) fn poison(&mut self, order: Order, poison: Option<usize>) {
        if order == Order::Sequential {
            (self.last, self.since) = (poison, Vec::new());
        } else {
            self.since.push(poison);
        }
    }

    /// The failed steps that poison the object for a task that comes after all earlier ones (`all`, for a
    /// sequential effect), or only after the last sequential one.
    pub(super) fn needs(&self, all: bool) -> Vec<usize> {
        if all && !self.since.is_empty() {
            self.since.iter().flatten().copied().collect()
        } else {
            self.last.iter().copied().collect()
        }
    }
}
