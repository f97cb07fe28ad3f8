//! Panics of the program's code that this crate hands back as values.

use parking_lot::Mutex;
use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

/// The payload of a panic, as [`catch_unwind`] returns it.
pub(crate) type Payload = Box<dyn Any + Send>;

/// A panic in a loop, in a job or in a [call](crate::ThreadPool::call), as a value.
///
/// Dropping it never panics, even if the destructor of the payload does.
///
/// ```
/// use anabranch_par::ThreadPool;
///
/// let pool = ThreadPool::new(2)?;
/// let panic = pool.spawn(|| panic!("no such file")).join().unwrap_err();
/// assert_eq!(panic.message(), Some("no such file"));
/// assert_eq!(panic.to_string(), "a job panicked: no such file");
/// # Ok::<(), anabranch_par::PoolError>(())
/// ```
// The parts are in a box, so that a result without a value is one word, which a call returns in a register.
#[derive(thiserror::Error)]
#[error("{} panicked: {}", self.0.origin, self.message().unwrap_or("(no message)"))]
pub struct Panic(Box<Parts>);

struct Parts {
    origin: Origin,
    content: Content,
}

/// The code that panicked.
#[derive(Clone, Copy)]
enum Origin {
    Item(usize),
    Job,
    Call,
}

/// The payload. Messages keep their type, because shared references to them may be sent between threads.
#[expect(
    clippy::redundant_allocation,
    clippy::box_collection,
    reason = "these are the boxes that the panic allocated, and `into_payload` returns them"
)]
enum Content {
    Literal(Box<&'static str>),
    Formatted(Box<String>),
    Other(Opaque),
}

/// A payload of any other type, in a lock that makes it `Sync`. `None` once it is taken out.
struct Opaque(Mutex<Option<Payload>>);

impl Panic {
    /// A panic of a loop's item.
    pub(crate) fn of_item(index: usize, payload: Payload) -> Self {
        Self::new(Origin::Item(index), payload)
    }

    /// A panic of a job.
    pub(crate) fn of_job(payload: Payload) -> Self {
        Self::new(Origin::Job, payload)
    }

    /// A panic of a call.
    pub(crate) fn of_call(payload: Payload) -> Self {
        Self::new(Origin::Call, payload)
    }

    #[cold]
    fn new(origin: Origin, payload: Payload) -> Self {
        Self(Box::new(Parts { origin, content: Content::new(payload) }))
    }

    /// The item of the loop whose closure panicked: the first one, if several did. `None` if no loop
    /// panicked.
    pub fn index(&self) -> Option<usize> {
        match self.0.origin {
            Origin::Item(index) => Some(index),
            Origin::Job | Origin::Call => None,
        }
    }

    /// The message of the panic, if it has one.
    pub fn message(&self) -> Option<&str> {
        match &self.0.content {
            Content::Literal(message) => Some(message),
            Content::Formatted(message) => Some(message),
            Content::Other(_) => None,
        }
    }

    /// The payload of the panic, as [`catch_unwind`] returns it.
    pub fn into_payload(self) -> Box<dyn Any + Send> {
        match self.0.content {
            Content::Literal(message) => message,
            Content::Formatted(message) => message,
            Content::Other(payload) => payload.into_inner(),
        }
    }

    /// Panics again on this thread, with the payload. The message of a loop's panic then begins with the
    /// index of the item.
    pub fn resume(self) -> ! {
        match (self.index(), self.message()) {
            (Some(_), Some(_)) => resume_unwind(Box::new(self.to_string())),
            _ => resume_unwind(self.into_payload()),
        }
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item(index) => write!(f, "item {index}"),
            Self::Job => f.write_str("a job"),
            Self::Call => f.write_str("the call"),
        }
    }
}

impl Content {
    fn new(payload: Payload) -> Self {
        let payload = match payload.downcast() {
            Ok(message) => return Self::Literal(message),
            Err(payload) => payload,
        };
        match payload.downcast() {
            Ok(message) => Self::Formatted(message),
            Err(payload) => Self::Other(Opaque(Mutex::new(Some(payload)))),
        }
    }
}

impl Opaque {
    fn into_inner(mut self) -> Payload {
        self.0.get_mut().take().expect("only this function and `drop` take the payload")
    }
}

impl Drop for Opaque {
    fn drop(&mut self) {
        if let Some(payload) = self.0.get_mut().take() {
            discard(payload);
        }
    }
}

/// Drops the payload of a panic. Its destructor may panic, and so may the destructor of *that* panic's
/// payload, without end: after a few of them, the last payload is leaked.
pub fn discard(mut payload: Payload) {
    for _ in 0..4 {
        match catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            Ok(()) => return,
            Err(again) => payload = again,
        }
    }
    std::mem::forget(payload);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Panic;
    use std::{hint::black_box, panic::panic_any};

    #[test]
    fn a_panic_is_send_and_sync() {
        fn check<T: Send + Sync>() {}
        check::<Panic>();
    }

    #[test]
    fn the_payload_comes_back_with_its_type() {
        let payload = |f: fn()| Panic::of_job(std::panic::catch_unwind(f).unwrap_err()).into_payload();
        assert_eq!(payload(|| panic!("literal")).downcast_ref(), Some(&"literal"));
        assert_eq!(
            payload(|| panic!("number {}", black_box(5))).downcast_ref(),
            Some(&String::from("number 5"))
        );
        assert_eq!(payload(|| panic_any(7_u8)).downcast_ref(), Some(&7_u8));
    }

    #[test]
    fn a_panic_says_what_panicked() {
        let panics =
            [Panic::of_item(7, Box::new("a")), Panic::of_job(Box::new("b")), Panic::of_call(Box::new(0))];
        let text = panics.each_ref().map(ToString::to_string);
        assert_eq!(text, ["item 7 panicked: a", "a job panicked: b", "the call panicked: (no message)"]);
        assert_eq!(panics.map(|panic| panic.index()), [Some(7), None, None]);
    }
}
