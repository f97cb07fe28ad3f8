//! Communicators for tasks that call MPI: which tasks begin, in which order, and calls of a real MPI library.

use anabranch::{LocalNodes, MpiComm, WireError, local_nodes, prelude::*};
use std::{
    env,
    ffi::{CStr, c_int, c_void},
    fs,
    path::Path,
    ptr,
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering::*},
        mpsc,
    },
};
use testing::{
    deadline,
    mpi::{MPICH, Mpi, OPEN_MPI, text},
};

/// Nodes that may make communicators, with delays.
fn nodes(count: u16, seed: u64) -> LocalNodes {
    let builder = Runtime::builder().threads(2).communicators(true);
    local_nodes(count).builder(builder).delays(6, seed)
}

/// Stands for the calls of MPI of one communicator: each waits for all nodes.
#[derive(Clone)]
struct Calls {
    all: Arc<Barrier>,
    /// How many tasks have made their call, on all nodes.
    made: Arc<AtomicUsize>,
}

impl Calls {
    fn of(nodes: u16) -> Self {
        Self { all: Arc::new(Barrier::new(nodes.into())), made: Arc::default() }
    }

    /// The call of the task with this number, among those that run. All nodes are in the same call.
    fn call(&self, nodes: u16) {
        let before = self.made.load(SeqCst) / usize::from(nodes);
        self.all.wait();
        self.made.fetch_add(1, SeqCst);
        self.all.wait();
        assert_eq!(self.made.load(SeqCst), (before + 1) * usize::from(nodes));
        self.all.wait();
    }
}

#[test]
fn a_program_must_ask_for_communicators() {
    let _deadline = deadline();
    for nodes in [1, 3] {
        let results = local_nodes(nodes).threads(1).run(|rt| {
            let error = rt.communicator().unwrap_err().to_string();
            // All nodes have refused it.
            rt.wait()?;
            Ok(error)
        });
        for error in results {
            let error = error.unwrap();
            assert!(
                error.contains("communicators is false") && error.contains("communicators(true)"),
                "{error}"
            );
        }
    }
    let rt = Runtime::new().unwrap();
    assert!(rt.communicator().is_err());
}

#[test]
fn there_are_at_most_as_many_communicators_as_host_lanes() {
    let _deadline = deadline();
    let rt = Runtime::builder().communicators(true).host_lanes(2).build().unwrap();
    let made = [rt.communicator().unwrap(), rt.communicator().unwrap()];
    let error = rt.communicator().unwrap_err().to_string();
    assert!(error.contains("at most `host_lanes`"), "{error}");
    drop(made);
    // They are valid as long as the runtime, so they count as long.
    assert!(rt.communicator().is_err());
}

#[test]
fn tasks_of_a_communicator_run_in_order_on_all_nodes() {
    let _deadline = deadline();
    for count in [1, 2, 3, 4] {
        let calls = [Calls::of(count), Calls::of(count)];
        let results = nodes(count, 7).run(|rt| {
            let comms = [rt.communicator()?.named("first"), rt.communicator()?];
            assert_eq!(format!("{:?}", comms[0]), "host object \"first\"");
            let u = rt.buffer_from(&[0_u64; 12])?;
            let order = [rt.host_object(Vec::new()), rt.host_object(Vec::new())];
            for step in 0..20 {
                let which = usize::from(step % 3 == 0);
                let calls = calls[which].clone();
                rt.task("add").over([12]).update(&u, one_to_one()).kernel(|tile, (u,)| {
                    tile.points().for_each(|i| u[i] += 1);
                })?;
                rt.task("call")
                    .collective()
                    .update(&u, even_split())
                    .effect(&comms[which], sequential())
                    .effect(&order[which], sequential())
                    .host(move |_, (u, comm, order)| {
                        assert_eq!(comm, None, "these nodes have no MPI");
                        calls.call(count);
                        if let Some(part) = u.as_mut_slice() {
                            assert!(part.iter().all(|&value| value == 2 * step + 1));
                            part.iter_mut().for_each(|value| *value += 1);
                        }
                        order.push(step);
                    })?;
            }
            let [first, second] = order;
            rt.drain((first.capture(), second.capture()))
        });
        for result in results {
            let (second, first): (Vec<u64>, Vec<_>) = (0..20).partition(|step| step % 3 == 0);
            assert_eq!(result.unwrap(), (first, second));
        }
    }
}

