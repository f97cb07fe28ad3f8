//! The runtime: what a program creates first and drains last.

use crate::{
    barrier::Barrier,
    buffer::{self, Buffer, Initial},
    capture::{Captures, Copies, Fenceable, Moves},
    core::Core,
    element::Element,
    error::Error,
    fence::{self, Fence},
    host_object::HostObject,
    memory::Allocation,
    node::Latch,
    record::{Recorder, Wanted},
    task::NewTask,
};
use anabranch_graph::{
    command::CommandGraph,
    print::{Drawing, Format},
};
use anabranch_grid::Extent;
use anabranch_par::CancellationToken;
use std::{
    borrow::Cow,
    future::Future,
    panic::Location,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

/// The data-flow runtime: see the [crate](crate) documentation.
///
/// Tasks may be submitted from several threads; each thread's own are in the order in which it submitted them.
/// Dropping the runtime waits for everything that was submitted; failures that nobody asked for are lost then, so call
/// [`wait`](Self::wait) or [`drain`](Self::drain) first.
#[derive(Debug)]
pub struct Runtime {
    core: Arc<Core>,
}

/// Settings of a [`Runtime`]: see [`Runtime::builder`].
#[derive(Clone, Debug)]
#[must_use = "settings do nothing until the runtime is built"]
pub struct Builder {
    settings: Settings,
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// `None`, here and below: what the environment says, or the default.
    pub(crate) threads: Option<usize>,
    pub(crate) pin: Option<bool>,
    pub(crate) lead: usize,
    pub(crate) host_lanes: usize,
    pub(crate) name: String,
    pub(crate) seed: Option<u64>,
    pub(crate) patience: Duration,
    pub(crate) record: Wanted,
}

impl Builder {
    /// The number of threads that compute. By default it is what the environment variable `ANABRANCH_NUM_THREADS` says (a
    /// number from 1 to 1024), or else as many as this process may use processors.
    ///
    /// What they do when there is nothing to do is said by `ANABRANCH_WAIT_POLICY` (`spin`, `adaptive` or `passive`): see
    /// [`WaitPolicy`](anabranch_par::WaitPolicy).
    pub fn threads(mut self, threads: usize) -> Self {
        self.settings.threads = Some(threads);
        self
    }

    /// Binds each compute thread to a processor of its own, where the system can. Off by default, where the environment
    /// variable `ANABRANCH_PIN` does not say `1` or `true`: it helps on a machine that nobody else uses and hurts on others.
    pub fn pin(mut self, pin: bool) -> Self {
        self.settings.pin = Some(pin);
        self
    }

    /// How many tasks may be in flight (4,096 by default): a thread that submits more is slowed down to the speed at
    /// which they end. It bounds the memory that an endless stream of tasks needs.
    pub fn lead(mut self, tasks: usize) -> Self {
        self.settings.lead = tasks;
        self
    }

    /// How many host tasks may run at a time (16 by default). Their threads are started when they are needed.
    pub fn host_lanes(mut self, lanes: usize) -> Self {
        self.settings.host_lanes = lanes;
        self
    }

    /// The beginning of the names of all threads (`anabranch-` by default).
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = name.into();
        self
    }

    /// How long a task may run, or no task may end, before a warning is given through [`tracing`] (10 s by default). It is
    /// given by threads that wait for the runtime; where none does, nobody looks.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.settings.patience = patience;
        self
    }

    /// Runs tasks in an order drawn from a seed, one at a time, on the threads that submit and wait: so that whatever an
    /// order brings to light can be seen again. For tests; with several submitting threads the order is theirs.
    pub fn seeded(mut self, seed: u64) -> Self {
        self.settings.seed = Some(seed);
        self
    }

    /// Records the graphs of the program, for [`Runtime::task_graph`] and [`Runtime::command_graph`].
    ///
    /// The same without a change to the program: with the environment variable `ANABRANCH_PRINT_GRAPHS` set to a path
    /// (`graphs.svg`; also `.dot`, `.mmd` and `.json`), the task graph is written there when the runtime ends, and the
    /// command graph beside it (`graphs-commands.svg`) where there is a [dry run](Self::dry_run).
    pub fn record_graphs(mut self, record: bool) -> Self {
        self.settings.record.graphs = record;
        self
    }

    /// Generates, beside running the program here, the commands that `nodes` nodes (1 to 4,096) would execute:
    /// who computes what, who sends what to whom. At the end a summary is printed to standard error. The environment variable
    /// `ANABRANCH_DRY_RUN_NODES` does the same for a program that is not changed.
    pub fn dry_run(mut self, nodes: u16) -> Self {
        self.settings.record.nodes = Some(nodes);
        self
    }

    /// What the environment asks for.
    fn with_environment(mut self) -> Result<Self, Error> {
        if let Some(path) = std::env::var_os("ANABRANCH_PRINT_GRAPHS").filter(|path| !path.is_empty()) {
            self.settings.record.path = Some(path.into());
        }
        if let Some(nodes) = std::env::var_os("ANABRANCH_DRY_RUN_NODES").filter(|nodes| !nodes.is_empty()) {
            let number = nodes.to_str().and_then(|nodes| nodes.parse().ok());
            let wrong = || Error::Setting {
                setting: "ANABRANCH_DRY_RUN_NODES",
                value: nodes.display().to_string(),
                range: "a number from 1 to 4096",
            };
            self.settings.record.nodes = Some(number.ok_or_else(wrong)?);
        }
        let Wanted { path, nodes, .. } = &self.settings.record;
        if let Some(nodes) = nodes
            && !(1..=CommandGraph::MAX_NODES).contains(nodes)
        {
            let (setting, value) = ("the number of nodes of a dry run", nodes.to_string());
            return Err(Error::Setting { setting, value, range: "a number from 1 to 4096" });
        }
        if let Some(path) = path
            && Format::from_path(path).is_err()
        {
            let (setting, value) = ("ANABRANCH_PRINT_GRAPHS", path.display().to_string());
            return Err(Error::Setting {
                setting,
                value,
                range: "a path that ends in .svg, .dot, .mmd or .json",
            });
        }
        Ok(self)
    }

    /// Starts the runtime.
    ///
    /// # Errors
    /// [`Error::Setting`] for a value that makes no sense, [`Error::Pool`] where the system refuses the threads or an
    /// environment variable of theirs has a value that it must not have.
    pub fn build(self) -> Result<Runtime, Error> {
        let this = self.with_environment()?;
        let Settings { threads, lead, host_lanes, .. } = this.settings;
        let threads = threads.map_or_else(anabranch_par::default_threads, Ok)?;
        let at_least_one = [("threads", threads), ("lead", lead), ("host_lanes", host_lanes)];
        for (setting, value) in at_least_one {
            if value == 0 {
                return Err(Error::Setting { setting, value: value.to_string(), range: "1 or more" });
            }
        }
        Ok(Runtime { core: Core::new(threads, &this.settings)? })
    }
}

