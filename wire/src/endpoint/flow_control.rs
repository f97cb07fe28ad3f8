//! Flow control: how much memory messages may take at their receiver before they are expected.
//!
//! A sender counts the bytes of data messages that each receiver has not yet placed. Beyond a window it sends
//! no data in messages any more, but announces it, however small it is: the data then stays with the sender
//! until the receiver has a place for it. So a node that only sends does not fill its receiver's memory, and
//! nothing waits for credit, so that there is no deadlock.

/// Bytes of data messages on the way to a node or early there.
pub(super) const WINDOW: u32 = 1 << 20;

pub(super) struct FlowControl {
    /// The bytes that each receiver has not placed yet.
    used: Vec<u32>,
    /// The bytes that this node has placed and not yet reported to the sender.
    owed: Vec<u32>,
}

impl FlowControl {
    pub fn new(nodes: u16) -> Self {
        let zeros = vec![0; usize::from(nodes)];
        Self { used: zeros.clone(), owed: zeros }
    }

    /// Whether messages of this size in bytes may be sent.
    pub fn permits(&self, to: u16, bytes: usize) -> bool {
        self.used[usize::from(to)] as usize + bytes <= WINDOW as usize
    }

    pub fn sent(&mut self, to: u16, bytes: usize) {
        self.used[usize::from(to)] += bytes as u32;
    }

    /// A node has placed messages of this node.
    pub fn returned(&mut self, from: u16, bytes: u32) {
        let used = &mut self.used[usize::from(from)];
        *used = used.saturating_sub(bytes);
    }

    /// This node has placed a message. The answer says whether it is time to say so.
    pub fn placed(&mut self, from: u16, bytes: usize) -> bool {
        let owed = &mut self.owed[usize::from(from)];
        *owed += bytes as u32;
        *owed >= WINDOW / 4
    }

    /// What this node says with the next message.
    pub fn take(&mut self, to: u16) -> u32 {
        std::mem::take(&mut self.owed[usize::from(to)])
    }
}
