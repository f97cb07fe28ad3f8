//! The launches that combine the results of leaves, in a command buffer.

use super::reduce::PreparedReduction;
use crate::{memory::staging::Sort, threads::encode::Encoding};
use anabranch_kernel::wgsl::COMBINED;
use std::num::NonZeroU64;

impl Encoding<'_> {
    /// A buffer for the results of the leaves of each reduction: that of the operand if nothing combines
    /// them.
    pub(crate) fn leaves(&mut self, reductions: &[PreparedReduction]) -> Option<Vec<wgpu::Buffer>> {
        let buffer = |of: &PreparedReduction| match of.combine {
            Some(_) => Some(self.results(of.leaves * of.width)),
            None => self.buffer(&of.result),
        };
        reductions.iter().map(buffer).collect()
    }

    /// A buffer that is given back when the submission is done.
    fn results(&mut self, bytes: u64) -> wgpu::Buffer {
        let buffer = self.shared.staging.take(&self.shared.allocator, Sort::Results, bytes);
        self.used.push((Sort::Results, buffer.clone()));
        buffer
    }

    /// Combines the results of leaves, if they are to be combined.
    pub(crate) fn combine(&mut self, reduction: &PreparedReduction, leaves: wgpu::Buffer) {
        let PreparedReduction { combine: Some(combine), leaves: count, width, result } = reduction else {
            return;
        };
        let Some(result) = self.buffer(result) else { return };
        let (mut from, mut count) = (leaves, *count);
        loop {
            let groups = count.div_ceil(COMBINED.into());
            let to = if groups == 1 { result.clone() } else { self.results(groups * width) };
            let values =
                wgpu::BufferBinding { buffer: &from, offset: 0, size: NonZeroU64::new(count * width) };
            let bound = self.shared.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &combine.layout,
                entries: &[
                    // The shader takes the number of values from the size of this binding.
                    wgpu::BindGroupEntry { binding: 0, resource: wgpu::BindingResource::Buffer(values) },
                    wgpu::BindGroupEntry { binding: 1, resource: to.as_entire_binding() },
                ],
            });
            let pass = self.pass();
            pass.set_pipeline(&combine.pipeline);
            pass.set_bind_group(0, &bound, &[]);
            pass.dispatch_workgroups(groups as u32, 1, 1);
            if groups == 1 {
                return;
            }
            (from, count) = (to, groups);
        }
    }
}
