//! Teams: threads that do the same thing side by side and can wait for each other.
//!
//! In a loop nobody may wait for another participant, because it may never come: a loop runs with as many threads as are
//! free. A team runs only when *all* of its members are there. So its barrier cannot deadlock:
//!
//! - A team that is larger than the pool, or is asked for by a thread inside a loop or job (whose pool's threads might be waiting for
//!   just that thread), is an error.
//! - A team begins when its threads are reserved for it: two that want the same ones cannot each have half of them.
//! - A member that has left breaks the barriers of those that still wait for it: they unwind, and the team's caller learns of it.

pub(crate) mod meeting;
mod reservations;

pub(crate) use reservations::Reservations;

use crate::{
    Forked, current,
    panic::{Payload, discard},
    region::{
        self, Crew, Plan,
        claims::{Claimer, Kind, Partition},
    },
    schedule::Consecutive,
    thread_pool::{Shared, ThreadPool},
};
use meeting::{Broken, Meeting};
use parking_lot::Mutex;
use std::{
    fmt,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

/// A team that cannot be formed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TeamError {
    /// There are not as many threads, or none was asked for.
    Threads {
        /// How many were asked for.
        asked: usize,
        /// How many there are, the caller included.
        threads: usize,
    },
    /// The calling thread is inside a loop, a job or a scope: its members might never come.
    Inside,
    /// The pool was stopped.
    Stopped,
    /// This process was forked after the pool was built: its threads are not here.
    Forked(Forked),
}

impl fmt::Display for TeamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads { asked, threads } => write!(
                f,
                "a team of {asked} was asked for in a pool of {threads} threads; choose between 1 and {threads}"
            ),
            Self::Inside => f.write_str(
                "a team was asked for inside a loop or job, whose threads might never come: form it outside, and run \
                 the loop inside the team",
            ),
            Self::Stopped => f.write_str("a team was asked for in a pool that was stopped"),
            Self::Forked(forked) => forked.fmt(f),
        }
    }
}

impl std::error::Error for TeamError {}

/// One of a team: see [`ThreadPool::team`].
#[derive(Debug)]
pub struct Member<'t> {
    index: usize,
    meeting: &'t Meeting,
    pool: &'t Shared,
}

impl Member<'_> {
    /// From 0 (the caller) to [`count`](Self::count) - 1.
    pub fn index(&self) -> usize {
        self.index
    }

    /// How many members there are. All of them are here.
    pub fn count(&self) -> usize {
        self.meeting.count
    }

    /// This member's share of `0..len`, in one piece.
    pub fn share(&self, len: usize) -> Range<usize> {
        let split = Consecutive::by_count(len, self.count());
        if self.index < split.chunks() { split.chunk(self.index) } else { len..len }
    }

    /// Waits until all members have come here: what they have done before is seen by all after.
    ///
    /// If a member has left the team, by its end or by a panic, this call does not return: it unwinds, and
    /// [`team`](ThreadPool::team) panics with the reason.
    ///
    /// # Panics
    /// If this process was forked inside the team: the other members are in the parent.
    pub fn barrier(&self) {
        self.pool.expect_not_forked();
        if self.meeting.meet().is_err() {
            resume_unwind(Box::new(Broken));
        }
    }
}

impl ThreadPool {
    /// Calls `body` on `count` threads at the same time, the calling one included, and returns what they return, by their
    /// index.
    ///
    /// ```
    /// use anabranch_par::ThreadPool;
    /// use std::sync::Mutex;
    ///
    /// let pool = ThreadPool::new(4)?;
    /// let parts = Mutex::new(vec![0; 4]);
    /// let totals = pool.team(4, |member| {
    ///     parts.lock().unwrap()[member.index()] = member.share(100).sum::<usize>();
    ///     member.barrier(); // now all parts are there
    ///     parts.lock().unwrap().iter().sum::<usize>()
    /// })?;
    /// assert_eq!(totals, [4950; 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there could never be so many at the same time.
    ///
    /// # Panics
    /// With the panic of the first member that panics, by index, once all have left; or if members waited at a barrier for
    /// one that had left.
    pub fn team<R: Send>(
        &self,
        count: usize,
        body: impl Fn(&Member<'_>) -> R + Sync,
    ) -> Result<Vec<R>, TeamError> {
        let shared = self.shared();
        shared.check_fork().map_err(TeamError::Forked)?;
        let threads = shared.threads();
        // First: from inside, a worker would count one thread fewer than the pool has.
        if count > 1 && current::is_inside() {
            return Err(TeamError::Inside);
        }
        if !(1..=threads).contains(&count) {
            return Err(TeamError::Threads { asked: count, threads });
        }
        let _reserved = shared.reservations().reserve(count - 1).ok_or(TeamError::Stopped)?;
        let team = Team {
            pool: shared,
            meeting: Meeting::new(count),
            body,
            results: Mutex::new((0..count).map(|_| None).collect()),
        };
        // Everybody takes one unit, and none of them a second one: all are taken when the members meet for the first time.
        let partition = Partition::new(count, Kind::Dynamic { grain: 1 });
        let plan = Plan { participants: count, partition, probe: false, most: 1, flush: false };
        if count == 1 {
            region::run(shared, &plan, &team)
        } else {
            region::run_shared(shared, &plan, &team)
        }
        Ok(team.into_results())
    }
}

/// A team at work; lives in the frame of its caller.
struct Team<'p, F, R> {
    pool: &'p Shared,
    meeting: Meeting,
    body: F,
    results: Mutex<Vec<Option<Outcome<R>>>>,
}

type Outcome<R> = Result<R, Payload>;

impl<F: Fn(&Member<'_>) -> R + Sync, R: Send> Crew for Team<'_, F, R> {
    fn participate(&self, mut claimer: Claimer<'_>) {
        let index = claimer.claim(usize::MAX).expect("a unit for each member").start;
        self.meeting.meet().unwrap_or_else(|_| unreachable!("nobody leaves before all have come"));
        let member = Member { index, meeting: &self.meeting, pool: self.pool };
        let result = catch_unwind(AssertUnwindSafe(|| (self.body)(&member)));
        if self.pool.check_fork().is_err() {
            // The others are in the parent, and may have held these locks when this process began. The region's end says so.
            return;
        }
        self.meeting.leave();
        self.results.lock()[index] = Some(result);
    }
}

impl<F, R> Team<'_, F, R> {
    fn into_results(self) -> Vec<R> {
        let results = self.results.into_inner().into_iter();
        let mut returned = Vec::with_capacity(results.len());
        let mut broken = false;
        let mut panics = Vec::new();
        for result in results.map(|result| result.expect("every member has left")) {
            match result {
                Ok(result) => returned.push(result),
                Err(payload) if payload.is::<Broken>() => broken = true,
                Err(payload) => panics.push(payload),
            }
        }
        let mut panics = panics.into_iter();
        let first = panics.next();
        panics.for_each(discard);
        if let Some(payload) = first {
            resume_unwind(payload);
        }
        assert!(
            !broken,
            "a member left the team while others waited for it at a barrier: all must pass the same barriers"
        );
        returned
    }
}
