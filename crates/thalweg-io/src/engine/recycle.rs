//! The way back for batches: reused, so that a run in its steady state allocates nothing for
//! values.

use std::fmt;
use std::sync::Arc;

use super::Decoder;
use super::state::Shared;

/// Takes batches back, also after the run that made them was dropped.
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

    /// Says that a batch will not come back, or not soon: the run may make another in its stead.
    pub fn forget(&self) {
        self.0.take_back(None, true);
    }

    /// Gives back a batch that was forgotten.
    pub fn restock(&self, batch: B) {
        self.0.take_back(Some(batch), false);
    }
}

/// Where batches go back to.
pub(super) trait TakeBack<B>: Send + Sync {
    /// Pools `batch`; `counted` says that one fewer is out.
    fn take_back(&self, batch: Option<B>, counted: bool);
}

impl<D: Decoder> TakeBack<D::Batch> for Shared<D> {
    fn take_back(&self, batch: Option<D::Batch>, counted: bool) {
        self.recycle(batch, counted);
    }
}
