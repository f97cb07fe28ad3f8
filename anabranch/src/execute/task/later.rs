//! Tasks that end later than their bodies return: their work goes on elsewhere, in a transport or on a
//! device, and no thread waits for it.
//!
//! # Protocol
//! 1. A thread claims the task and calls [`Body::begin`](super::node::Body::begin). The body starts the work
//!    and takes the [`Completion`], which sets `LATER`. From then on the completion may be finished, on any
//!    thread.
//! 2. When the body has returned, the claiming thread sets `BEGUN`. The thread that finishes the completion
//!    sets `ENDED`. Either may come first: the work may be done before `begin` returns. The thread that finds
//!    the other bit set retires the task.
//! 3. The thread that finds it not set uses neither the task nor the runtime any more.
//!
//! A task of a [queue](super::queued) has one step more: it also waits for the end of tasks that were handed
//! over before it.
//!
//! A completion is finished once. If it is dropped instead, the task fails. A body that fails after it has
//! taken its completion fails the task, which still ends with the completion.

use super::node::{Completion, Later, Node};
use crate::error::Cause;

impl<'a> Later<'a> {
    pub(crate) fn of(node: &'a Node) -> Self {
        Self(node)
    }

    /// Whether the task begins on all nodes, also if the run ends.
    pub(crate) fn is_permitted(self) -> bool {
        self.0.is_permitted()
    }

    /// Takes the completion of the task: the task ends when it is finished.
    ///
    /// # Panics
    /// If the body has taken it before.
    pub(crate) fn completion(self) -> Completion {
        self.0.defer_end();
        Completion(Some(self.0.clone()))
    }
}

impl Completion {
    /// Ends the task, on the calling thread, which goes on with tasks that take only a moment. The caller
    /// holds no lock: this may call functions of the program.
    pub(crate) fn finish(mut self, result: Result<(), Cause>) {
        if let Some(node) = self.0.take() {
            node.end_later(result, true);
        }
    }

    /// Ends the task as [`finish`](Self::finish) does, after a call of `release`, which drops handles of the
    /// program: inside the task, as the body does.
    pub(crate) fn finish_after(self, release: impl FnOnce(), result: Result<(), Cause>) {
        if let Some(node) = &self.0 {
            node.runtime.inside_task(release);
        }
        self.finish(result);
    }

    /// Ends the task as [`finish`](Self::finish) does, on a thread that is about to end other tasks. It
    /// queues the kernels that become ready, even if it is a worker.
    pub(crate) fn finish_before_others(mut self, result: Result<(), Cause>) {
        if let Some(node) = self.0.take() {
            node.end_later(result, false);
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(node) = self.0.take() {
            let message = "its completion was dropped".into();
            node.end_later(Err(Cause::Panic { message, chunk: None }), false);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{
        Status, TaskHandle,
        error::Failure,
        execute::{Body, Compute, Core, Place, Submission},
        label::TaskLabel,
        settings::Settings,
    };
    use std::{
        panic::Location,
        sync::{Arc, mpsc},
        thread,
        time::Duration,
    };

    /// Gives its completion away, and returns when the test says so.
    struct Gives {
        to: Option<mpsc::Sender<Completion>>,
        returns: mpsc::Receiver<Result<(), Cause>>,
    }

    impl Body for Gives {
        fn run(&mut self, _: &Compute) -> Result<(), Cause> {
            unreachable!("the task is begun")
        }

        fn begin(&mut self, _: &Compute, later: Later<'_>) -> Result<(), Cause> {
            let to = self.to.take().unwrap();
            to.send(later.completion()).unwrap();
            drop(to);
            self.returns.recv_timeout(Duration::from_secs(30)).unwrap()
        }

        fn skip(&mut self, _: &Arc<Failure>) {}
    }

    fn start(threads: usize) -> Arc<Core> {
        Core::start(threads, &Settings::default(), None).unwrap()
    }

    fn submit(core: &Arc<Core>, body: impl Body) -> TaskHandle {
        let label = TaskLabel { name: "later".into(), location: Location::caller() };
        let task = Submission {
            label: &label,
            group: None,
            accesses: &[],
            effects: &[],
            priority: 0,
            place: Place::Compute,
            observes: false,
            record: None,
            device: None,
        };
        let accepted = core.accept(&task).unwrap();
        let node = Node::new(|| accepted.head(), || body);
        TaskHandle::new(smallvec::smallvec![accepted.insert(node)])
    }

    /// A task that gives its completion away, the completion, and the means to make its body return.
    fn begun(core: &Arc<Core>) -> (TaskHandle, Completion, mpsc::Sender<Result<(), Cause>>) {
        let (to, completion) = mpsc::channel();
        let (sender, returns) = mpsc::channel();
        let task = submit(core, Gives { to: Some(to), returns });
        (task, completion.recv_timeout(Duration::from_secs(30)).unwrap(), sender)
    }

    fn end(core: &Core) {
        core.wait_without_span(&core.latch());
        core.stop_threads();
    }

    #[test]
    fn a_task_ends_when_both_its_body_and_its_completion_have() {
        for threads in [1, 2, 3] {
            let core = start(threads);
            let (first, completion, returns) = begun(&core);
            returns.send(Ok(())).unwrap();
            thread::sleep(Duration::from_millis(1));
            assert_eq!(first.status(), Status::Running);
            completion.finish(Ok(()));
            first.wait().unwrap();

            let (second, completion, returns) = begun(&core);
            completion.finish(Ok(()));
            thread::sleep(Duration::from_millis(1));
            assert_eq!(second.status(), Status::Running);
            returns.send(Ok(())).unwrap();
            second.wait().unwrap();
            end(&core);
        }
    }

    #[test]
    fn the_failure_of_the_body_and_that_of_the_completion_fail_the_task() {
        let failed = || Err(Cause::Panic { message: "it failed".into(), chunk: None });
        let core = start(2);
        for (body, completion) in [(failed(), Ok(())), (Ok(()), failed())] {
            let (task, finishes, returns) = begun(&core);
            returns.send(body).unwrap();
            finishes.finish(completion);
            assert!(task.wait().unwrap_err().to_string().contains("it failed"));
            assert_eq!(task.status(), Status::Failed);
        }
        let (task, completion, returns) = begun(&core);
        returns.send(Ok(())).unwrap();
        drop(completion);
        assert!(task.wait().unwrap_err().to_string().contains("its completion was dropped"));
        assert!(core.report(None, "wait").is_err());
        end(&core);
    }

    #[test]
    fn many_completions_race_with_their_bodies() {
        let core = start(2);
        let (to, completions) = mpsc::channel::<Completion>();
        let finisher = thread::spawn(move || completions.into_iter().for_each(|c| c.finish(Ok(()))));
        for _ in 0..2000 {
            let (sender, returns) = mpsc::channel();
            sender.send(Ok(())).unwrap();
            submit(&core, Gives { to: Some(to.clone()), returns });
        }
        drop(to);
        end(&core);
        assert!(core.is_idle());
        finisher.join().unwrap();
    }
}
