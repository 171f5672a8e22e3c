//! Scratch files on the file system that the build lies on: `/tmp` is often memory.

use std::path::PathBuf;

/// A folder that is removed after the test.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A file of `len` bytes that no compressing file system can make smaller.
pub(crate) fn data_file(dir: &tempfile::TempDir, name: &str, len: usize) -> PathBuf {
    let mut state = 0x7468_616c_7765_6721_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    let bytes: Vec<u8> = words.take(len.div_ceil(8)).flatten().take(len).collect();
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}
