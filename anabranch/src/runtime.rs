//! The runtime: created first, used to submit tasks, and drained or dropped last.

use crate::{
    cluster::Cluster,
    data::{
        allocation::Allocation,
        buffer::Buffer,
        cluster_object::ClusterObject,
        communicator::Communicator,
        element::Element,
        host_object::HostObject,
        initial::{self, Initial},
    },
    device::Device,
    error::Error,
    events::latch::Latch,
    execute::{Core, GroupHandle, Meeting, Running, Status},
    label::TaskLabel,
    observe::Recorder,
    settings::Settings,
    submit::{
        capture::{
            Captures, Copies, Fenceable, Moves,
            barrier::Barrier,
            fence::{self, Fence},
        },
        sequence::{Sequence, SequenceBody},
        task::{NewTask, batch::NewTasks},
    },
};
use anabranch_grid::Extent;
use std::{
    borrow::Cow,
    future::Future,
    panic::Location,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// The data-flow runtime: see the [crate] documentation.
///
/// Several threads may submit tasks, unless the program runs on [several nodes](crate::guide::nodes). The
/// tasks of each thread are in the order in which it submitted them. Dropping the runtime waits for all
/// tasks. If a failure was not reported, the runtime then prints it to standard error; call
/// [`wait`](Self::wait) or [`drain`](Self::drain) to get it as an error. The threads end when the runtime and
/// all of its [groups](crate::TaskGroup) are dropped.
///
/// Threads that share a runtime share its failures, too: `wait` reports a failure once, to the thread that
/// comes first. Give each of them a [group](Self::group).
#[derive(Debug)]
pub struct Runtime {
    pub(crate) core: Arc<Core>,
    pub(crate) running: Arc<Running>,
}

impl Runtime {
    pub(crate) fn start(
        threads: usize,
        settings: &Settings,
        cluster: Option<Arc<Cluster>>,
    ) -> Result<Self, Error> {
        Core::start(threads, settings, cluster).map(|core| Self { running: Running::new(&core), core })
    }

    /// The number of nodes that run the program together: 1 unless it runs on [several](crate::guide::nodes).
    pub fn nodes(&self) -> u16 {
        self.core.cluster().map_or(1, |cluster| cluster.nodes())
    }

    /// This node, from 0 to below [`nodes`](Self::nodes). A program that submits other tasks on another node
    /// ends with an error.
    pub fn node(&self) -> u16 {
        self.core.cluster().map_or(0, |cluster| cluster.node())
    }

    /// The number of compute threads.
    pub fn threads(&self) -> usize {
        self.core.threads()
    }

    /// The device that recorded kernels run on, if no task says otherwise: see
    /// [`Builder::device`](crate::Builder::device).
    pub fn device(&self) -> Option<&Arc<dyn Device>> {
        self.core.device.as_ref()
    }

    /// Creates a buffer without contents: a task must write an element before another reads it. Memory is
    /// allocated when a task first uses the buffer.
    ///
    /// A buffer has at most three dimensions. A program with one of more does not compile:
    ///
    /// ```compile_fail
    /// let rt = anabranch::Runtime::new().unwrap();
    /// rt.buffer::<f32, 4>([2, 2, 2, 2]);
    /// ```
    pub fn buffer<T: Element, const D: usize>(&self, extent: impl Into<Extent<D>>) -> Buffer<T, D> {
        create(&self.core, extent.into(), None)
    }

    /// Creates a buffer whose contents are a copy of a slice or of an `ndarray` array.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn buffer_from<I: Initial<D> + ?Sized, const D: usize>(
        &self,
        initial: &I,
    ) -> Result<Buffer<I::Element, D>, Error> {
        create_from(&self.core, initial)
    }

    /// Moves a value into the runtime, which guards it: see [`HostObject`].
    pub fn host_object<T: Send + 'static>(&self, value: T) -> HostObject<T> {
        let (id, number) = self.core.create_object(None);
        HostObject::new(id, number, value, self.core.owner())
    }

    /// Makes a value on the node `home`, and guards it there: a host object of the whole cluster, whose
    /// effects are ordered over all nodes. See [`ClusterObject`]. `make` is called on the home only.
    ///
    /// If making the value may fail, all nodes must agree on the result, by
    /// [`agree_result`](Self::agree_result):
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// let parsed = if rt.node() == 0 { "7".parse::<i32>().map(Some) } else { Ok(None) };
    /// let parsed = rt.agree_result(parsed.map_err(|error| error.to_string()))?;
    /// let number = rt.cluster_object(0, || parsed.expect("node 0 has it"))?;
    /// rt.task("add").once().effect(&number, sequential()).host(|(number,)| *number += 1)?;
    /// assert_eq!(rt.drain(number.capture())?, Some(8));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Setting`] if there is no such node.
    pub fn cluster_object<T: Send + 'static>(
        &self,
        home: u16,
        make: impl FnOnce() -> T,
    ) -> Result<ClusterObject<T>, Error> {
        if home >= self.core.nodes() {
            let range = "an existing node: the first is 0";
            return Err(Error::Setting {
                setting: "the home of a host object",
                value: home.to_string(),
                range,
            });
        }
        let is_here = self.core.cluster().is_none_or(|cluster| cluster.node() == home);
        let value = is_here.then(make);
        let (id, number) = self.core.create_object(Some(home));
        Ok(ClusterObject { local: HostObject::with(id, number, value, Some(home), self.core.owner()) })
    }

    /// Makes a communicator of all nodes, for tasks that call MPI or a library that uses it. The
    /// [builder](crate::Builder::communicators) must permit it.
    ///
    /// ```
    /// use anabranch::prelude::*;
    /// use std::ffi::{c_int, c_void};
    ///
    /// # unsafe extern "C" fn solver_solve(_: *mut c_void, _: *mut f64, _: usize) -> c_int { 0 }
    /// # fn solve_alone(u: &mut [f64]) { u.fill(1.0) }
    /// let rt = Runtime::builder().communicators(true).build()?;
    /// let comm = rt.communicator()?;
    /// let (u, nodes) = (rt.buffer_from(&[0.0; 100])?, rt.nodes());
    /// // Each node hands its rows to a library that was compiled with Open MPI.
    /// rt.task("solve").collective().update(&u, even_split()).effect(&comm, sequential()).host(move |_, (u, comm)| {
    ///     let rows = u.as_mut_slice().ok_or("rows lie side by side")?;
    ///     let Some(comm) = comm else {
    ///         // Without MPI: on one node these are all rows.
    ///         return if nodes == 1 { Ok(solve_alone(rows)) } else { Err("several nodes need MPI".into()) };
    ///     };
    ///     let comm = comm.open_mpi().ok_or("the solver needs Open MPI")?;
    ///     // SAFETY: the communicator is one of the library that the solver was compiled with, and this task alone uses it now.
    ///     match unsafe { solver_solve(comm, rows.as_mut_ptr(), rows.len()) } {
    ///         0 => Ok(()),
    ///         code => Err(format!("the solver failed with code {code}")),
    ///     }
    /// })?;
    /// rt.wait()?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// All nodes must call it at the same point of the program, and meet there. The communicator is valid as
    /// long as the runtime, which frees it. An error in a call of MPI ends all processes, as is the rule in
    /// MPI, unless the program gives the communicator another handler.
    ///
    /// If the program links an MPI library, the runtime uses the same one, if both are from one installation.
    /// The program need not initialise MPI. If it does so before it builds a runtime, then with
    /// `MPI_THREAD_MULTIPLE`.
    ///
    /// # Errors
    /// [`Error::Setting`] if the builder does not permit communicators, or if the program has made as many as
    /// there are [host lanes](crate::Builder::host_lanes), broken ones included. With [several
    /// nodes](crate::guide::nodes), if the run has ended or if this thread may not submit.
    pub fn communicator(&self) -> Result<Communicator, Error> {
        let handle = self.core.make_communicator()?;
        let (id, number) = self.core.create_object(None);
        Ok(Communicator { object: HostObject::new(id, number, handle, self.core.owner()) })
    }

    /// Begins a task. The name is for messages and printed graphs.
    #[track_caller]
    pub fn task(&self, name: impl Into<Cow<'static, str>>) -> NewTask<'_> {
        NewTask::new(&self.core, None, name, Location::caller())
    }

    /// Begins a batch: many host tasks of one kind, which are declared and submitted at once. The guide says
    /// [what that saves](crate::guide::small_tasks#batches). With several nodes each node runs its share as
    /// one task. The name is for messages and printed graphs.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// let squares = rt.buffer::<usize, 1>([10]);
    /// rt.tasks("square").each(0..10).write(&squares, one_to_one()).host(|[i], (squares,)| squares.set([i], i * i))?;
    /// assert_eq!(rt.fence(&squares)?.wait()?[[9]], 81);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn tasks(&self, name: impl Into<Cow<'static, str>>) -> NewTasks<'_> {
        NewTasks::new(&self.core, None, name, Location::caller())
    }

    /// Records tasks once, to [replay](Sequence::replay) them again and again. What an iterative program does
    /// in each step is declared, checked and ordered once, and then costs a fraction of a submission. `body`
    /// builds tasks as the runtime does; none of them runs before the first replay. The name is for messages.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// let (u, v) = (rt.buffer_from(&[0.0_f64, 0.0, 1.0, 0.0])?, rt.buffer([4]));
    /// let smooth = rt.record("smooth", |body| {
    ///     for (from, to) in [(&u, &v), (&v, &u)] {
    ///         body.task("mean of three")
    ///             .over([4])
    ///             .read(from, neighborhood([1]))
    ///             .write(to, one_to_one())
    ///             .each(|(from, to)| {
    ///                 to.set((from.at_clamped([-1]) + from.here() + from.at_clamped([1])) / 3.0)
    ///             })?;
    ///     }
    ///     Ok(())
    /// })?;
    /// smooth.replay(1000)?;
    /// assert!(rt.fence(&u)?.wait()?.as_slice().iter().all(|u| (u - 0.25).abs() < 1e-9));
    /// # Ok::<(), anabranch::Error>(())
    /// ```
    ///
    /// A recorded task is a [kernel](crate::interface::SequenceTask::kernel), a [recorded
    /// kernel](crate::interface::SequenceTask::each), a [shader](crate::interface::SequenceTask::shader), a
    /// [host task](crate::interface::SequenceTask::host) or a [batch](SequenceBody::tasks) of host tasks,
    /// with any accesses to buffers, reductions and sequential effects. On the host of one node, all of them
    /// run on the threads that run kernels. With [several nodes](crate::guide::nodes), on devices, and if a
    /// host task is declared as [`blocking`](crate::interface::SequenceTask::blocking), a replay submits its
    /// tasks one by one, with the same results.
    ///
    /// # Errors
    /// If `body` returns an error, or declares a task wrongly.
    #[track_caller]
    pub fn record(
        &self,
        name: impl Into<Cow<'static, str>>,
        body: impl FnOnce(&SequenceBody<'_>) -> Result<(), Error>,
    ) -> Result<Sequence, Error> {
        let label = TaskLabel { name: name.into(), location: Location::caller() };
        Sequence::record(&self.running, None, label, body)
    }

    /// Copies a buffer or a part of it, clones a host object, or does several of these at once, after all
    /// tasks submitted so far. Does not wait: the returned [`Fence`] can be waited for or awaited.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// let (u, count) = (rt.buffer_from(&[1, 2, 3])?, rt.host_object(7));
    /// let (u, count) = rt.fence((&u, &count))?.wait()?;
    /// assert_eq!((u.as_slice(), count), (&[1, 2, 3][..], 7));
    /// # Ok::<(), anabranch::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Declaration`] if a part of a buffer was never written. [`Error::OtherRuntime`] if an argument
    /// does not belong to this runtime. [`Error::NoSuchPart`]. [`Error::Setting`] if it is to be captured on
    /// a node that does not exist.
    #[track_caller]
    pub fn fence<F: Fenceable>(
        &self,
        what: F,
    ) -> Result<Fence<<F::Captures as Captures<Copies>>::Output>, Error> {
        fence::submit::<Copies, _>(&self.core, None, "fence", false, Location::caller(), what.captures())
    }

    /// Submits an epoch: all tasks submitted so far come before it, all tasks submitted later after it. Does
    /// not wait: the returned [`Barrier`] can be waited for or awaited. Programs rarely need a barrier, since
    /// dependencies order the tasks.
    ///
    /// # Panics
    /// With [several nodes](crate::guide::nodes), if the run has ended or if this thread may not submit.
    /// [`barrier_with`](Self::barrier_with) returns these errors.
    #[track_caller]
    pub fn barrier(&self) -> Barrier<()> {
        self.barrier_with(()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Submits an epoch like [`barrier`](Self::barrier), with copies of buffers, parts of buffers and host
    /// objects right before it. (A task that another thread submits at the same moment may come between the
    /// copies and the epoch.) [The guide](crate::guide::orders#captures-fences-and-waits) compares this with
    /// fences and waits.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// let u = rt.buffer_from(&[1, 2, 3])?;
    /// let log = rt.host_object(String::from("begin"));
    /// let (u, log) = rt.barrier_with((u.part(GridBox::new(1, 3)), log.capture()))?.wait()?;
    /// assert_eq!((u.as_slice(), log.as_str()), (&[2, 3][..], "begin"));
    /// # Ok::<(), anabranch::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`fence`](Self::fence). No barrier is submitted then.
    #[track_caller]
    pub fn barrier_with<C: Captures<Copies>>(&self, captures: C) -> Result<Barrier<C::Output>, Error> {
        Barrier::submit(&self.core, None, Location::caller(), captures)
    }

    /// Waits for all tasks submitted so far, in all groups.
    ///
    /// The calling thread runs host tasks that it waits for on its own stack. So a `RefCell` or a lock that
    /// it has borrowed, also in a thread-local, is borrowed inside these tasks, too.
    /// [`Builder::help_while_waiting`](crate::Builder::help_while_waiting) turns this off for a runtime, and
    /// [`blocking`](crate::interface::TaskBuilder::blocking) for one task. If no task is in flight, this
    /// function costs four loads.
    ///
    /// With [several nodes](crate::guide::nodes), it also waits until every node has called it and has done
    /// its part. All of them get the failures of all.
    ///
    /// # Errors
    /// [`Error::Failed`] with all failures since the last synchronisation, except those of tasks in
    /// [groups](crate::TaskGroup). [`Error::WaitInsideTask`].
    pub fn wait(&self) -> Result<(), Error> {
        const CALL: &str = "Runtime::wait";
        self.core.check_outside(CALL)?;
        if !self.core.is_idle() {
            self.wait_busy(CALL);
        }
        self.core.report(None, CALL)
    }

    #[cold]
    fn wait_busy(&self, call: &'static str) {
        self.core.count_wait();
        self.core.wait_for(&self.core.latch(), call);
        self.core.forget_completed();
    }

    /// Reports the failures since the last synchronisation, without waiting, for long loops that end when a
    /// task has failed. If no task has failed, this costs one load.
    ///
    /// With [several nodes](crate::guide::nodes), all of them get the failures that any of them has by now.
    /// So they must meet, which takes some microseconds and waits for the last one to call this, but not for
    /// tasks: call it now and then, and not for every task.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn check(&self) -> Result<(), Error> {
        self.core.report(None, "Runtime::check")
    }

    /// The summary of a [dry run](crate::Builder::dry_run) so far: its numbers of commands and messages.
    pub fn dry_run_summary(&self) -> Option<String> {
        self.core.recorder().and_then(Recorder::summary)
    }

    /// Whether no task is in flight, in any group, on this node. This costs two loads.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// rt.task("work").once().host(|()| ())?;
    /// rt.wait()?;
    /// assert!(rt.is_idle());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn is_idle(&self) -> bool {
        self.core.is_idle()
    }

    /// Calls `callback` once when all tasks are done that were submitted before this call, in all groups:
    /// now, or on the thread that completes the last of them. The status is [`Status::Failed`] if there are
    /// failures of tasks in no group that were not reported, and otherwise [`Status::Done`].
    ///
    /// The callback counts as a part of a task of every runtime, as that of a
    /// [group](crate::TaskGroup::on_done) does. A panic in it is a failure,
    /// [`Cause::Callback`](crate::Cause::Callback). Later tasks do not wait for the callback.
    ///
    /// With [several nodes](crate::guide::nodes), all of them call this, as they submit the same tasks. It is
    /// a [barrier](Self::barrier) then, for the tasks of this node.
    ///
    /// ```
    /// use anabranch::prelude::*;
    /// use std::sync::mpsc;
    ///
    /// let rt = Runtime::new()?;
    /// let (sender, receiver) = mpsc::channel();
    /// rt.task("work").once().host(|()| ())?;
    /// rt.on_done(move |status| sender.send(status).unwrap());
    /// assert_eq!(receiver.recv(), Ok(Status::Done));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Panics
    /// In a forked process, and with the panic of the callback if no task is in flight.
    #[track_caller]
    pub fn on_done(&self, callback: impl FnOnce(Status) + Send + 'static) {
        let location = Location::caller();
        if self.core.several_nodes().is_some() {
            return self.barrier().on_done(callback);
        }
        if let Err(error) = self.core.id().check_process("Runtime::on_done") {
            panic!("{error}");
        }
        let core = Arc::downgrade(&self.core);
        let behind = self.core.submit_behind_all(TaskLabel { name: "on_done".into(), location });
        behind.on_done(move |status| callback(core.upgrade().map_or(status, |core| core.status())));
    }

    /// Waits for all tasks submitted so far, like [`wait`](Self::wait), as a `Future` for asynchronous code.
    pub fn idle(&self) -> Idle {
        let is_busy = !self.core.is_idle() && self.core.id().is_in_this_process();
        let latch = is_busy.then(|| self.core.latch());
        Idle { core: Arc::clone(&self.core), group: None, latch, meeting: None, call: "Runtime::idle" }
    }

    /// Waits for all tasks like [`wait`](Self::wait), takes the captured values out of the runtime, and ends
    /// it.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// let u = rt.buffer_from(&[1, 2, 3])?;
    /// let log = rt.host_object(String::from("begin"));
    /// rt.task("end").once().effect(&log, sequential()).host(|(log,)| log.push_str(" end"))?;
    /// let (last, log) = rt.drain((u.capture(), log.capture()))?;
    /// assert_eq!((last.as_slice(), log.as_str()), (&[1, 2, 3][..], "begin end"));
    /// # Ok::<(), anabranch::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Failed`] with all failures since the last synchronisation. Host objects stay with their
    /// handles then: see [`HostObject::into_inner`]. [`Error::WaitInsideTask`], and the errors of
    /// [`fence`](Self::fence).
    #[track_caller]
    pub fn drain<C: Captures<Moves>>(self, captures: C) -> Result<C::Output, Error> {
        self.core.check_outside("Runtime::drain")?;
        // First, so that no object is moved out after a failure.
        self.wait()?;
        fence::submit::<Moves, _>(&self.core, None, "drain", true, Location::caller(), captures)?.wait()
    }

    /// Waits for all tasks, takes the captured values out of the runtime, and ends it, like
    /// [`drain`](Self::drain), as a `Future` for asynchronous code. It begins when it is first polled. A
    /// future that is dropped before it is ready drops the runtime, and so blocks until all tasks are done.
    ///
    /// # Errors
    /// See [`drain`](Self::drain).
    #[track_caller]
    pub fn drain_async<C: Captures<Moves>>(
        self,
        captures: C,
    ) -> impl Future<Output = Result<C::Output, Error>> {
        let location = Location::caller();
        async move {
            const CALL: &str = "Runtime::drain_async";
            self.core.check_outside(CALL)?;
            self.idle().await?;
            fence::submit::<Moves, _>(&self.core, None, "drain", true, location, captures)?.await
        }
    }
}

