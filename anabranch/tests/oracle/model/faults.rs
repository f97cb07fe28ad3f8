//! Devices that refuse memory, fail and are lost. Timing decides which of the tasks and copies in flight such
//! a fault concerns, so the model takes from the observations which have failed by themselves. It checks that
//! each of them may have:
//!
//! - A kernel fails by itself only because of its own device, and only if all that it needs is there.
//! - A copy fails only because of a device that it begins or ends on. It makes a task fail only if the task
//!   reads its buffer in the memory that the copy goes to. No report says which task a copy was made for, and
//!   how many copies there were: a task may need one that an earlier task needed, too. So copies are left out
//!   when reports are compared.
//! - All other failures follow from these, as those of tasks do. A task that needs nothing which failed is
//!   done, with the right values.

use super::{
    Model, Task,
    causes::NotDone,
    observation::{Captured, Observation, Observed, Refusal, Report},
};
use crate::program::{Program, Step, When};
use anabranch::Status;

/// The device with a fault, if the text describes one.
fn device_of(text: &str) -> Option<usize> {
    let (_, fault) = text.rsplit_once(" (device ")?;
    fault.split_once(':')?.0.parse().ok()
}

/// The slot of the buffer that a copy copies, and the device that it goes to, `None` for the host; if the
/// text describes a copy.
fn copy_of(text: &str) -> Option<(usize, Option<usize>)> {
    let (slot, to) = text.strip_prefix("copy of slot ")?.split_once(" to ")?;
    let to = to.split_once(" (").map_or(to, |(to, _)| to);
    let to = if to == "the host" { None } else { Some(to.strip_prefix("device ")?.parse().ok()?) };
    Some((slot.parse().ok()?, to))
}

/// Whether these texts describe a chain of copies, of which the first brings the buffer of one of these slots
/// to a memory.
fn is_chain_of_copies(chain: &[String], slots: &[usize], memory: Option<usize>) -> bool {
    let [first, rest @ ..] = chain else { return false };
    let Some((slot, to)) = copy_of(first).filter(|(slot, to)| slots.contains(slot) && *to == memory) else {
        return false;
    };
    match rest {
        [] => device_of(first).is_some_and(|device| to.is_none() || to == Some(device)),
        // A copy from one device to another one goes over the host.
        [before] => {
            to.is_some()
                && copy_of(before) == Some((slot, None))
                && device_of(before).is_some_and(|d| to != Some(d))
        }
        _ => false,
    }
}

impl Observed {
    /// The chain of causes that the step shows; empty if it shows none.
    pub(super) fn chain(&self) -> &[String] {
        match &self.what {
            Observation::Task(_, chain)
            | Observation::Captured(Captured::Failed(chain))
            | Observation::Report(None, Some(Captured::Failed(chain)))
            // A barrier whose capture has failed.
            | Observation::Report(Some(Report { listed: chain, omitted: 0, skipped: 0 }), None) => chain,
            _ => &[],
        }
    }
}

