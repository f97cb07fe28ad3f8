//! Building a runtime.

use crate::{
    cluster::Cluster,
    device::Device,
    error::{Error, NodeError},
    runtime::Runtime,
    settings::Settings,
};
use anabranch_wire::{Endpoint, Launched, Options, connect, launched};
use std::{sync::Arc, time::Duration};

/// Settings of a [`Runtime`]: see [`Runtime::builder`].
#[derive(Clone, Debug)]
#[must_use = "settings do nothing until the runtime is built"]
pub struct Builder {
    settings: Settings,
}

impl Runtime {
    /// Starts a runtime on all processors that this process may use. If `mpirun` or `srun` has started this
    /// process, it is one of [several nodes](crate::guide::nodes).
    ///
    /// # Errors
    /// See [`Builder::build`].
    pub fn new() -> Result<Self, Error> {
        Self::builder().build()
    }

    /// What a launcher (`mpirun`, `srun`) has started this process as, by its environment: if it is one of
    /// several, a runtime is one of [several nodes](crate::guide::nodes). For programs that ask before they
    /// build one, such as a command that is for one process only, or an error that one of them should print.
    ///
    /// # Errors
    /// [`Error::Connect`] if an environment variable has a wrong value.
    pub fn launched() -> Result<Option<Launched>, Error> {
        Ok(launched()?)
    }

    /// The settings of a runtime, with their defaults.
    pub fn builder() -> Builder {
        Builder { settings: Settings::default() }
    }
}

impl Builder {
    /// Sets the number of compute threads. The default is the value of the environment variable
    /// `ANABRANCH_NUM_THREADS` (a number from 1 to 1024), or else the number of processors that this process
    /// may use. Processes that a launcher has started on one machine share its processors: see
    /// [`default_threads`](crate::default_threads).
    ///
    /// The environment variable `ANABRANCH_WAIT_POLICY` (`spin`, `adaptive` or `passive`) says what idle
    /// threads do: see [`WaitPolicy`](anabranch_par::WaitPolicy).
    pub fn threads(mut self, threads: usize) -> Self {
        self.settings.threads = Some(threads);
        self
    }

    /// Binds each compute thread to a processor of its own, if the system can do that. The default is the
    /// value of the environment variable `ANABRANCH_PIN` (`1` or `true`), or else off: pinning helps on a
    /// machine without other programs and hurts on a shared one.
    pub fn pin(mut self, pin: bool) -> Self {
        self.settings.pin = Some(pin);
        self
    }

    /// Limits the number of tasks in flight (4,096 by default): submitted and not done. A thread that submits
    /// a task beyond the limit blocks until enough tasks have ended. The limit bounds the memory that an
    /// endless stream of tasks needs. See also [`help_while_submitting`](Self::help_while_submitting).
    pub fn max_in_flight(mut self, tasks: usize) -> Self {
        self.settings.max_in_flight = tasks;
        self
    }

    /// Limits the number of host lanes (16 by default), which are threads that run host tasks, and the number
    /// of [communicators](Runtime::communicator). One lane starts with the runtime, the others when they are
    /// needed. A thread that [waits](Self::help_while_waiting) may run one more host task.
    pub fn host_lanes(mut self, lanes: usize) -> Self {
        self.settings.host_lanes = lanes;
        self
    }

