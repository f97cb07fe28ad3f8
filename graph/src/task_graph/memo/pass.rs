//! A pass: the steps that a program repeats, their dependencies, and the ids of the tasks that have repeated
//! them.

use super::paths::Paths;
use crate::task::{Access, BufferId, Dependency, Effect, Kind, ObjectId, Origin, Submitted, TaskId};
use smallvec::SmallVec;

/// A submission, as a pass knows it.
#[derive(Clone, Copy, Debug)]
pub(in crate::task_graph) struct Asked<'a> {
    pub(in crate::task_graph) accesses: &'a [Access],
    pub(in crate::task_graph) effects: &'a [Effect],
    /// Whether it is a task, and not the check of all accesses of a task in pieces.
    pub(in crate::task_graph) is_task: bool,
}

/// The steps of a pass.
#[derive(Debug, Default)]
pub(in crate::task_graph) struct Pass {
    steps: Vec<Step>,
    /// The buffers and objects that the steps use, in the end ascending and each once.
    buffers: Vec<BufferId>,
    objects: Vec<ObjectId>,
}

impl Pass {
    /// Whether this submission is the first step.
    #[inline]
    pub(super) fn begins_with(&self, asked: Asked<'_>) -> bool {
        self.steps.first().is_some_and(|step| step.is(asked))
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    pub(in crate::task_graph) fn buffers(&self) -> &[BufferId] {
        &self.buffers
    }

    pub(in crate::task_graph) fn objects(&self) -> &[ObjectId] {
        &self.objects
    }

    pub(in crate::task_graph) fn uses_buffer(&self, buffer: BufferId) -> bool {
        self.buffers.binary_search(&buffer).is_ok()
    }

    pub(in crate::task_graph) fn uses_object(&self, object: ObjectId) -> bool {
        self.objects.binary_search(&object).is_ok()
    }

    fn push(&mut self, asked: Asked<'_>, answer: &Submitted) {
        self.buffers.extend(asked.accesses.iter().map(|access| access.buffer));
        self.objects.extend(asked.effects.iter().map(|effect| effect.object));
        self.steps.push(Step {
            accesses: asked.accesses.into(),
            effects: asked.effects.into(),
            is_task: asked.is_task,
            dependencies: SmallVec::new(),
            versions: answer.versions.clone(),
        });
    }

    /// Removes dependencies that only say what comes first, where a path of others says it, too.
    fn remove_implied(&mut self) {
        let before = |step: &Step| step.dependencies.iter().filter_map(StepDependency::step).collect();
        let mut paths = Paths::new(self.steps.iter().map(before).collect());
        for step in &mut self.steps {
            let orders = |edge: &StepDependency| matches!(edge.kind, Kind::Anti | Kind::Output);
            let implied = |on: usize| paths.implies(on);
            step.dependencies.retain(|edge| !(orders(edge) && edge.step().is_some_and(implied)));
            paths.advance();
        }
    }
}

#[derive(Debug)]
struct Step {
    accesses: Box<[Access]>,
    effects: Box<[Effect]>,
    is_task: bool,
    dependencies: SmallVec<[StepDependency; 4]>,
    versions: SmallVec<[u32; 8]>,
}

impl Step {
    #[inline]
    fn is(&self, asked: Asked<'_>) -> bool {
        self.is_task == asked.is_task && *self.accesses == *asked.accesses && *self.effects == *asked.effects
    }
}

/// A dependency of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StepDependency {
    on: On,
    kind: Kind,
    origin: Origin,
}

