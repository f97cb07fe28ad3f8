//! The labels of buffers and host objects in recorded graphs.

use super::task_record::TaskRecord;
use anabranch_graph::{Access, BufferId, Effect, ObjectId};
use std::collections::HashMap;

#[derive(Default)]
pub(super) struct Names {
    buffers: HashMap<BufferId, NamedBuffer>,
    objects: HashMap<ObjectId, String>,
}

struct NamedBuffer {
    /// Empty until a task has used the buffer.
    label: String,
    /// The size of an element in bytes.
    element: usize,
}

impl Names {
    pub(super) fn add_buffer(&mut self, id: BufferId, element: usize) {
        self.buffers.insert(id, NamedBuffer { label: String::new(), element });
    }

    pub(super) fn remove_buffer(&mut self, id: BufferId) {
        self.buffers.remove(&id);
    }

    pub(super) fn remove_object(&mut self, id: ObjectId) {
        self.objects.remove(&id);
    }

    /// Takes over the labels that a task gives.
    pub(super) fn update(&mut self, record: &TaskRecord, accesses: &[Access], effects: &[Effect]) {
        for (access, label) in accesses.iter().zip(&record.buffers) {
            if let Some(buffer) = self.buffers.get_mut(&access.buffer) {
                buffer.label.clone_from(label);
            }
        }
        for (effect, label) in effects.iter().zip(&record.objects) {
            self.objects.insert(effect.object, label.clone());
        }
    }

    /// The size of an element in bytes; 0 for a buffer that is gone.
    pub(super) fn element_size(&self, id: BufferId) -> usize {
        self.buffers.get(&id).map_or(0, |buffer| buffer.element)
    }

    #[cfg(feature = "print")]
    pub(super) fn buffer(&self, id: BufferId) -> Option<&str> {
        self.buffers.get(&id).map(|buffer| &*buffer.label)
    }

    #[cfg(feature = "print")]
    pub(super) fn object(&self, id: ObjectId) -> Option<&str> {
        self.objects.get(&id).map(|label| &**label)
    }
}
