//! Reports of failures on several nodes: the nodes meet and exchange their failures, and each node reports
//! the failures of all.
//!
//! All nodes have the same failures, as the bytes in which they were sent, so all reports are the same. A
//! node sends as many failures as fit into a note, oldest task first, and the number of the others.

use crate::{
    cluster::{Said, Then},
    error::{Error, Failure, Failures, NodeError, message},
    events::event::Event,
    execute::{core::Core, groups::handle::GroupHandle, nodes::plan::Nodes},
    label::Locations,
    observe::MAX_LISTED,
};
use anabranch_graph::TaskId;
use anabranch_wire::{NOTE, Tag};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// The failures of all nodes, in the order of a report. The bytes are part of the key: several nodes send the
/// same failure.
type Listed = BTreeMap<(TaskId, Option<u16>, Vec<u8>), Arc<Failure>>;

/// What a node has to report.
#[derive(Default)]
struct Report {
    listed: Listed,
    omitted: u64,
    skipped: u64,
}

/// The bytes in front of the failures: the two numbers.
const HEAD: usize = 16;

impl Report {
    /// The report of this node. Calls functions of the program, which write the messages of its errors.
    fn of(failures: &Failures) -> Self {
        let Failures { first, others, omitted, skipped } = failures;
        let mut report = Self { listed: Listed::new(), omitted: *omitted, skipped: *skipped };
        let mut room = NOTE - HEAD;
        for failure in [first].into_iter().chain(others) {
            let bytes = message::to_bytes(failure);
            if bytes.len() + 2 > room {
                room = 0;
                report.omitted += 1;
                continue;
            }
            room -= bytes.len() + 2;
            report.listed.insert((failure.id, failure.node, bytes), Arc::clone(failure));
        }
        report
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.omitted.to_le_bytes());
        bytes.extend(self.skipped.to_le_bytes());
        for (_, _, failure) in self.listed.keys() {
            bytes.extend((failure.len() as u16).to_le_bytes());
            bytes.extend(failure);
        }
        bytes
    }

    /// Adds the report of another node; `None` if it cannot be read.
    fn add(&mut self, bytes: &[u8], locations: &Locations) -> Option<()> {
        let (omitted, rest) = bytes.split_first_chunk()?;
        let (skipped, mut rest) = rest.split_first_chunk()?;
        self.omitted = self.omitted.saturating_add(u64::from_le_bytes(*omitted));
        self.skipped = self.skipped.saturating_add(u64::from_le_bytes(*skipped));
        while !rest.is_empty() {
            let (len, more) = rest.split_first_chunk()?;
            let (failure, more) = more.split_at_checked(u16::from_le_bytes(*len).into())?;
            let read = message::from_bytes(failure, locations)?;
            // A failure of this node stays the one that it has, with the error of the program.
            self.listed.entry((read.id, read.node, failure.to_vec())).or_insert(read);
            rest = more;
        }
        Some(())
    }

    /// The error that all nodes return.
    fn result(self) -> Result<(), Error> {
        let Self { listed, mut omitted, skipped } = self;
        let mut all: Vec<_> = listed.into_values().collect();
        omitted += all.len().saturating_sub(MAX_LISTED) as u64;
        all.truncate(MAX_LISTED);
        let mut all = all.into_iter();
        let Some(first) = all.next() else { return Ok(()) };
        let failures = Failures { first, others: all.collect(), omitted, skipped };
        failures.iter().for_each(Failure::mark_given);
        Err(failures.into())
    }
}

/// The failures of this node since the last report.
fn take(core: &Core, group: Option<&GroupHandle>) -> Option<Failures> {
    match core.failures_of(group.map(|group| &***group)).report() {
        Err(Error::Failed(failures)) => Some(failures),
        _ => None,
    }
}

/// The failures of this node, and those that the others have sent.
fn together(nodes: &Nodes, own: Option<Report>, said: &[Said]) -> Result<(), Error> {
    let mut report = own.unwrap_or_default();
    for Said { node, note } in said {
        if report.add(note, &nodes.context.locations).is_none() {
            let why =
                format!("it cannot read the failures of node {node}: do all nodes run the same program?");
            return Err(nodes.cluster().stop(NodeError::Here { why }).into());
        }
    }
    report.result()
}

