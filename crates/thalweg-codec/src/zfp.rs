//! ZFP, as HDF5's filter 32013 stores it (<https://github.com/LLNL/H5Z-ZFP>): the client data of
//! the filter is ZFP's header, and a chunk is the stream without it.

use zfp_rs::{ZfpBitStream, ZfpConfig, ZfpFieldMetadata, ZfpFieldMut, ZfpHeaderMask, ZfpScalar};
use zfp_rs::{ZfpDecompressionError, ZfpScalarType};

use crate::Fault;

/// What a chunk is decoded to, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZfpParams {
    metadata: ZfpFieldMetadata,
    config: ZfpConfig,
}

impl ZfpParams {
    /// Parses the client data: the version of the filter, then ZFP's header.
    ///
    /// # Errors
    /// A message for client data that is no such header.
    pub fn parse(values: &[u32]) -> Result<Self, String> {
        let wrong = |why: String| format!("the filter zfp with the parameters {values:x?}: {why}");
        let Some((_, header)) = values.split_first() else {
            return Err(wrong("no header".into()));
        };
        let bytes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut stream = ZfpBitStream::from_bytes(&bytes).map_err(|e| wrong(e.to_string()))?;
        let header = stream.read_header(ZfpHeaderMask::FULL).map_err(|e| wrong(e.to_string()))?;
        match (header.metadata, header.config) {
            (Some(metadata), Some(config)) => Ok(Self { metadata, config }),
            _ => Err(wrong("an incomplete header".into())),
        }
    }
}

/// Replaces `out` by the values of a chunk, little-endian and at most `most` bytes.
///
/// # Errors
/// A chunk that is too short, or of more than `most` bytes.
pub fn decompress(
    params: &ZfpParams,
    coded: &[u8],
    most: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    out.clear();
    let ZfpFieldMetadata { scalar_type, dims } = params.metadata;
    let sizes = dims.iter().filter(|&&size| size > 0);
    let bytes = sizes.fold(scalar_type.size(), |all, &size| all.saturating_mul(size));
    if bytes > most {
        return Err(Fault::new(0, format!("a chunk of {bytes} bytes"), format!("at most {most}")));
    }
    match scalar_type {
        ZfpScalarType::I32 => values(params, coded, bytes, 0, i32::to_le_bytes, out),
        ZfpScalarType::I64 => values(params, coded, bytes, 0, i64::to_le_bytes, out),
        ZfpScalarType::F32 => values(params, coded, bytes, 0.0, f32::to_le_bytes, out),
        ZfpScalarType::F64 => values(params, coded, bytes, 0.0, f64::to_le_bytes, out),
    }
}

/// Appends `bytes` bytes of values of one type to `out`.
fn values<T: ZfpScalar, const SIZE: usize>(
    params: &ZfpParams,
    coded: &[u8],
    bytes: usize,
    zero: T,
    to_bytes: fn(T) -> [u8; SIZE],
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let refused = |why: String| Fault::new(0, why, "a whole stream of zfp");
    let mut stream = ZfpBitStream::from_bytes(coded).map_err(|e| refused(e.to_string()))?;
    let mut values = vec![zero; bytes / SIZE];
    let mut field = ZfpFieldMut::new(&mut values, params.metadata.dims)
        .map_err(|error| refused(error.to_string()))?;
    stream.decompress(&params.config, &mut field).map_err(|error| match error {
        ZfpDecompressionError::Truncated { required, capacity } => {
            Fault::new(capacity, "the end of the stream", format!("{required} bytes or more"))
        }
        other => refused(other.to_string()),
    })?;
    out.extend(values.into_iter().flat_map(to_bytes));
    Ok(())
}
