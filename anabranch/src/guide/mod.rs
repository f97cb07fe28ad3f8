//! The guide: how tasks work together, with pictures and short programs.
//!
//! | chapter | questions |
//! |---|---|
//! | [Buffers, kernels and declarations](buffers) | How does a program declare its data and its tasks? Which region does a chunk get? What if a declaration is wrong? |
//! | [Orders, epochs and captures](orders) | When may tasks on one object run at the same time? How does a program get results without stopping? |
//! | [Reductions and failures](reductions) | How are many values combined into one? What happens when a task fails? |
//! | [Recorded kernels](recorded_kernels) | How does a kernel that says what happens at one point become fast? What can it do? |
//! | [On a GPU](devices) | How does a recorded kernel run on a device? When is data copied? What may differ? |
//! | [Small tasks](small_tasks) | How does a program with many similar tasks, or one that repeats the same tasks, avoid the cost of submitting them? May tasks submit tasks? |
//! | [Several nodes](nodes) | How does the same program run on several nodes? What must it do the same on all of them? |
//! | [From a laptop to a cluster](cluster) | How is it started with `mpirun` or SLURM? Why is it slow? What do the errors mean? |
//! | [Logs and profiles](profiling) | How does a program show the warnings of the runtime? How long do its tasks take? |
//! | [Coming from other systems](coming_from) | What are the constructs of Celerity, StarPU, TBB and OpenMP called here? |
//!
//! Programs that work with whole arrays, as those with NumPy, CuPy or CUDA.jl do, use the crate
//! `anabranch-array`, which has a guide of its own.
//!
//! Whole programs are in the `examples` folder: `cargo run --release -p anabranch --example heat`.
//!
//! | example | shows |
//! |---|---|
//! | `heat` | a first program: a stencil, two buffers that swap roles, pictures drawn during the computation |
//! | `matrix_product` | dependencies that follow from the regions read; a reduction that verifies the result, captured at the end |
//! | `wave_sim` | frames of a running simulation by fences |
//! | `jacobi` | iterating until converged without stalling |
//! | `log_file` | a file as a host object, moved out at the end |
//! | `orders` | all three orders on one object, drawn as the tasks ran |
//! | `accumulate` | adding in any order, faster than in order |
//! | `cancel` | a search that ends at the first match; for one node only |
//! | `load` | uneven work on several nodes that balances itself by measured times |

/// A printed graph, as a block of its own between two paragraphs.
macro_rules! picture {
    ($name:literal) => {
        concat!(
            "\n<div style=\"overflow-x: auto\">\n",
            include_str!(concat!("graphs/", $name, ".svg")),
            "</div>\n\n"
        )
    };
}

#[doc = include_str!("buffers.md")]
pub mod buffers {}

#[doc = concat!(
    include_str!("orders.md"),
    picture!("orders"),
    include_str!("epochs.md"),
    picture!("epochs"),
    include_str!("captures.md"),
    picture!("matrix_product"),
)]
pub mod orders {}

#[doc = concat!(include_str!("reductions.md"), "\n", include_str!("failures.md"))]
pub mod reductions {}

#[doc = include_str!("recorded_kernels.md")]
pub mod recorded_kernels {}

#[doc = include_str!("devices.md")]
pub mod devices {}

#[doc = include_str!("small_tasks.md")]
pub mod small_tasks {}

#[doc = include_str!("nodes.md")]
pub mod nodes {}

#[doc = include_str!("cluster.md")]
pub mod cluster {}

#[doc = include_str!("profiling.md")]
pub mod profiling {}

#[doc = include_str!("coming_from.md")]
pub mod coming_from {}
