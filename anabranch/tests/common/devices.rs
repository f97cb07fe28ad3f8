//! Simulated devices, and programs whose kernels run on those of several nodes.

use anabranch::{
    device::{Device, Simulated},
    local_nodes,
    prelude::*,
};
use std::{fmt::Debug, sync::Arc, time::Duration};

const NODES: [u16; 5] = [1, 2, 3, 4, 7];

/// A device whose steps take a random time.
pub fn slow(seed: u64) -> Arc<Simulated> {
    Arc::new(Simulated::builder().delays(seed, Duration::from_micros(200)).build())
}

pub fn device(simulated: &Arc<Simulated>) -> Arc<dyn Device> {
    Arc::<Simulated>::clone(simulated)
}

/// Where the kernels of a node run: `None` is the host.
#[derive(Clone, Debug)]
pub struct Places(Vec<Option<Arc<dyn Device>>>);

impl Places {
    pub fn host() -> Self {
        Self(vec![None])
    }

    /// Of the first of four kinds all nodes have a device. Of the others a node takes other places than its
    /// neighbours: one or two devices, perhaps in turns with the host.
    pub fn of(node: u16, kind: usize) -> Self {
        let new = |number: u64| Some(device(&slow(10 * u64::from(node) + number)));
        Self(match (kind % 4, (kind + usize::from(node)) % 4) {
            (0, _) | (_, 0) => vec![new(1)],
            (_, 1) => vec![new(1), None],
            (_, 2) => vec![new(1), new(2)],
            _ => vec![None, None, new(1)],
        })
    }

    /// The place of a step.
    pub fn at(&self, step: usize) -> Option<&Arc<dyn Device>> {
        self.0[step % self.0.len()].as_ref()
    }
}

/// Runs a program on the host and on a device of one node, and on devices of several nodes, and compares the
/// results of all.
pub fn same_on_devices<R: PartialEq + Debug + Send + 'static>(
    program: impl Fn(Runtime, &Places) -> Result<R, Error> + Send + Sync + 'static,
) {
    let one = |places: Places| program(Runtime::builder().threads(2).build().unwrap(), &places).unwrap();
    let expected = one(Places::host());
    assert_eq!(one(Places::of(0, 0)), expected, "a device of one node");
    for (at, &nodes) in NODES.iter().enumerate() {
        for threads in 1..=3 {
            let (kind, seed) = (at + threads, u64::from(nodes) * 10 + threads as u64);
            let local = local_nodes(nodes).threads(threads).delays(threads as u32 * 3, seed);
            let results = local.run(|rt| {
                let places = Places::of(rt.node(), kind);
                program(rt, &places)
            });
            for (node, result) in results.into_iter().enumerate() {
                let result = result.unwrap_or_else(|error| panic!("node {node} of {nodes}: {error}"));
                assert_eq!(result, expected, "node {node} of {nodes}, {threads} threads, kind {kind}");
            }
        }
    }
}
