//! Compressed frames, appended to the file chunk by chunk.

use crate::file::{
    chunks::{ChunkTable, END_AT, Record},
    immutable_part::end_of,
    ledger::{Ledger, Stamp, Written},
};
use flate2::{Compress, Compression, FlushCompress, Status};
use std::{io, ops::Range};

/// The end of the file moves by a multiple of this. Smaller in tests, so that small files grow several times.
const RESERVE: u64 = if cfg!(test) { 16 << 10 } else { 64 << 20 };

/// A file whose frames are deflated chunks (see [`crate::file::chunks`]).
pub(crate) struct Compressed {
    pub(super) ledger: Ledger,
    table: ChunkTable,
    deflate: Compress,
    /// A chunk after compression.
    packed: Vec<u8>,
    /// A chunk that the frame does not fill.
    padded: Vec<u8>,
    /// Bytes of the current frame that were copied to be padded.
    copied: u64,
    /// The new records of the current frame, with their positions.
    redirected: Vec<(u64, Record)>,
    record: Vec<u8>,
    /// The position of the next chunk.
    end: u64,
    /// The end of the file that its superblock states.
    pub(super) reserved: u64,
}

impl Compressed {
    pub(crate) fn new(ledger: Ledger, table: ChunkTable) -> io::Result<Self> {
        let reserved = end_of(&*ledger.device)?;
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

    pub(crate) fn write_frame(&mut self, index: u64, bytes: &[u8], stamp: Stamp) -> io::Result<Written> {
        let chunks: Vec<_> = self.table.chunks(index).collect();
        self.redirected.clear();
        self.copied = 0;
        for (at, range) in chunks {
            let record = self.append(bytes, range)?;
            self.redirected.push((at, record));
        }
        self.ledger.write_stamp(index, stamp)?;
        self.ledger.barrier_before_replacing(index)?;
        self.redirect(index)?;
        let count = self.ledger.acknowledge(index)?;
        let bytes = self.redirected.iter().map(|(_, record)| u64::from(record.size)).sum();
        Ok(Written { count, bytes, copied: self.copied })
    }

    /// Gives the reserved space back: first the superblock states the new end, then the file shrinks.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if self.reserved > self.end {
            self.ledger.device.write_all_at(&self.end.to_le_bytes(), END_AT)?;
            self.ledger.sync()?;
            self.ledger.device.set_len(self.end)?;
            self.reserved = self.end;
        }
        self.ledger.sync()
    }

    /// Appends one chunk and returns its new record.
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
        // `packed` has room for the chunk itself. If that is too little, compression gains nothing: the chunk
        // is stored raw.
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

    /// Points the records of the frame at its new chunks.
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

/// Moves the end of the file: first the file grows, then its superblock states the new end.
fn extend(ledger: &Ledger, end: u64) -> io::Result<()> {
    ledger.device.set_len(end)?;
    ledger.sync()?;
    ledger.device.write_all_at(&end.to_le_bytes(), END_AT)
}
