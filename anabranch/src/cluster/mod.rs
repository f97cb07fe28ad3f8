//! The nodes of a program that runs on several: the messages between them, and how they end together.
//!
//! Every node runs the same program. It submits every task to a command graph of its own, executes its own
//! commands, and needs the other nodes only for the data that they own. [`execute`](crate::execute) makes a
//! step of each command; this folder has what the steps and the waiting threads need of the other nodes. The
//! transport itself is the crate [`anabranch_wire`].
//!
//! # Protocol
//! 1. *Submissions* have numbers: tasks, calls at which all nodes [meet](Cluster::meet), and calls that
//!    change later tasks. After each one a node has a hash of everything that it has submitted so far
//!    ([`history`]).
//! 2. Every 64 submissions, before a thread blocks, and from time to time, a node posts the hashes since its
//!    last post to its neighbours in a tree of all nodes. A node that gets them compares them with its own,
//!    now or when it has submitted as much. All pairs of neighbours together compare all nodes. A meeting
//!    that is over has compared them, too, so a node in a meeting posts only if it lasts.
//! 3. A submitting thread that is [`AHEAD`](history::AHEAD) submissions ahead of a neighbour waits for it. So
//!    a node that only sends does not run away from its receivers.
//! 4. A *push* sends boxes from the memory of a buffer; an *await* expects a number of bytes in such memory.
//!    The name of a transfer is the task that needs the data and the buffer: both sides derive it from the
//!    same launch, so that either may come first. The step ends when the transport says that its own region
//!    is there. If all nodes get the parts of all, they *exchange* them instead, in one pattern of the
//!    transport.
//! 5. A task that fails, or is cancelled, does not end the run. What it should have written is poisoned. A
//!    push of poisoned contents sends a *note* in their place: the region and the failure, with the whole
//!    chain of causes. The note counts as the bytes, so the await ends when each byte has come or is covered
//!    by a note, and nothing writes into its memory afterwards. The same holds for partial results of
//!    reductions. So every node that has the current contents of a point has the same failure for it, and a
//!    fence of it is the same error everywhere.
//! 6. At `wait`, `check`, `drain` and the end, a node enters a [meeting](Cluster::meet), a barrier whose name
//!    is the number and the hash of the submission: at `wait` and at the end, when it has done its part of
//!    everything. It is over when all nodes have entered it: then all have submitted the same. A node that
//!    has failures to report gives them as a note, which reaches all others. So each of them reports the
//!    failures of all.
//! 7. A submission that is refused is an error of the call. It is part of the hash: if other nodes do not
//!    refuse it, programs differ.
//! 8. An error that affects all nodes ends the run on all of them ([`stop`](Cluster::stop)): a submission
//!    that differs from that of a neighbour, a transport that fails, a node that is lost, a program that
//!    panics outside its tasks. The node that finds it gives up its end of the transport, which tells all
//!    others why. Steps that have begun end with this reason; steps that have not are skipped; calls return
//!    it as an error.
//!
//! | state of a node | the transport | steps | leaves it |
//! |---|---|---|---|
//! | running | open | run, wait for transfers, fail, are skipped | by an error of the nodes together, or at the end |
//! | stopped | dropped, before the memory of its transfers is released | are skipped | |
//! | ended | finished by all nodes together | all done | |
//!
//! | what a step needs | what the other node sends | the step |
//! |---|---|---|
//! | current contents | the bytes | runs |
//! | poisoned contents | a note, under the same name | is skipped, because of the failure in the note |
//! | some of each | bytes and notes | is skipped; what has come is current |
//!
//! # Who makes progress
//! Any thread may [`poll`](Cluster::poll) the transport, one at a time. Workers without other work do it
//! while transfers are under way, and threads that wait for tasks before they rest. One thread for each node,
//! the [polling thread](poll_thread), looks at intervals from 100 µs to a millisecond whether they have, and
//! polls if not. If no transfer is under way, it sleeps. It wakes up at least once a second, to tell the
//! other nodes that this one is alive and what it has submitted.

mod history;
mod link;
mod poll_thread;

