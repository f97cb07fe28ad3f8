//! Calls of a real MPI library in tasks, under `mpirun`: this test program starts itself as the processes of
//! an MPI program.

use anabranch::{Communicator, MpiComm, WireError, prelude::*};
use std::{
    env,
    ffi::{CStr, c_int, c_void},
    fs,
    path::Path,
    process::Output,
    ptr,
    sync::mpsc,
    thread,
    time::Duration,
};
use testing::{
    deadline,
    mpi::{MPICH, Mpi, OPEN_MPI, text},
};

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
    // SAFETY: the function has this type in libraries with handles of this width; the memory outlives the
    // call.
    let code = unsafe {
        match (comm.open_mpi(), comm.mpich()) {
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
        "failures" => failures(),
        "duplicates" => duplicates(),
        "slow" => slow(),
        "stuck" => stuck(),
        "panics" => panics(),
        other => panic!("no task {other}"),
    };
    fs::write(Path::new(&env::var(FOLDER).unwrap()).join(node.to_string()), "").unwrap();
}

/// Calls of MPI in tasks of two communicators, beside transfers of the runtime. Two programs one after the
/// other.
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

/// What a task needs has failed on one node: no node calls MPI. Tasks of another communicator do.
fn failures() -> u16 {
    let rt = Runtime::builder().threads(1).communicators(true).build().unwrap();
    let (node, count) = (rt.node(), rt.nodes());
    let comms = [rt.communicator().unwrap(), rt.communicator().unwrap()];
    let sum = |u: &Buffer<u64, 1>, comm: &Communicator| {
        let task = rt.task("sum").collective().read(u, one_to_one()).effect(comm, sequential());
        task.host(move |_, (u, comm)| {
            let sum: u64 = all_gather(comm.unwrap(), count, u[[node.into()]]).iter().sum();
            assert_eq!(sum, u64::from(count));
        })
        .unwrap()
    };
    let u = rt.buffer::<u64, 1>([count.into()]);
    rt.task("fails")
        .collective()
        .write(&u, one_to_one())
        .host(move |_, (u,)| {
            u.fill(1);
            if node == 1 { Err("no such file") } else { Ok(()) }
        })
        .unwrap();
    let failed = sum(&u, &comms[0]);
    let good = rt.buffer_from(&vec![1_u64; count.into()]).unwrap();
    let runs = sum(&good, &comms[1]);
    assert!(rt.wait().unwrap_err().to_string().contains("failed on node 1: no such file"));
    assert_eq!((failed.status(), runs.status()), (Status::Skipped, Status::Done));
    node
}

/// Libraries duplicate the communicator that they get. Two tasks do so, while the program makes a third one.
fn duplicates() -> u16 {
    type Dup<Comm> = unsafe extern "C" fn(Comm, *mut Comm) -> c_int;
    type Free<Comm> = unsafe extern "C" fn(*mut Comm) -> c_int;
    fn duplicate_and_free<Comm: Copy>(comm: Comm) {
        let mut made = comm;
        // SAFETY: the functions have these types in libraries with handles of this width.
        unsafe {
            let dup: Dup<Comm> = std::mem::transmute(symbol(c"MPI_Comm_dup"));
            let free: Free<Comm> = std::mem::transmute(symbol(c"MPI_Comm_free"));
            assert_eq!((dup(comm, &mut made), free(&mut made)), (0, 0));
        }
    }
    let rt = Runtime::builder().threads(1).communicators(true).build().unwrap();
    let mut comms = vec![rt.communicator().unwrap(), rt.communicator().unwrap()];
    for _ in 0..5 {
        for comm in &comms[..2] {
            rt.task("library")
                .collective()
                .effect(comm, sequential())
                .host(|_, (comm,)| {
                    let comm = comm.unwrap();
                    for _ in 0..40 {
                        match (comm.open_mpi(), comm.mpich()) {
                            (Some(comm), _) => duplicate_and_free(comm),
                            (_, Some(comm)) => duplicate_and_free(comm),
                            _ => unreachable!("no other library is tested"),
                        }
                    }
                })
                .unwrap();
        }
        comms.push(rt.communicator().unwrap());
    }
    rt.wait().unwrap();
    rt.node()
}

/// A node that is in a call of MPI for longer than the timeout of nodes is not lost.
fn slow() -> u16 {
    let builder = Runtime::builder().threads(1).communicators(true).node_timeout(Duration::from_secs(2));
    let rt = builder.build().unwrap();
    let (node, count) = (rt.node(), rt.nodes());
    let comm = rt.communicator().unwrap();
    rt.task("slow")
        .collective()
        .effect(&comm, sequential())
        .host(move |_, (comm,)| {
            if node == 1 {
                thread::sleep(Duration::from_secs(6));
            }
            assert_eq!(all_gather(comm.unwrap(), count, 1).len(), usize::from(count));
        })
        .unwrap();
    rt.wait().unwrap();
    node
}

