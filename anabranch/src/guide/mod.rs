//! The guide: what holds beyond a single task, with pictures and short programs.
//!
//! | chapter | answers |
//! |---|---|
//! | [Orders, epochs and captures](orders) | When may tasks on one object run side by side? How does a program get results out without stopping? |
//! | [Reductions and failures](reductions) | How are many values combined into one? What becomes of a program when a task fails? |
//!
//! Whole programs are in the `examples` folder: `cargo run --release -p anabranch --example heat`.
//!
//! | example | shows |
//! |---|---|
//! | `heat` | a first program: a stencil, two buffers that are swapped, pictures beside the computation |
//! | `matrix_product` | what is read decides what waits; a reduction as the verdict, captured at the end |
//! | `wave_sim` | frames of a running simulation by fences |
//! | `jacobi` | iterating until converged without stalling |
//! | `log_file` | a file as a host object, moved out at the end |
//! | `orders` | all three orders on one object, drawn as they ran |
//! | `accumulate` | adding in any order, faster than in order |
//! | `cancel` | a search that ends when something is found |

/// A printed graph, as a block of its own between two texts.
macro_rules! picture {
    ($name:literal) => {
        concat!(
            "\n<div style=\"overflow-x: auto\">\n",
            include_str!(concat!("../../../docs/graphs/", $name, ".svg")),
            "</div>\n\n"
        )
    };
}

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