/// Creates a buffer.
pub(crate) fn create<T: Element, const D: usize>(
    core: &Core,
    extent: Extent<D>,
    initial: Option<Allocation>,
) -> Buffer<T, D> {
    let (id, number) = core.create_buffer(extent.cast(), initial.is_some(), size_of::<T>());
    Buffer::new(id, number, extent, core.owner(), initial)
}

/// Creates a buffer with initial contents.
pub(crate) fn create_from<I: Initial<D> + ?Sized, const D: usize>(
    core: &Core,
    initial: &I,
) -> Result<Buffer<I::Element, D>, Error> {
    // Asked once: an answer that changes must not make the extent differ from the memory.
    let extent = initial.extent();
    match initial::filled(initial, extent) {
        Some(memory) => Ok(create(core, extent, Some(memory))),
        None => Err(create::<I::Element, D>(core, extent, None).inner.out_of_memory()),
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // Also if a group keeps the runtime running.
        self.running.wait_for_tasks();
    }
}

/// A `Future` that is ready when all tasks are done that were submitted before [`Runtime::idle`] returned it,
/// or when a [group](crate::TaskGroup::idle) has no task in flight.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Idle {
    core: Arc<Core>,
    group: Option<GroupHandle>,
    latch: Option<Arc<Latch>>,
    /// With several nodes, from the first poll on.
    meeting: Option<Meeting>,
    call: &'static str,
}