/// What a call returns if the run has ended: the failures of this node, if there are any, and otherwise why.
fn ended(own: Option<Failures>, why: Arc<NodeError>) -> Error {
    own.map_or(Error::Nodes(why), Error::from)
}

impl Core {
    /// Reports the failures of a group, or of tasks in no group, on all nodes: see [`Core::report`].
    #[cold]
    pub(in crate::execute) fn report_on_nodes(
        &self,
        nodes: &Nodes,
        group: Option<&GroupHandle>,
        call: &'static str,
    ) -> Result<(), Error> {
        match self.check_submitter(|| call.into()) {
            Err(Error::Nodes(why)) => return Err(ended(take(self, group), why)),
            other => other?,
        }
        let own = take(self, group);
        let report = own.as_ref().map(Report::of);
        match nodes.cluster().meet(call, report.as_ref().map(Report::to_bytes)) {
            Ok(said) => together(nodes, report, &said),
            Err(why) => Err(ended(own, why)),
        }
    }

    /// What all nodes say at a meeting that `call` names, in the order of the nodes; nothing of those that
    /// have nothing to say.
    pub(crate) fn tell(&self, call: &'static str, own: Option<Vec<u8>>) -> Result<Vec<Said>, Error> {
        let Some(nodes) = self.several_nodes() else {
            return Ok(own.map(|note| Said { node: 0, note }).into_iter().collect());
        };
        self.check_submitter(|| call.into())?;
        let mut all = nodes.cluster().meet(call, own.clone())?;
        all.extend(own.map(|note| Said { node: nodes.cluster().node(), note }));
        all.sort_unstable_by_key(|said| said.node);
        Ok(all)
    }

    /// Ends the run, because this node cannot read the note of another one. Returns the error.
    #[cold]
    pub(crate) fn differs_from(&self, node: u16, call: &'static str) -> Error {
        let why =
            format!("it cannot read what node {node} says at {call}: do all nodes run the same program?");
        match self.cluster() {
            Some(cluster) => cluster.stop(NodeError::Here { why }).into(),
            None => unreachable!("one node has its own value"),
        }
    }
}

/// A report for which a future waits.
///
/// A node announces it when the future is first polled, and enters the meeting when its own tasks are done. A
/// future that is dropped in between enters it with nothing to say: the other nodes must not wait for it.
#[derive(Debug)]
pub(crate) struct Meeting {
    core: Arc<Core>,
    group: Option<GroupHandle>,
    name: Tag,
    entered: Option<Entered>,
}

#[derive(Debug)]
struct Entered {
    own: Option<Failures>,
    met: Arc<Met>,
}

#[derive(Debug, Default)]
struct Met {
    event: Event,
    result: Mutex<Option<Result<Vec<Said>, Arc<NodeError>>>>,
}

impl Meeting {
    /// Announces a meeting that `call` names; `None` on one node.
    ///
    /// # Errors
    /// If the calling thread may not, or the run has ended.
    pub(crate) fn announce(
        core: &Arc<Core>,
        group: Option<&GroupHandle>,
        call: &'static str,
    ) -> Result<Option<Self>, Error> {
        let Some(nodes) = core.several_nodes() else { return Ok(None) };
        let announced =
            core.check_submitter(|| call.into()).and_then(|()| Ok(nodes.cluster().announce(call)?));
        match announced {
            Ok(name) => Ok(Some(Self { core: Arc::clone(core), group: group.cloned(), name, entered: None })),
            Err(Error::Nodes(why)) => Err(ended(take(core, group), why)),
            Err(other) => Err(other),
        }
    }

    fn nodes(&self) -> &Nodes {
        self.core.several_nodes().expect("a meeting of several nodes")
    }

