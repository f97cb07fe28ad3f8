//! How the owner of an offered half gets it back: taken back, returned, or run by its thief.

use super::{
    half::{Head, Share},
    latch::Outcome,
    local::Local,
    offers::Offers,
    steal,
};
use crate::{patience::Patience, sync::thread, thread_pool::sleep::Sleep};

/// How often the owner looks for the outcome before it counts as idle.
const FIRST_LOOKS: usize = if cfg!(loom) { 0 } else { 10 };

/// Reclaims a half that was offered. Returns whether the caller must run it; otherwise a thief has run it.
/// While it waits, the thread may run halves that descend from this one, if `help` allows it.
///
/// # Safety
/// The half must be the newest one that this thread has offered, in this session.
#[cold]
#[inline(never)]
pub(super) unsafe fn reclaim(local: &Local, half: &Head, help: bool) -> bool {
    let session = local.session.get();
    // SAFETY: the frame that opened the session borrows the pool.
    let pool = unsafe { &*session.pool };
    let cell = session.cell.expect("a thread that has offered a half has a cell");
    let outcome = if pool.offers.take_back(cell, half) {
        None
    } else {
        // SAFETY: the half was prepared when it was offered.
        let share = unsafe { &*Head::share(half) };
        // If the process was forked since the half was stolen, the thief is in the parent, and the half is
        // lost here.
        pool.expect_not_forked();
        // SAFETY: `wait` calls it with a half that this thread has just stolen.
        let run = |half| unsafe { steal::run(pool, half, cell) };
        Some(wait(&pool.offers, &pool.sleep, pool.patience, share, help, run))
    };
    // SAFETY: no other thread has the half: it was taken back, or has an outcome.
    unsafe { half.clear() };
    match outcome {
        Some(Outcome::Long) => local.backoff.reset(),
        _ => local.backoff.pause(),
    }
    !matches!(outcome, Some(Outcome::Long | Outcome::Short))
}

/// Waits for the outcome of a half that was stolen. Meanwhile steals halves that descend from it, if `help`
/// allows it, and calls `run` with each.
pub(super) fn wait(
    offers: &Offers,
    sleep: &Sleep,
    patience: Patience,
    share: &Share,
    help: bool,
    run: impl Fn(*const Head),
) -> Outcome {
    let mut first = patience;
    for _ in 0..FIRST_LOOKS {
        if let Some(outcome) = share.latch.outcome() {
            return outcome;
        }
        if !first.pause() {
            break;
        }
    }
    loop {
        match wait_for_event(offers, sleep, patience, share, help) {
            Event::Outcome(outcome) => return outcome,
            Event::Descendant(half) => run(half),
        }
    }
}

/// The end of a wait: the outcome, or a half to run that descends from the owner's.
enum Event {
    Outcome(Outcome),
    Descendant(*const Head),
}

fn wait_for_event(
    offers: &Offers,
    sleep: &Sleep,
    mut patience: Patience,
    share: &Share,
    help: bool,
) -> Event {
    let mut waiting = None;
    let mut announced = false;
    loop {
        if let Some(outcome) = share.latch.outcome() {
            return Event::Outcome(outcome);
        }
        if help && let Some(thief) = share.thief() {
            waiting.get_or_insert_with(|| Waiting::new(offers, sleep, thief));
            if let Some(half) = offers.steal_descendant(share, thief) {
                return Event::Descendant(half);
            }
        }
        if announced {
            thread::park();
            // The thief may have taken back the offer that it woke this thread for. It will make further
            // ones.
            announced = false;
        } else if !patience.pause() {
            share.latch.announce();
            announced = true;
        }
    }
}

/// Counts the calling thread as idle, for offers of the thief, until it is dropped.
struct Waiting<'p> {
    offers: &'p Offers,
    sleep: &'p Sleep,
    thief: usize,
}

impl<'p> Waiting<'p> {
    fn new(offers: &'p Offers, sleep: &'p Sleep, thief: usize) -> Self {
        offers.count_waiter(thief, true);
        sleep.count_waiter(true);
        Self { offers, sleep, thief }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.offers.count_waiter(self.thief, false);
        self.sleep.count_waiter(false);
    }
}
