//! A value lent by a pool moves to another thread.

use anabranch_par::scratch::Pool;

fn main() {
    let pool = Pool::new(1, || 0);
    let value = pool.take();
    std::thread::scope(|threads| {
        threads.spawn(move || drop(value)); //~ E0277: cannot be sent between threads safely
    });
}
