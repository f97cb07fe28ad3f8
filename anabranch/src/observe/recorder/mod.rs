//! Recording: the graphs of a program, for pictures, and dry runs for more nodes than there are.
//!
//! A recorded program runs as it always does. The recorder repeats everything that it submits in a second task graph. That
//! graph has horizons and conflict edges, and forgets tasks by horizons instead of by their completion, so it is the same in
//! every run. In a dry run the recorder also submits everything to the command graphs of as many nodes as the program asks
//! for; none of these nodes exists. Drawings of both are bounded: what they leave out, they count.

mod counts;
#[cfg(feature = "print")]
mod drawings;
mod names;
mod task_record;

pub(crate) use task_record::TaskRecord;

#[cfg(feature = "print")]
use self::drawings::Drawings;
use self::{counts::Counts, names::Names};
use crate::{label::TaskLabel, settings::RecordSettings};
use anabranch_graph::{
    Access, BufferId, Effect, ObjectId, Settings, TaskGraph,
    command::{Command, CommandGraph, Launch, NodeId, Work},
};
use anabranch_grid::Extent;
use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

pub(crate) struct Recorder {
    settings: RecordSettings,
    graph: TaskGraph,
    nodes: Vec<CommandGraph>,
    names: Names,
    counts: Counts,
    /// Why no more commands are generated.
    refused: Option<String>,
    #[cfg(feature = "print")]
    drawings: Drawings,
}

impl Recorder {
    pub(crate) fn new(settings: RecordSettings) -> Self {
        let nodes = settings.nodes.unwrap_or(0);
        Self {
            settings,
            graph: TaskGraph::with(Settings { horizons: Some(Default::default()), conflicts: true }),
            nodes: (0..nodes).map(|node| CommandGraph::new(NodeId(node), nodes)).collect(),
            names: Names::default(),
            counts: Counts::new(nodes),
            refused: None,
            #[cfg(feature = "print")]
            drawings: Drawings::new(nodes),
        }
    }

    /// Adds a buffer with elements of `bytes` bytes.
    pub(crate) fn create_buffer(&mut self, extent: Extent<3>, initialised: bool, id: BufferId, bytes: usize) {
        let same = self.graph.create_buffer(extent, initialised);
        assert_eq!(same, id, "both graphs get the same buffers");
        self.nodes.iter_mut().for_each(|node| node.create_buffer(id, extent, initialised));
        self.names.add_buffer(id, bytes);
    }

    pub(crate) fn remove_buffer(&mut self, id: BufferId) {
        self.graph.remove_buffer(id);
        self.nodes.iter_mut().for_each(|node| node.remove_buffer(id));
        self.names.remove_buffer(id);
    }

    pub(crate) fn create_object(&mut self, id: ObjectId) {
        let same = self.graph.create_object();
        assert_eq!(same, id, "both graphs get the same objects");
        self.nodes.iter_mut().for_each(|node| node.create_object(id));
    }

    pub(crate) fn remove_object(&mut self, id: ObjectId) {
        self.graph.remove_object(id);
        self.nodes.iter_mut().for_each(|node| node.remove_object(id));
        self.names.remove_object(id);
    }

    pub(crate) fn set_versions(&mut self, id: BufferId, versions: usize) {
        self.graph.set_versions(id, versions);
    }

    pub(crate) fn discard(&mut self, id: BufferId) {
        self.graph.discard(id, &|_| false);
    }

    /// Adds a task that the live graph has accepted.
    pub(crate) fn record_task(
        &mut self,
        label: &TaskLabel,
        record: &TaskRecord,
        accesses: &[Access],
        effects: &[Effect],
    ) {
        let submitted = if record.work == Work::Epoch {
            self.graph.epoch(accesses, effects, &|_| false)
        } else {
            self.graph.submit(accesses, effects, &|_| false)
        };
        let submitted = submitted.expect("both graphs accept the same tasks");
        self.names.update(record, accesses, effects);
        self.counts.tasks += 1;
        #[cfg(feature = "print")]
        self.drawings.add_task(&submitted, label, record, accesses, effects, &self.names);
        self.launch(
            label.name(),
            &Launch {
                task: submitted.id,
                work: record.work,
                hints: record.hints,
                accesses: &record.accesses,
                reductions: &record.reductions,
                effects,
            },
        );
        if let Some(horizon) = &submitted.horizon {
            #[cfg(feature = "print")]
            self.drawings.add_horizon(horizon, &self.names);
            self.launch("horizon", &Launch::new(horizon.id, Work::Horizon));
        }
    }

    /// Generates the commands of all nodes.
    fn launch(&mut self, name: &str, launch: &Launch<'_>) {
        if self.refused.is_some() {
            return;
        }
        for (rank, node) in self.nodes.iter_mut().enumerate() {
            let commands = match generate(node, name, launch) {
                Ok(commands) => commands,
                Err(refused) => {
                    self.refused = Some(refused);
                    return;
                }
            };
            for command in &commands {
                self.counts.add(command, &self.names);
                #[cfg(feature = "print")]
                self.drawings.add_command(rank, name, command, &self.names);
            }
            #[cfg(not(feature = "print"))]
            let _ = rank;
        }
        #[cfg(feature = "print")]
        self.drawings.connect_messages();
    }

    /// The summary of a dry run.
    pub(crate) fn summary(&self) -> Option<String> {
        self.settings.nodes?;
        let refused =
            self.refused.iter().map(|error| format!("; commands end where this was refused: {error}"));
        Some(self.counts.to_string() + &refused.collect::<String>())
    }

    /// Prints the summary of a dry run and writes the graphs to the file that the environment asks for.
    pub(crate) fn finish(&self) {
        if let Some(summary) = self.summary() {
            eprintln!("anabranch: {summary}");
        }
        #[cfg(feature = "print")]
        if let Some(path) = &self.settings.path
            && let Err(error) = self.drawings.write(path, self.settings.nodes.is_some())
        {
            eprintln!("anabranch: the graphs could not be written to {}: {error}", path.display());
        }
    }
}

#[cfg(feature = "print")]
impl Recorder {
    /// The task graph so far.
    pub(crate) fn tasks(&self) -> anabranch_graph::print::Drawing {
        self.drawings.tasks().clone()
    }

    /// The command graphs so far, in a dry run.
    pub(crate) fn commands(&self) -> Option<anabranch_graph::print::Drawing> {
        self.settings.nodes.map(|_| self.drawings.commands().clone())
    }
}

/// The commands of one node for a launch, or why there are none.
fn generate(node: &mut CommandGraph, name: &str, launch: &Launch<'_>) -> Result<Vec<Command>, String> {
    // Range mappers are the program's, and get chunks here that the program itself does not have.
    match catch_unwind(AssertUnwindSafe(|| node.launch(launch).map(<[Command]>::to_vec))) {
        Ok(commands) => commands.map_err(|error| error.to_string()),
        Err(payload) => {
            // Leaked: its destructor could panic, and nothing would catch that here.
            mem::forget(payload);
            Err(format!("a range mapper of task \"{name}\" panicked"))
        }
    }
}
