//! The start of a runtime.

use super::{
    conflicts::Conflicts,
    core::{Core, State},
    current_task::RuntimeId,
    deferred_shutdown::DeferredShutdown,
    graphs::Graphs,
    in_flight::InFlight,
    nodes::{Communicators, Nodes, progress::Progress},
    threads::executor::{Executor, Threads},
};
use crate::{
    cluster::Cluster,
    error::Error,
    observe::{Recorder, UnreportedFailures, Warnings},
    program_cache::ProgramCache,
    settings::Settings,
};
use anabranch_par::PoolError;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::sync::{Arc, Weak, atomic::AtomicBool};

impl Core {
    /// Starts the threads of a runtime, on one node or in a cluster.
    pub(crate) fn start(
        threads: usize,
        settings: &Settings,
        cluster: Option<Arc<Cluster>>,
    ) -> Result<Arc<Self>, Error> {
        let threads = Threads::start(threads, settings)?;
        let record = &settings.record;
        let recorder = record.is_recording().then(|| Arc::new(Recorder::new(record.clone())));
        let state = State { graphs: Graphs::new(recorder.clone(), cluster.is_some()), ..State::default() };
        let id = RuntimeId::new().map_err(|source| PoolError::Spawn { started: 0, source })?;
        let core = Arc::new_cyclic(|this: &Weak<Self>| Self {
            this: Weak::clone(this),
            id,
            executor: Executor::new(id, Weak::<Self>::clone(this), threads),
            in_flight: InFlight::new(settings.max_in_flight),
            state: CachePadded::new(Mutex::new(state)),
            conflicts: Conflicts::default(),
            failures: UnreportedFailures::default(),
            recorder,
            nodes: cluster.as_ref().map(|cluster| cluster.nodes()).or(record.nodes).unwrap_or(1),
            several: cluster.map(|cluster| Box::new(Nodes::new(cluster))),
            communicators: settings.communicators.then(|| Communicators::new(settings.host_lanes)),
            device: settings.device.clone(),
            meets_devices: AtomicBool::new(false),
            programs: ProgramCache::default(),
            warnings: Warnings::new(settings.patience),
            shutdown: DeferredShutdown::default(),
        });
        core.cluster().into_iter().for_each(|cluster| Progress::start(cluster, Arc::downgrade(&core)));
        Ok(core)
    }
}
