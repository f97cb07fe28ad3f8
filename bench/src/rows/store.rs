//! Storage: frames to a file on a memory file system, where only the writer's own work takes time.

use crate::{
    harness::{Contest, Context, Failure, Outcome},
    row::{Row, times},
    workloads::frames::{Frames, Place, Way},
};

const PLAIN: &str = "plain write";

pub fn rows() -> Vec<Row> {
    let row = |name: &str, about, way| {
        Row::higher(name, "MB/s", about, move |context: &Context| memory_fs(context, way))
            .bar(times(0.9, PLAIN))
            .better(times(1.0, PLAIN))
    };
    vec![
        row(
            "store/memory-fs",
            "200 frames of 1080×1920 `f32` to `/dev/shm` with `Writer::append`, from `create` to `finish`",
            Way::Direct,
        ),
        row("store/memory-fs-append", "the same frames with `QueuedWriter::append`", Way::Queued),
    ]
}

fn memory_fs(context: &Context, way: Way) -> Result<Outcome, Failure> {
    let frames = Frames { count: context.pick(200, 4), shape: [1080, 1920] };
    let speed = move |way| Ok(vec![frames.bytes() as f64 / 1e6 / frames.seconds(way, Place::Memory)?]);
    Contest::ours(move || speed(way)).peer(PLAIN, move || speed(Way::Plain)).run(context, context.pick(7, 1))
}