impl StepDependency {
    fn step(&self) -> Option<usize> {
        if let On::Step(step) = self.on { Some(step as usize) } else { None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    /// The last task that was this step.
    Step(u32),
    /// A task from before the passes.
    Before(TaskId),
}

/// The position of the step that this task was, among the tasks of a pass. `None` for another task.
fn position(id: TaskId, of: &[TaskId], steps: &[Step]) -> Option<usize> {
    let mut at = of.partition_point(|&other| other < id);
    while of.get(at) == Some(&id) {
        if steps[at].is_task {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// The number of tasks from before the passes that a step may depend on, apart from those whose results it
/// reads.
const BEFORE: usize = 16;

/// The three passes for which the graph memorises dependencies.
#[derive(Debug)]
pub(super) struct Memorising {
    pass: Pass,
    period: usize,
    /// Whether the pass was recalled before. Then its steps are known, but not what they depend on now.
    is_known: bool,
    /// The ids of the tasks of the first pass, then those of the second one, and so on. A check has the id of
    /// the task before it.
    ids: Vec<TaskId>,
    /// The first task of the passes.
    first: Option<TaskId>,
}

impl Memorising {
    pub(super) fn new(period: usize) -> Self {
        Self { pass: Pass::default(), period, is_known: false, ids: Vec::new(), first: None }
    }

    /// Memorises a pass that was recalled before.
    pub(super) fn again(pass: Pass) -> Self {
        let period = pass.len();
        Self { pass, period, is_known: true, ids: Vec::new(), first: None }
    }

    /// Whether the pass was recalled before.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// The pass, if it was recalled before, and no whole pass has come since.
    pub(super) fn into_known(self) -> Option<Pass> {
        (self.is_known && self.ids.len() < self.period).then_some(self.pass)
    }

    pub(super) fn period(&self) -> usize {
        self.period
    }

    /// Notes the next task and its answer. Returns `false` if it is not what a steady state has here.
    pub(super) fn note(&mut self, asked: Asked<'_>, answer: &Submitted) -> bool {
        let at = self.ids.len() % self.period;
        let is_first = self.ids.len() < self.period;
        if is_first && !self.is_known {
            self.pass.push(asked, answer);
        } else if !self.pass.steps[at].is(asked) {
            return false;
        } else if is_first {
            self.pass.steps[at].versions.clone_from(&answer.versions);
        } else if asked.is_task {
            let found: Option<SmallVec<[StepDependency; 4]>> =
                answer.dependencies.iter().map(|dependency| self.of_steps(dependency)).collect();
            // A derivation would drop these edges one by one, as the tasks end.
            let waits_for_long =
                |edge: &&StepDependency| matches!(edge.on, On::Before(_)) && edge.kind != Kind::True;
            let Some(found) = found.filter(|found| found.iter().filter(waits_for_long).count() <= BEFORE)
            else {
                return false;
            };
            self.pass.steps[at].dependencies = found;
        }
        self.ids.push(answer.id);
        if asked.is_task {
            self.first.get_or_insert(answer.id);
        }
        true
    }

    /// A dependency of the next task in terms of the steps. `None` if it is on a task of the passes that is
    /// not the last one to be its step.
    fn of_steps(&self, dependency: &Dependency) -> Option<StepDependency> {
        let &Dependency { on, kind, origin } = dependency;
        let at = self.ids.len() % self.period;
        let (before, now) = (self.ids.len() - self.period, self.ids.len() - at);
        let steps = &self.pass.steps;
        let in_this_pass = position(on, &self.ids[now..], steps);
        let step = in_this_pass
            .or_else(|| position(on, &self.ids[before..now], &steps[at..]).map(|position| at + position));
        let on = match step {
            Some(step) => On::Step(step as u32),
            None if self.first.is_some_and(|first| on >= first) => return None,
            None => On::Before(on),
        };
        Some(StepDependency { on, kind, origin })
    }

    /// The pass and the ids of its last tasks, if everything was memorised.
    pub(super) fn take_pass(&mut self) -> Option<(Pass, Vec<TaskId>)> {
        if self.ids.len() < 3 * self.period {
            return None;
        }
        let mut pass = std::mem::take(&mut self.pass);
        pass.buffers.sort_unstable();
        pass.buffers.dedup();
        pass.objects.sort_unstable();
        pass.objects.dedup();
        pass.remove_implied();
        Some((pass, self.ids.split_off(2 * self.period)))
    }
}

/// The number of notes for which the trackers are brought up to date, unless they have more parts. Tests have
/// short programs.
pub(super) const NOTES: usize = if cfg!(test) { 24 } else { 1024 };

/// A pass whose dependencies are recalled.
#[derive(Debug)]
pub(in crate::task_graph) struct Recalling {
    pass: Pass,
    /// The ids of the tasks of the last pass that the trackers know.
    known: Vec<TaskId>,
    /// The id of the last task of each step.
    latest: Vec<TaskId>,
    /// The ids of all tasks since `known`.
    notes: Vec<TaskId>,
    /// The next step.
    at: usize,
    /// The number of steps that were recalled.
    recalled: usize,
    /// The number of notes for which the trackers are brought up to date.
    bound: usize,
    /// The number of parts that were looked at for that.
    looked_at: usize,
}

impl Recalling {
    pub(super) fn new((pass, known): (Pass, Vec<TaskId>)) -> Self {
        let latest = known.clone();
        Self { pass, known, latest, notes: Vec::new(), at: 0, recalled: 0, bound: NOTES, looked_at: 0 }
    }

    pub(in crate::task_graph) fn pass(&self) -> &Pass {
        &self.pass
    }

    /// If the submission is the next step, answers with its dependencies.
    #[inline]
    pub(in crate::task_graph) fn step(
        &mut self,
        asked: Asked<'_>,
        id: TaskId,
        submitted: &mut Submitted,
    ) -> bool {
        let step = &self.pass.steps[self.at];
        if !step.is(asked) {
            return false;
        }
        submitted.clear(id);
        // One by one: there are few, and `extend` is a call that takes longer.
        for &StepDependency { on, kind, origin } in &step.dependencies {
            let on = match on {
                On::Step(step) => self.latest[step as usize],
                On::Before(id) => id,
            };
            submitted.dependencies.push(Dependency { on, kind, origin });
        }
        step.versions.iter().for_each(|&version| submitted.versions.push(version));
        self.latest[self.at] = id;
        self.notes.push(id);
        self.recalled += 1;
        self.at = if self.at + 1 == self.latest.len() { 0 } else { self.at + 1 };
        true
    }

    /// Whether a pass has just ended, and there are many notes.
    #[inline]
    pub(in crate::task_graph) fn has_many_notes(&self) -> bool {
        self.at == 0 && self.notes.len() >= self.bound
    }

    /// The number of steps and notes, as a measure of its memory.
    pub(super) fn tracked(&self) -> usize {
        self.latest.len() + self.notes.len()
    }

    /// What was repeated since the trackers were brought up to date. `None` if no pass has ended since.
    pub(in crate::task_graph) fn repeated(&self) -> Option<Repeated<'_>> {
        let ended = self.notes.len() - self.at;
        (ended > 0).then(|| Repeated { pass: &self.pass, known: &self.known, ids: &self.notes[..ended] })
    }

    /// Notes that the trackers know the last pass that has ended, and how many parts they have. With many of
    /// them they are brought up to date more seldom: for four parts that are looked at, at least one step was
    /// recalled.
    pub(in crate::task_graph) fn forget_repeated(&mut self, parts: usize) {
        let ended = self.notes.len() - self.at;
        if ended > 0 {
            self.known.clear();
            self.known.extend_from_slice(&self.notes[ended - self.latest.len()..ended]);
            self.notes.drain(..ended);
        }
        self.bound = NOTES.max(parts / 4);
        self.looked_at += parts;
    }

    /// The tasks of the pass that has begun.
    pub(in crate::task_graph) fn begun(&self) -> impl Iterator<Item = (&[Access], &[Effect], TaskId)> {
        let steps = self.pass.steps.iter().zip(&self.notes[self.notes.len() - self.at..]);
        steps.filter(|(step, _)| step.is_task).map(|(step, &id)| (&*step.accesses, &*step.effects, id))
    }

    /// The pass, to be memorised again later.
    pub(super) fn into_pass(self) -> Pass {
        self.pass
    }

    /// Whether the pass has saved more than it has cost to memorise it and to stop recalling it. To memorise
    /// a step costs about as much as two recalled ones save, and to look at a part an eighth of what one
    /// saves.
    pub(super) fn was_worthwhile(&self) -> bool {
        self.recalled >= 2 * self.latest.len() + self.looked_at / 8
    }
}

/// The passes that the trackers do not know yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeated<'a> {
    pass: &'a Pass,
    known: &'a [TaskId],
    ids: &'a [TaskId],
}

impl Repeated<'_> {
    /// The last task that has repeated this one. `None` if the task is from before the passes.
    pub(crate) fn last(&self, id: TaskId) -> Option<TaskId> {
        let at = position(id, self.known, &self.pass.steps)?;
        Some(self.ids[self.ids.len() - self.known.len() + at])
    }

    /// Whether the task belongs to the last pass. The trackers keep its tasks, although they may be done: by
    /// them they find those that repeat them later.
    pub(crate) fn is_of_last_pass(&self, id: TaskId) -> bool {
        id >= self.ids[self.ids.len() - self.known.len()]
    }

    /// Calls `f` with all tasks that have repeated this one, ascending.
    pub(crate) fn each(&self, id: TaskId, f: impl FnMut(TaskId)) {
        if let Some(at) = position(id, self.known, &self.pass.steps) {
            self.ids[at..].iter().step_by(self.known.len()).copied().for_each(f);
        }
    }
}
