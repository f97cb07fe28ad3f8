use super::*;
use std::{
    pin::pin,
    sync::{
        atomic::AtomicUsize,
        mpsc::{self, Receiver, Sender},
    },
    task::{Wake, Waker},
    thread,
};
use testing::deadline;

fn timeline(batches: u64) -> Arc<Timeline> {
    let timeline = Arc::new(Timeline::new("gpu"));
    (0..batches).for_each(|_| _ = timeline.begin());
    timeline
}

fn broken(why: &str) -> DeviceError {
    DeviceError::Failed { device: "gpu".into(), why: why.into() }
}

fn lost(why: &str) -> DeviceError {
    DeviceError::Lost { device: "gpu".into(), why: why.into() }
}

type Calls = (Sender<(u64, Result<(), DeviceError>)>, Receiver<(u64, Result<(), DeviceError>)>);

/// Says in a channel when a value is done.
fn tell(timeline: &Timeline, value: u64, (to, _): &Calls) {
    let to = to.clone();
    timeline.on_complete(value, move |result| to.send((value, result)).unwrap());
}

fn told((_, calls): &Calls) -> Vec<(u64, Result<(), DeviceError>)> {
    calls.try_iter().collect()
}

#[test]
fn a_timeline_counts_what_is_submitted_and_done() {
    let timeline = timeline(0);
    assert!(timeline.is_idle() && timeline.is_done(0));
    assert_eq!((timeline.begin(), timeline.begin()), (1, 2));
    assert!(!timeline.is_idle() && !timeline.is_done(1));
    timeline.advance(1);
    assert_eq!((timeline.completed(), timeline.submitted(), timeline.is_idle()), (1, 2, false));
    timeline.advance(2);
    assert!(timeline.is_idle() && timeline.is_done(2));
    assert_eq!(timeline.wait_for_all(|| ()), Ok(()));
    assert_eq!(format!("{timeline:?}"), "Timeline(gpu: 2 of 2 batches are done)");
}

#[test]
fn a_smaller_value_that_comes_later_changes_nothing() {
    let (timeline, calls) = (timeline(3), mpsc::channel());
    timeline.advance(3);
    timeline.advance(1);
    assert_eq!(timeline.completed(), 3);
    tell(&timeline, 2, &calls);
    assert_eq!(told(&calls), [(2, Ok(()))]);
}

#[test]
#[should_panic(expected = "the device gpu cannot have done 3 batches of 2")]
fn a_device_cannot_have_done_what_it_did_not_get() {
    timeline(2).advance(3);
}

#[test]
fn callbacks_come_in_the_order_of_values_and_then_of_their_registration() {
    let (timeline, calls) = (timeline(4), mpsc::channel());
    let order = mpsc::channel();
    for value in [3, 1, 2, 1] {
        tell(&timeline, value, &calls);
    }
    for number in [0, 1, 2] {
        let to = order.0.clone();
        timeline.on_complete(4, move |_| to.send(number).unwrap());
    }
    timeline.advance(2);
    assert_eq!(told(&calls), [(1, Ok(())), (1, Ok(())), (2, Ok(()))]);
    timeline.advance(4);
    assert_eq!(told(&calls), [(3, Ok(()))]);
    assert_eq!(order.1.try_iter().collect::<Vec<_>>(), [0, 1, 2]);
    tell(&timeline, 4, &calls);
    assert_eq!(told(&calls), [(4, Ok(()))]);
}

#[test]
fn a_callback_is_called_on_the_thread_that_advances_or_on_its_own_if_the_value_is_done() {
    let _deadline = deadline();
    let (timeline, threads) = (timeline(1), mpsc::channel());
    let tell = || {
        let to = threads.0.clone();
        timeline.on_complete(1, move |_| to.send(thread::current().id()).unwrap());
    };
    tell();
    let device = {
        let timeline = Arc::clone(&timeline);
        thread::spawn(move || timeline.advance(1))
    };
    let expected = device.thread().id();
    device.join().unwrap();
    assert_eq!(threads.1.try_recv(), Ok(expected));
    tell();
    assert_eq!(threads.1.try_recv(), Ok(thread::current().id()));
}

#[test]
fn a_callback_may_submit_register_and_advance() {
    let _deadline = deadline();
    let (timeline, calls) = (timeline(1), mpsc::channel());
    let (to, from) = mpsc::channel();
    {
        let timeline2 = Arc::clone(&timeline);
        timeline.on_complete(1, move |_| {
            let next = timeline2.begin();
            let to2 = to.clone();
            timeline2.on_complete(next, move |_| to2.send("the next batch").unwrap());
            let to3 = to.clone();
            timeline2.on_complete(1, move |_| to3.send("this batch again").unwrap());
            timeline2.advance(next);
            // The outer call of `advance` calls the callbacks of the next batch, when this one has ended.
            to.send("the first batch").unwrap();
        });
    }
    timeline.advance(1);
    assert_eq!(
        from.try_iter().collect::<Vec<_>>(),
        ["this batch again", "the first batch", "the next batch"]
    );
    tell(&timeline, 2, &calls);
    assert_eq!(told(&calls), [(2, Ok(()))]);
}