/// A task that needs what has failed on one node would leave the others in a call of MPI.
#[test]
fn a_task_begins_on_all_nodes_or_on_none() {
    let _deadline = deadline();
    for failing in 0..3 {
        let calls = Calls::of(3);
        let results = nodes(3, u64::from(failing)).run(|rt| {
            let node = rt.node();
            let comm = rt.communicator()?;
            let u = rt.buffer::<f64, 1>([9]);
            rt.task("load").over([9]).write(&u, one_to_one()).host(move |_, (u,)| {
                u.fill(1.0);
                if node == failing { Err("no such file") } else { Ok(()) }
            })?;
            let part = |name, u: &Buffer<f64, 1>| {
                let calls = calls.clone();
                rt.task(name)
                    .collective()
                    .read(u, even_split())
                    .effect(&comm, sequential())
                    .host(move |_, _| calls.call(3))
            };
            let skipped = part("solve", &u)?;
            let error = rt.wait().unwrap_err().to_string();
            assert!(skipped.wait().is_err());
            assert_eq!(calls.made.load(SeqCst), 0);
            // The skipped task has not left the communicator as it should be: so it goes with every object.
            let good = rt.buffer_from(&[0.0; 9])?;
            let later = part("solve again", &good)?;
            assert!(later.wait().is_err());
            assert!(rt.wait().is_err());
            Ok(error)
        });
        for error in results {
            let error = error.unwrap();
            assert!(error.contains(&format!("failed on node {failing}: no such file")), "{error}");
        }
        assert_eq!(calls.made.load(SeqCst), 0);
    }
}

#[test]
fn a_task_that_fails_breaks_the_communicator_on_all_nodes() {
    let _deadline = deadline();
    let calls = Calls::of(3);
    let results = nodes(3, 3).run(|rt| {
        let node = rt.node();
        let comm = rt.communicator()?;
        let other = rt.communicator()?;
        let call = |name, comm, fails: bool| {
            let calls = calls.clone();
            rt.task(name).collective().effect(comm, sequential()).host(move |_, _| {
                calls.call(3);
                if fails { Err("did not converge") } else { Ok(()) }
            })
        };
        call("first", &comm, node == 1)?;
        let second = call("second", &comm, false)?;
        let failures = rt.wait().unwrap_err().to_string();
        assert!(second.wait().is_err());
        call("third", &other, false)?;
        rt.wait()?;
        Ok(failures)
    });
    for failures in results {
        let failures = failures.unwrap();
        assert!(failures.contains("failed on node 1: did not converge"), "{failures}");
    }
    assert_eq!(calls.made.load(SeqCst), 6, "the first and the third");
}

/// A cancellation on one node would leave the others in a call of MPI, too. It breaks nothing.
#[test]
fn a_task_that_one_node_has_cancelled_is_skipped_on_all() {
    let _deadline = deadline();
    for in_group in [false, true] {
        let calls = Calls::of(3);
        let results = nodes(3, 5).run(|rt| {
            let node = rt.node();
            let comm = rt.communicator()?;
            let group = rt.group("calls");
            let (go, wait) = mpsc::channel::<()>();
            let blocked = rt.host_object(wait);
            rt.task("waits")
                .once()
                .on_node(1)?
                .effect(&blocked, sequential())
                .host(|(wait,)| wait.recv().unwrap())?;
            let call = |rt: anabranch::interface::NewTask<'_>| {
                let calls = calls.clone();
                rt.collective()
                    .effect(&blocked, sequential())
                    .effect(&comm, sequential())
                    .host(move |_, _| calls.call(3))
            };
            let cancelled = call(if in_group { group.task("cancelled") } else { rt.task("cancelled") })?;
            let runs = call(rt.task("runs"))?;
            if node == 1 {
                match in_group {
                    true => group.cancel(),
                    false => assert!(cancelled.cancel()),
                }
                go.send(()).unwrap();
            }
            runs.wait()?;
            rt.wait()?;
            let status = cancelled.status();
            assert!(
                matches!((node, &status), (1, Status::Cancelled) | (_, Status::Skipped)),
                "{node}: {status:?}"
            );
            Ok(())
        });
        results.into_iter().for_each(|result| result.unwrap());
        assert_eq!(calls.made.load(SeqCst), 3);
    }
}

