//! Compares the stored frames of two files, for `./check`: `cargo run --example compare -- A.h5 B.h5`. Fails
//! at the first frame that differs in a bit or in its stamp, or if one file has more frames.

use anabranch_store::{Reader, StoreError};
use std::process::ExitCode;

fn main() -> ExitCode {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let [a, b] = &paths[..] else {
        eprintln!("usage: compare A.h5 B.h5");
        return ExitCode::FAILURE;
    };
    match first_difference(a, b) {
        Ok(Ok(frames)) => {
            println!("{frames} frames are equal");
            ExitCode::SUCCESS
        }
        Ok(Err(difference)) => {
            eprintln!("error: {a} and {b} differ: {difference}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The number of equal frames, or the first difference.
fn first_difference(a: &str, b: &str) -> Result<Result<u64, String>, StoreError> {
    let (a, b) = (Reader::open(a)?, Reader::open(b)?);
    let (frames, others) = (a.stored_frames()?, b.stored_frames()?);
    if frames != others {
        return Ok(Err(format!("{frames} and {others} frames are stored")));
    }
    for frame in 0..frames {
        let (x, y) = (a.read_frame::<f32>(frame)?, b.read_frame::<f32>(frame)?);
        let equal = x.shape() == y.shape() && x.iter().zip(&y).all(|(x, y)| x.to_bits() == y.to_bits());
        if !equal || a.stamp(frame)? != b.stamp(frame)? {
            return Ok(Err(format!("frame {frame}")));
        }
    }
    Ok(Ok(frames))
}
