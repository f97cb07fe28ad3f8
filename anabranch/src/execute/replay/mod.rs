//! Replays: tasks that were recorded once, and are executed again and again without a submission.
//!
//! A recorded task is cut into *units*: its chunks, and for a reduction the unit that combines their results.
//! At the recording, the graph finds the units that each unit comes after, in the same replay and in the one
//! before ([`repeat`](anabranch_graph::repeat)). The [`plan`] [deals](deal) the units to *strands*. A strand
//! is a sequence of units: one thread executes it from its beginning to its end, and then again for the next
//! replay. So all that a unit has to know of others is how far the other strands have come ([`progress`]),
//! and no barrier is between two replays.
//!
//! A strand has its units in *steps*. A step is one unit, or several chunks of one task that follow each
//! other: then only the first of them waits for other strands, and other strands wait only for the last. What
//! a thread does around a step costs as much as a small chunk.
//!
//! # Protocol
//! 1. A thread that takes part takes a strand that no other thread has, by its lock.
//! 2. It looks at what the next step waits for: for each other strand a number of steps that must be done. If
//!    they are, it executes the step, and goes on with the next one. It stores how many steps of the strand
//!    are done if another strand waits for this one, and at the end: a store that other threads read costs as
//!    much as a small chunk.
//! 3. If they are not, it spins for a moment. Then it gives the strand back, looks once more, and then looks
//!    for another one that can go on: there may be fewer threads than strands.
//! 4. If there is none, it registers as a thread that sleeps, looks once more at all strands, and parks. A
//!    thread that stores the number of steps looks whether threads sleep, and wakes them. Both use
//!    sequentially consistent operations: either the one sees the number, or the other sees the thread.
//! 5. When all steps of all replays are done, all threads leave.
//!
//! A thread holds no strand while it sleeps. A step waits only for units that a program would execute before
//! its first one, so the step with the first unit that is not done can always go on, and some thread finds
//! it: the one that has counted the last step that it waited for looks at all strands before it sleeps. If
//! that thread finds the strand taken, the thread that has it looks once more when it gives it back.
//!
//! # Failures
//! Each unit of each replay has a *serial number*: its number in a program that executes one unit after the
//! other. (Its position in a strand is another number.) The units of a step have serial numbers that follow
//! each other, so that of the first one stands for the step. The first unit that fails ends its step. After
//! that, steps with larger serial numbers do not begin any more, and those with smaller ones run. So the
//! failure with the smallest serial number is the same in every schedule.
//!
//! # Conditions
//! A unit may return that its replay is the last one. That unit comes after all units of its replay, and all
//! units of the next replay come after it. So none of these has run, and none runs.
//!
//! | field | read by | written by |
//! |---|---|---|
//! | the position in a strand | the thread that has the strand | the same |
//! | the number of steps that are done | all threads | the thread that has the strand |
//! | the first serial number that does not begin, and why | all threads | a thread whose unit has failed, or that sees a cancellation |
//! | the list of threads that sleep | threads that register, and that wake them, under its lock | the same |

mod deal;
#[cfg(all(test, loom))]
mod models;
mod plan;
mod progress;
mod run;

pub(crate) use self::{
    plan::{Part, Parts, Plan, PlannedUnit},
    run::{End, Run},
};
