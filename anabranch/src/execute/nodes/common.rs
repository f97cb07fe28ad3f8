//! What all steps of a node use.

use super::poison::Poison;
use crate::{cluster::Cluster, label::Locations};
use std::sync::Arc;

/// What all steps of a node use.
pub(crate) struct Common {
    pub(crate) cluster: Arc<Cluster>,
    pub(super) poison: Poison,
    pub(super) locations: Locations,
}

impl Common {
    pub(super) fn new(cluster: Arc<Cluster>) -> Arc<Self> {
        Arc::new(Self { cluster, poison: Poison::default(), locations: Locations::default() })
    }
}