    /// Enters the meeting at the first call: the tasks of this node are done. Then waits for the other nodes.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if self.entered.is_none() {
            let own = take(&self.core, self.group.as_ref());
            let say = own.as_ref().map(|own| Report::of(own).to_bytes());
            self.enter(own, say);
        }
        let Some(Entered { met, .. }) = &self.entered else { unreachable!("it was entered") };
        ready!(self.core.poll(&met.event, context));
        let result = met.result.lock().take();
        let own = self.entered.as_mut().and_then(|entered| entered.own.take());
        Poll::Ready(match result.expect("a future is not polled after its end") {
            Ok(said) => together(self.nodes(), own.as_ref().map(Report::of), &said),
            Err(why) => Err(ended(own, why)),
        })
    }

    fn enter(&mut self, own: Option<Failures>, say: Option<Vec<u8>>) {
        let met = Arc::<Met>::default();
        self.entered = Some(Entered { own, met: Arc::clone(&met) });
        let then: Then = Box::new(move |result| {
            *met.result.lock() = Some(result);
            met.event.set();
        });
        self.nodes().cluster().enter(self.name, say, then);
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        if self.entered.is_none() {
            self.enter(None, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{error::Cause, label::TaskLabel};
    use std::panic::Location;

    fn failure(id: u64, node: u16, message: &str) -> Arc<Failure> {
        let task = TaskLabel { name: format!("task {id}").into(), location: Location::caller() };
        let cause = Cause::Panic { message: message.into(), chunk: None };
        Arc::new(Failure::new(TaskId(id), task, cause).on(Some(node)))
    }

    fn failures(all: impl IntoIterator<Item = Arc<Failure>>, omitted: u64, skipped: u64) -> Failures {
        let mut all = all.into_iter();
        Failures { first: all.next().unwrap(), others: all.collect(), omitted, skipped }
    }

    /// What each node reports if these are the failures of the nodes.
    fn reports(of_nodes: &[Option<Failures>]) -> Vec<String> {
        let locations = Locations::default();
        locations.add(&failure(0, 0, "").task);
        let report = |own: &Option<Failures>| own.as_ref().map(Report::of);
        let text = |me: usize| {
            let mut all = report(&of_nodes[me]).unwrap_or_default();
            for (_, other) in of_nodes.iter().enumerate().filter(|(node, _)| *node != me) {
                report(other).into_iter().for_each(|other| all.add(&other.to_bytes(), &locations).unwrap());
            }
            all.result().map_or_else(|error| error.to_string(), |()| String::new())
        };
        (0..of_nodes.len()).map(text).collect()
    }

    #[test]
    fn all_nodes_report_the_same() {
        let known = || failure(3, 0, "no luck");
        let one = failures([known(), failure(9, 0, "nor here")], 0, 2);
        let two = failures([failure(2, 1, "first"), known(), failure(3, 1, "no luck")], 0, 1);
        let all = reports(&[Some(one), Some(two), None]);
        assert!(all.iter().all(|text| *text == all[0]), "{all:#?}");
        let parts: Vec<_> = all[0].split("; ").collect();
        assert_eq!(parts.len(), 4, "{parts:?}");
        assert!(parts[0].starts_with("task \"task 2\"") && parts[0].contains("on node 1"), "{parts:?}");
        assert!(
            parts[3].ends_with("(3 parts of tasks that depend on failed tasks were skipped)"),
            "{parts:?}"
        );
        assert_eq!(reports(&[None, None]), ["", ""]);
    }

    #[test]
    fn many_long_failures_are_counted() {
        let long = "x".repeat(1000);
        let many = |node: u16| failures((0..100).map(|id| failure(id, node, &long)), 7, 0);
        let all = reports(&[Some(many(0)), Some(many(1)), None, Some(many(3))]);
        assert!(all.iter().all(|text| *text == all[0]));
        let listed = all[0].matches("panicked").count();
        assert!((30..=MAX_LISTED).contains(&listed), "{listed}");
        assert!(
            all[0].ends_with(&format!("; and {} more", 3 * 107 - listed)),
            "{}",
            &all[0][all[0].len() - 50..]
        );
    }
}
