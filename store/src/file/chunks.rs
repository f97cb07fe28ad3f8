//! The chunk index of a compressed file, built so that the file is valid at every moment.
//!
//! HDF5 finds the chunks of a dataset through a B-tree, and would split and rewrite the tree while
//! frames are added: a program that is killed meanwhile would leave a broken file. Here HDF5 builds
//! the whole tree beforehand, with an entry for every chunk of every frame (each points at a
//! few compressed zeros). From then on the tree's shape never changes. A frame is stored by
//! appending its compressed chunks to the file and then redirecting its entries, by one small write each.
//! Files in HDF5's oldest format, which is used for this, have no checksum over the entries.
//!
//! The positions of the entries (here *records*) are kept in the dataset `/chunk_records`.
//!
//! The file ends with space that is reserved for the next chunks, because HDF5 requires that the end in the
//! superblock lies within the file, and that everything it reads lies before that end.

use crate::{Result, StoreError, element::Element, file::device::Device, options::FileOptions};
use hdf5::{
    Dataset, File,
    plist::dataset_create::{AllocTime, FillTime},
};
use std::{ops::Range, path::Path};

/// The dataset that holds the positions of the records.
const RECORDS: &str = "chunk_records";
/// The largest chunk in bytes: half of HDF5's limit of 4 GiB, to stay well below it. Smaller in tests, so
/// that they cut small frames.
const CHUNK_LIMIT: usize = if cfg!(test) { 4096 } else { 2 << 30 };
/// The position of the end-of-file address in a superblock of version 0.
pub(crate) const END_AT: u64 = 40;
/// The bit of the filter mask that means "not deflated".
const STORED_RAW: u32 = 1;

/// The cut of a frame into chunks, and the positions of their records.
///
/// A chunk is a contiguous run of the frame: one index of each leading dimension, a part of the dimension
/// that is cut, and all of the dimensions after it. The last part of the dimension that is cut is padded with
/// zeros.
#[derive(Debug, Clone)]
pub(crate) struct ChunkTable {
    /// Deflate level.
    pub(crate) level: u8,
    cut: Cut,
    /// The position of each chunk's record, in the order of the data.
    records: Vec<u64>,
    /// The position of the address within a record.
    address_at: usize,
}

/// The arithmetic of cutting a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    /// Index combinations before the dimension that is cut.
    outer: usize,
    /// Extent of the dimension that is cut.
    extent: usize,
    /// Extent of one part of it.
    part: usize,
    /// Bytes of one index of the dimension that is cut.
    inner: usize,
}

/// The place of a chunk in the file, as its record has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    /// Bytes of the chunk in the file.
    pub(crate) size: u32,
    /// Whether those bytes are deflated.
    pub(crate) deflated: bool,
    /// Position of those bytes.
    pub(crate) address: u64,
}

/// The extents of a chunk of at most `limit` bytes, for frames of this shape.
fn chunk_shape(frame_shape: &[usize], element: usize, limit: usize) -> Vec<usize> {
    let mut chunk = frame_shape.to_vec();
    for dim in 0..chunk.len() {
        let inner = element * chunk[dim + 1..].iter().product::<usize>();
        if chunk[dim] * inner <= limit {
            break;
        }
        chunk[dim] = (limit / inner).max(1);
    }
    chunk
}

impl Cut {
    fn new(frame_shape: &[usize], chunk_shape: &[usize], element: usize) -> Self {
        let Some(last) = chunk_shape.len().checked_sub(1) else {
            return Self { outer: 1, extent: 1, part: 1, inner: element };
        };
        let dim = chunk_shape.iter().position(|&extent| extent > 1).unwrap_or(last);
        Self {
            outer: frame_shape[..dim].iter().product(),
            extent: frame_shape[dim],
            part: chunk_shape[dim],
            inner: element * frame_shape[dim + 1..].iter().product::<usize>(),
        }
    }

    fn per_frame(&self) -> usize {
        self.outer * self.extent.div_ceil(self.part)
    }

    fn chunk_bytes(&self) -> usize {
        self.part * self.inner
    }

    /// The bytes of the frame that chunk number `chunk` holds.
    fn range(&self, chunk: usize) -> Range<usize> {
        let parts = self.extent.div_ceil(self.part);
        let (outer, part) = (chunk / parts, chunk % parts);
        let first = part * self.part;
        let last = (first + self.part).min(self.extent);
        let start = outer * self.extent;
        (start + first) * self.inner..(start + last) * self.inner
    }
}

