//! A loop advances a progress bar of indicatif to its end.

use anabranch_par::prelude::*;

#[test]
fn a_bar_ends_at_the_number_of_items() {
    let _deadline = testing::deadline();
    for threads in [1, 2, 3, 4, 8] {
        let pool = ThreadPool::new(threads).unwrap();
        let bar = indicatif::ProgressBar::hidden();
        (0..10_000).par().on(&pool).progress_bar(&bar).for_each(|_| ());
        assert_eq!((bar.length(), bar.position()), (Some(10_000), 10_000));
    }
}
