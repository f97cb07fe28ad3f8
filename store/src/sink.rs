//! Where frames end up: the order of writes that keeps the file valid at every moment.

use std::io;
use std::ops::Range;

use flate2::{Compress, Compression, FlushCompress, Status};

use crate::chunks::{ChunkTable, END_AT, Record};
use crate::device::{Device, read_u64_at};
use crate::layout::{FramesAt, Layout, StampsAt};
use crate::options::SyncLevel;

/// The moment of the simulation that a frame shows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stamp {
    /// Time steps since the beginning.
    pub step: u64,
    /// Simulated time.
    pub time: f64,
}

/// What came of writing a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    /// How many frames the file holds now.
    pub(crate) count: u64,
    /// Bytes of the frame in the file.
    pub(crate) bytes: u64,
    /// Bytes of the frame that were copied in memory.
    pub(crate) copied: u64,
}

/// Stores frames, one call at a time.
pub(crate) trait FrameSink: Send {
    /// Stores a frame; when this returns `Ok`, the frame is acknowledged.
    fn write_frame(&mut self, index: u64, bytes: &[u8], stamp: Stamp) -> io::Result<Stored>;
    /// Does what remains after the last frame.
    fn finish(&mut self) -> io::Result<()>;
}

/// The sink for a layout; `count` frames are stored already.
pub(crate) fn sink(
    device: Box<dyn Device>,
    layout: &Layout,
    sync: SyncLevel,
    count: u64,
) -> io::Result<Box<dyn FrameSink>> {
    let ledger = Ledger { device, sync, count, count_at: layout.count_at, stamps_at: layout.stamps_at };
    Ok(match &layout.frames_at {
        FramesAt::Contiguous(start) => {
            Box::new(Contiguous { ledger, start: *start, frame_bytes: layout.frame_bytes })
        }
        FramesAt::Chunked(table) => Box::new(Compressed::new(ledger, table.clone())?),
    })
}

/// The count and the stamps, and the device they are on.
struct Ledger {
    device: Box<dyn Device>,
    sync: SyncLevel,
    count: u64,
    count_at: u64,
    stamps_at: Option<StampsAt>,
}

impl Ledger {
    fn write_stamp(&self, index: u64, stamp: Stamp) -> io::Result<()> {
        let Some(at) = self.stamps_at else { return Ok(()) };
        self.device.write_all_at(&stamp.step.to_ne_bytes(), at.step + 8 * index)?;
        self.device.write_all_at(&stamp.time.to_ne_bytes(), at.time + 8 * index)
    }

    /// Puts a barrier between what was written and what will be, if each frame is to be safe.
    fn barrier(&self) -> io::Result<()> {
        if self.sync == SyncLevel::Frame { self.device.sync() } else { Ok(()) }
    }

    /// Counts a frame whose bytes are in place. The count never goes down.
    fn acknowledge(&mut self, index: u64) -> io::Result<u64> {
        self.barrier()?;
        if index >= self.count {
            self.device.write_all_at(&(index + 1).to_ne_bytes(), self.count_at)?;
            self.count = index + 1;
            self.barrier()?;
        }
        Ok(self.count)
    }

    fn sync_at_end(&self) -> io::Result<()> {
        if self.sync == SyncLevel::None { Ok(()) } else { self.device.sync() }
    }
}

/// Frames one after the other.
struct Contiguous {
    ledger: Ledger,
    start: u64,
    frame_bytes: u64,
}

impl FrameSink for Contiguous {
    fn write_frame(&mut self, index: u64, bytes: &[u8], stamp: Stamp) -> io::Result<Stored> {
        self.ledger.device.write_all_at(bytes, self.start + index * self.frame_bytes)?;
        self.ledger.write_stamp(index, stamp)?;
        let count = self.ledger.acknowledge(index)?;
        Ok(Stored { count, bytes: bytes.len() as u64, copied: 0 })
    }

    fn finish(&mut self) -> io::Result<()> {
        self.ledger.sync_at_end()
    }
}

/// How far the file's end moves at a time.
const RESERVE: u64 = 64 << 20;