    /// Sets whether a thread that waits may run tasks that it waits for, on its own stack. The default is the
    /// value of the environment variable `ANABRANCH_HELP_WHILE_WAITING` (`0`, `1`, `true` or `false`), or
    /// else on: the thread would be idle.
    ///
    /// Turn it off if threads of the program wait while they have borrowed something (a `RefCell` in a
    /// thread-local, a lock) that tasks borrow, too. Host tasks then run on host lanes only, and kernels on
    /// compute threads only. For one task, see [`blocking`](crate::interface::TaskBuilder::blocking). A
    /// [seeded](Self::seeded) runtime has no threads of its own for tasks, so there the threads that wait run
    /// tasks in any case.
    ///
    /// ```
    /// use anabranch::prelude::*;
    /// use std::cell::RefCell;
    ///
    /// thread_local!(static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) });
    ///
    /// let rt = Runtime::builder().help_while_waiting(false).build()?;
    /// SCRATCH.with_borrow_mut(|_scratch| {
    ///     rt.task("uses the scratch of its thread").once().host(|()| SCRATCH.with_borrow_mut(|s| s.push(1)))?;
    ///     rt.wait()
    /// })?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn help_while_waiting(mut self, help: bool) -> Self {
        self.settings.help_while_waiting = Some(help);
        self
    }

    /// Sets whether a thread that submits beyond the [limit of tasks in flight](Self::max_in_flight) runs
    /// host tasks on its own stack before it sleeps. It does so until there is room, or until it finds no
    /// task for a moment, or one that it may not run. By default it runs none, so its processor may be idle.
    ///
    /// Turn it on in a program that submits many small host tasks. No host task may wait for something that a
    /// thread does after it has submitted a task, directly or through other threads and tasks. Nor may it
    /// take a lock, or borrow a `RefCell` in a thread-local, that a thread holds while it submits. The same
    /// is true of the `Clone` of objects that fences capture. Declare a task that does so as
    /// [`blocking`](crate::interface::TaskBuilder::blocking), and also a task that takes long. Without
    /// [`help_while_waiting`](Self::help_while_waiting) this setting has no effect.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::builder().help_while_submitting(true).build()?;
    /// let sum = rt.host_object(0);
    /// for i in 0..10_000 {
    ///     rt.task("adds").once().effect(&sum, exclusive()).host(move |(sum,)| *sum += i)?;
    /// }
    /// assert_eq!(rt.fence(&sum)?.wait()?, 49_995_000);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn help_while_submitting(mut self, help: bool) -> Self {
        self.settings.help_while_submitting = help;
        self
    }

    /// Sets the device that runs recorded kernels ([`each`](crate::interface::TaskBuilder::each)), unless a
    /// task says [`on`](crate::interface::TaskBuilder::on) which device or
    /// [`on_host`](crate::interface::TaskBuilder::on_host). Kernels that the device cannot run, for lack of
    /// 64-bit floating-point numbers for example, run on the host. By default all kernels run on the host.
    /// With several nodes each one has a device of its own, or none.
    ///
    /// ```
    /// use anabranch::{
    ///     device::{Device, Simulated},
    ///     prelude::*,
    /// };
    /// use std::sync::Arc;
    ///
    /// let device: Arc<dyn Device> = Arc::new(Simulated::new());
    /// let rt = Runtime::builder().device(&device).build()?;
    /// let u = rt.buffer::<f32, 1>([3]);
    /// rt.task("fill").over([3]).write(&u, one_to_one()).each(|(u,)| u.set(2.0))?;
    /// assert_eq!(rt.fence(&u)?.wait()?.as_slice(), [2.0; 3]);
    /// assert!(device.timeline().submitted() > 0);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn device(mut self, device: &Arc<dyn Device>) -> Self {
        self.settings.device = Some(Arc::clone(device));
        self
    }

    /// Sets the beginning of the names of all threads (`anabranch-` by default).
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = name.into();
        self
    }

    /// Sets how long one task may run, or no task may end, before the runtime warns through [`tracing`] (10 s
    /// by default). Threads that wait for the runtime give the warnings; without a waiting thread there are
    /// none.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.settings.patience = patience;
        self
    }

    /// Checks that tasks write what they declared to [write](crate::interface::TaskBuilder::write), all of
    /// it, and do not read it before.
    ///
    /// Before a task runs, the runtime fills the region with a pattern, in floating-point numbers a NaN. A
    /// task fails if elements have the pattern afterwards, or are NaN that were computed from it; the failure
    /// names the task, the buffer and the elements. Such a task is wrong in any build: without the check it
    /// sees whatever the memory held before, which depends on the time at which earlier tasks ended if the
    /// buffer has [versions](crate::Buffer::with_versions).
    ///
    /// Elements of 8 bytes or multiples of that, and `f32`, are found one by one; of smaller elements, only
    /// several together, because a task may write a few bytes with the pattern by chance. Not found are:
    /// elements of types in which not all bytes are values, such as `bool`; and elements of integer types
    /// that a task computes from others that it read, except for sums with small numbers.
    ///
    /// The default is the value of the environment variable `ANABRANCH_CHECKED` (`0`, `1`, `true` or
    /// `false`), or else on if this crate is compiled with debug assertions, as in the profile `dev`. Every
    /// region is then written and read once more. When it is off, it costs nothing.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::builder().checked(true).build()?;
    /// let u = rt.buffer::<f64, 1>([10]).named("u");
    /// rt.task("fill").over([10]).chunks(2).write(&u, one_to_one()).kernel(|tile, (u,)| {
    ///     for [i] in tile.points().filter(|&[i]| i != 7) {
    ///         u.set([i], 1.0);
    ///     }
    /// })?;
    /// let error = rt.wait().unwrap_err().to_string();
    /// assert!(error.contains("it left [7..8] of buffer \"u\" unwritten in chunk [5..10]"), "{error}");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn checked(mut self, checked: bool) -> Self {
        self.settings.checked = Some(checked);
        self
    }

    /// Runs tasks in an order drawn from a seed, one at a time, on the threads that submit and wait. A test
    /// can so repeat the order that brought a bug to light. If several threads submit, their interleaving is
    /// not part of the seed.
    ///
    /// If no thread of the program submits or waits for about a second while tasks can start, a thread of the
    /// runtime runs these tasks. Otherwise they would never run if, for example, only they keep the runtime
    /// alive.
    pub fn seeded(mut self, seed: u64) -> Self {
        self.settings.seed = Some(seed);
        self
    }

    /// Records the graphs of the program, for [`Runtime::task_graph`] and [`Runtime::command_graph`].
    ///
    /// The environment does the same without a change to the program: if the variable
    /// `ANABRANCH_PRINT_GRAPHS` is a path (`graphs.svg`; also `.dot`, `.mmd` and `.json`), the runtime writes
    /// the task graph there when it ends. In a [dry run](Self::dry_run) it writes the command graph beside it
    /// (`graphs-commands.svg`). With several nodes, node 0 writes the files, and the command graph is that of
    /// node 0 unless there is a dry run.
    pub fn record_graphs(mut self, record: bool) -> Self {
        self.settings.record.graphs = record;
        self
    }

    /// Generates the commands that `nodes` nodes (1 to 4,096) would execute, while the program runs here:
    /// which node computes what, and which node sends what to which. The runtime prints a summary to standard
    /// error when it ends. The environment variable `ANABRANCH_DRY_RUN_NODES` does the same without a change
    /// to the program; this setting takes precedence over it.
    ///
    /// Nodes that run the program have the same commands, unless the program asks for the [number of
    /// nodes](Runtime::nodes), which is 1 in a dry run, and then submits other tasks. Only for a buffer with
    /// [versions](crate::Buffer::with_versions) the dry run takes another version wherever one may help, and
    /// a node only if tasks still use the last one.
    pub fn dry_run(mut self, nodes: u16) -> Self {
        self.settings.record.nodes = Some(nodes);
        self
    }

    /// Sets after which time a node that does not answer ends the others: a process that was stopped, or
    /// whose machine or network is down. The default is the value of the environment variable
    /// `ANABRANCH_NODE_TIMEOUT` (seconds, or `none` for never), or else 60 s. A node answers while its
    /// runtime exists, whatever its tasks do.
    ///
    /// After the same time without progress a process ends, with a message, if the run has ended and a task
    /// with a [communicator](Runtime::communicator) is still in its function: it may wait in a call of MPI
    /// for a node that is gone, and no error can wake it. With `none` the process waits.
    ///
    /// ```
    /// use anabranch::{local_nodes, prelude::*};
    /// use std::time::Duration;
    ///
    /// let patient = Runtime::builder().node_timeout(Duration::from_secs(600));
    /// let nodes = local_nodes(2).builder(patient).run(|rt| Ok(rt.nodes()));
    /// assert!(nodes.iter().all(|nodes| matches!(nodes, Ok(2))));
    /// ```
    pub fn node_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.settings.node_timeout = Some(timeout.into());
        self
    }

    /// Sets whether tasks may call functions of MPI, each with a [communicator](Runtime::communicator) of the
    /// runtime (off by default). MPI then permits calls by several threads at the same time, which may make
    /// the calls of the runtime slower. (With Open MPI 4.1 on one machine no difference was measured.) The
    /// first runtime of a process that is one of [several nodes](crate::guide::nodes) initialises MPI, so it
    /// must have this setting.
    pub fn communicators(mut self, communicators: bool) -> Self {
        self.settings.communicators = communicators;
        self
    }

    /// Starts the runtime.
    ///
    /// If a launcher (`mpirun`, `srun`) has started this process as one of several, the runtime is one of
    /// [several nodes](crate::guide::nodes), and all processes must build it. The environment variables
    /// `ANABRANCH_TRANSPORT` and `ANABRANCH_MPI_LIBRARY` override what is found there.
    ///
    /// # Errors
    /// [`Error::Setting`] for a setting or an environment variable that is out of range. [`Error::Pool`] if
    /// the system refuses the threads or an environment variable of theirs is out of range. With several
    /// nodes, [`Error::Connect`] if there is no usable MPI, and [`Error::SecondRuntime`]: a process has one
    /// such runtime at a time.
    pub fn build(self) -> Result<Runtime, Error> {
        let (settings, threads) = self.checked_settings()?;
        match connect(&settings.transport())? {
            Some(endpoint) => start_on(endpoint, threads, settings),
            None => Runtime::start(threads, &settings, None),
        }
    }

    /// Starts the runtime of one of several nodes.
    pub(crate) fn build_on(self, endpoint: Endpoint) -> Result<Runtime, Error> {
        let (settings, threads) = self.checked_settings()?;
        start_on(endpoint, threads, settings)
    }

    /// The settings of the transport between nodes.
    pub(crate) fn transport(&self) -> Result<Options, Error> {
        Ok(self.settings.clone().with_environment()?.transport())
    }

    /// The settings, together with those of the environment, and the number of threads.
    fn checked_settings(self) -> Result<(Settings, usize), Error> {
        let settings = self.settings.with_environment()?;
        let threads = settings.check()?;
        Ok((settings, threads))
    }
}

fn start_on(endpoint: Endpoint, threads: usize, mut settings: Settings) -> Result<Runtime, Error> {
    if settings.seed.is_some() {
        return Err(Error::OneNodeOnly { what: "`seeded`".into() });
    }
    let place = endpoint.place();
    settings.record.node = Some(place.node);
    let name = format!("{}{}-", settings.name, place.node);
    let cluster = Cluster::new(endpoint, &name)
        .map_err(|source| anabranch_par::PoolError::Spawn { started: 0, source })?;
    settings.name = name;
    let runtime = Runtime::start(threads, &settings, Some(Arc::clone(&cluster)));
    if let Err(error) = &runtime {
        cluster.stop(NodeError::Here { why: error.to_string() });
        cluster.end();
    }
    runtime
}
