//! Runs a program with the runtime, and records the observations.

mod buffers;
mod drain;
mod inner;
mod on_cluster;
pub mod on_device;
pub mod replays;
mod results;
mod scope;
mod state;
mod tasks;
mod witness;

use self::{
    buffers::{AnyBuffer, create, part, parts_of, with_rank},
    inner::InnerCall,
    on_cluster::Objects,
    on_device::Devices,
    results::{Numbers, Pending, captured, chain, refusal, report, waited},
    scope::{CaptureBy, Scope},
    state::State,
    witness::Witness,
};
use crate::{
    common::block_on,
    model::{Observation, Observed, name},
    program::{
        CLUSTER_OBJECTS, Call, CaptureSet, Compute, Construct, GROUPS, Host, OBJECTS, Program, Reduction,
        Step, Turns, WaitFor, Weights, When, is_within, mix,
    },
};
use anabranch::{Error, prelude::*};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
};

/// The calls of callbacks: the step that has added it, and the status.
type Called = Arc<Mutex<Vec<(usize, Status)>>>;

/// A task that was submitted.
struct Task {
    step: usize,
    handle: TaskHandle,
    /// The number of its group in `Run::made`, unless it is the group for all steps.
    group: Option<usize>,
    /// Whether its function has a handle to the runtime.
    has_runtime: bool,
}

struct Run<'p> {
    /// Until a drain.
    rt: Option<Arc<Runtime>>,
    buffers: Vec<AnyBuffer>,
    objects: Vec<HostObject<State>>,
    cluster: Objects,
    turns: Arc<Turns>,
    nest: Buffer<u64, 1>,
    nest_order: HostObject<()>,
    /// The group for all steps, in which the others are nested; none if the runtime has no other program.
    root: Option<&'p TaskGroup>,
    /// All groups in the order in which they were made, each with the number of the group that it is nested
    /// in.
    made: Vec<(TaskGroup, Option<usize>)>,
    /// The number of the group in each slot.
    slots: [usize; GROUPS.len()],
    /// The number of the group that steps are submitted to, if it is not the root.
    current: Option<usize>,
    tasks: Vec<Task>,
    pending: Vec<(usize, Pending)>,
    called: Called,
    /// The number of callbacks that were added.
    callbacks: usize,
    /// The steps whose callback panicked in the thread that added it.
    passed_on: Vec<usize>,
    witness: Arc<Witness>,
    devices: Devices,
}

/// Runs the program, in the group `root` if there is one, on these devices. Returns what each step observes.
///
/// # Errors
/// If the runtime returns an error that no program may get, or does something that must never happen.
pub fn run(
    program: &Program,
    rt: Arc<Runtime>,
    root: Option<&TaskGroup>,
    devices: Devices,
) -> Result<Vec<Observed>, String> {
    let mut run = Run::begin(program, rt, root, devices).map_err(|error| error.to_string())?;
    let mut seen = Vec::new();
    for (i, step) in program.steps.iter().enumerate() {
        seen.push(run.step(i, step).map_err(|error| format!("step {i}: {error}"))?);
    }
    run.end(&mut seen)?;
    Ok(run.observed(seen))
}

impl<'p> Run<'p> {
    fn begin(
        program: &Program,
        rt: Arc<Runtime>,
        root: Option<&'p TaskGroup>,
        devices: Devices,
    ) -> Result<Self, Error> {
        let witness = Witness::new(program.setup);
        let buffers = program.buffers.iter().enumerate();
        let mut run = Self {
            buffers: buffers.map(|(slot, shape)| create(&rt, slot, *shape)).collect::<Result<_, _>>()?,
            objects: (0..OBJECTS).map(|_| rt.host_object(State::new(&witness))).collect(),
            // The home of the first is node 0, and that of the last the last node.
            cluster: (0..CLUSTER_OBJECTS)
                .map(|object| {
                    let home = if object == 0 { 0 } else { rt.nodes() - 1 };
                    Ok((rt.cluster_object(home, || State::new(&witness))?, 0))
                })
                .collect::<Result<_, Error>>()?,
            turns: Arc::clone(&program.turns),
            nest: rt.buffer_from(&[0; 4])?,
            nest_order: rt.host_object(()),
            rt: Some(rt),
            root,
            made: Vec::new(),
            slots: [0; GROUPS.len()],
            current: None,
            tasks: Vec::new(),
            pending: Vec::new(),
            called: Arc::default(),
            callbacks: 0,
            passed_on: Vec::new(),
            devices,
            witness,
        };
        results::take_failures();
        (0..GROUPS.len()).for_each(|slot| run.make_group(slot));
        Ok(run)
    }

