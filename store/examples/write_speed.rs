//! Writing speed beside plain `write` of the same bytes, in MB/s.
//!
//! `cargo run --release -p anabranch-store --example write_speed [-- FOLDER [FRAMES [ROUNDS]]]`
//! writes 200 frames of 1080 × 1920 `f32` to `/dev/shm`, in turns.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anabranch_store::{FileOptions, Stamp, SyncLevel};

const SHAPE: [usize; 2] = [1080, 1920];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().unwrap_or_else(|| "/dev/shm".into());
    let frames: u64 = args.next().map_or(Ok(200), |n| n.parse())?;
    let rounds: usize = args.next().map_or(Ok(5), |n| n.parse())?;
    let path = Path::new(&folder).join(format!("anabranch-write-speed-{}.h5", std::process::id()));
    let data: Vec<f32> = (0..SHAPE[0] * SHAPE[1]).map(|i| i as f32).collect();
    let megabytes = (frames as usize * data.len() * 4) as f64 / 1e6;

    type Method = fn(&Path, &[f32], u64) -> std::io::Result<()>;
    let methods: [(&str, Method); 4] =
        [("plain write", plain), ("store", store), ("append", append), ("append, queue 0", append_0)];
    let mut speeds = [const { Vec::new() }; 4];
    for round in 1..=rounds {
        for (method, (name, write)) in methods.iter().enumerate() {
            let began = Instant::now();
            write(&path, &data, frames)?;
            let speed = megabytes / began.elapsed().as_secs_f64();
            speeds[method].push(speed);
            std::fs::remove_file(&path)?;
            println!("round {round}  {name:16} {speed:6.0} MB/s");
        }
    }
    for (speeds, (name, _)) in speeds.iter_mut().zip(methods) {
        speeds.sort_by(f64::total_cmp);
        println!("{name:16} median {:6.0} MB/s, best {:6.0} MB/s", speeds[rounds / 2], speeds[rounds - 1]);
    }
    Ok(())
}

fn plain(path: &Path, data: &[f32], frames: u64) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    (0..frames).try_for_each(|_| file.write_all(bytemuck::cast_slice(data)))
}

fn options(path: &Path, frames: u64) -> FileOptions {
    FileOptions::new(path).frames(frames).frame_shape(&SHAPE).stamps(true).sync(SyncLevel::None)
}

fn store(path: &Path, data: &[f32], frames: u64) -> std::io::Result<()> {
    let write = || {
        let mut writer = options(path, frames).create::<f32>()?;
        (0..frames).try_for_each(|step| writer.store(data, Stamp { step, time: 0.0 }))?;
        writer.finish().map(drop)
    };
    write().map_err(std::io::Error::other)
}

fn append(path: &Path, data: &[f32], frames: u64) -> std::io::Result<()> {
    append_queued(path, data, frames, 2)
}

fn append_0(path: &Path, data: &[f32], frames: u64) -> std::io::Result<()> {
    append_queued(path, data, frames, 0)
}

fn append_queued(path: &Path, data: &[f32], frames: u64, queue: usize) -> std::io::Result<()> {
    let write = || {
        let mut writer = options(path, frames).queue(queue).create::<f32>()?;
        (0..frames).try_for_each(|step| writer.append(data, Stamp { step, time: 0.0 }))?;
        writer.finish().map(drop)
    };
    write().map_err(std::io::Error::other)
}
