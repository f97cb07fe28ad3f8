//! METG(50 %): the shortest mean task with which half of the time is work.
//!
//! The *granularity* of a run is its wall time × processors / tasks. Its *efficiency* is the time that the
//! work of a task takes alone, on a processor that does nothing else, divided by the granularity.

use crate::harness::Failure;

/// The efficiency that is asked for.
const HALF: f64 = 0.5;
/// The size with which a search begins. Most systems are efficient there.
const FIRST: u64 = 1 << 12;
/// The largest size, some 10 ms.
const LARGEST: u64 = 1 << 22;

/// A run is not efficient however large its tasks are.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error(
    "even tasks of {granularity_ns:.0} ns have an efficiency of {efficiency:.2} only: the graph leaves processors idle, or other \
     programs use them; measure on a quiet machine"
)]
pub struct NeverEfficient {
    efficiency: f64,
    granularity_ns: f64,
}

#[derive(Clone, Copy)]
struct Point {
    granularity_ns: f64,
    efficiency: f64,
}

/// Halves the size of the work until less than half of the time is work, and returns the granularity, in
/// nanoseconds, with which it would be just half.
///
/// `measure` returns the granularity of a run with this many iterations in each task; `unit_ns` is the time
/// that one iteration takes alone.
///
/// # Errors
/// The first error of `measure`. [`NeverEfficient`], if no size is large enough.
pub fn search(unit_ns: f64, mut measure: impl FnMut(u64) -> Result<f64, Failure>) -> Result<f64, Failure> {
    let mut point = |size: u64| -> Result<Point, Failure> {
        let granularity_ns = measure(size)?;
        Ok(Point { granularity_ns, efficiency: size as f64 * unit_ns / granularity_ns })
    };
    let mut size = FIRST;
    let mut above = point(size)?;
    while above.efficiency < HALF {
        if size == LARGEST {
            let Point { efficiency, granularity_ns } = above;
            return Err(NeverEfficient { efficiency, granularity_ns }.into());
        }
        size *= 2;
        above = point(size)?;
    }
    while size > 1 {
        size /= 2;
        let below = point(size)?;
        if below.efficiency < HALF {
            return Ok(between(above, below));
        }
        above = below;
    }
    // One iteration is enough, so this is an upper bound.
    Ok(above.granularity_ns)
}

/// The granularity of the efficiency that is asked for. Between two sizes, the logarithm of the granularity
/// is nearly a linear function of the efficiency.
fn between(above: Point, below: Point) -> f64 {
    let share = (HALF - below.efficiency) / (above.efficiency - below.efficiency);
    let [from, to] = [below, above].map(|point| point.granularity_ns.ln());
    (from + share * (to - from)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system that adds this much to each task.
    fn with_cost(cost: f64) -> impl FnMut(u64) -> Result<f64, Failure> {
        move |size| Ok(cost + 2.5 * size as f64)
    }

    #[test]
    fn of_a_constant_cost_it_is_twice_the_cost() {
        // The last ones begin below the first size.
        for cost in [3.0, 100.0, 777.0, 5_000.0, 12_345.0, 1e6] {
            let metg = search(2.5, with_cost(cost)).unwrap();
            assert!((metg / (2.0 * cost) - 1.0).abs() < 0.03, "{cost}: {metg}");
        }
    }

    #[test]
    fn it_is_found_in_few_runs() {
        let mut sizes = Vec::new();
        let mut measure = with_cost(300.0);
        search(2.5, |size| {
            sizes.push(size);
            measure(size)
        })
        .unwrap();
        assert_eq!(sizes, [4096, 2048, 1024, 512, 256, 128, 64]);
    }

    #[test]
    fn a_system_without_a_cost_has_the_granularity_of_one_iteration() {
        assert_eq!(search(2.5, with_cost(0.0)).unwrap(), 2.5);
    }

    #[test]
    fn a_graph_that_leaves_processors_idle_has_no_figure() {
        let error = search(1.0, |size| Ok(4.0 * size as f64)).unwrap_err().to_string();
        assert!(error.starts_with("even tasks of 16777216 ns have an efficiency of 0.25 only"), "{error}");
    }

    #[test]
    fn a_run_that_fails_ends_the_search() {
        let error = search(1.0, |size| if size < 100 { Err("broke down".into()) } else { Ok(size as f64) })
            .unwrap_err();
        assert_eq!(error.to_string(), "broke down");
    }
}
