//! FAST5 files behind the face of a [`ReadFile`].

#[cfg(feature = "hdf5")]
mod check;

use std::sync::Arc;

use super::Options;
use super::layout::Layout;
use crate::error::Result;
use crate::format::slow5::Header;
use crate::store::Store;

#[cfg(not(feature = "hdf5"))]
pub(super) fn layout(store: &Arc<dyn Store>, _: &Options) -> Result<(Layout, Arc<Header>, u64)> {
    Err(crate::Error::Unsupported {
        file: store.name().clone(),
        what: "FAST5 in a build without libhdf5".into(),
        advice: "build thalweg with its feature hdf5".into(),
    })
}

#[cfg(feature = "hdf5")]
pub(super) use with_hdf5::layout;

#[cfg(feature = "hdf5")]
mod with_hdf5 {
    use super::{Arc, Header, Layout, Options, Result, Store};
    use crate::error::Error;
    use crate::format::fast5;
    use crate::reads::{ReadFile, Selection};

    /// What is known of all reads may take this part of the memory budget.
    const TABLE_SHARE: usize = 2;

    /// Finds the reads of a file.
    pub(in crate::reads) fn layout(store: &Arc<dyn Store>, options: &Options) -> Result<(Layout, Arc<Header>, u64)> {
        let layout = fast5::Layout::scan(store, &options.control, options.budget.memory / TABLE_SHARE)?;
        let (header, requests) = (layout.header().clone(), layout.requests());
        Ok((Layout::Fast5(Arc::new(layout)), header, requests))
    }

    impl ReadFile {
        pub(in crate::reads) fn fast5_rows(
            &self,
            layout: &fast5::Layout,
            selection: &Selection,
        ) -> Result<fast5::Rows> {
            let Some(places) = self.places(selection)? else { return Ok(layout.all()) };
            let number = |place: std::ops::Range<u64>| {
                u32::try_from(place.start).map_err(|_| Error::Usage("more than 2^32 reads".into()))
            };
            Ok(layout.some(places.into_iter().map(number).collect::<Result<_>>()?))
        }
    }
}
