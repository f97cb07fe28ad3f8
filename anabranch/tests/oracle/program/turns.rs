//! The order in which the nodes of this process have had effects on the objects of the whole cluster.

use super::Order;
use std::{collections::HashMap, fmt, sync::Mutex};

/// What the nodes of this process have done to the objects of the whole cluster, while a program runs. A node
/// that is in another process notes its own effects only.
#[derive(Default)]
pub struct Turns(Mutex<HashMap<Object, Latest>>);

/// An object: its number, and the step that has made it.
pub type Object = (usize, usize);

/// The last steps, in the order of the program, that have had an effect on an object.
#[derive(Default)]
struct Latest {
    any: usize,
    sequential: usize,
}

impl Turns {
    /// Notes that a part of this step begins or ends to use an object. Returns whether that is in order: no
    /// later step has begun that must come after this one.
    pub fn use_in(&self, step: usize, object: Object, order: Order) -> bool {
        let mut all = self.0.lock().unwrap();
        let latest = all.entry(object).or_default();
        latest.any = latest.any.max(step);
        if order == Order::Sequential {
            latest.sequential = latest.sequential.max(step);
            latest.any == step
        } else {
            latest.sequential <= step
        }
    }
}

impl fmt::Debug for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns").finish_non_exhaustive()
    }
}
