//! Teams: threads that run the same closure side by side and can wait for each other.
//!
//! In a loop no participant may wait for another one, because that one may never come: a loop runs with as
//! many threads as are free. A team runs only when *all* of its members are there. So its barrier cannot
//! deadlock:
//!
//! - A team that is larger than the pool is an error. So is a team that is asked for inside a loop or job,
//!   because the threads of the pool might be waiting for just that thread.
//! - A team begins when its workers are reserved for it ([`reservations`]). So two teams never have half of
//!   the same workers each.
//! - A member that leaves breaks the [`barrier`] for the members that wait there: they unwind, and the team
//!   panics with the reason.

pub(crate) mod barrier;
pub(crate) mod reservations;

use crate::{
    Forked, current,
    panic::{Payload, discard},
    region::{
        self, Plan, RegionBody,
        claims::{Claimer, Kind, Partition},
    },
    schedule::Consecutive,
    thread_pool::{ThreadPool, state::PoolState},
};
use barrier::{Barrier, Broken};
use parking_lot::Mutex;
use std::{
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

/// A team that cannot be formed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TeamError {
    /// There are not as many threads, or none was asked for.
    #[error("a team of {asked} was asked for in a pool of {threads} threads; choose between 1 and {threads}")]
    Threads {
        /// The number of threads that was asked for.
        asked: usize,
        /// The number of threads of the pool, the caller included.
        threads: usize,
    },
    /// The calling thread is inside a loop, a job or a scope: the members might never come.
    #[error(
        "a team was asked for inside a loop or job, whose threads might never come: form it outside, and run the loop inside the \
         team"
    )]
    Inside,
    /// The pool was stopped.
    #[error("a team was asked for in a pool that was stopped")]
    Stopped,
    /// This process was forked after the pool was built: its threads are not here.
    #[error(transparent)]
    Forked(#[from] Forked),
}

/// A member of a team: see [`ThreadPool::team`].
#[derive(Debug)]
pub struct Member<'t> {
    index: usize,
    barrier: &'t Barrier,
    pool: &'t PoolState,
}

impl Member<'_> {
    /// From 0 (the caller) to [`count`](Self::count) - 1.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The number of members. All of them are here.
    pub fn count(&self) -> usize {
        self.barrier.count
    }

    /// This member's share of `0..len`, in one piece.
    pub fn share(&self, len: usize) -> Range<usize> {
        let split = Consecutive::by_count(len, self.count());
        if self.index < split.chunks() { split.chunk(self.index) } else { len..len }
    }

    /// Waits until all members are here. After it, each member sees everything that all members did before
    /// it.
    ///
    /// If a member has left the team, by its end or by a panic, this call unwinds instead of returning, and
    /// [`team`](ThreadPool::team) panics with the reason.
    ///
    /// # Panics
    /// If this process was forked inside the team: the other members are in the parent.
    pub fn barrier(&self) {
        self.pool.expect_not_forked();
        if self.barrier.wait().is_err() {
            resume_unwind(Box::new(Broken));
        }
    }
}

impl ThreadPool {
    /// Calls `body` on `count` threads at the same time, the calling one included, and returns their results,
    /// in the order of their indices.
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
    /// If the threads could never be there at the same time: see [`TeamError`].
    ///
    /// # Panics
    /// With the panic of the first member that panics, by index, once all have left; or if members waited at
    /// a barrier for one that had left.
    pub fn team<R: Send>(
        &self,
        count: usize,
        body: impl Fn(&Member<'_>) -> R + Sync,
    ) -> Result<Vec<R>, TeamError> {
        let pool = self.state();
        pool.check_fork()?;
        let threads = pool.threads();
        // Checked first, because a worker that is inside would count one thread fewer than the pool has.
        if count > 1 && current::is_inside() {
            return Err(TeamError::Inside);
        }
        if !(1..=threads).contains(&count) {
            return Err(TeamError::Threads { asked: count, threads });
        }
        let _reserved = pool.reservations.reserve(count - 1).ok_or(TeamError::Stopped)?;
        let team = Team {
            pool,
            barrier: Barrier::new(count, pool.patience),
            body,
            results: Mutex::new((0..count).map(|_| None).collect()),
        };
        // Each member claims one unit and no second one, because all are claimed when the members first meet.
        let partition = Partition::new(count, Kind::Dynamic { grain: 1 });
        let plan =
            Plan { participants: count, items: 0, partition, may_begin_alone: false, most: 1, flush: false };
        if count == 1 {
            region::run(pool, &plan, &team)
        } else {
            region::run_shared(pool, &plan, &team)
        }
        Ok(team.into_results())
    }
}

/// A team at work. It lives in the frame of its caller.
struct Team<'p, F, R> {
    pool: &'p PoolState,
    barrier: Barrier,
    body: F,
    results: Mutex<Vec<Option<Outcome<R>>>>,
}

type Outcome<R> = Result<R, Payload>;

impl<F: Fn(&Member<'_>) -> R + Sync, R: Send> RegionBody for Team<'_, F, R> {
    fn participate(&self, claimer: &mut Claimer<'_>) {
        let index = claimer.claim(usize::MAX).expect("a unit for each member").start;
        self.barrier.wait().unwrap_or_else(|_| unreachable!("no member leaves before all have come"));
        let member = Member { index, barrier: &self.barrier, pool: self.pool };
        let result = catch_unwind(AssertUnwindSafe(|| (self.body)(&member)));
        if self.pool.check_fork().is_err() {
            // The other members are in the parent, and may have held these locks at the fork. The end of the
            // region reports it.
            return;
        }
        self.barrier.leave();
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
            "a member left the team while other members waited for it at a barrier: all must pass the same barriers"
        );
        returned
    }
}
