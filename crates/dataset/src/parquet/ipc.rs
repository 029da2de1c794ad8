//! Arrow IPC files, mapped into memory: their batches are read where they lie.

use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, MetadataVersion, root_as_footer, root_as_message};
use arrow_schema::SchemaRef;

/// An Arrow IPC file.
#[derive(Debug)]
pub(super) struct ArrowFile {
    buffer: Buffer,
    pub(super) schema: SchemaRef,
    version: MetadataVersion,
    dictionaries: Box<[Block]>,
    blocks: Box<[Block]>,
    /// First row of each batch, and the number of all rows.
    starts: Box<[u64]>,
    compressed: bool,
}

type Result<T> = std::result::Result<T, String>;

fn damaged(what: &str) -> String {
    format!("damaged Arrow data: {what}; fetch or write the file again")
}

impl ArrowFile {
    pub(super) fn open(path: &Path) -> Result<ArrowFile> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        #[expect(
            unsafe_code,
            reason = "the file is a mapping of its pages and not a copy; what others write to it meanwhile can garble \
                      values, which are validated as they are decoded, and a file cut short ends the process as it \
                      would any that maps it"
        )]
        // SAFETY: the mapping is read-only and only read through validating decoders.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(|error| error.to_string())?;
        Self::parse(&Buffer::from(bytes::Bytes::from_owner(map)))
    }

    fn parse(buffer: &Buffer) -> Result<ArrowFile> {
        let trailer = buffer.len().checked_sub(10).ok_or_else(|| damaged("it is too short"))?;
        let tail = buffer[trailer..].first_chunk::<10>().copied().unwrap_or_default();
        let length = read_footer_length(tail).map_err(|error| damaged(&error.to_string()))?;
        let start =
            trailer.checked_sub(length).ok_or_else(|| damaged("the footer is longer than the file"))?;
        let footer = root_as_footer(&buffer[start..trailer]).map_err(|error| damaged(&error.to_string()))?;
        let schema = footer.schema().ok_or_else(|| damaged("it has no schema"))?;
        if !schema.endianness().equals_to_target_endianness() {
            return Err("it was written with another byte order; convert it to parquet".into());
        }
        let schema = try_fb_to_schema(schema).map_err(|error| damaged(&error.to_string()))?;
        let dictionaries = footer.dictionaries().into_iter().flatten().copied().collect();
        let blocks: Box<[Block]> = footer.recordBatches().into_iter().flatten().copied().collect();
        let mut file = ArrowFile {
            version: footer.version(),
            schema: schema.into(),
            dictionaries,
            blocks,
            starts: Box::default(),
            compressed: false,
            buffer: Buffer::clone(buffer),
        };
        let mut starts = vec![0];
        let mut rows = 0u64;
        for block in &file.blocks {
            let data = file.bytes(block)?;
            let head = usize::try_from(block.metaDataLength()).unwrap_or(usize::MAX);
            let head = data.get(..head).unwrap_or_default();
            // Newer files have a marker in front of the length.
            let skip = if head.starts_with(&[0xff; 4]) { 8 } else { 4 };
            let message = root_as_message(head.get(skip..).unwrap_or_default())
                .map_err(|error| damaged(&error.to_string()))?;
            let batch = message.header_as_record_batch().ok_or_else(|| damaged("a batch is none"))?;
            file.compressed |= batch.compression().is_some();
            rows = u64::try_from(batch.length())
                .ok()
                .and_then(|count| rows.checked_add(count))
                .ok_or_else(|| damaged("a batch has no length"))?;
            starts.push(rows);
        }
        file.starts = starts.into();
        Ok(file)
    }

    pub(super) fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// Whether batches are decompressed when they are read, which takes memory.
    pub(super) fn compressed(&self) -> bool {
        self.compressed
    }

    fn bytes(&self, block: &Block) -> Result<Buffer> {
        let range = || {
            let start = usize::try_from(block.offset()).ok()?;
            let head = usize::try_from(block.metaDataLength()).ok()?;
            let length = usize::try_from(block.bodyLength()).ok()?.checked_add(head)?;
            let end = start.checked_add(length)?;
            (end <= self.buffer.len()).then_some((start, length))
        };
        let (start, length) = range().ok_or_else(|| damaged("a batch lies outside the file"))?;
        Ok(self.buffer.slice_with_length(start, length))
    }

    /// A decoder of these columns.
    pub(super) fn decoder(&self, columns: Vec<usize>) -> Result<FileDecoder> {
        let mut decoder = FileDecoder::new(self.schema.clone(), self.version).with_projection(columns);
        for block in &self.dictionaries {
            decoder
                .read_dictionary(block, &self.bytes(block)?)
                .map_err(|error| damaged(&error.to_string()))?;
        }
        Ok(decoder)
    }

    pub(super) fn batch(&self, decoder: &FileDecoder, number: usize) -> Result<RecordBatch> {
        let block = &self.blocks[number];
        let batch = decoder
            .read_record_batch(block, &self.bytes(block)?)
            .map_err(|error| damaged(&error.to_string()))?
            .ok_or_else(|| damaged("a batch is none"))?;
        let rows = self.starts[number + 1] - self.starts[number];
        if batch.num_rows() as u64 == rows { Ok(batch) } else { Err(damaged("a batch has another length")) }
    }
}