/// When all nodes are ready, a task is not cancelled any more, even if its function has not begun on this node.
#[test]
fn a_task_is_not_cancelled_when_all_nodes_are_ready() {
    let _deadline = deadline();
    let calls = Calls::of(2);
    let begun = Barrier::new(2);
    let results = {
        let builder =
            Runtime::builder().threads(1).host_lanes(1).help_while_waiting(false).communicators(true);
        local_nodes(2).builder(builder).run(|rt| {
            let node = rt.node();
            let comm = rt.communicator()?;
            let (go, wait) = mpsc::channel::<()>();
            let (ready, is_ready) = mpsc::channel::<()>();
            // It has the only lane of node 1.
            rt.task("holds the lane").once().on_node(1)?.host(move |()| {
                ready.send(()).unwrap();
                wait.recv().unwrap();
            })?;
            if node == 1 {
                is_ready.recv().unwrap();
            }
            let (began, has_begun) = mpsc::channel();
            let calls = calls.clone();
            let task = rt.task("call").collective().effect(&comm, sequential()).host(move |_, _| {
                began.send(()).unwrap();
                calls.call(2);
            })?;
            if node == 0 {
                has_begun.recv().unwrap();
            }
            begun.wait();
            // Node 0 is in the call.
            assert!(!task.cancel());
            if node == 1 {
                go.send(()).unwrap();
            }
            rt.wait()
        })
    };
    results.into_iter().for_each(|result| result.unwrap());
    assert_eq!(calls.made.load(SeqCst), 2);
}

/// The function of the MPI library with this name: the library is in this process already.
fn symbol(name: &CStr) -> *mut c_void {
    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, name: *const std::ffi::c_char) -> *mut c_void;
    }
    // SAFETY: the handle stands for all libraries of the process, and the name ends with a zero byte.
    let symbol = unsafe { dlsym(ptr::null_mut(), name.as_ptr()) };
    assert!(!symbol.is_null(), "{name:?}");
    symbol
}

/// `MPI_Allgather` of one number.
fn all_gather(comm: MpiComm, nodes: u16, own: u64) -> Vec<u64> {
    type Function<Comm, Type> =
        unsafe extern "C" fn(*const c_void, c_int, Type, *mut c_void, c_int, Type, Comm) -> c_int;
    let function = symbol(c"MPI_Allgather");
    let mut all = vec![0_u64; nodes.into()];
    let (from, to) = ((&raw const own).cast(), all.as_mut_ptr().cast());
    // SAFETY: the function has this type in libraries with handles of this width; the memory outlives the call.
    let code = unsafe {
        match (comm.pointer(), comm.int()) {
            (Some(comm), _) => {
                let call: Function<*mut c_void, *mut c_void> = std::mem::transmute(function);
                let byte = symbol(c"ompi_mpi_byte");
                call(from, 8, byte, to, 8, byte, comm)
            }
            (_, Some(comm)) => {
                let call: Function<c_int, c_int> = std::mem::transmute(function);
                let byte = 0x4c00_010d;
                call(from, 8, byte, to, 8, byte, comm)
            }
            _ => unreachable!("a handle has a width"),
        }
    };
    assert_eq!(code, 0);
    all
}

