//! Lanes are added for jobs that block.

use anabranch_par::{Job, Lanes};
use std::{
    sync::{Arc, Barrier, mpsc},
    time::{Duration, Instant},
};

struct Call<F>(F);

impl<F: Fn() + Send + Sync> Job for Call<F> {
    fn run(self: Arc<Self>) {
        (self.0)();
    }
}

fn submit(lanes: &Lanes, job: impl Fn() + Send + Sync + 'static) {
    lanes.submit(Arc::new(Call(job)));
}

/// Keeps a processor busy.
fn work(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[test]
fn jobs_that_wait_for_each_other_get_a_lane_each() {
    let _deadline = testing::deadline();
    let lanes = Lanes::new(1, 8, "lane-").unwrap();
    for round in 0..20 {
        let (all, (sender, ended)) = (Arc::new(Barrier::new(8)), mpsc::channel());
        // In every second round, jobs come before that do not block.
        (0..500 * (round % 2)).for_each(|_| submit(&lanes, || work(Duration::from_micros(10))));
        for _ in 0..8 {
            let (all, sender) = (Arc::clone(&all), sender.clone());
            submit(&lanes, move || {
                all.wait();
                sender.send(()).unwrap();
            });
        }
        assert_eq!(ended.iter().take(8).count(), 8);
    }
}
