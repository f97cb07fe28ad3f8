//! The command graphs of the nodes of a dry run. Range mappers of the program run here, so no lock is held.

use super::{
    change::{Change, RecordedTask},
    recording::{Launches, Recording},
};
use anabranch_graph::{
    ObjectId,
    command::{Command, CommandGraph, Launch, NodeId, Work},
};
use anabranch_par::discard_payload;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The command graph of every node.
pub(super) struct Nodes(Vec<CommandGraph>);

impl Nodes {
    pub(super) fn new(nodes: u16) -> Self {
        Self((0..nodes).map(|node| CommandGraph::new(NodeId(node), nodes)).collect())
    }

    /// No nodes, while another owner has them.
    pub(super) fn none() -> Self {
        Self(Vec::new())
    }

    /// Applies a change to the recording and to the command graphs.
    pub(super) fn apply(&mut self, change: Change, recording: &Mutex<Recording>) {
        let launches = recording.lock().apply(&change);
        match &change {
            Change::CreateBuffer { extent, initialised, id, .. } => {
                self.0.iter_mut().for_each(|node| node.create_buffer(*id, *extent, *initialised));
            }
            Change::RemoveBuffer(id) => self.0.iter_mut().for_each(|node| node.remove_buffer(*id)),
            Change::CreateObject(id, None) => self.0.iter_mut().for_each(|node| node.create_object(*id)),
            Change::CreateObject(id, Some(home)) => self.create_on(*id, *home, recording),
            Change::RemoveObject(id) => self.0.iter_mut().for_each(|node| node.remove_object(*id)),
            Change::SetWeights(weights) => self.0.iter_mut().for_each(|node| node.set_weights(weights)),
            Change::SetVersions(id, versions) => {
                self.0.iter_mut().for_each(|node| node.set_versions(*id, *versions));
            }
            // No command is known to be done: a buffer goes on with another version where it may have to.
            Change::Discard(id) => self.0.iter_mut().for_each(|node| node.discard(*id, &|_| false)),
            Change::Execute { .. } | Change::Touch { .. } => {}
            Change::Submit(task) => {
                let launches = launches.expect("a submitted task is launched");
                self.submit(task, &launches, recording);
            }
        }
        // Dropping the change drops mappers of the program, whose destructors may panic.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(change))) {
            discard_payload(payload);
            refuse(recording, "the destructor of a range mapper panicked".into());
        }
    }

    fn create_on(&mut self, id: ObjectId, home: u16, recording: &Mutex<Recording>) {
        let nodes = self.0.len();
        if usize::from(home) >= nodes && nodes > 0 {
            return refuse(recording, format!("a host object is to be on node {home} of {nodes}"));
        }
        self.0.iter_mut().for_each(|node| node.create_cluster_object(id, NodeId(home)));
    }

    fn submit(&mut self, task: &RecordedTask, launches: &Launches, recording: &Mutex<Recording>) {
        self.launch(task.label.name(), &task.launch(launches.task), recording);
        if let Some(horizon) = launches.horizon {
            self.launch("horizon", &Launch::new(horizon, Work::Horizon), recording);
        }
    }

    /// Generates the commands of all nodes.
    fn launch(&mut self, name: &str, launch: &Launch<'_>, recording: &Mutex<Recording>) {
        if recording.lock().refused.is_some() {
            return;
        }
        let commands: Result<Vec<_>, _> =
            self.0.iter_mut().map(|node| generate(node, name, launch)).collect();
        match commands {
            Ok(commands) => recording.lock().add_commands(name, &commands),
            Err(why) => refuse(recording, why),
        }
    }
}

/// Notes why no more commands are generated.
fn refuse(recording: &Mutex<Recording>, why: String) {
    recording.lock().refused.get_or_insert(why);
}

/// The commands of one node for a launch, or why there are none.
fn generate(node: &mut CommandGraph, name: &str, launch: &Launch<'_>) -> Result<Vec<Command>, String> {
    // Range mappers are the program's, and get chunks here that the program itself does not have.
    match catch_unwind(AssertUnwindSafe(|| node.launch(launch).map(<[Command]>::to_vec))) {
        Ok(commands) => commands.map_err(|error| error.to_string()),
        Err(payload) => {
            discard_payload(payload);
            Err(format!("a range mapper of task \"{name}\" panicked"))
        }
    }
}
