//! The types and traits behind the builder: what a program writes only in signatures of its own.
//!
//! A program that calls `rt.task("…").over(…).read(…).kernel(…)` needs none of these names. A function that
//! takes or returns a half-built task does:
//!
//! ```
//! use anabranch::{
//!     interface::{Append, Once, TaskBuilder, Update},
//!     prelude::*,
//! };
//!
//! type Whole = anabranch::grid::All;
//!
//! /// Declares that a host task updates the whole buffer.
//! fn updating<'rt, L>(
//!     task: TaskBuilder<'rt, 0, Once, L>,
//!     buffer: &Buffer<f64, 1>,
//! ) -> TaskBuilder<'rt, 0, Once, L::Longer>
//! where
//!     L: Append<Update<f64, 1, Whole>>,
//! {
//!     task.update(buffer, all())
//! }
//! # let rt = Runtime::new()?;
//! # let u = rt.buffer_from(&[1.0])?;
//! # updating(rt.task("double").once(), &u).host(|(u,)| u[[0]] *= 2.0)?;
//! # assert_eq!(rt.fence(&u)?.wait()?[[0]], 2.0);
//! # Ok::<(), Error>(())
//! ```
//!
//! The traits of accesses and captures are sealed: other crates can use them, but not implement them.
//! [`Fenceable`] is open: a type of a program may stand for several captures.
//!
//! | part of the interface | types and traits |
//! |---|---|
//! | building a task | [`NewTask`], [`NewTasks`], [`TaskBuilder`], [`IndexSpace`], and its kind: [`Over`], [`Once`], [`Each`], [`Collective`] |
//! | building a task of a sequence | [`NewSequenceTask`], [`NewSequenceTasks`], [`SequenceTask`], [`SequenceShaderTask`], [`SequenceRecordedTask`] |
//! | accesses to buffers | [`Read`], [`Write`], [`Update`], [`Reduce`], which implement [`Access`] and [`KernelAccess`]; bound: [`BoundBuffer`], [`BoundReduction`] |
//! | effects | [`Effect`] with an order: [`Sequential`], [`Exclusive`], [`Relaxed`]; [`PartEffect`]; [`Communicates`]; [`HasEffects`] says which objects have which |
//! | tuples of accesses | [`AccessList`], [`KernelAccessList`], [`Append`], [`Declaration`] |
//! | recorded kernels | [`RecordedTask`], [`RecordedAccess`], [`RecordedAccessList`], [`RecordedOperator`] |
//! | shaders | [`ShaderTask`], [`ShaderAccess`], [`ShaderAccessList`], [`ShaderElement`], [`OperandType`] |
//! | results of host functions | [`HostResult`] |
//! | operators | [`Sum`], [`Product`], [`Min`], [`Max`], [`And`], [`Or`], [`Custom`] |
//! | captures | [`Capture`], [`Captures`] and their mode, [`Copies`] or [`Moves`]; [`Part`], [`Parts`], [`ObjectCapture`], [`ClusterCapture`], [`Fenceable`] |
//! | ranks of `ndarray` arrays | [`Rank`], [`Shape`] |

pub use crate::{
    data::{
        bound::BoundBuffer,
        buffer::{Part, Parts},
        cluster_object::ClusterCapture,
        element::{Rank, Shape},
        host_object::ObjectCapture,
    },
    submit::{
        access::{
            Access, KernelAccess, Read, Update, Write,
            effect::{Communicates, Effect, Exclusive, HasEffects, PartEffect, Relaxed, Sequential},
            list::{AccessList, Append, KernelAccessList},
            operator::{And, Custom, Max, Min, Or, Product, Sum},
            reduce::{BoundReduction, Reduce},
        },
        capture::{Capture, CaptureMode, Captures, Copies, Fenceable, Moves},
        each_on_device::RecordedTask,
        launch::declaration::Declaration,
        recorded::{
            access::{RecordedAccess, RecordedAccessList},
            reduce::RecordedOperator,
        },
        sequence::{
            builder::{NewSequenceTask, SequenceTask},
            host::NewSequenceTasks,
            on_device::{SequenceRecordedTask, SequenceShaderTask},
        },
        shader::{
            ShaderTask,
            access::{OperandType, ShaderAccess, ShaderAccessList, ShaderElement},
        },
        task::{
            NewTask, TaskBuilder,
            batch::NewTasks,
            host_result::HostResult,
            index_space::{Collective, Each, IndexSpace, Once, Over},
        },
    },
};