#[test]
fn a_callback_that_panics_ends_alone() {
    let (timeline, calls) = (timeline(2), mpsc::channel());
    timeline.on_complete(1, |_| panic!("a callback of a test"));
    tell(&timeline, 1, &calls);
    tell(&timeline, 2, &calls);
    timeline.advance(1);
    assert_eq!(told(&calls), [(1, Ok(()))]);
    timeline.advance(2);
    assert_eq!(told(&calls), [(2, Ok(()))]);
}

#[test]
fn a_batch_that_failed_gives_its_error_to_its_own_callbacks_only() {
    let (timeline, calls) = (timeline(3), mpsc::channel());
    for value in [1, 2, 2, 3] {
        tell(&timeline, value, &calls);
    }
    timeline.fail(2, broken("no power"));
    timeline.fail(2, broken("the second error of a batch"));
    assert!(told(&calls).is_empty() && !timeline.is_done(2));
    timeline.advance(3);
    let error = || (2, Err(broken("no power")));
    assert_eq!(told(&calls), [(1, Ok(())), error(), error(), (3, Ok(()))]);
    tell(&timeline, 2, &calls);
    assert_eq!(told(&calls), [error()]);
    assert_eq!(timeline.wait(2, || ()), Err(broken("no power")));
    assert_eq!((timeline.wait(1, || ()), timeline.wait(3, || ())), (Ok(()), Ok(())));
}

#[test]
fn an_error_that_nobody_has_taken_comes_out_once() {
    let timeline = timeline(4);
    timeline.fail(3, broken("third"));
    timeline.fail(1, broken("first"));
    timeline.fail(2, broken("second"));
    timeline.advance(4);
    assert_eq!(timeline.wait(2, || ()), Err(broken("second")));
    assert_eq!(timeline.wait_for_all(|| ()), Err(broken("first")));
    assert_eq!(timeline.wait_for_all(|| ()), Err(broken("third")));
    assert_eq!(timeline.wait_for_all(|| ()), Ok(()));
    assert_eq!(timeline.wait(1, || ()), Err(broken("first")), "it has failed for ever");
}

#[test]
fn the_error_of_a_later_batch_comes_out_later() {
    let _deadline = deadline();
    let timeline = timeline(1);
    timeline.advance(1);
    let second = timeline.begin();
    timeline.fail(second, broken("second"));
    assert_eq!(timeline.wait(1, || ()), Ok(()));
    timeline.advance(second);
    assert_eq!(timeline.wait_for_all(|| ()), Err(broken("second")));
}

#[test]
fn a_lost_device_fails_what_is_in_flight_and_what_comes_later() {
    let (timeline, calls) = (timeline(3), mpsc::channel());
    for value in 1..=3 {
        tell(&timeline, value, &calls);
    }
    assert_eq!(timeline.is_lost(), None);
    timeline.advance(1);
    timeline.lose("it is unplugged");
    timeline.lose("twice");
    timeline.advance(2);
    let error = || Err(lost("it is unplugged"));
    assert_eq!(told(&calls), [(1, Ok(())), (2, error()), (3, error())]);
    assert_eq!((timeline.completed(), timeline.is_idle()), (3, true));
    assert_eq!(timeline.is_lost(), error().err());

    let value = timeline.begin();
    assert_eq!((value, timeline.submitted(), timeline.is_idle()), (4, 4, true));
    tell(&timeline, value, &calls);
    assert_eq!(told(&calls), [(4, error())]);
    assert_eq!(timeline.wait(1, || ()), Ok(()));
    assert_eq!(timeline.wait(value, || ()), error());
    assert_eq!(timeline.wait_for_all(|| ()), Ok(()), "a callback has taken the error");
}

#[test]
fn the_loss_of_a_device_comes_out_once_for_what_was_submitted() {
    let timeline = timeline(2);
    timeline.advance(2);
    timeline.lose("it is unplugged");
    let error = || Err(lost("it is unplugged"));
    assert_eq!(timeline.wait_for_all(|| ()), error());
    assert_eq!(timeline.wait_for_all(|| ()), Ok(()));
    timeline.begin();
    assert_eq!(timeline.wait_for_all(|| ()), error());
    assert_eq!(timeline.wait_for_all(|| ()), Ok(()));
}

#[test]
fn a_timeline_that_ends_calls_its_callbacks() {
    let calls = mpsc::channel();
    let timeline = timeline(1);
    tell(&timeline, 1, &calls);
    drop(timeline);
    assert_eq!(told(&calls), [(1, Err(lost("it has ended")))]);
}

#[test]
fn a_thread_that_waits_is_woken_by_any_thread() {
    let _deadline = deadline();
    let timeline = timeline(2);
    let device = {
        let timeline = Arc::clone(&timeline);
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            timeline.advance(1);
            timeline.fail(2, broken("no power"));
            timeline.advance(2);
        })
    };
    let other = {
        let timeline = Arc::clone(&timeline);
        thread::spawn(move || timeline.wait(1, || ()))
    };
    assert_eq!(timeline.wait(2, || ()), Err(broken("no power")));
    assert_eq!(other.join().unwrap(), Ok(()));
    device.join().unwrap();
}

