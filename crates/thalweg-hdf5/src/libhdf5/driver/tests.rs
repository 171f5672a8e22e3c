#![allow(clippy::unwrap_used)]

use std::sync::mpsc::channel;
use std::time::Duration;

use thalweg_io::store::MemoryStore;

use super::*;

/// A superblock of version 3 with a wrong checksum (specification, section II.A). `flags` are those
/// of an open file.
fn damaged_superblock(flags: u8) -> Vec<u8> {
    let mut bytes = crate::superblock::SIGNATURE.to_vec();
    bytes.extend([3, 8, 8, flags]);
    for address in [0, u64::MAX, 256, 48] {
        bytes.extend(u64::to_le_bytes(address));
    }
    bytes.extend([0xee; 4]);
    bytes.resize(256, 0);
    bytes
}

#[test]
fn a_wrong_checksum_is_an_error_also_in_a_file_that_is_being_written() {
    for flags in [0, WRITTEN, WRITTEN_FOR_READERS, WRITTEN | WRITTEN_FOR_READERS] {
        let (send, receive) = channel();
        // A thread, so that a hang fails the test.
        std::thread::spawn(move || {
            let store: Arc<dyn Store> =
                Arc::new(MemoryStore::new("damaged", damaged_superblock(flags)));
            let (opened, _) = open(&store, &Control::default());
            send.send(opened.err()).unwrap();
        });
        let refused = receive.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
        assert!(refused.0.contains("checksum"), "{flags}: {refused:?}");
    }
}
