//! Reductions: many values combined into one for each element of a buffer, with the same bits on any number
//! of threads.
//!
//! To the graph a reduction is a write of the whole buffer, or an update if the current contents are
//! included. Each chunk of the kernel combines into a partial result of its own, which begins as the identity
//! of the operator. (The partial result of the first chunk begins as the current contents, if they are
//! included.) When all chunks are done, the partial results are combined pairwise, neighbours first, in a
//! tree whose shape depends only on the number of chunks. That number depends on the index space and on
//! [`chunks`](crate::submit::task::TaskBuilder::chunks), never on the threads.
//!
//! This tree, whose leaves are the chunks, is for kernels whose closure gets a tile: the closure combines the
//! values of a chunk in an order of its own. A [recorded kernel](crate::submit::recorded) gives the runtime
//! the value of each point. So the runtime combines these in another tree, whose [leaves] depend on the index
//! space only, and which a device can follow: see [`Leaves`](anabranch_kernel::Leaves). A chunk has the
//! results of several leaves. With several nodes, a device may compute these results.
//!
//! With several nodes, each node executes consecutive chunks and combines those that form whole subtrees.
//! These partial results are kept ([`exchange`]) until a task reads the buffer: then every node that reads it
//! gets those of the other nodes, and combines all of them in the same tree. Elements are plain bytes, so
//! those of any type can be sent; an operator stays on its node.

mod exchange;
mod leaves;

use self::exchange::{Exchange, combine_into};
use super::{Access, KernelAccess, operator::Operator, sealed::Sealed};
use crate::{
    data::{
        allocation::Start,
        buffer::{Buffer, BufferInner},
        element::Element,
        partials::Partials,
        stored::Stored,
    },
    error::{Error, OutsideRegion},
    label::Label,
    submit::launch::{declaration::Declaration, leaves::leaves},
};
use anabranch_graph::{Mode, command::combine};
use anabranch_grid::{Chunk, Extent, GridBox, Point, Region};
use parking_lot::{Mutex, MutexGuard};
use std::{fmt, mem, ops::Index, sync::Arc};

/// A declared [reduction](crate::submit::task::TaskBuilder::reduce).
#[derive(Clone, Debug)]
pub struct Reduce<T, const D: usize, O> {
    pub(crate) buffer: Buffer<T, D>,
    pub(crate) operator: O,
    pub(crate) include_current: bool,
}

/// A reduction with its partial results and its memory.
pub struct BoundReduction<T, const D: usize, O> {
    buffer: Buffer<T, D>,
    operation: Operation<T, O>,
    /// Whether the first chunk, here, begins with the current contents.
    include_current: bool,
    start: Start<T>,
    /// One for each chunk, as long as the buffer; empty until the kernel is called for the chunk. Of a
    /// recorded kernel, the results of the leaves of the chunk.
    partials: Box<[Mutex<Vec<T>>]>,
    /// Of a recorded kernel: the number of leaves of each chunk.
    leaves: Option<Box<[usize]>>,
}

/// The operator, and with several nodes the partial results that this one has when its chunks are done.
enum Operation<T, O> {
    OneNode(O),
    Nodes(Arc<Exchange<T, O>>),
}

impl<T: Element, const D: usize, O: Operator<T>> BoundReduction<T, D, O> {
    fn operator(&self) -> &O {
        match &self.operation {
            Operation::OneNode(operator) => operator,
            Operation::Nodes(exchange) => exchange.operator(),
        }
    }

    /// The buffer, without its type.
    pub(in crate::submit) fn stored(&self) -> Arc<dyn Stored> {
        let buffer: Arc<BufferInner<D>> = Arc::clone(&self.buffer.inner);
        buffer
    }

    /// Combines all partial results; `None` if there are none.
    fn combine(&self, operator: &O) -> Option<Vec<T>> {
        let count = self.partials.len() as u32;
        let taken = |partial: &Mutex<Vec<T>>| mem::take(&mut *partial.lock());
        let partials = (0..count).zip(&self.partials).map(|(at, partial)| (at..at + 1, taken(partial)));
        (count > 0).then(|| {
            combine(0..count, partials, |mut left, right| {
                combine_into(operator, &mut left, &right);
                left
            })
        })
    }
}