#[test]
fn a_thread_that_waits_polls_the_device_also_while_it_is_parked() {
    let _deadline = deadline();
    let timeline = timeline(1);
    let begin = std::time::Instant::now();
    // The device needs to be polled for longer than a thread spins.
    let poll = || {
        if begin.elapsed() > Duration::from_millis(20) {
            timeline.advance(1);
        }
    };
    assert_eq!(timeline.wait_for_all(poll), Ok(()));
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_future_ends_when_its_batch_is_done() {
    let timeline = timeline(2);
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&count));
    let mut context = Context::from_waker(&waker);
    let mut done = Box::pin(timeline.done(2));
    assert!(done.as_mut().poll(&mut context).is_pending());
    timeline.advance(1);
    assert_eq!(count.0.load(Relaxed), 0);
    assert!(done.as_mut().poll(&mut context).is_pending());
    timeline.fail(2, broken("no power"));
    timeline.advance(2);
    assert_eq!(count.0.load(Relaxed), 1);
    assert_eq!(done.as_mut().poll(&mut context), Poll::Ready(Err(broken("no power"))));
    let mut done = Box::pin(timeline.done(1));
    assert_eq!(done.as_mut().poll(&mut context), Poll::Ready(Ok(())));
}

#[test]
fn the_waker_of_a_future_that_is_dropped_is_forgotten() {
    let timeline = timeline(1);
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&count));
    let mut done = Box::pin(timeline.done(1));
    assert!(done.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop((done, waker));
    assert_eq!(Arc::strong_count(&count), 1);
    timeline.advance(1);
    assert_eq!(count.0.load(Relaxed), 0);
}

#[test]
fn many_threads_wait_register_and_advance() {
    let _deadline = deadline();
    const BATCHES: u64 = 2000;
    let timeline = timeline(BATCHES);
    let calls = Arc::new(Mutex::new(Vec::new()));
    for value in 1..=BATCHES {
        let calls = Arc::clone(&calls);
        timeline.on_complete(value, move |_| calls.lock().push(value));
    }
    let late = Arc::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        for first in [1, 2] {
            let timeline = &timeline;
            scope.spawn(move || (first..=BATCHES).step_by(2).for_each(|value| timeline.advance(value)));
        }
        scope.spawn(|| (1..=BATCHES).for_each(|value| timeline.wait(value, || ()).unwrap()));
        scope.spawn(|| {
            for value in (1..=BATCHES).rev() {
                let late = Arc::clone(&late);
                timeline.on_complete(value, move |_| _ = late.fetch_add(1, Relaxed));
            }
        });
    });
    assert!(calls.lock().iter().copied().eq(1..=BATCHES), "in their order, each once");
    assert_eq!(late.load(Relaxed), BATCHES as usize);
}

#[test]
fn what_waits_for_all_batches_takes_the_first_error_that_nobody_has_taken() {
    let _deadline = deadline();
    let timeline = timeline(3);
    let calls = mpsc::channel();
    let to = calls.0.clone();
    timeline.on_idle(move |result| to.send((0, result)).unwrap());
    let mut idle = pin!(timeline.idle());
    let mut context = Context::from_waker(Waker::noop());
    assert!(idle.as_mut().poll(&mut context).is_pending());
    timeline.fail(2, broken("the second batch"));
    timeline.advance(2);
    assert!(idle.as_mut().poll(&mut context).is_pending());
    assert!(told(&calls).is_empty());
    // A later batch is not waited for.
    timeline.begin();
    timeline.advance(3);
    assert_eq!(told(&calls), [(0, Err(broken("the second batch")))]);
    assert_eq!(idle.as_mut().poll(&mut context), Poll::Ready(Ok(())));
    assert!(!timeline.is_idle());
}

#[test]
fn a_callback_that_waits_for_a_device_gets_an_error() {
    let _deadline = testing::deadline();
    let (own, other) = (Arc::new(Timeline::new("own")), Arc::new(Timeline::new("other")));
    let [first, second] = [own.begin(), own.begin()];
    other.begin();
    let (tell, told) = mpsc::channel();
    let at = Arc::clone(&own);
    let in_callback = move |_| {
        // The batch is done, and the other ones are not.
        tell.send(at.wait(first, || ())).unwrap();
        tell.send(at.wait(second, || ())).unwrap();
        tell.send(at.wait_for_all(|| ())).unwrap();
        tell.send(other.wait_for_all(|| ())).unwrap();
    };
    own.on_complete(first, in_callback.clone());
    own.advance(first);
    // Once more, now called by the thread that registers it.
    own.on_complete(first, in_callback);
    let results: Vec<_> = told.try_iter().collect();
    let inside = |device: &str| Err(DeviceError::WaitInsideCallback { device: device.into() });
    let expected = [Ok(()), inside("own"), inside("own"), inside("other")];
    assert_eq!(results, [expected.clone(), expected].concat());
    // Outside, the thread may wait.
    own.advance(second);
    assert_eq!(own.wait_for_all(|| ()), Ok(()));
}
