//! What all steps of a node use.

use crate::{cluster::Cluster, execute::nodes::failures::poison::Poison, label::Locations};
use std::sync::Arc;

/// What all steps of a node use.
pub(crate) struct StepContext {
    pub(crate) cluster: Arc<Cluster>,
    pub(in crate::execute::nodes) poison: Poison,
    pub(in crate::execute::nodes) locations: Locations,
}

impl StepContext {
    pub(in crate::execute::nodes) fn new(cluster: Arc<Cluster>) -> Arc<Self> {
        Arc::new(Self { cluster, poison: Poison::default(), locations: Locations::default() })
    }
}
