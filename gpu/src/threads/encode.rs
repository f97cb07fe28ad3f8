//! The device thread: groups of batches become command buffers. The thread also completes what the device
//! does in a moment.

use super::{
    complete::{Part, Submission},
    group::{Groups, Numbered},
    prepare::{Prepared, PreparedLaunch, prepare},
    shared::Shared,
};
use crate::{
    memory::{GpuMemory, bind_groups, known, staging::Sort},
    program::{Scopes, status::Statuses},
};
use anabranch::device::{DeviceError, DeviceMemory, Run};
use smallvec::SmallVec;
use std::{
    mem,
    num::NonZeroU64,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, Sender},
    },
};

/// Encodes and submits groups of batches until no more can come. Completes those that the device does in a
/// moment, and hands the others to the completion thread.
pub(crate) fn run(shared: &Arc<Shared>, batches: &Receiver<Numbered>, submissions: &Sender<Submission>) {
    // While the device works on what it got before, the program may need the memory again.
    let rest = || {
        let is_idle = shared.timeline.is_idle();
        if is_idle {
            shared.budget.rest();
        }
        is_idle
    };
    for group in Groups::new(batches, &shared.in_flight, rest) {
        shared.in_flight.fetch_add(1, Ordering::Relaxed);
        let unfinished = submit(shared, group, submissions).complete_soon(shared);
        if unfinished.is_some_and(|submission| submissions.send(submission).is_err()) {
            return;
        }
    }
}

/// Submits a group of batches. `submissions` gets what is submitted before that.
fn submit(shared: &Arc<Shared>, group: Vec<Numbered>, submissions: &Sender<Submission>) -> Submission {
    let scopes = Scopes::push(&shared.device);
    let prepared = group.into_iter().map(|(value, batch)| match shared.timeline.is_lost() {
        Some(error) => (value, Err(error)),
        None => (value, prepare(shared, batch)),
    });
    let prepared = prepared.collect::<Vec<_>>();
    let mut encoding = Encoding::new(shared, &prepared, submissions);
    for (value, steps) in prepared {
        let mut part = Part::new(value);
        part.result =
            steps.and_then(|steps| steps.into_iter().try_for_each(|step| encoding.step(step, &mut part)));
        encoding.parts.push(part);
    }
    let mut submission = encoding.submit();
    if let Some(why) = scopes.pop() {
        shared.budget.distrust(submission.parts.iter().flat_map(|part| &part.keep));
        submission.fail(&DeviceError::Failed { device: shared.info.name.clone(), why });
    }
    submission
}

/// A command buffer in the making.
pub(crate) struct Encoding<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    /// `None` after a submission, until the next command.
    encoder: Option<wgpu::CommandEncoder>,
    /// The pass of launches that follow each other.
    pass: Option<wgpu::ComputePass<'static>>,
    parts: Vec<Part>,
    /// The blocks of the launches so far, and the buffer that they go to.
    blocks: Vec<u8>,
    block_buffer: Option<wgpu::Buffer>,
    statuses: Option<Statuses>,
    /// The buffers to give back when the submission is done.
    pub(crate) used: Vec<(Sort, wgpu::Buffer)>,
    /// Whether there is anything to submit.
    has_commands: bool,
    /// The blocks that are in their buffer.
    written: usize,
    submissions: &'a Sender<Submission>,
}

