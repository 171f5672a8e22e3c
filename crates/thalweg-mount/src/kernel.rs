//! What the kernel is told without having asked.

use std::ffi::{OsStr, OsString};
use std::sync::mpsc::{Receiver, Sender, channel};

use fuser::{INodeNo, Notifier};

type Name = (INodeNo, OsString);

/// Has the kernel forget names, so that it asks for them again.
#[derive(Debug)]
pub(crate) struct Forgetter(Sender<Name>);

impl Forgetter {
    /// A forgetter, and the names for [`tell`].
    pub(crate) fn new() -> (Self, Receiver<Name>) {
        let (sender, names) = channel();
        (Self(sender), names)
    }

    /// Has the kernel forget a name in a folder, once it has the answer to what it asks now.
    pub(crate) fn forget(&self, parent: INodeNo, name: &OsStr) {
        // Nobody needs it once the folder is unmounted.
        let _ = self.0.send((parent, name.to_owned()));
    }
}

/// Passes names to the kernel until the sender is gone. The kernel locks the folder for each name.
/// A thread that answers the kernel must therefore not wait for this one.
pub(crate) fn tell(notifier: &Notifier, names: &Receiver<Name>) {
    for (parent, name) in names {
        // It may not know the name.
        let _ = notifier.inval_entry(parent, &name);
    }
}
