//! GPUs: what the runtime costs beside bare wgpu, with the same driver, and how fast its kernels, arrays and
//! copies are.
//!
//! Where there is no GPU, the driver may be one that computes on the processor. Then sizes are smaller, and
//! the record gets no figures of memory and arithmetic, which would be those of the processor.

mod bandwidth;
mod gray_scott;
mod launches;

use std::sync::Arc;

use anabranch::device::{Device, DeviceKind};

use crate::{
    harness::{Context, Failure, LeftOut},
    peers::bare_wgpu::BareWgpu,
    row::Row,
};

const BARE: &str = "bare wgpu";

pub fn rows() -> Vec<Row> {
    let of_gpus = bandwidth::rows().into_iter().chain(gray_scott::rows()).map(|row| row.record_if(has_gpu));
    launches::rows().into_iter().chain(of_gpus).map(|row| row.if_available(available)).collect()
}

fn available() -> Result<(), String> {
    open().map(drop).map_err(|failure| failure.to_string())
}

fn has_gpu() -> bool {
    open().is_ok_and(|device| device.info().kind != DeviceKind::Software)
}

/// A GPU; or a driver that computes on the processor, where there is no GPU.
fn open() -> Result<Arc<dyn Device>, Failure> {
    let adapters = anabranch_gpu::adapters();
    let first = anabranch_gpu::best(&adapters).unwrap_or(0);
    let name = adapters.get(first).map(|adapter| adapter.info.name.as_str());
    Ok(anabranch_gpu::open(name)?)
}

/// The same device without the runtime.
fn bare(name: &str) -> Result<BareWgpu, LeftOut> {
    BareWgpu::open(name).map_err(|why| LeftOut { peer: BARE.into(), why })
}

/// A number for a GPU, for a driver that computes on the processor, or for a smoke run.
fn sized(context: &Context, device: &dyn Device, gpu: usize, software: usize, smoke: usize) -> usize {
    let is_software = device.info().kind == DeviceKind::Software;
    context.pick(if is_software { software } else { gpu }, smoke)
}
