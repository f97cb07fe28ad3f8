//! Devices that one of their own threads has dropped.
//!
//! A closure of a batch may hold the last handle of a device. Its thread cannot wait for itself, and nothing waits for the thread. If it
//! closed the driver's device, the program could end meanwhile, and the driver would use what the end of the process has freed. So the
//! driver's device stays open until another device is opened or dropped, or for the rest of the process.

use crate::shared::Shared;
use parking_lot::Mutex;
use std::{mem, sync::Arc, thread::JoinHandle};

/// A device without handles.
struct Ended {
    /// Keeps the driver's device open.
    _shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

static ENDED: Mutex<Vec<Ended>> = Mutex::new(Vec::new());

/// Keeps the driver's device of a device whose threads still run.
pub(crate) fn keep(shared: Arc<Shared>, threads: Vec<JoinHandle<()>>) {
    ENDED.lock().push(Ended { _shared: shared, threads });
}

/// Closes the driver's devices whose threads have ended.
pub(crate) fn close() {
    let mut ended = ENDED.lock();
    let (done, running) = mem::take(&mut *ended)
        .into_iter()
        .partition::<Vec<_>, _>(|ended| ended.threads.iter().all(JoinHandle::is_finished));
    *ended = running;
    drop(ended);
    drop(done);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, adapters, open_with};
    use anabranch::device::{Batch, DeviceStep, Upload};
    use std::{sync::Weak, thread, time::Duration};
    use testing::deadline;

    /// The devices that are kept, without keeping them.
    fn kept() -> Vec<Weak<Shared>> {
        ENDED.lock().iter().map(|ended| Arc::downgrade(&ended._shared)).collect()
    }

    #[test]
    fn a_device_that_a_batch_drops_is_closed_by_another_thread() {
        let _deadline = deadline();
        let Some(name) = adapters().first().map(|adapter| adapter.info.name.clone()) else { return };
        let open = || open_with(Some(&name), Settings::default()).expect("it can be opened");
        let gpu = open();
        let (held, (send, dropped)) = (Arc::clone(&gpu), std::sync::mpsc::channel());
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let memory = gpu.allocate(4).expect("it is small");
        // The device thread fills an upload, and the completion thread waits for the device thread.
        let fill = Box::new(move |_: &mut [u8]| {
            let _ = wait.recv();
            drop(held);
            send.send(kept()).expect("the test waits");
        });
        let runs = Vec::new();
        gpu.submit(Batch { steps: vec![DeviceStep::Upload(Upload { to: memory, runs, fill })] });
        drop(gpu);
        go.send(()).expect("the batch waits");
        let kept = dropped.recv().expect("the batch does not wait for itself");
        assert_eq!(kept.len(), 1);
        while kept[0].strong_count() > 1
            || ENDED.lock().iter().any(|ended| !ended.threads.iter().all(JoinHandle::is_finished))
        {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(kept[0].upgrade().is_some(), "the driver's device is still open");
        drop(open());
        assert!(kept[0].upgrade().is_none(), "it is closed");
    }
}