impl<'a> Encoding<'a> {
    fn new(
        shared: &'a Arc<Shared>,
        prepared: &[(u64, Result<Vec<Prepared>, DeviceError>)],
        submissions: &'a Sender<Submission>,
    ) -> Self {
        let steps = prepared.iter().filter_map(|(_, steps)| steps.as_ref().ok()).flatten();
        let (mut bytes, mut statuses) = (0, 0);
        for step in steps {
            let Prepared::Launch(launch) = step else { continue };
            statuses += u64::from(launch.reports());
            if !launch.has_immediates {
                let blocks = launch.dispatches.iter().map(|dispatch| dispatch.block.len());
                bytes += blocks.map(|bytes| bytes.next_multiple_of(shared.alignment)).sum::<usize>();
            }
        }
        let mut encoder = shared.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let statuses = Statuses::new(shared, &mut encoder, statuses);
        let take = || shared.staging.take(&shared.allocator, Sort::Blocks, bytes as u64);
        Self {
            shared,
            encoder: Some(encoder),
            pass: None,
            parts: Vec::new(),
            blocks: Vec::with_capacity(bytes),
            block_buffer: (bytes > 0).then(take),
            statuses,
            used: Vec::new(),
            has_commands: false,
            written: 0,
            submissions,
        }
    }

    fn step(&mut self, step: Prepared, part: &mut Part) -> Result<(), DeviceError> {
        match step {
            Prepared::Upload(upload) => {
                part.keep.push(upload.to.clone());
                let failed = |why| DeviceError::Failed { device: self.shared.info.name.clone(), why };
                self.upload(upload).map_err(failed)?;
            }
            Prepared::Download(download) => {
                part.keep.push(download.from.clone());
                part.downloads.push(self.download(download));
            }
            Prepared::Launch(launch) => self.launch(launch, part),
        }
        Ok(())
    }

    /// The buffer of a memory, which [`prepare`] has found to be one of this device.
    pub(crate) fn buffer(&self, memory: &DeviceMemory) -> Option<wgpu::Buffer> {
        known(memory, &self.shared.budget)
            .ok()
            .map(|memory: &GpuMemory| memory.buffer(&self.shared.allocator).clone())
    }

    /// Encodes copies of runs. The last argument of `copy` counts their bytes.
    pub(crate) fn copies(&mut self, runs: &[Run], copy: impl Fn(&mut wgpu::CommandEncoder, &Run, u64)) {
        self.pass = None;
        let mut at = 0;
        for run in runs.iter().filter(|run| run.bytes > 0) {
            copy(self.encoder(), run, at);
            at += run.bytes;
            self.has_commands = true;
        }
    }

    fn launch(&mut self, launch: PreparedLaunch, part: &mut Part) {
        for (memory, copy) in &launch.operands {
            if let Some(copy) = copy
                && let (Some(from), Some(to)) = (self.buffer(memory), self.buffer(copy))
            {
                let runs = [Run { offset: 0, bytes: from.size() }];
                self.copies(&runs, |encoder, run, _| {
                    encoder.copy_buffer_to_buffer(&from, 0, &to, 0, run.bytes)
                });
            }
        }
        let device = &self.shared.device;
        let used = launch.operands.iter().map(|(memory, copy)| self.buffer(copy.as_ref().unwrap_or(memory)));
        let Some(operands) = used.collect::<Option<SmallVec<[_; 8]>>>() else { return };
        let PreparedLaunch { compiled, has_immediates, .. } = &launch;
        let statuses = self.statuses.as_mut().filter(|_| launch.reports());
        let status = statuses.map(|statuses| (statuses.next(), statuses.bound().clone()));
        part.statuses.extend(status.as_ref().map(|(at, _)| at));
        let Some(leaves) = self.leaves(&launch.reductions) else { return };
        // Without a block and leaves the bindings are the same in all launches on these buffers.
        let is_fixed = *has_immediates && leaves.is_empty();
        let fixed = is_fixed.then(|| self.shared.budget.bind_groups.get(device, &compiled.layout, &operands));
        for dispatch in &launch.dispatches {
            let bound = if let Some(fixed) = &fixed {
                fixed.clone()
            } else {
                let block = if *has_immediates {
                    None
                } else {
                    let Some(blocks) = &self.block_buffer else { return };
                    let at = self.blocks.len() as u64;
                    self.blocks.extend_from_slice(&dispatch.block);
                    self.blocks.resize(self.blocks.len().next_multiple_of(self.shared.alignment), 0);
                    Some(block_entry(blocks, at, dispatch.block.len() as u64))
                };
                let operands = bind_groups::entries(operands.iter().chain(&leaves));
                bind_groups::create(device, &compiled.layout, block.into_iter().chain(operands))
            };
            let pass = self.pass();
            pass.set_pipeline(&compiled.pipeline);
            pass.set_bind_group(0, &bound, &[]);
            if let Some((at, bound)) = &status {
                // A submission has far fewer than 2^24 launches, and their statuses are 256 bytes apart or
                // less.
                pass.set_bind_group(1, bound, &[*at as u32]);
            }
            if *has_immediates {
                pass.set_immediates(0, &dispatch.block);
            }
            let [x, y, z] = dispatch.groups;
            pass.dispatch_workgroups(x, y, z);
        }
        for (reduction, leaves) in launch.reductions.iter().zip(leaves) {
            self.combine(reduction, leaves);
        }
        part.keep.extend(launch.reductions.into_iter().map(|reduction| reduction.result));
        for (memory, copy) in launch.operands {
            part.keep.push(memory);
            part.keep.extend(copy);
        }
    }