pub(crate) use self::link::{Each, Said, Then, let_go};
use self::{
    history::{Divergence, History, What},
    link::{Ended, Link, Over},
    poll_thread::{PollThread, Polled},
};
use crate::{
    error::{Error, NodeError},
    label::TaskLabel,
    stderr,
};
use anabranch_wire::{Begun, Endpoint, MemoryMut, MpiComm, Pace, Place, Tag, WireError};
use parking_lot::Mutex;
use std::{
    any::Any,
    fmt, mem,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::*},
    },
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

/// The kinds of [`Tag`]s.
pub(crate) mod kind {
    /// Elements of a buffer.
    pub(crate) const DATA: u16 = 0;
    /// Partial results of a reduction to a buffer.
    pub(crate) const PARTIALS: u16 = 1;
    /// A meeting of all nodes.
    pub(super) const MEETING: u16 = 2;
    /// The turn of a host object of the whole cluster, on the way from the nodes that have it.
    pub(crate) const COLLECT: u16 = 3;
    /// The same, on the way to the nodes that get it.
    pub(crate) const SPREAD: u16 = 4;
    /// Elements of a buffer that all nodes exchange.
    pub(crate) const EXCHANGE: u16 = 5;
    /// A task that begins on all nodes or on none.
    pub(crate) const GATE: u16 = 6;
}

/// A part of an exchange is [large](is_large) if it has more than this number of bytes for each node.
/// Measured with four processes on two processors: parts of 64 KiB took 0.23 ms with pushes and 0.32 ms with
/// a gather, parts of 16 KiB took 0.23 ms and 0.21 ms.
const LARGE: usize = 8 << 10;

/// Whether nodes push their parts to every other node instead of gathering them. `bytes` is the size of the
/// largest part. A message of many bytes costs little beside the bytes, and bytes that go through other nodes
/// arrive later.
pub(crate) fn is_large(bytes: usize, nodes: u16) -> bool {
    bytes > LARGE * usize::from(nodes)
}

/// How long a node is in a meeting before it posts. A meeting that is over compares all nodes. One that is
/// not may wait for a node whose program differs.
const SILENCE: Duration = Duration::from_micros(100);

/// One node's view of all nodes.
pub(crate) struct Cluster {
    place: Place,
    link: Mutex<Link>,
    history: Mutex<History>,
    /// Why the run has ended.
    stopped: OnceLock<Arc<NodeError>>,
    /// The thread that submits: the first that does.
    submitter: OnceLock<ThreadId>,
    /// Is called when transfers are under way.
    when_busy: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// How often threads have polled, the polling thread not counted.
    polls: AtomicU64,
    /// How many functions of the program have begun with a communicator, and how many of them have returned.
    calls_begun: AtomicU64,
    calls_returned: AtomicU64,
    poll_thread: PollThread,
}

impl Cluster {
    /// Takes this node's end of a transport.
    ///
    /// # Errors
    /// If the system refuses the thread.
    pub(crate) fn new(endpoint: Endpoint, name: &str) -> Result<Arc<Self>, std::io::Error> {
        let (place, interval) = (endpoint.place(), endpoint.interval());
        let cluster = Arc::new(Self {
            place,
            link: Mutex::new(Link::new(endpoint)),
            history: Mutex::new(History::new(place)),
            stopped: OnceLock::new(),
            submitter: OnceLock::new(),
            when_busy: OnceLock::new(),
            polls: AtomicU64::new(0),
            calls_begun: AtomicU64::new(0),
            calls_returned: AtomicU64::new(0),
            poll_thread: PollThread::default(),
        });
        poll_thread::start(&cluster, interval, format!("{name}transport"))?;
        Ok(cluster)
    }

    /// This node.
    pub(crate) fn node(&self) -> u16 {
        self.place.node
    }

    /// The number of nodes.
    pub(crate) fn nodes(&self) -> u16 {
        self.place.nodes
    }

    /// Why the run has ended, if it has.
    #[inline]
    pub(crate) fn stopped(&self) -> Option<&Arc<NodeError>> {
        self.stopped.get()
    }

    /// An error if the run has ended.
    pub(crate) fn check(&self) -> Result<(), Arc<NodeError>> {
        self.stopped().map_or(Ok(()), |why| Err(Arc::clone(why)))
    }