impl<T, const D: usize, O, const K: usize> Access<K> for Reduce<T, D, O>
where
    T: Element,
    O: Operator<T>,
{
    type Bound = BoundReduction<T, D, O>;
    type Guard<'b> = Reduction<'b, T, D, O>;
    type View<'v> = &'v mut Reduction<'v, T, D, O>;

    const REDUCES: bool = true;

    fn reduced(&self) -> usize {
        self.buffer.extent().len()
    }

    fn declare(self, declaration: &mut Declaration<K>) -> Result<Self::Bound, Error> {
        let mode = if self.include_current { Mode::Update } else { Mode::Write };
        let Self { buffer, operator, include_current } = self;
        let shares = declaration.reduction(&buffer, mode)?;
        let partials = declaration.chunks.iter().map(|_| Mutex::default()).collect();
        let of_chunk = |chunk: &Chunk<K>| leaves(&chunk.range).count();
        let leaves = declaration.has_leaves.then(|| declaration.chunks.iter().map(of_chunk).collect());
        let start = Start::NONE;
        let Some((shares, flush_denormals)) = shares else {
            let operation = Operation::OneNode(operator);
            return Ok(BoundReduction { buffer, operation, include_current, start, partials, leaves });
        };
        let exchange = Arc::new(Exchange::new(operator, buffer.extent().len(), shares, flush_denormals));
        // Over an empty index space the contents stay, and there is nothing to combine.
        if !(include_current && exchange.shares().leaves() == 0) {
            declaration.partials(buffer.inner.id, Arc::<Exchange<T, O>>::clone(&exchange));
        }
        let include_current = include_current && exchange.has_first_leaf();
        if include_current {
            let whole = Region::from(GridBox::full(buffer.extent())).cast();
            declaration.touch(buffer.inner.id, whole, Mode::Read);
        }
        let operation = Operation::Nodes(exchange);
        Ok(BoundReduction { buffer, operation, include_current, start, partials, leaves })
    }

    fn attach(bound: &mut Self::Bound, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
        let version = versions.next().expect("the graph gives a version for every access");
        // The memory stays at this address as long as this handle lives.
        bound.start = bound.buffer.memory(version)?;
        Ok(())
    }

    fn label(bound: &Self::Bound) -> Option<(Label, usize)> {
        Some((bound.buffer.inner.label(), D))
    }

    unsafe fn guard(bound: &Self::Bound, chunk: usize) -> Self::Guard<'_> {
        let mut partial = bound.partials[chunk].lock();
        // A replay that a failure has ended may have left some, because nothing has combined them.
        partial.clear();
        let (buffer, operator) = (&bound.buffer, bound.operator());
        let extent = buffer.inner.extent;
        let len = GridBox::full(extent).len();
        if let Some(leaves) = &bound.leaves {
            partial.resize(leaves[chunk], operator.identity());
        } else if bound.include_current && chunk == 0 {
            // SAFETY: no other task uses the buffer while this one runs, as it has declared, and all chunks
            // only read it.
            partial.extend_from_slice(unsafe { std::slice::from_raw_parts(bound.start.get(), len) });
        } else {
            partial.resize(len, operator.identity());
        }
        Reduction { partial, operator, extent, buffer }
    }

    fn view<'v>(guard: &'v mut Self::Guard<'_>) -> Self::View<'v> {
        guard.for_call()
    }

    unsafe fn finish(bound: &Self::Bound) {
        if bound.leaves.is_some() {
            // SAFETY: no other task uses the buffer while this one runs, as it has declared, and the buffer
            // has one element.
            let current = bound.include_current.then(|| unsafe { *bound.start.get() });
            let result = bound.finish_leaves(current);
            // SAFETY: the same, and on several nodes there is no result yet.
            result.into_iter().for_each(|result| unsafe { *bound.start.get() = result });
            return;
        }
        let operator = match &bound.operation {
            Operation::OneNode(operator) => operator,
            Operation::Nodes(exchange) => return exchange.finish(&bound.partials),
        };
        let len = GridBox::full(bound.buffer.inner.extent).len();
        // SAFETY: no other task uses the buffer while this one runs, as it has declared; the buffer has `len`
        // elements.
        let target = unsafe { std::slice::from_raw_parts_mut(bound.start.get(), len) };
        match bound.combine(operator) {
            Some(result) => target.copy_from_slice(&result),
            // The index space is empty.
            None if bound.include_current => {}
            None => target.fill(operator.identity()),
        }
    }
}

impl<T, const D: usize, O> Sealed for Reduce<T, D, O> {}
impl<T, const D: usize, O> KernelAccess for Reduce<T, D, O> {}

/// The partial result of one chunk in a [reduction](crate::interface::TaskBuilder::reduce), as its kernel
/// sees it.
///
/// Indices are those of the buffer.
pub struct Reduction<'v, T, const D: usize, O> {
    partial: MutexGuard<'v, Vec<T>>,
    operator: &'v O,
    extent: Extent<D>,
    buffer: &'v Buffer<T, D>,
}

impl<'b, T: Element, const D: usize, O: Operator<T>> Reduction<'b, T, D, O> {
    /// Combines a value into the element at `point`, after the values that this chunk has combined before.
    ///
    /// # Panics
    /// Ends the task if the buffer has no such element.
    #[inline]
    pub fn combine(&mut self, point: [usize; D], value: T) {
        let at = self.index(point);
        let slot = &mut self.partial[at];
        *slot = self.operator.combine(*slot, value);
    }

    /// All elements of the partial result in row-major order, for loops that combine values themselves.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.partial
    }

    /// The extent of the buffer.
    pub fn extent(&self) -> Extent<D> {
        self.extent
    }

    #[inline]
    fn index(&self, point: [usize; D]) -> usize {
        if !GridBox::full(self.extent).contains_point(Point(point)) {
            self.refuse(point);
        }
        self.extent.0.iter().zip(point).fold(0, |index, (n, i)| index * n + i)
    }

    #[cold]
    fn refuse(&self, point: [usize; D]) -> ! {
        OutsideRegion {
            buffer: self.buffer.inner.label().to_string(),
            asked: Point(point).to_string(),
            declared: GridBox::full(self.extent).to_string(),
        }
        .throw()
    }

    /// The view for one call.
    fn for_call<'v>(&'v mut self) -> &'v mut Reduction<'v, T, D, O>
    where
        'b: 'v,
    {
        // SAFETY: only the lifetime parameter changes, which no field's layout depends on. It shrinks behind
        // a unique reference. A caller could put the partial result of another chunk there, whose lock is
        // then held in place of this one until the call ends; both belong to this task.
        unsafe { &mut *std::ptr::from_mut(self).cast() }
    }
}

impl<T: Element, const D: usize, O: Operator<T>> Index<[usize; D]> for Reduction<'_, T, D, O> {
    type Output = T;

    #[inline]
    fn index(&self, point: [usize; D]) -> &T {
        &self.partial[Reduction::index(self, point)]
    }
}

impl<T, const D: usize, O> fmt::Debug for Reduction<'_, T, D, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reduction({})", self.buffer.inner.label())
    }
}