    /// The pass of launches.
    pub(crate) fn pass(&mut self) -> &mut wgpu::ComputePass<'static> {
        self.has_commands = true;
        if self.pass.is_none() {
            let pass = self.encoder().begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            self.pass = Some(pass.forget_lifetime());
        }
        self.pass.as_mut().expect("it is there")
    }

    fn encoder(&mut self) -> &mut wgpu::CommandEncoder {
        let new = || self.shared.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        self.encoder.get_or_insert_with(new)
    }

    /// Submits the commands so far, between two pieces of a large copy.
    pub(crate) fn submit_so_far(&mut self) -> wgpu::SubmissionIndex {
        let index = self.submit_commands();
        self.has_commands = false;
        let used = mem::take(&mut self.used);
        let (parts, statuses) = (Vec::new(), None);
        let so_far = Submission { index: Some(index.clone()), parts, statuses, used, may_ask: false };
        // Without the completion thread, the device is lost, and the last part of the submission says so.
        let _ = self.submissions.send(so_far);
        index
    }

    /// Hands the commands to the driver, which may block until an earlier kernel ends.
    fn submit_commands(&mut self) -> wgpu::SubmissionIndex {
        self.pass = None;
        let queue = &self.shared.queue;
        if let Some(buffer) = &self.block_buffer
            && let new = &self.blocks[self.written..]
            && !new.is_empty()
        {
            queue.write_buffer(buffer, self.written as u64, new);
            self.written = self.blocks.len();
        }
        queue.submit(self.encoder.take().map(wgpu::CommandEncoder::finish))
    }

    /// Submits what is left.
    fn submit(mut self) -> Submission {
        self.pass = None;
        if let Some(statuses) = self.statuses.take() {
            statuses.copy(self.encoder());
            self.statuses = Some(statuses);
        }
        // Upload buffers of a submission without commands would never be mapped again, but then there are
        // none.
        let index = self.has_commands.then(|| self.submit_commands());
        for download in self.parts.iter_mut().flat_map(|part| &mut part.downloads) {
            index.iter().for_each(|index| download.map(index));
        }
        self.statuses.iter().for_each(Statuses::map);
        self.used.extend(self.block_buffer.map(|buffer| (Sort::Blocks, buffer)));
        let Self { parts, statuses, used, .. } = self;
        Submission { index, parts, statuses, used, may_ask: true }
    }
}

/// The binding of a block in the buffer of blocks.
fn block_entry(blocks: &wgpu::Buffer, offset: u64, bytes: u64) -> wgpu::BindGroupEntry<'_> {
    let buffer = wgpu::BufferBinding { buffer: blocks, offset, size: NonZeroU64::new(bytes) };
    wgpu::BindGroupEntry { binding: 0, resource: wgpu::BindingResource::Buffer(buffer) }
}
