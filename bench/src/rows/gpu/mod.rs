//! GPUs: what the runtime costs beside bare wgpu, with the same driver, and how fast its kernels, arrays and copies are.
//!
//! Where there is no GPU, the driver may be one that computes on the processor. Then sizes are smaller, and figures of memory are those of the
//! processor's.

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
    let rows = launches::rows().into_iter().chain(bandwidth::rows()).chain(gray_scott::rows());
    rows.map(|row| row.if_available(available)).collect()
}

fn available() -> Result<(), String> {
    open().map(drop).map_err(|failure| failure.to_string())
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
