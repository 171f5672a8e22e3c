//! The return of batches for reuse, so that a run in its steady state allocates no memory for
//! values.

use std::fmt;
use std::sync::Arc;

use super::Decoder;
use super::state::Shared;

/// Takes batches back, even after the run that made them was dropped.
pub struct Recycler<B>(Arc<dyn TakeBack<B>>);

impl<B> Clone for Recycler<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B> fmt::Debug for Recycler<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recycler").finish_non_exhaustive()
    }
}

impl<B> Recycler<B> {
    pub(super) fn new(home: Arc<dyn TakeBack<B>>) -> Self {
        Self(home)
    }

    /// Gives a batch back.
    pub fn recycle(&self, batch: B) {
        self.0.take_back(Some(batch), true);
    }

    /// Reports that a batch will not come back, or not soon. The run may make another in its place.
    pub fn forget(&self) {
        self.0.take_back(None, true);
    }

    /// Gives back a batch that was reported to [`Recycler::forget`].
    pub fn restock(&self, batch: B) {
        self.0.take_back(Some(batch), false);
    }
}

/// The pool that batches return to.
pub(super) trait TakeBack<B>: Send + Sync {
    /// Pools `batch`. If `counted`, the number of batches outside the pool falls by one.
    fn take_back(&self, batch: Option<B>, counted: bool);
}

impl<D: Decoder> TakeBack<D::Batch> for Shared<D> {
    fn take_back(&self, batch: Option<D::Batch>, counted: bool) {
        self.recycle(batch, counted);
    }
}