    fn rt(&self) -> &Arc<Runtime> {
        self.rt.as_ref().expect("a drain is the last step that needs the runtime")
    }

    fn node(&self) -> usize {
        self.rt().node().into()
    }

    /// Makes a group: in the group of another slot, in the root, or in none.
    fn make_group(&mut self, slot: usize) {
        let parent = GROUPS[slot].map(|parent| self.slots[parent]);
        let name = format!("group {slot}");
        let group = match (parent, self.root) {
            (Some(parent), _) => self.made[parent].0.group(name),
            (None, Some(root)) => root.group(name),
            (None, None) => self.rt().group(name),
        };
        self.slots[slot] = self.made.len();
        self.made.push((group, parent));
    }

    /// Where all steps are submitted to that are in none of the groups in slots.
    fn base(&self) -> Scope<'_> {
        Scope { rt: self.rt(), group: self.root }
    }

    fn scope(&self) -> Scope<'_> {
        Scope { group: self.current.map(|group| &self.made[group].0).or(self.root), ..self.base() }
    }

    fn step(&mut self, i: usize, step: &Step) -> Result<Observation, Error> {
        match *step {
            Step::Compute(_)
            | Step::Reduce(_)
            | Step::Host(_)
            | Step::Parts(_)
            | Step::Replays(_)
            | Step::OnCluster(_)
            | Step::Nest { .. } => {
                let task = self.submit(i, step);
                Ok(self.submitted(i, step, task))
            }
            Step::InnerWait { construct, call } => self.inner_wait(i, construct, call),
            Step::Fence { ref set, when } => Ok(match self.capture(i, set, false) {
                Err(error) => refusal(error),
                Ok(fence) if when == When::Later => self.defer(i, fence),
                Ok(fence) => fence(when).map_or(Observation::Nothing, |r| Observation::Captured(captured(r))),
            }),
            Step::Barrier { ref set, when } => Ok(match self.capture(i, set, true) {
                Err(error) => refusal(error),
                Ok(barrier) if when == When::Later => self.defer(i, barrier),
                Ok(barrier) => barrier(when).map_or(Observation::Nothing, waited),
            }),
            Step::Wait(how) => {
                let result = self.scope().wait(how);
                self.check_ended(self.current);
                Ok(Observation::Report(report(result), None))
            }
            Step::GroupReports => Ok(Observation::GroupReports(
                self.made.iter().map(|(group, _)| report(group.check())).collect(),
            )),
            Step::NestResult => {
                let fence = self.rt().fence(&self.nest)?;
                Ok(Observation::Captured(captured(fence.wait().map(Numbers::numbers))))
            }
            Step::CancelTask { back, on } => {
                let task = self.tasks.iter().rev().nth(back).filter(|_| on.contains(self.node()));
                Ok(task.map_or(Observation::Nothing, |task| Observation::CancelAnswer(task.handle.cancel())))
            }
            Step::GroupDone { group, wait } => Ok(self.group_done(i, group, wait)),
            Step::Drain { ref set, awaited } => Ok(self.drain(set, awaited)),
            ref other => {
                self.change(i, other)?;
                Ok(Observation::Nothing)
            }
        }
    }

    /// Executes a step that has no observation.
    fn change(&mut self, i: usize, step: &Step) -> Result<(), Error> {
        match *step {
            Step::Group(slot) => self.current = slot.map(|slot| self.slots[slot]),
            Step::Cancel(slot, on) => {
                if on.contains(self.node()) {
                    self.made[self.slots[slot]].0.cancel();
                }
                (0..GROUPS.len())
                    .filter(|other| is_within(*other, slot))
                    .for_each(|slot| self.make_group(slot));
            }
            Step::WaitForTask { back } => {
                if let Some(task) = self.tasks.iter().rev().nth(back) {
                    // What it returns is observed at the end.
                    let _ = task.handle.wait();
                    self.check_task(task);
                }
            }
            Step::Replace(slot, shape) => self.buffers[slot] = create(self.rt(), slot, shape)?,
            Step::ReplaceObject(object) => {
                self.objects[object] = self.rt().host_object(State::new(&self.witness))
            }
            Step::ReplaceCluster(object, home) => {
                let rt = self.rt();
                let made = rt.cluster_object(home % rt.nodes(), || State::new(&self.witness))?;
                self.cluster[object] = (made, i);
            }
            Step::Weights(number) => {
                let weights = Weights::drawn(number, self.rt().nodes().into());
                self.rt().set_weights(&weights.numbers())?;
            }
            Step::Discard(slot) => with_rank!(&self.buffers[slot], buffer => buffer.discard()),
            _ => unreachable!("{step:?} has an observation"),
        }
        Ok(())
    }

    fn submit(&self, i: usize, step: &Step) -> Result<TaskHandle, Error> {
        let scope = self.scope();
        match *step {
            Step::Compute(step) => {
                let Compute { from, to, .. } = step;
                let whole = with_rank!(&self.buffers[from], b => GridBox::full(b.extent()).cast::<3>());
                if let Some(place) = step.place_recorded(&self.witness.setup, self.rt().node(), &whole) {
                    let device = place.device().map(|device| self.devices.get(device));
                    return match (&self.buffers[from], &self.buffers[to]) {
                        (AnyBuffer::R1(from), AnyBuffer::R1(to)) => {
                            on_device::compute(scope, i, from, to, &step, device)
                        }
                        (AnyBuffer::R2(from), AnyBuffer::R2(to)) => {
                            on_device::compute(scope, i, from, to, &step, device)
                        }
                        _ => unreachable!("{step:?} is no kernel for a device"),
                    };
                }
                with_rank!(&self.buffers[from], from => with_rank!(&self.buffers[to], to => {
                    tasks::compute(scope, i, from, to, step, &self.witness)
                }))
            }
            Step::Reduce(step) => {
                let Reduction { from, to, .. } = step;
                let whole = with_rank!(&self.buffers[from], b => GridBox::full(b.extent()).cast::<3>());
                if let Some(place) = step.place_recorded(&self.witness.setup, self.rt().node(), &whole) {
                    let device = place.device().map(|device| self.devices.get(device));
                    let AnyBuffer::R0(to) = &self.buffers[to] else {
                        unreachable!("{step:?} is no reduction for a device")
                    };
                    return with_rank!(&self.buffers[from], from => {
                        on_device::reduce(scope, i, from, to, &step, device)
                    });
                }
                with_rank!(&self.buffers[from], from => with_rank!(&self.buffers[to], to => {
                    tasks::reduce(scope, i, from, to, step)
                }))
            }
            Step::Host(ref step) => {
                let Host { from, to, .. } = *step;
                let AnyBuffer::R1(to) = &self.buffers[to] else {
                    unreachable!("host tasks write one dimension")
                };
                with_rank!(&self.buffers[from], from => {
                    tasks::host(scope, i, from, to, &self.objects, step, &self.witness)
                })
            }
            Step::Parts(ref step) => {
                let (AnyBuffer::R1(from), AnyBuffer::R1(to)) =
                    (&self.buffers[step.from], &self.buffers[step.to])
                else {
                    unreachable!("parts have one dimension")
                };
                tasks::parts(scope, i, [from, to], &self.objects, step, &self.witness)
            }
            Step::Replays(ref step) => {
                let setup = &self.witness.setup;
                replays::submit(scope, i, &self.buffers, &self.objects, step, setup, &self.devices)
            }
            Step::OnCluster(step) => {
                let (AnyBuffer::R1(from), AnyBuffer::R1(to)) =
                    (&self.buffers[step.from], &self.buffers[step.to])
                else {
                    unreachable!("these tasks use one dimension")
                };
                on_cluster::submit(scope, i, [from, to], &self.cluster, step, &self.witness, &self.turns)
            }
            Step::Nest { children, in_callback } => self.nest(i, children, in_callback),
            _ => unreachable!("{step:?} is no task"),
        }
    }

    /// Adds the callbacks to a task that was submitted.
    fn submitted(&mut self, i: usize, step: &Step, task: Result<TaskHandle, Error>) -> Observation {
        let handle = match task {
            Ok(handle) => handle,
            Err(error) => return refusal(error),
        };
        handle.on_done(self.callback(i));
        if matches!(step, Step::Host(Host { callback_panics: true, .. })) {
            let notes = self.callback(i);
            let panics = move |status| {
                notes(status);
                tasks::panic()
            };
            if catch_unwind(AssertUnwindSafe(|| handle.on_done(panics))).is_err() {
                self.passed_on.push(i);
            }
        }
        let has_runtime = matches!(step, Step::Nest { .. } | Step::InnerWait { .. });
        self.tasks.push(Task { step: i, handle, group: self.current, has_runtime });
        Observation::Nothing
    }

    /// A callback that notes its call. Some are slow: what must come after the call must not come before its
    /// end.
    fn callback(&mut self, i: usize) -> impl FnOnce(Status) + Send + 'static + use<> {
        self.callbacks += 1;
        let (called, witness) = (Arc::clone(&self.called), Arc::clone(&self.witness));
        move |status| {
            witness.pause(i.is_multiple_of(3));
            called.lock().unwrap().push((i, status));
        }
    }

    fn defer(&mut self, i: usize, pending: Pending) -> Observation {
        self.pending.push((i, pending));
        Observation::Nothing
    }

    fn nest(&self, i: usize, children: usize, in_callback: bool) -> Result<TaskHandle, Error> {
        let (rt, nest) = (Arc::clone(self.rt()), self.nest.clone());
        let submit = move || {
            (0..children).try_for_each(|child| {
                let slot = child % 4;
                let task = rt.task("child").once().update(&nest, fixed(GridBox::new(slot, slot + 1)));
                let change = move |(nest,): (&mut UpdateView<'_, u64, 1>,)| {
                    nest[[slot]] = mix(nest[[slot]], (8 * i + child) as u64)
                };
                task.host(change).map(drop)
            })
        };
        let task = self.scope().task(name(i)).once().effect(&self.nest_order, sequential());
        if !in_callback {
            return task.host(move |((),)| submit());
        }
        let task = task.host(|((),)| ())?;
        let witness = Arc::clone(&self.witness);
        task.on_done(move |status| {
            if status == Status::Done
                && let Err(error) = submit()
            {
                witness.note(format!("step {i}: a callback could not submit: {error}"));
            }
        });
        Ok(task)
    }

    fn inner_wait(&mut self, i: usize, construct: Construct, call: Call) -> Result<Observation, Error> {
        let new = || InnerCall { call, nest: self.nest.clone(), witness: Arc::clone(&self.witness) };
        let (inner, rt) = (new(), Arc::clone(self.rt()));
        let mut task = self.scope().task(name(i)).once().host(move |()| inner.make_on(construct, &rt))?;
        match construct {
            Construct::Callback => {
                let (inner, rt) = (new(), Arc::clone(self.rt()));
                task.on_done(move |_| inner.make(&rt));
            }
            Construct::Waker => new().make_in_waker(self.rt(), &mut task),
            _ => {}
        }
        Ok(self.submitted(i, &Step::InnerWait { construct, call }, Ok(task)))
    }

    fn capture(&mut self, i: usize, set: &CaptureSet, barrier: bool) -> Result<Pending, Error> {
        let callbacks = self.callbacks;
        let callback = self.callback(i);
        let result = self.captured_by(set, CaptureBy { scope: self.scope(), barrier, callback });
        if result.is_err() {
            self.callbacks = callbacks;
        }
        result
    }

    fn captured_by<F>(&self, set: &CaptureSet, by: CaptureBy<'_, F>) -> Result<Pending, Error>
    where
        F: FnOnce(Status) + Send + 'static,
    {
        let objects = |object: usize| self.objects[object].capture();
        let cluster = |object: usize| self.cluster[object].0.capture();
        match *set {
            CaptureSet::Nothing => by.all(()),
            CaptureSet::OfNodes(slot, parts) => {
                with_rank!(&self.buffers[slot], b => by.all(parts_of(b, parts)))
            }
            CaptureSet::On(slot, node) => {
                with_rank!(&self.buffers[slot], b => by.all(b.capture_on(node % self.rt().nodes())))
            }
            CaptureSet::Cluster(object) => by.all(cluster(object)),
            CaptureSet::ClusterAndPart(object, slot, range) => {
                with_rank!(&self.buffers[slot], b => by.all((cluster(object), part(b, &range))))
            }
            CaptureSet::Object(object) => by.all(objects(object)),
            CaptureSet::Objects => by.all((objects(0), objects(1))),
            CaptureSet::Part(slot, range) => with_rank!(&self.buffers[slot], b => by.all(part(b, &range))),
            CaptureSet::Both(object, slot, range) => {
                with_rank!(&self.buffers[slot], b => by.all((objects(object), part(b, &range))))
            }
            CaptureSet::Parts([(slot, range), (other, second)]) => with_rank!(&self.buffers[slot], b => {
                with_rank!(&self.buffers[other], c => by.all((part(b, &range), part(c, &second))))
            }),
        }
    }

    fn group_done(&mut self, i: usize, slot: usize, wait: bool) -> Observation {
        let callback = self.callback(i);
        self.made[self.slots[slot]].0.on_done(callback);
        if !wait {
            return Observation::Nothing;
        }
        let report = report(self.base().wait(WaitFor::Wait));
        // The group may be idle a moment before its callback is called.
        self.wait_until(|called| called.iter().any(|(step, _)| *step == i));
        Observation::Report(report, None)
    }

    /// Checks that all tasks of this group and of those in it have ended, after a wait.
    fn check_ended(&self, group: Option<usize>) {
        let parent = |group: &usize| self.made[*group].1;
        let is_within = |task: &Task| {
            group.is_none() || std::iter::successors(task.group, parent).any(|g| Some(g) == group)
        };
        self.tasks.iter().filter(|task| is_within(task)).for_each(|task| self.check_task(task));
    }

    /// Checks that a task has ended, after a wait, and that its callback has been called.
    fn check_task(&self, task: &Task) {
        let status = task.handle.status();
        if !self.called.lock().unwrap().contains(&(task.step, status)) {
            let step = task.step;
            self.witness
                .note(format!("step {step} is {status:?} after a wait, but its callback was not called"));
        }
    }

    /// Waits for what the steps have left, and adds their observations.
    fn end(&mut self, seen: &mut [Observation]) -> Result<(), String> {
        for (i, pending) in std::mem::take(&mut self.pending) {
            let when = if i % 2 == 0 { When::Later } else { When::Awaited };
            seen[i] = Observation::Captured(captured(pending(when).expect("it is waited for")));
        }
        for mut task in std::mem::take(&mut self.tasks) {
            let i = task.step;
            let result = if i % 2 == 0 { task.handle.wait() } else { block_on(&mut task.handle) };
            self.check_task(&task);
            let status = task.handle.status();
            seen[i] = match result {
                Ok(()) => Observation::Task(status, Vec::new()),
                Err(Error::Failed(failures)) => Observation::Task(status, chain(&failures)),
                Err(error) => return Err(error.to_string()),
            };
        }
        self.wait_until(|called| called.len() >= self.callbacks);
        self.devices.check(&results::take_failures())?;
        self.witness.result()
    }

    /// Waits for calls of callbacks: of groups, and of fences, whose contents may be there a moment before. A
    /// callback that is never called is a program that hangs.
    fn wait_until(&self, condition: impl Fn(&[(usize, Status)]) -> bool) {
        while !condition(&self.called.lock().unwrap()) {
            std::thread::yield_now();
        }
    }

    /// The observations with the calls of the callbacks.
    fn observed(&self, seen: Vec<Observation>) -> Vec<Observed> {
        let called = self.called.lock().unwrap();
        let calls = |i| called.iter().filter(|(step, _)| *step == i).map(|(_, status)| *status).collect();
        let observed =
            |(i, what)| Observed { what, called: calls(i), passed_on: self.passed_on.contains(&i) };
        seen.into_iter().enumerate().map(observed).collect()
    }
}

impl Drop for Run<'_> {
    /// A program that has ended early leaves failures in its groups, which they would print.
    fn drop(&mut self) {
        self.made.iter().for_each(|(group, _)| _ = group.check());
    }
}