/// What the processes run; set by the tests below.
const TASK: &str = "ANABRANCH_COMMUNICATORS_TASK";
/// A folder in which each process notes that it has come to the end.
const FOLDER: &str = "ANABRANCH_COMMUNICATORS_FOLDER";

/// What each process of an MPI program runs; no test otherwise.
#[test]
fn one_process() {
    let _deadline = deadline();
    let Ok(task) = env::var(TASK) else { return };
    let node = match task.as_str() {
        "gathers" => gathers(),
        "one thread at a time" => one_thread_at_a_time(),
        other => panic!("no task {other}"),
    };
    fs::write(Path::new(&env::var(FOLDER).unwrap()).join(node.to_string()), "").unwrap();
}

/// Calls of MPI in tasks of two communicators, beside transfers of the runtime. Two programs one after the other.
fn gathers() -> u16 {
    let mut me = 0;
    for _ in 0..2 {
        let rt = Runtime::builder().threads(2).communicators(true).build().unwrap();
        let (node, count) = (rt.node(), rt.nodes());
        let comms = [rt.communicator().unwrap(), rt.communicator().unwrap()];
        let u = rt.buffer_from(&[1_u64; 5000]).unwrap();
        let sums = rt.buffer_from(&vec![0_u64; count.into()]).unwrap();
        for step in 0..200_u64 {
            rt.task("turn")
                .over([5000])
                .update(&u, one_to_one())
                .kernel(move |tile, (u,)| {
                    tile.points().for_each(|i| u[i] += step);
                })
                .unwrap();
            // Every node needs data of every other one.
            rt.task("sum")
                .collective()
                .read(&u, all())
                .update(&sums, one_to_one())
                .host(move |_, (u, sums)| {
                    sums[[node.into()]] += u.run([0]).iter().sum::<u64>();
                })
                .unwrap();
            let comm = &comms[(step % 2) as usize];
            rt.task("gather")
                .collective()
                .update(&sums, one_to_one())
                .effect(comm, sequential())
                .host(move |_, (sums, comm)| {
                    let comm = comm.expect("mpirun has started this process");
                    let own = sums[[node.into()]] * u64::from(node + 1);
                    let all = all_gather(comm, count, own);
                    let sum: u64 = all.iter().sum();
                    let factors = u64::from(count) * u64::from(count + 1) / 2;
                    assert_eq!(sum, sums[[node.into()]] * factors);
                })
                .unwrap();
        }
        rt.wait().unwrap();
        me = node;
    }
    me
}

/// The first runtime of a process has said that one thread at a time calls MPI.
fn one_thread_at_a_time() -> u16 {
    let rt = Runtime::new().unwrap();
    let node = rt.node();
    drop(rt);
    let Err(Error::Connect(why)) = Runtime::builder().communicators(true).build() else { panic!("no error") };
    assert!(matches!(*why, WireError::OneThreadAtATime { .. }), "{why}");
    let rt = Runtime::new().unwrap();
    rt.wait().unwrap();
    node
}

fn complete(mpi: &Mpi, nodes: u16, task: &str) {
    let folder = tempfile::tempdir().unwrap();
    let output = mpi.run_test(nodes, "one_process", |command| {
        command.env(TASK, task).env(FOLDER, folder.path());
    });
    let Some(output) = output else { return };
    let ended = fs::read_dir(folder.path()).unwrap().count();
    let text = text(&output);
    assert!(
        output.status.success() && ended == usize::from(nodes),
        "{task}, {} of {nodes}:\n{text}",
        mpi.mpirun()
    );
}

#[test]
fn tasks_call_open_mpi() {
    let _deadline = deadline();
    for nodes in [2, 3, 4] {
        complete(&OPEN_MPI, nodes, "gathers");
    }
    complete(&OPEN_MPI, 2, "one thread at a time");
}

#[test]
fn tasks_call_mpich() {
    let _deadline = deadline();
    for nodes in [2, 3] {
        complete(&MPICH, nodes, "gathers");
    }
    complete(&MPICH, 2, "one thread at a time");
}