impl Runtime {
    /// A runtime on all processors that this process may use.
    ///
    /// # Errors
    /// See [`Builder::build`].
    pub fn new() -> Result<Self, Error> {
        Self::builder().build()
    }

    /// The settings of a runtime, with their defaults.
    pub fn builder() -> Builder {
        let name = "anabranch-".into();
        Builder {
            settings: Settings {
                threads: None,
                pin: None,
                lead: 4096,
                host_lanes: 16,
                name,
                seed: None,
                patience: Duration::from_secs(10),
                record: Wanted::default(),
            },
        }
    }

    /// The number of threads that compute.
    pub fn threads(&self) -> usize {
        self.core.threads()
    }

    /// A buffer without contents: what is read must have been written before. Memory is allocated when a task first
    /// uses it.
    pub fn buffer<T: Element, const D: usize>(&self, extent: impl Into<Extent<D>>) -> Buffer<T, D> {
        self.create(extent.into(), None)
    }

    /// A buffer with a copy of a slice or of an `ndarray` array as its contents.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn buffer_from<I: Initial<D> + ?Sized, const D: usize>(
        &self,
        initial: &I,
    ) -> Result<Buffer<I::Element, D>, Error> {
        // Asked once: an answer that changes must not part the extent from the memory.
        let extent = initial.extent();
        match buffer::filled(initial, extent) {
            Some(memory) => Ok(self.create(extent, Some(memory))),
            None => Err(self.create::<I::Element, D>(extent, None).out_of_memory()),
        }
    }

    fn create<T: Element, const D: usize>(
        &self,
        extent: Extent<D>,
        initial: Option<Allocation>,
    ) -> Buffer<T, D> {
        let (id, number) = self.core.create_buffer(extent.cast(), initial.is_some(), size_of::<T>());
        Buffer::new(id, number, extent, &self.core, initial)
    }

    /// Gives a value to the runtime to guard: see [`HostObject`].
    pub fn host_object<T: Send + 'static>(&self, value: T) -> HostObject<T> {
        let (id, number) = self.core.create_object();
        HostObject::new(id, number, value, &self.core)
    }

    /// Begins a task. The name is for error messages.
    #[track_caller]
    pub fn task(&self, name: impl Into<Cow<'static, str>>) -> NewTask<'_> {
        NewTask::new(&self.core, name, Location::caller())
    }

    /// Tasks that are submitted from now on are cancelled by this token, until another one, or none, takes its place. (Not
    /// fences, barriers and [`drain`](Self::drain): by them the program looks at what there is.)
    pub fn set_cancellation(&self, token: Option<&CancellationToken>) {
        self.core.set_cancellation(token.cloned());
    }

    /// The contents of a buffer (or a part of it), a clone of a host object, or several of these at once, as they are
    /// after all tasks submitted so far. Does not wait: the [`Fence`] does, or can be awaited.
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
    /// If a part of it was never written, or it does not belong to this runtime.
    #[track_caller]
    pub fn fence<F: Fenceable>(
        &self,
        what: F,
    ) -> Result<Fence<<F::Captures as Captures<Copies>>::Output>, Error> {
        fence::submit::<Copies, _>(&self.core, "fence", false, Location::caller(), what.captures())
    }

    /// An epoch: everything submitted so far comes before it, everything submitted later after it. Does not wait: the
    /// [`Barrier`] does, or can be awaited. Programs rarely need it, since dependencies order what must be ordered.
    #[track_caller]
    pub fn barrier(&self) -> Barrier<()> {
        self.barrier_with(()).expect("nothing is captured that could be refused")
    }

    /// The same, with copies of buffers, parts of them and host objects, as they are right before it. (What another thread
    /// submits at the same moment may come between the copies and the epoch.)
    /// [The guide](crate::guide::orders#captures-fences-and-waits) compares this with fences and waits.
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
    /// As [`fence`](Self::fence); there is no barrier then.
    #[track_caller]
    pub fn barrier_with<C: Captures<Copies>>(&self, captures: C) -> Result<Barrier<C::Output>, Error> {
        Barrier::submit(&self.core, Location::caller(), captures)
    }

    /// Waits for all tasks submitted so far.
    ///
    /// The calling thread helps with host tasks that it waits for. Where nothing is in flight this costs one load and a
    /// compare.
    ///
    /// # Errors
    /// [`Error::Failed`] with all failures since the last synchronisation; [`Error::WaitInsideTask`].
    pub fn wait(&self) -> Result<(), Error> {
        if !self.core.is_idle() {
            self.wait_busy()?;
        }
        self.core.report()
    }

    #[cold]
    fn wait_busy(&self) -> Result<(), Error> {
        self.core.check_outside("Runtime::wait")?;
        self.core.note_wait();
        self.core.settle(&self.core.latch());
        self.core.tidy();
        Ok(())
    }

    /// The failures since the last synchronisation, without waiting: for long loops that want to end when something has
    /// gone wrong. Where nothing has failed this costs one load.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn check(&self) -> Result<(), Error> {
        self.core.report()
    }

    /// The task graph so far, to be rendered: of a runtime whose graphs are [recorded](Builder::record_graphs).
    ///
    /// ```
    /// use anabranch::{graph::print::Format, prelude::*};
    ///
    /// let rt = Runtime::builder().record_graphs(true).build()?;
    /// let u = rt.buffer::<f32, 1>([8]).named("u");
    /// rt.task("fill").over([8]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(1.0))?;
    /// let drawing = rt.task_graph().expect("graphs are recorded");
    /// assert!(drawing.render(Format::Dot).contains("fill"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn task_graph(&self) -> Option<Drawing> {
        self.core.recorder(Recorder::tasks)
    }

    /// The command graphs of all nodes so far: of a [dry run](Builder::dry_run).
    pub fn command_graph(&self) -> Option<Drawing> {
        self.core.recorder(Recorder::commands).flatten()
    }

    /// What a [dry run](Builder::dry_run) has come to so far: numbers of commands and messages.
    pub fn dry_run_summary(&self) -> Option<String> {
        self.core.recorder(Recorder::summary).flatten()
    }

    /// The same as [`wait`](Self::wait) as a `Future`, for asynchronous code.
    pub fn idle(&self) -> Idle {
        let latch = (!self.core.is_idle()).then(|| self.core.latch());
        Idle { core: Arc::clone(&self.core), latch }
    }

    /// Waits for all tasks, takes out what is captured, and ends the runtime.
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
    /// Failures since the last synchronisation. Host objects stay with their handles then:
    /// [`HostObject::into_inner`].
    #[track_caller]
    pub fn drain<C: Captures<Moves>>(self, captures: C) -> Result<C::Output, Error> {
        self.core.check_outside("Runtime::drain")?;
        // First: nothing is moved out where something has failed.
        self.wait()?;
        fence::submit::<Moves, _>(&self.core, "drain", true, Location::caller(), captures)?.wait()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if self.core.check_outside("drop").is_err() {
            self.core.keep();
            return;
        }
        if !self.core.is_idle() {
            self.core.settle(&self.core.latch());
        }
        self.core.tidy();
        self.core.recorder(Recorder::finish);
        self.core.stop();
    }
}

/// A `Future` that is ready when all tasks submitted before it was made are done: see [`Runtime::idle`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Idle {
    core: Arc<Core>,
    latch: Option<Arc<Latch>>,
}

impl Idle {
    /// Waits for it.
    ///
    /// # Errors
    /// As [`Runtime::wait`].
    pub fn wait(self) -> Result<(), Error> {
        if let Some(latch) = &self.latch {
            self.core.check_outside("Idle::wait")?;
            self.core.settle(latch);
        }
        self.core.report()
    }
}

impl Future for Idle {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.latch.iter().for_each(|latch| self.core.drive(&latch.event));
        match self.latch.as_ref().map_or(Poll::Ready(()), |latch| latch.event.poll(context)) {
            Poll::Ready(()) => Poll::Ready(self.core.report()),
            Poll::Pending => {
                self.core.check_outside("Idle::poll").map_or_else(|e| Poll::Ready(Err(e)), |()| Poll::Pending)
            }
        }
    }
}