    /// Whether the calling thread is the one that submits. The first that asks becomes it.
    pub(crate) fn is_submitter(&self) -> bool {
        let me = thread::current().id();
        *self.submitter.get_or_init(|| me) == me
    }

    /// Begins transfers, which `begin` names. Calls `then` when all are over, perhaps at once, or when the
    /// run ends before that. `memory` stays until then. The caller holds no lock.
    pub(crate) fn transfer(
        &self,
        memory: Arc<dyn Any + Send + Sync>,
        then: Then,
        begin: impl FnOnce(&mut Endpoint, &mut Vec<Begun>) -> Result<(), WireError>,
    ) {
        if self.begin(Over::new(memory, then), begin) {
            self.let_poll();
        }
    }

    /// Begins transfers as [`transfer`](Self::transfer) does. When a part is complete and others are not, the
    /// cluster calls `each` with the number of that part.
    pub(crate) fn transfer_in_parts(
        &self,
        memory: Arc<dyn Any + Send + Sync>,
        each: Each,
        then: Then,
        begin: impl FnOnce(&mut Endpoint, &mut Vec<Begun>) -> Result<(), WireError>,
    ) {
        if self.begin(Over { each: Some(each), ..Over::new(memory, then) }, begin) {
            self.let_poll();
        }
    }

    /// Sees to it that some thread polls: transfers are under way.
    fn let_poll(&self) {
        self.poll_thread.wake();
        self.when_busy.get().into_iter().for_each(|call| call());
    }

    /// Begins transfers as [`transfer`](Self::transfer) does. Returns whether they are under way: then some
    /// thread must poll.
    fn begin(
        &self,
        over: Over,
        begin: impl FnOnce(&mut Endpoint, &mut Vec<Begun>) -> Result<(), WireError>,
    ) -> bool {
        let begun = self.link.lock().begin(over, begin);
        match begun {
            Ok(None) => return true,
            Ok(Some(over)) => over.end(),
            Err(failed) => {
                let (over, error) = *failed;
                if let Some(error) = error {
                    self.stop(NodeError::from_wire(error, self.place.node));
                }
                // The run is being ended, perhaps by another thread.
                let why = self.stopped.wait();
                over.end_with(Err(Arc::clone(why)));
            }
        }
        false
    }

    /// Sets the function that is called when transfers are under way, so that threads poll.
    pub(crate) fn when_busy(&self, call: impl Fn() + Send + Sync + 'static) {
        let set = self.when_busy.set(Box::new(call));
        debug_assert!(set.is_ok(), "a cluster has one runtime");
    }

    /// Makes progress. Returns whether anything has happened. The caller holds no lock: this may end steps.
    pub(crate) fn poll(&self) -> bool {
        self.polls.fetch_add(1, Relaxed);
        self.poll_uncounted()
    }

    fn poll_uncounted(&self) -> bool {
        let (polled, heard) = {
            let mut link = self.link.lock();
            let mut posts = Vec::new();
            let polled = link.poll(&mut posts);
            // Under the lock of the link: the messages of a node are read in the order in which they come.
            let heard = posts.iter().try_for_each(|(from, post)| self.history.lock().heard(*from, post));
            (polled, heard)
        };
        let (any, ended) = match polled {
            Ok(polled) => polled,
            Err(error) => {
                self.stop(NodeError::from_wire(error, self.place.node));
                return true;
            }
        };
        self.stop_if_different(heard);
        ended.into_iter().for_each(Ended::end);
        any
    }