/// Frames in deflated chunks, appended to the file (see [`crate::chunks`]).
struct Compressed {
    ledger: Ledger,
    table: ChunkTable,
    deflate: Compress,
    /// A chunk after compression.
    packed: Vec<u8>,
    /// A chunk that the frame does not fill.
    padded: Vec<u8>,
    /// Bytes of the frame that is being written that were copied to be padded.
    copied: u64,
    /// The records of the frame that is being written.
    redirected: Vec<(u64, Record)>,
    record: Vec<u8>,
    /// Where the next chunk goes.
    end: u64,
    /// The end of the file as its superblock has it.
    reserved: u64,
}

impl Compressed {
    fn new(ledger: Ledger, table: ChunkTable) -> io::Result<Self> {
        let reserved = u64::from_le(read_u64_at(&*ledger.device, END_AT)?);
        Ok(Self {
            deflate: Compress::new(Compression::new(table.level.into()), true),
            packed: Vec::with_capacity(table.chunk_bytes()),
            padded: Vec::new(),
            copied: 0,
            redirected: Vec::new(),
            record: vec![0; table.record_len()],
            end: reserved.next_multiple_of(8),
            reserved,
            ledger,
            table,
        })
    }

    /// Appends one chunk and says what its record becomes.
    fn append(&mut self, frame: &[u8], range: Range<usize>) -> io::Result<Record> {
        let mut chunk = &frame[range];
        if chunk.len() < self.table.chunk_bytes() {
            self.padded.clear();
            self.padded.extend_from_slice(chunk);
            self.copied += chunk.len() as u64;
            self.padded.resize(self.table.chunk_bytes(), 0);
            chunk = &self.padded;
        }
        self.packed.clear();
        self.deflate.reset();
        let status = self.deflate.compress_vec(chunk, &mut self.packed, FlushCompress::Finish)?;
        // Without enough room the chunk does not become smaller: it is stored as it is.
        let deflated = status == Status::StreamEnd;
        let bytes = if deflated { &self.packed } else { chunk };
        let address = self.end;
        let end = (address + bytes.len() as u64).next_multiple_of(8);
        if end > self.reserved {
            self.reserved = end.next_multiple_of(RESERVE);
            extend(&self.ledger, self.reserved)?;
        }
        self.ledger.device.write_all_at(bytes, address)?;
        self.end = end;
        Ok(Record { size: bytes.len() as u32, deflated, address })
    }

    fn redirect(&mut self, frame: u64) -> io::Result<()> {
        for &(at, record) in &self.redirected {
            self.ledger.device.read_exact_at(&mut self.record, at)?;
            if self.table.decode(&self.record, frame).is_none() {
                return Err(io::Error::other("another program has changed the file's chunk index"));
            }
            self.table.encode(record, &mut self.record);
            self.ledger.device.write_all_at(&self.record, at)?;
        }
        Ok(())
    }
}

/// Moves the end of the file: first the file grows, then its superblock says so.
fn extend(ledger: &Ledger, end: u64) -> io::Result<()> {
    ledger.device.set_len(end)?;
    ledger.sync_at_end()?;
    ledger.device.write_all_at(&end.to_le_bytes(), END_AT)
}

impl FrameSink for Compressed {
    fn write_frame(&mut self, index: u64, bytes: &[u8], stamp: Stamp) -> io::Result<Stored> {
        let chunks: Vec<_> = self.table.chunks(index).collect();
        self.redirected.clear();
        self.copied = 0;
        for (at, range) in chunks {
            let record = self.append(bytes, range)?;
            self.redirected.push((at, record));
        }
        self.ledger.write_stamp(index, stamp)?;
        self.ledger.barrier()?;
        self.redirect(index)?;
        let count = self.ledger.acknowledge(index)?;
        let bytes = self.redirected.iter().map(|(_, record)| u64::from(record.size)).sum();
        Ok(Stored { count, bytes, copied: self.copied })
    }

    /// Gives the reserved space back: first the superblock forgets it, then the file shrinks.
    fn finish(&mut self) -> io::Result<()> {
        if self.reserved > self.end {
            self.ledger.device.write_all_at(&self.end.to_le_bytes(), END_AT)?;
            self.ledger.sync_at_end()?;
            self.ledger.device.set_len(self.end)?;
            self.reserved = self.end;
        }
        self.ledger.sync_at_end()
    }
}