impl Idle {
    pub(crate) fn of_group(group: &GroupHandle) -> Self {
        let is_busy = !group.is_idle() && group.core().id().is_in_this_process();
        let latch = is_busy.then(|| group.latch());
        let (core, group) = (Arc::clone(group.core()), Some(group.clone()));
        Self { core, group, latch, meeting: None, call: "TaskGroup::idle" }
    }

    /// Waits for these tasks.
    ///
    /// # Errors
    /// See [`Runtime::wait`] and [`TaskGroup::wait`](crate::TaskGroup::wait).
    pub fn wait(self) -> Result<(), Error> {
        const CALL: &str = "Idle::wait";
        self.core.check_outside(CALL)?;
        if let Some(latch) = &self.latch {
            match &self.group {
                None => self.core.wait_for(latch, CALL),
                Some(group) => self.core.wait_for_group(group, latch, CALL),
            }
        }
        self.core.report(self.group.as_ref(), self.call)
    }
}

impl Future for Idle {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Err(error) = this.core.check_outside("Idle::poll") {
            return Poll::Ready(Err(error));
        }
        if this.meeting.is_none() {
            this.meeting = Meeting::announce(&this.core, this.group.as_ref(), this.call)?;
        }
        if let Some(latch) = &this.latch {
            ready!(this.core.poll(&latch.event, context));
        }
        match &mut this.meeting {
            Some(meeting) => meeting.poll(context),
            None => Poll::Ready(this.core.report(this.group.as_ref(), this.call)),
        }
    }
}