impl Model<'_> {
    pub(super) fn seen_chain(&self, step: usize) -> &[String] {
        self.seen[step].chain()
    }

    /// The refusal of a task by its device, which is lost.
    pub(super) fn refused_by_device(&self, i: usize, task: &Task) -> Option<Refusal> {
        match &self.seen[i].what {
            &Observation::Refused(Refusal::Lost(device)) if task.device == Some(device) => {
                Some(Refusal::Lost(device))
            }
            _ => None,
        }
    }

    /// How a step ends that has not succeeded because of a device, if the program has seen that and it may
    /// be.
    pub(super) fn by_device(&self, i: usize, needs: &[usize], task: &Task) -> Option<NotDone> {
        self.program.setup.faults?;
        let Observation::Task(status, chain) = &self.seen[i].what else { return None };
        let [_, rest @ ..] = &chain[..] else { return None };
        if rest.is_empty() {
            let device = device_of(&chain[0])?;
            let may_fail = *status == Status::Failed && task.device == Some(device) && needs.is_empty();
            return may_fail.then_some(NotDone::OnDevice);
        }
        let slots: Vec<_> =
            task.reads.iter().chain(task.writes.iter().filter(|_| task.update)).map(|r| r.0).collect();
        if is_chain_of_copies(rest, &slots, task.device) {
            return Some(NotDone::Copy { links: rest.len() as u32 });
        }
        let needs = self.needs_with_chain(needs, rest)?;
        self.causes.skipped(&[needs])
    }

    /// The chain of a capture that has failed because of a device, if the program has seen that and it may
    /// be.
    pub(super) fn not_captured(&self, i: usize, slots: &[usize], needs: &[usize]) -> Option<Vec<String>> {
        self.program.setup.faults?;
        let chain = self.seen_chain(i);
        let may_be = is_chain_of_copies(chain, slots, None) || self.needs_with_chain(needs, chain).is_some();
        may_be.then(|| chain.to_vec())
    }

    /// Which of these failed steps has this chain. Copies have no place in the order of the steps. So if one
    /// of the steps failed because of a copy, each of them may be the oldest, but a cancellation gives way to
    /// failures.
    fn needs_with_chain(&self, needs: &[usize], chain: &[String]) -> Option<usize> {
        let causes = &self.causes;
        let may_be_oldest = needs.iter().any(|&step| causes.is_by_copy(step));
        let has_failure = needs.iter().any(|&step| !causes.is_cancelled(step));
        let mut oldest = needs.iter().copied().filter(|&step| !(has_failure && causes.is_cancelled(step)));
        oldest.find(|&step| may_be_oldest && self.chain(step) == chain)
    }
}

/// Whether a program may see this report where the model has that one: the model knows nothing of copies.
/// In a list that is full, copies take the places of newer failures, which are omitted then.
fn may_report(seen: &Option<Report>, wanted: &Option<Report>) -> bool {
    let nothing = Report::default();
    let (seen, wanted) = (seen.as_ref().unwrap_or(&nothing), wanted.as_ref().unwrap_or(&nothing));
    let without_copies = |report: &Report| -> Vec<String> {
        report.listed.iter().filter(|text| copy_of(text).is_none()).cloned().collect()
    };
    let (listed, expected) = (without_copies(seen), without_copies(wanted));
    let failures = expected.len() as u64 + wanted.omitted;
    let is_listed = match seen.listed.len() == Report::MOST_LISTED {
        true => expected.starts_with(&listed) && listed.len() as u64 + seen.omitted >= failures,
        false => listed == expected && (seen.omitted, wanted.omitted) == (0, 0),
    };
    is_listed && seen.skipped == wanted.skipped
}

/// Whether a report has copies.
fn has_copies(report: &Option<Report>) -> bool {
    report.iter().flat_map(|report| &report.listed).any(|text| copy_of(text).is_some())
}

/// Whether a program whose devices fail may see this in a step.
#[allow(dead_code, reason = "the fuzz target runs programs on the host")]
pub fn is_possible(program: &Program, i: usize, seen: &Observed, expected: &Observed) -> bool {
    let step = &program.steps[i];
    let may_be_called = match step {
        // A copy may have failed for a capture that the program has not seen.
        Step::Fence { when: When::Never | When::Polled, .. } => seen.called == [Status::Skipped],
        Step::Barrier { .. } => seen.called == [Status::Skipped],
        // A copy may have failed in the group.
        Step::GroupDone { .. } => seen.called == [Status::Failed],
        _ => false,
    };
    let is_what = match (&seen.what, &expected.what) {
        (Observation::Report(report, captured), Observation::Report(wanted, wanted_captured)) => {
            // A report takes the place of what was captured, and so does the failure of the capture if it has
            // one link.
            let has_copies = has_copies(report);
            let is_capture = has_copies && matches!(step, Step::Barrier { .. });
            (may_report(report, wanted) || is_capture && may_report(report, &None))
                && (captured == wanted_captured || captured.is_none() && has_copies)
        }
        (Observation::GroupReports(seen), Observation::GroupReports(wanted)) => {
            seen.len() == wanted.len() && seen.iter().zip(wanted).all(|(a, b)| may_report(a, b))
        }
        (seen, wanted) => seen == wanted,
    };
    is_what && seen.passed_on == expected.passed_on && (seen.called == expected.called || may_be_called)
}
