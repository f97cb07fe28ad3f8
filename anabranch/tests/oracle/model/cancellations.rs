//! Which steps may have been cancelled, and which must have been.

use super::{
    groups::Groups,
    observation::{Observation, Observed},
};
use crate::program::{Program, Step};

/// For each step, whether a node may have cancelled its part, and whether it must have.
pub(super) struct Cancellations {
    pub(super) may: Vec<bool>,
    pub(super) must: Vec<bool>,
}

impl Cancellations {
    /// What a node that has seen this has cancelled.
    pub(super) fn of(program: &Program, seen: &[Observed], node: usize) -> Self {
        let count = program.steps.len();
        let (mut may, mut must) = (vec![false; count], vec![false; count]);
        let mut groups = Groups::new();
        // The group of each step.
        let mut group_of = vec![0; count];
        let mut tasks = Vec::new();
        for (i, step) in program.steps.iter().enumerate() {
            match *step {
                Step::Group(slot) => groups.choose(slot),
                Step::Cancel(slot, on) => {
                    let cancelled = groups.cancel(slot, on.contains(node));
                    (0..i).filter(|&i| cancelled.contains(&group_of[i])).for_each(|i| may[i] = true);
                }
                Step::CancelTask { back, .. } => {
                    if let Some(&task) = tasks.iter().rev().nth(back) {
                        let task: usize = task;
                        let came_in_time = seen[i].what == Observation::CancelAnswer(true);
                        may[task] |= came_in_time;
                        must[task] |= came_in_time;
                    }
                }
                _ => {
                    group_of[i] = groups.current;
                    // The program keeps the cancelled group until it takes another one.
                    (may[i], must[i]) = (groups.current().is_cancelled, groups.current().is_cancelled);
                    if matches!(seen[i].what, Observation::Task(..)) {
                        tasks.push(i);
                    }
                }
            }
        }
        Self { may, must }
    }
}
