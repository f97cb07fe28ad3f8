//! `render`: the frames of a file as pictures, or as an animation.
//!
//! Every stored frame can be rendered at any time, also while the file is still growing. Each pass over the
//! frames is parallel: one for the range of values, unless it is given, and one for each kind of output.

mod animation;
mod arguments;
mod frames;
mod job;
mod memory;
mod older;
mod paint;
mod picture;

pub use animation::{Animation, Format};
pub use arguments::{Pictures, RenderArgs};
pub use frames::for_each_frame;
pub use paint::{Painter, Palette, Scale, ValueRange};

use crate::error::Error;
use job::Job;
use std::{
    io::{self, IsTerminal},
    path::Path,
};

/// Renders the frames that `args` select.
///
/// # Errors
/// When the options contradict each other, the file cannot be read, a selected frame is not stored, there is
/// too little memory, or a picture cannot be written.
pub fn run(args: &RenderArgs) -> Result<(), Error> {
    let format = args.animation.as_deref().map(animation_format).transpose()?;
    let pictures = args.pictures();
    if pictures == Pictures::StandardOutput && io::stdout().is_terminal() {
        return Err(Error::Usage(
            "--output -: pictures are not for a terminal; send them to a file or a program".into(),
        ));
    }
    if args.clean && !matches!(pictures, Pictures::Folder(_)) {
        return Err(Error::Usage(
            "--clean: no pictures go to a folder, so there is none to remove them from; give a folder with --output, or \
             leave out --clean"
                .into(),
        ));
    }
    // What cannot be written is refused before the first pass over the frames, and leaves nothing behind.
    let mut job = Job::new(args)?;
    let animation = match (&args.animation, format) {
        (Some(path), Some(format)) => Some(job.begin_animation(path, format)?),
        _ => None,
    };
    if let Pictures::Folder(folder) = pictures {
        job.prepare(folder)?;
    }
    job.find_range()?;
    match pictures {
        Pictures::Folder(folder) => job.write_pictures(folder)?,
        Pictures::StandardOutput => job.write_to_standard_output()?,
        Pictures::None => {}
    }
    animation.map_or(Ok(()), |animation| job.write_animation(animation))
}

fn animation_format(path: &Path) -> Result<Format, Error> {
    Format::of(path).ok_or_else(|| {
        Error::Usage(format!(
            "--animation: the name must end in .gif, .png or .apng, not as in {}",
            path.display()
        ))
    })
}
