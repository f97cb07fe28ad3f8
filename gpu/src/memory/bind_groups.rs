//! The bind groups of the last launches: a program that launches kernels again and again does so on few
//! buffers, and a driver takes several microseconds to make a bind group.
//!
//! A bind group keeps its buffers. So it is forgotten before one of them goes back to the driver.

use parking_lot::Mutex;
use std::{collections::VecDeque, mem};

/// The most bind groups: a search looks through all of them.
const MOST: usize = 64;

/// A bind group whose entries are whole buffers, with its layout and these.
type Known = (wgpu::BindGroupLayout, Vec<wgpu::Buffer>, wgpu::BindGroup);

/// Bind groups, with the last used one at the end.
#[derive(Debug, Default)]
pub(crate) struct BindGroups(Mutex<VecDeque<Known>>);

impl BindGroups {
    /// The bind group of this layout whose bindings are these buffers, from binding 1 on.
    pub(crate) fn get(
        &self,
        device: &wgpu::Device,
        layout: &wgpu::BindGroupLayout,
        buffers: &[wgpu::Buffer],
    ) -> wgpu::BindGroup {
        let is_wanted = |(of, bound, _): &Known| of == layout && bound == buffers;
        let mut groups = self.0.lock();
        let known = groups.iter().rposition(is_wanted).and_then(|at| groups.remove(at));
        let known = known.unwrap_or_else(|| {
            let group = create(device, layout, entries(buffers));
            (layout.clone(), buffers.to_vec(), group)
        });
        let group = known.2.clone();
        groups.push_back(known);
        let oldest = if groups.len() > MOST { groups.pop_front() } else { None };
        drop(groups);
        drop(oldest);
        group
    }

    /// Forgets the bind groups of these buffers.
    pub(super) fn forget(&self, buffers: &[wgpu::Buffer]) {
        let mut groups = self.0.lock();
        let is_kept = |(_, bound, _): &Known| !bound.iter().any(|of| buffers.contains(of));
        let (kept, forgotten) = mem::take(&mut *groups).into_iter().partition::<VecDeque<_>, _>(is_kept);
        *groups = kept;
        drop(groups);
        drop(forgotten);
    }

    /// Forgets all bind groups.
    pub(super) fn clear(&self) {
        let all = mem::take(&mut *self.0.lock());
        drop(all);
    }
}

/// The entries of whole buffers, from binding 1 on.
pub(crate) fn entries<'a>(
    buffers: impl IntoIterator<Item = &'a wgpu::Buffer>,
) -> impl Iterator<Item = wgpu::BindGroupEntry<'a>> {
    (1..)
        .zip(buffers)
        .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
}

/// A new bind group.
pub(crate) fn create<'a>(
    device: &wgpu::Device,
    layout: &wgpu::BindGroupLayout,
    entries: impl Iterator<Item = wgpu::BindGroupEntry<'a>>,
) -> wgpu::BindGroup {
    device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout,
        entries: &entries.collect::<Vec<_>>(),
    })
}