/// The run ends while node 0 is in a call that the other one never makes.
fn stuck() -> u16 {
    let builder = Runtime::builder().threads(1).communicators(true).node_timeout(Duration::from_secs(2));
    let rt = builder.build().unwrap();
    let (node, count) = (rt.node(), rt.nodes());
    let comm = rt.communicator().unwrap();
    let (begins, begun) = mpsc::channel();
    rt.task("stuck")
        .collective()
        .effect(&comm, sequential())
        .host(move |_, (comm,)| {
            begins.send(()).unwrap();
            if node == 0 {
                all_gather(comm.unwrap(), count, 1);
            }
        })
        .unwrap();
    if node == 1 {
        // The task begins on all nodes or on none. Before, node 0 may not have submitted it, and the end of
        // the run would refuse it.
        begun.recv_timeout(Duration::from_secs(60)).unwrap();
        thread::scope(|scope| scope.spawn(|| drop(rt.buffer::<u8, 1>([1]))).join().unwrap());
        assert!(rt.wait().is_err());
        // The launcher ends this process, because the other one ends.
        thread::sleep(Duration::from_secs(3600));
    }
    let _ = rt.wait();
    node
}

/// A task panics on every node. Then the run ends, and the processes stay for longer than the timeout.
fn panics() -> u16 {
    let builder = Runtime::builder().threads(1).communicators(true).node_timeout(Duration::from_secs(1));
    let rt = builder.build().unwrap();
    let (node, comm) = (rt.node(), rt.communicator().unwrap());
    rt.task("panics")
        .collective()
        .effect(&comm, sequential())
        .host(|tile, (_,)| assert!(tile.points().count() > 1, "did not converge"))
        .unwrap();
    assert!(rt.wait().is_err());
    thread::scope(|scope| scope.spawn(|| drop(rt.buffer::<u8, 1>([1]))).join().unwrap());
    thread::sleep(Duration::from_secs(4));
    node
}

/// Runs a task on the processes of an MPI program. Returns how many of them have come to its end, and the
/// output.
fn run(mpi: &Mpi, nodes: u16, task: &str, more: &[(&str, &str)]) -> Option<(usize, Output)> {
    let folder = tempfile::tempdir().unwrap();
    let output = mpi.run_test(nodes, "one_process", |command| {
        command.env(TASK, task).env(FOLDER, folder.path()).envs(more.iter().copied());
    })?;
    Some((fs::read_dir(folder.path()).unwrap().count(), output))
}

fn complete(mpi: &Mpi, nodes: u16, task: &str, more: &[(&str, &str)]) {
    let Some((ended, output)) = run(mpi, nodes, task, more) else { return };
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
        complete(&OPEN_MPI, nodes, "gathers", &[]);
    }
    // MPI also serves a program of one process, if the user asks for it.
    complete(&OPEN_MPI, 1, "gathers", &[("ANABRANCH_TRANSPORT", "mpi")]);
    complete(&OPEN_MPI, 2, "one thread at a time", &[]);
    complete(&OPEN_MPI, 3, "failures", &[]);
    complete(&OPEN_MPI, 2, "slow", &[]);
}

#[test]
fn tasks_call_mpich() {
    let _deadline = deadline();
    for nodes in [2, 3] {
        complete(&MPICH, nodes, "gathers", &[]);
    }
    complete(&MPICH, 2, "one thread at a time", &[]);
    complete(&MPICH, 2, "failures", &[]);
    complete(&MPICH, 2, "slow", &[]);
}

#[test]
fn libraries_duplicate_their_communicators() {
    let _deadline = deadline();
    complete(&OPEN_MPI, 3, "duplicates", &[]);
    complete(&MPICH, 2, "duplicates", &[]);
}

#[test]
fn a_process_whose_task_has_panicked_stays() {
    let _deadline = deadline();
    let Some((ended, output)) = run(&OPEN_MPI, 2, "panics", &[]) else { return };
    let text = text(&output);
    assert!(ended == 2 && !text.contains("a task with a communicator does not return"), "{text}");
}

#[test]
fn a_process_that_stays_in_a_call_ends_after_the_run() {
    let _deadline = deadline();
    for mpi in [&OPEN_MPI, &MPICH] {
        let Some((ended, output)) = run(mpi, 2, "stuck", &[]) else { continue };
        let text = text(&output);
        assert!(ended == 0 && !output.status.success(), "{text}");
        assert!(text.contains("a task with a communicator does not return"), "{text}");
    }
}
