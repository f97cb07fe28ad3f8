//! Copies, single elements and searches, of arrays in the memory of the device (`private`) and of the host
//! (`shared`).

use anabranch_array::{Array, ArrayError, Arrays};

use super::bed::{Bed, Operation, row};
use crate::row::Row;

/// Where the arrays of a row are.
#[derive(Clone, Copy)]
enum Memory {
    /// That of the GPU, if there is one.
    Private,
    /// That of the host.
    Shared,
}

impl Memory {
    fn of(self, bed: &Bed) -> Arrays {
        match self {
            Self::Private => bed.arrays.clone(),
            Self::Shared => bed.arrays.on_host(),
        }
    }

    /// Random numbers there.
    fn line(self, bed: &mut Bed) -> Result<Array<f32, 1>, ArrayError> {
        let a = bed.drawn([bed.len()])?;
        a.copy_to(&self.of(bed))
    }
}

macro_rules! names {
    ($($name:literal $about:literal $prepare:expr),* $(,)?) => {
        vec![
            $(row(
                concat!("array/private/", $name),
                concat!($about, ", in the memory of the GPU, if there is one"),
                move |bed| $prepare(bed, Memory::Private),
            ),)*
            $(row(
                concat!("array/shared/", $name),
                concat!($about, ", in the memory of the host"),
                move |bed| $prepare(bed, Memory::Shared),
            ),)*
        ]
    };
}

pub fn rows() -> Vec<Row> {
    names![
        "copy" "a copy of 512,000 `f32`" copy,
        "copyto!/cpu_to_gpu" "512,000 `f32` of a slice into an array" from_slice,
        "copyto!/gpu_to_cpu" "512,000 `f32` to a `Vec`, after they were set" to_vec,
        "copyto!/gpu_to_gpu" "512,000 `f32` of one array into another" copy_from,
        "iteration/findall/bool" "the numbers of the 256,000 ones of 512,000 `u32`" find_all_booleans,
        "iteration/findall/int" "the numbers of the odd of 512,000 `i64`" find_all_integers,
        "iteration/findfirst/bool" "the first one of 512,000 `u32`, near the beginning" find_first_boolean,
        "iteration/findfirst/int" "the first odd of 512,000 `i64`, near the beginning" find_first_integer,
        "iteration/findmin/1d" "the least of 512,000 `f32`, and where it is" find_min,
        "iteration/findmin/2d" "where the least of each row of 1000 × 512 `f32` is" arg_min,
        "iteration/logical" "the elements of 512,000 `f32` that a mask selects, half of them" select,
        "iteration/scalar" "10 single elements of 512,000 `f32`, after they were set" scalar,
    ]
}

fn copy(bed: &mut Bed, memory: Memory) -> Result<Operation, ArrayError> {
    let a = memory.line(bed)?;
    Ok(Box::new(move || a.copy().and_then(|_| a.arrays().wait())))
}

fn from_slice(bed: &mut Bed, memory: Memory) -> Result<Operation, ArrayError> {
    let a = memory.line(bed)?;
    let elements = a.to_vec()?;
    Ok(Box::new(move || a.copy_from_slice(&elements).and_then(|()| a.arrays().wait())))
}

/// The elements are set each time: otherwise the host would have them already.
fn to_vec(bed: &mut Bed, memory: Memory) -> Result<Operation, ArrayError> {
    let a = memory.line(bed)?;
    Ok(Box::new(move || a.fill(1.0).and_then(|()| a.to_vec()).map(drop)))
}

fn copy_from(bed: &mut Bed, memory: Memory) -> Result<Operation, ArrayError> {
    let (a, b) = (memory.line(bed)?, memory.line(bed)?);
    Ok(Box::new(move || a.copy_from(&b).and_then(|()| a.arrays().wait())))
}

fn find_all_booleans(bed: &mut Bed, memory: Memory) -> Result<Operation, ArrayError> {
    let a = bed.booleans([bed.len()])?.copy_to(&memory.of(bed))?;
    Ok(Box::new(move || a.find_all(|x| x.differs(0))?.wait().map(drop)))
}

fn find_all_integers(bed: &mut Bed, memory: Memory) -> Result<Operation, ArrayError> {
    let a = bed.integers([bed.len()])?.copy_to(&memory.of(bed))?;
    Ok(Box::new(move || a.find_all(|x| (x & 1).equals(1))?.wait().map(drop)))
}

fn find_first_boolean(bed: &mut Bed, memory: Memory) -> Result<Operation, ArrayError> {
    let a = bed.booleans([bed.len()])?.copy_to(&memory.of(bed))?;
    Ok(Box::new(move || a.find_first(|x| x.differs(0))?.wait().map(drop)))
}

fn find_first_integer(bed: &mut Bed, memory: Memory) -> Result<Operation, ArrayError> {
    let a = bed.integers([bed.len()])?.copy_to(&memory.of(bed))?;
    Ok(Box::new(move || a.find_first(|x| (x & 1).equals(1))?.wait().map(drop)))
}

fn find_min(bed: &mut Bed, memory: Memory) -> Result<Operation, ArrayError> {
    let a = memory.line(bed)?;
    Ok(Box::new(move || a.find_min()?.wait().map(drop)))
}

fn arg_min(bed: &mut Bed, memory: Memory) -> Result<Operation, ArrayError> {
    let a = memory.line(bed)?.reshape(bed.matrix)?;
    Ok(Box::new(move || a.arg_min(1).and_then(|_| a.arrays().wait())))
}

fn select(bed: &mut Bed, memory: Memory) -> Result<Operation, ArrayError> {
    let (a, mask) = (memory.line(bed)?, bed.booleans([bed.len()])?.copy_to(&memory.of(bed))?);
    Ok(Box::new(move || a.select(&mask)?.wait().map(drop)))
}

/// The elements are set each time: see [`to_vec`].
fn scalar(bed: &mut Bed, memory: Memory) -> Result<Operation, ArrayError> {
    let a = memory.line(bed)?;
    Ok(Box::new(move || {
        a.fill(1.0)?;
        (0..10).try_for_each(|at| a.get([at]).map(drop))
    }))
}
