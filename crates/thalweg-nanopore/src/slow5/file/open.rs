//! Opening a SLOW5 or BLOW5 file: reading its header.

use std::sync::Arc;

use thalweg_io::open::Options;
use thalweg_io::store::Store;
use thalweg_io::{Error, InFile, Result};

use super::Slow5File;
use crate::file::OpenedFormat;
use crate::record::Header;
use crate::slow5::Parsed;

/// Opens a SLOW5 or BLOW5 file.
pub(crate) fn open(store: &Arc<dyn Store>, _options: &Options) -> Result<OpenedFormat<Slow5File>> {
    let (header, requests) = read_header(&**store)?;
    Ok(OpenedFormat { file: Slow5File, header: Arc::new(header), requests })
}

/// First guess at the size of a header.
const HEADER_GUESS: u64 = 64 << 10;

/// The header of a file, and the number of requests that reading it took.
fn read_header(store: &dyn Store) -> Result<(Header, u64)> {
    let mut want = HEADER_GUESS;
    let mut requests = 0;
    loop {
        let have = want.min(store.size());
        let mut bytes = vec![0; have as usize];
        store.read_at(0, &mut bytes)?;
        requests += 1;
        match Header::parse(&bytes).map_err(|fault| fault.in_file(store.name(), 0, "header"))? {
            Parsed::Done(header) => return Ok((header, requests)),
            Parsed::NeedMore(more) if have == store.size() => {
                return Err(Error::Truncated {
                    file: store.name().clone(),
                    what: format!("a header of at least {more} bytes").into(),
                    offset: 0,
                    size: store.size(),
                    advice: "; fetch the file again",
                });
            }
            Parsed::NeedMore(more) => want = more.max(have + 1),
        }
    }
}