    /// Whether transfers are under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.link.lock().is_busy()
    }

    /// Notes the submission of a task. `hash` is that of everything submitted so far. Waits for neighbours
    /// that are far behind.
    ///
    /// # Errors
    /// If the run has ended.
    pub(crate) fn submitted(&self, label: &TaskLabel, hash: u64) -> Result<(), Arc<NodeError>> {
        self.add(label.clone().into(), hash)
    }

    /// Notes a call that is a submission of its own, as [`submitted`](Self::submitted) does for a task. The
    /// nodes do not meet.
    ///
    /// # Errors
    /// If the run has ended.
    pub(crate) fn called(&self, call: &'static str, hash: u64) -> Result<(), Arc<NodeError>> {
        self.add(What::Call(call), hash)?;
        // At once: if another node has made another call, its transfers soon differ, too.
        self.post();
        self.check()
    }

    fn add(&self, what: What, hash: u64) -> Result<(), Arc<NodeError>> {
        let added = self.history.lock().add(hash, what);
        self.stop_if_different(added.map(drop));
        let (is_post_due, is_ahead) = {
            let history = self.history.lock();
            (history.is_post_due(), history.is_ahead())
        };
        if is_post_due || is_ahead {
            self.post();
            self.poll();
            let mut pace = Pace::new();
            while self.history.lock().is_ahead() && self.stopped().is_none() {
                pace.after(self.poll());
            }
        }
        self.check()
    }

    /// Posts the hashes of the latest submissions to the neighbours. A thread calls this before it blocks,
    /// and the polling thread from time to time.
    pub(crate) fn post(&self) {
        let sent = {
            // In the order of the poll: first the link, so that messages leave in the order in which they
            // were made.
            let mut link = self.link.lock();
            let Some((neighbours, post)) = self.history.lock().post() else { return };
            link.post(&neighbours, &post)
        };
        if let Err(error) = sent {
            self.stop(NodeError::from_wire(error, self.place.node));
        }
    }

    /// Notes that a submission was refused with this error. If the other nodes do not refuse it, the run
    /// ends.
    pub(crate) fn refused(&self, error: &Error) {
        let (kind, why) = (error.kind_on_nodes(), error.to_string());
        let added = self.history.lock().add_refused(&kind, why);
        self.stop_if_different(added.map(drop));
        if self.history.lock().is_post_due() {
            self.post();
        }
    }

    /// Notes a call at which all nodes meet, and posts it to the neighbours. Returns the name of the meeting.
    ///
    /// # Errors
    /// If the run has ended.
    pub(crate) fn announce(&self, call: &'static str) -> Result<Tag, Arc<NodeError>> {
        let name = self.name_meeting(call)?;
        self.post();
        Ok(name)
    }

    fn name_meeting(&self, call: &'static str) -> Result<Tag, Arc<NodeError>> {
        self.check()?;
        let added = self.history.lock().add_call(call);
        let (number, hash) = added.map_err(|divergence| self.stop(divergence.into()))?;
        Ok(Tag::new(number, hash, kind::MEETING))
    }

    /// Enters a meeting, with something to say to all others, or nothing. Calls `then` with what the others
    /// say when all nodes have entered it.
    pub(crate) fn enter(&self, meeting: Tag, say: Option<Vec<u8>>, then: Then) {
        if self.begin_meeting(meeting, say, then) {
            self.let_poll();
        }
    }

    fn begin_meeting(&self, meeting: Tag, say: Option<Vec<u8>>, then: Then) -> bool {
        self.begin(Over::new(Arc::new(()), then), |endpoint, begun| {
            let parts = vec![Vec::new(); endpoint.place().nodes.into()];
            begun.push(match say {
                Some(say) => endpoint.gather_note(meeting, MemoryMut::empty(), &parts, &say)?,
                None => endpoint.gather(meeting, MemoryMut::empty(), &parts)?,
            });
            Ok(())
        })
    }

    /// Meets all other nodes: returns what they say when all of them have called this after the same
    /// submissions.
    ///
    /// # Errors
    /// If the run has ended.
    pub(crate) fn meet(&self, call: &'static str, say: Option<Vec<u8>>) -> Result<Vec<Said>, Arc<NodeError>> {
        let meeting = self.name_meeting(call)?;
        let met = Arc::new(OnceLock::new());
        let then: Then = {
            let met = Arc::clone(&met);
            Box::new(move |result| drop(met.set(Mutex::new(result))))
        };
        // This thread polls. Another one would only take the processor from it.
        self.begin_meeting(meeting, say, then);
        let mut pace = Pace::new();
        let begin = Instant::now();
        let mut posted = false;
        loop {
            if let Some(result) = met.get() {
                let result = mem::replace(&mut *result.lock(), Ok(Vec::new()));
                if result.is_ok() {
                    self.history.lock().met(meeting.task);
                }
                return result;
            }
            pace.after(self.poll());
            if !posted && begin.elapsed() > SILENCE {
                self.post();
                posted = true;
            }
        }
    }

    /// Makes a communicator of all nodes for MPI calls of the program, when all of them have called this
    /// after the same submissions; `None` if the transport is not MPI.
    ///
    /// # Errors
    /// If the run has ended.
    pub(crate) fn make_communicator(&self, call: &'static str) -> Result<Option<MpiComm>, Arc<NodeError>> {
        self.meet(call, None)?;
        let begun = self.link.lock().make_communicator();
        match begun {
            Ok(Some(true)) => self.poll_thread.watch_calls(),
            Ok(Some(false)) => return Ok(None),
            // The run is being ended, perhaps by another thread.
            Ok(None) => return Err(Arc::clone(self.stopped.wait())),
            Err(error) => return Err(self.stop(NodeError::from_wire(error, self.place.node))),
        }
        let mut pace = Pace::new();
        loop {
            if let Some(made) = self.link.lock().communicator() {
                return Ok(Some(made));
            }
            self.check()?;
            pace.after(self.poll());
        }
    }

    /// Runs a function of the program that may wait for other nodes in a call of MPI.
    pub(crate) fn in_call<R>(&self, function: impl FnOnce() -> R) -> R {
        /// Also counts a function that panics.
        struct End<'a>(&'a AtomicU64);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Relaxed);
            }
        }
        self.calls_begun.fetch_add(1, Relaxed);
        let _end = End(&self.calls_returned);
        function()
    }

    /// Ends the run because the calling thread panics, if it does.
    pub(crate) fn stop_if_panicking(&self) {
        if thread::panicking() {
            self.stop(NodeError::Here { why: "the program has panicked".into() });
        }
    }

    fn stop_if_different(&self, compared: Result<(), Divergence>) {
        if let Err(divergence) = compared {
            self.stop(divergence.into());
        }
    }

    /// Ends the run on all nodes, and returns why it has ended: the first reason counts. Returns when no
    /// transfer uses memory any more. The caller holds no lock.
    pub(crate) fn stop(&self, why: NodeError) -> Arc<NodeError> {
        let Some((endpoint, unfinished)) = self.link.lock().close() else {
            return Arc::clone(self.stopped.wait());
        };
        let _ = self.stopped.set(Arc::new(why));
        let why = self.stopped.wait();
        match why.to_others() {
            Some(text) => endpoint.abort(&text),
            None => drop(endpoint),
        }
        unfinished.sets().for_each(|over| over.end_with(Err(Arc::clone(why))));
        Arc::clone(why)
    }

    /// The end of this node: meets the other nodes, unless the run has ended before or the calling thread
    /// panics, and ends the polling thread. No task is in flight.
    pub(crate) fn end(&self) {
        self.stop_if_panicking();
        let _ = self.meet("the end of the runtime", None);
        let open = self.link.lock().close();
        if let Some((endpoint, _)) = open {
            let finished = endpoint.finish().map_err(|error| NodeError::from_wire(error, self.place.node));
            let why = finished.err().unwrap_or(NodeError::Here { why: "its runtime has ended".into() });
            let _ = self.stopped.set(Arc::new(why));
        }
        self.poll_thread.end();
    }
}

impl Polled for Cluster {
    fn poll_thread(&self) -> &PollThread {
        &self.poll_thread
    }

    fn is_busy(&self) -> bool {
        Self::is_busy(self)
    }

    fn polls(&self) -> u64 {
        self.polls.load(Relaxed)
    }

    fn poll_uncounted(&self) -> bool {
        Self::poll_uncounted(self)
    }

    fn post(&self) {
        Self::post(self);
    }

    fn stopped(&self) -> Option<&NodeError> {
        Self::stopped(self).map(|why| &**why)
    }

    fn calls(&self) -> (u64, u64) {
        // `returned` first, so that a call which returns in between counts as under way. The loads are
        // relaxed: the next look corrects a wrong pair.
        let returned = self.calls_returned.load(Relaxed);
        (self.calls_begun.load(Relaxed), returned)
    }

    fn abort_calls(&self, why: &NodeError) -> ! {
        stderr::print(format_args!(
            "{} ends, because the run has ended and a task with a communicator does not return: {why}",
            self.place
        ));
        std::process::abort()
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)
    }
}
