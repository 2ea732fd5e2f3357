//! The bytes of a deletion vector (protocol, "Deletion Vector Format").
//!
//! A bitmap is the magic number 1681511377 (little endian) and a 64-bit roaring bitmap in the portable form. A file is one byte of
//! format version (1) and blocks; a block is the bitmap's size (big endian), the bitmap, and its CRC-32 (big endian).

use bytes::{Buf, BufMut, Bytes, BytesMut};
use roaring::RoaringTreemap;

const MAGIC: u32 = 1_681_511_377;
const FORMAT: u8 = 1;
const SIZE: usize = 4;
const CHECKSUM: usize = 4;

/// Bytes of a whole block; `None` when the bitmap's size is negative.
pub(crate) fn block_size(size_in_bytes: i32) -> Option<u64> {
    u64::try_from(size_in_bytes).ok().map(|n| n + (SIZE + CHECKSUM) as u64)
}

/// Decodes one block of a file, checking size and checksum.
pub(super) fn decode_block(mut block: &[u8], size_in_bytes: i32) -> Result<RoaringTreemap, String> {
    let expected = usize::try_from(size_in_bytes).map_err(|_| "its size is negative")?;
    if block.len() < SIZE + expected + CHECKSUM {
        return Err("the file is too short".to_owned());
    }
    let size = block.get_u32();
    if usize::try_from(size) != Ok(expected) {
        return Err(format!("its size in the file is {size}, the log says {expected}"));
    }
    let (bitmap, mut checksum) = block.split_at(expected);
    let (found, written) = (crc32fast::hash(bitmap), checksum.get_u32());
    if found != written {
        return Err(format!("its checksum is {found:08x}, the file says {written:08x}"));
    }
    decode(bitmap)
}

/// Decodes a bitmap with its magic number.
pub(super) fn decode(mut bitmap: &[u8]) -> Result<RoaringTreemap, String> {
    match bitmap.try_get_u32_le() {
        Ok(MAGIC) => RoaringTreemap::deserialize_from(bitmap).map_err(|e| format!("it is no roaring bitmap: {e}")),
        Ok(other) => Err(format!("its magic number is {other}, not {MAGIC}")),
        Err(_) => Err("it is too short".to_owned()),
    }
}

/// Writes a file of deletion vectors.
pub(crate) struct BlockWriter {
    bytes: BytesMut,
}

impl BlockWriter {
    /// An empty file.
    pub(crate) fn new() -> Self {
        Self { bytes: BytesMut::from(&[FORMAT][..]) }
    }

    /// Appends a bitmap; its offset in the file and size in bytes.
    pub(crate) fn push(&mut self, rows: &RoaringTreemap) -> Result<(i32, i32), std::io::Error> {
        let too_large = |_| std::io::Error::other("a file of deletion vectors exceeds 2 GiB");
        let offset = i32::try_from(self.bytes.len()).map_err(too_large)?;
        let mut bitmap = Vec::with_capacity(rows.serialized_size() + 4);
        bitmap.put_u32_le(MAGIC);
        rows.serialize_into(&mut bitmap)?;
        let size = i32::try_from(bitmap.len()).map_err(too_large)?;
        self.bytes.put_i32(size);
        self.bytes.put_slice(&bitmap);
        self.bytes.put_u32(crc32fast::hash(&bitmap));
        Ok((offset, size))
    }

    /// The file's bytes.
    pub(crate) fn finish(self) -> Bytes {
        self.bytes.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let first: RoaringTreemap = [3_u64, 4, 5].into_iter().collect();
        let second: RoaringTreemap = [0, 1 << 40].into_iter().collect();
        let mut writer = BlockWriter::new();
        let places = [writer.push(&first).unwrap(), writer.push(&second).unwrap()];
        let file = writer.finish();
        for (rows, (offset, size)) in [first, second].iter().zip(places) {
            assert_eq!(decode_block(&file[offset as usize..], size).as_ref(), Ok(rows));
        }
        let (offset, size) = places[0];
        for bit in 0..(size as usize + SIZE + CHECKSUM) * 8 {
            let mut damaged = file[offset as usize..].to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_block(&damaged, size).is_err(), "bit {bit}");
        }
        assert!(decode_block(&file[offset as usize..20], size).is_err());
    }
}