/// Creates the chunked dataset, with space and an entry for every chunk, and the dataset for the records.
pub(crate) fn create<T: Element>(file: &File, shape: &[usize], level: u8, name: &str) -> hdf5::Result<()> {
    if !hdf5::filters::deflate_available() {
        return Err("this HDF5 library was built without deflate (zlib)".into());
    }
    let chunk = chunk_shape(&shape[1..], size_of::<T>(), CHUNK_LIMIT);
    let chunks = shape[0] * Cut::new(&shape[1..], &chunk, size_of::<T>()).per_frame();
    let chunk: Vec<usize> = std::iter::once(1).chain(chunk).collect();
    file.new_dataset::<T>()
        .shape(shape.to_vec())
        .chunk(chunk)
        .deflate(level)
        .alloc_time(Some(AllocTime::Early))
        .fill_time(FillTime::Alloc)
        .create(name)?;
    file.new_dataset::<u64>()
        .shape([chunks])
        .alloc_time(Some(AllocTime::Early))
        .fill_time(FillTime::Never)
        .create(RECORDS)?;
    Ok(())
}

/// Finds the records in a file that is being laid out, and stores their positions in it.
pub(crate) fn index(file: &File, path: &Path, options: &FileOptions, element: usize) -> Result<()> {
    let failed = |e| StoreError::hdf5("lay out", &options.path, e);
    file.flush().map_err(failed)?;
    let bytes = std::fs::read(path).map_err(|e| StoreError::io("read", path, e))?;
    let chunk = chunk_shape(options.extents(), element, CHUNK_LIMIT);
    let mut frames = vec![options.frames as usize];
    frames.extend(options.extents());
    let chunk: Vec<usize> = std::iter::once(1).chain(chunk).collect();
    let records = find_records(&bytes, &frames, &chunk)
        .ok_or_else(|| StoreError::format(&options.path, "HDF5 laid out the chunks in an unknown way"))?;
    file.dataset(RECORDS).and_then(|dataset| dataset.write_raw(&records)).map_err(failed)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The positions of all records in the order of the data. `None` if the file is not as expected.
fn find_records(bytes: &[u8], shape: &[usize], chunk: &[usize]) -> Option<Vec<u64>> {
    // Superblock: signature, version 0, 8-byte offsets and lengths.
    if bytes.get(..9)? != b"\x89HDF\r\n\x1a\n\0" || bytes.get(13..15)? != [8, 8] {
        return None;
    }
    let per_dim: Vec<usize> = shape.iter().zip(chunk).map(|(s, c)| s.div_ceil(*c)).collect();
    let mut records = vec![0_u64; per_dim.iter().product()];
    let mut found = 0;
    let record_len = 16 + 8 * (shape.len() + 1);
    for node in (0..bytes.len()).step_by(8) {
        // Leaf of a B-tree (version 1) over chunks: signature, type 1, level 0, number of entries.
        if bytes.get(node..node + 6) != Some(b"TREE\x01\0") {
            continue;
        }
        let entries = u16::from_le_bytes([*bytes.get(node + 6)?, *bytes.get(node + 7)?]);
        for entry in 0..usize::from(entries) {
            let at = node + 24 + entry * record_len;
            let mut index = 0;
            for (dim, &count) in per_dim.iter().enumerate() {
                let offset = usize::try_from(u64_at(bytes, at + 8 + 8 * dim)?).ok()?;
                if offset % chunk[dim] != 0 || offset / chunk[dim] >= count {
                    return None;
                }
                index = index * count + offset / chunk[dim];
            }
            if records[index] != 0 {
                return None;
            }
            records[index] = at as u64;
            found += 1;
        }
    }
    (found == records.len()).then_some(records)
}

impl ChunkTable {
    /// Reads the table of a dataset that [`create`] and [`index`] made.
    pub(crate) fn read(file: &File, path: &Path, dataset: &Dataset, element: usize) -> Result<Self> {
        let unusable = || {
            StoreError::format(path, "its frames are in chunks of another program, and no frame can be added")
        };
        let [hdf5::filters::Filter::Deflate(level)] = dataset.filters()[..] else { return Err(unusable()) };
        let chunk = dataset.chunk().ok_or_else(unusable)?;
        let shape = dataset.shape();
        let cut = Cut::new(&shape[1..], &chunk[1..], element);
        let records = file.dataset(RECORDS).and_then(|d| d.read_raw::<u64>()).map_err(|_| unusable())?;
        if chunk[0] != 1 || records.len() != shape[0] * cut.per_frame() {
            return Err(unusable());
        }
        let table = Self { level, cut, records, address_at: 8 * (shape.len() + 2) };
        // A program that rewrites the file (h5repack) copies the positions but changes the tree, so they must
        // be checked.
        let file = std::fs::File::open(path).map_err(|e| StoreError::io("open", path, e))?;
        let mut bytes = vec![0; table.record_len()];
        for frame in [0, shape[0] as u64 - 1] {
            for (at, _) in table.chunks(frame) {
                let read = file.read_exact_at(&mut bytes, at);
                read.ok().and_then(|()| table.decode(&bytes, frame)).ok_or_else(unusable)?;
            }
        }
        Ok(table)
    }

    /// The chunks of a frame: the position of each one's record, and the bytes of the frame that it holds.
    pub(crate) fn chunks(&self, frame: u64) -> impl Iterator<Item = (u64, Range<usize>)> + '_ {
        let per_frame = self.cut.per_frame();
        let first = frame as usize * per_frame;
        (0..per_frame).map(move |chunk| (self.records[first + chunk], self.cut.range(chunk)))
    }

    /// The lowest position of a record.
    pub(crate) fn first_record(&self) -> u64 {
        self.records.iter().copied().min().unwrap_or(u64::MAX)
    }

    /// The bytes of a chunk before compression.
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.cut.chunk_bytes()
    }

    /// The length of a record.
    pub(crate) fn record_len(&self) -> usize {
        self.address_at + 8
    }

    /// Redirects a record: replaces everything but the chunk's place in the dataset.
    pub(crate) fn encode(&self, record: Record, bytes: &mut [u8]) {
        let mask = if record.deflated { 0 } else { STORED_RAW };
        bytes[..4].copy_from_slice(&record.size.to_le_bytes());
        bytes[4..8].copy_from_slice(&mask.to_le_bytes());
        bytes[self.address_at..].copy_from_slice(&record.address.to_le_bytes());
    }

    /// Reads a record. `None` if the bytes are no record of a chunk of this frame.
    pub(crate) fn decode(&self, bytes: &[u8], frame: u64) -> Option<Record> {
        let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        if u64_at(bytes, 8)? != frame || u64_at(bytes, self.address_at - 8)? != 0 {
            return None;
        }
        let deflated = number(4) & STORED_RAW == 0;
        Some(Record { size: number(0), deflated, address: u64_at(bytes, self.address_at)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileOptions, Reader, Stamp};

    #[test]
    fn a_frame_is_cut_at_the_first_dimension_that_is_too_large() {
        assert_eq!(chunk_shape(&[10, 20], 4, 800), [10, 20]);
        assert_eq!(chunk_shape(&[10, 20], 4, 799), [9, 20]);
        assert_eq!(chunk_shape(&[10, 20], 4, 79), [1, 19]);
        assert_eq!(chunk_shape(&[10, 20], 4, 1), [1, 1]);
        assert_eq!(chunk_shape(&[], 4, 1), [0; 0]);
    }

    #[test]
    fn the_chunks_of_a_frame_cover_it_in_order() {
        for shape in [&[][..], &[1], &[17], &[10, 20], &[1, 7], &[5, 1], &[3, 4, 5], &[1, 1, 6]] {
            for limit in 1..300 {
                let cut = Cut::new(shape, &chunk_shape(shape, 4, limit), 4);
                let mut end = 0;
                for chunk in 0..cut.per_frame() {
                    let range = cut.range(chunk);
                    assert_eq!(range.start, end);
                    assert!(range.len() <= cut.chunk_bytes() && cut.chunk_bytes() <= limit.max(4));
                    end = range.end;
                }
                assert_eq!(end, 4 * shape.iter().product::<usize>());
            }
        }
    }

    #[test]
    fn cut_frames_are_read_back_through_a_tree_of_several_levels() {
        for shape in [&[100, 30][..], &[3, 2000], &[2, 3, 1500]] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("out.h5");
            let mut writer = FileOptions::new(&path)
                .frames(300)
                .frame_shape(shape)
                .compress(Some(1))
                .create::<f32>()
                .unwrap();
            let len: usize = shape.iter().product();
            let frame = |i: usize| (0..len).map(|x| (i * x / 7) as f32).collect::<Vec<_>>();
            for i in 0..300 {
                writer.append(&frame(i), Stamp::default()).unwrap();
            }
            writer.finish().unwrap();
            let all = File::open(&path).unwrap().dataset("matrix").unwrap().read_raw::<f32>().unwrap();
            let reader = Reader::open(&path).unwrap();
            for i in 0..300 {
                assert!(all[i * len..(i + 1) * len] == frame(i));
                assert!(reader.read_frame::<f32>(i as u64).unwrap().as_slice().unwrap() == frame(i));
            }
        }
    }
}
