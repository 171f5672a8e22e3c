use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};

use super::{Existing, NewFile, check_output, write_counted};
use crate::Error;

#[test]
fn a_replaced_file_keeps_its_permissions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    for mode in [0o600, 0o640, 0o400] {
        let _ = fs::remove_file(&path);
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let mut new = NewFile::create(&path).unwrap();
        let meanwhile = fs::metadata(new.temporary()).unwrap().permissions().mode();
        assert_eq!(meanwhile & 0o777, mode | 0o600, "nobody else may read it before it is whole");
        new.push(b"new").unwrap();
        new.finish().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}

#[test]
fn a_file_that_appears_is_kept_unless_the_new_one_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let [first, second] = [(); 2].map(|()| NewFile::create(&path).unwrap());
    first.finish().unwrap();
    let error = second.finish().unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error:?}");
    let [first, second] = [(); 2].map(|()| NewFile::replacing(&path).unwrap());
    first.finish().unwrap();
    second.finish().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn links_lead_to_the_file_that_is_replaced_but_not_from_a_sidecar() {
    let folder = tempfile::tempdir().unwrap();
    let [link, path] = ["link", "out"].map(|name| folder.path().join(name));
    fs::write(&path, "old").unwrap();
    symlink(&path, &link).unwrap();
    assert!(matches!(NewFile::sidecar(&link, |_| true).unwrap_err(), Error::Exists { .. }));
    assert!(matches!(NewFile::sidecar(&path, |_| false).unwrap_err(), Error::Exists { .. }));
    let mut new = NewFile::create(&link).unwrap();
    new.push(b"new").unwrap();
    new.finish().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&path).unwrap(), b"new");
    // A link that leads nowhere is replaced itself.
    fs::remove_file(&path).unwrap();
    NewFile::create(&link).unwrap().finish_with(b"new").unwrap();
    assert!(!link.is_symlink() && !path.exists());
    assert_eq!(fs::read(&link).unwrap(), b"new");
}

#[test]
fn nothing_is_appended_to_a_sealed_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let mut new = NewFile::create(&path).unwrap();
    new.push(b"whole").unwrap();
    new.seal().unwrap();
    new.push(b"more").unwrap();
    assert!(new.finish().is_err(), "the last bytes would be lost");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_long_name_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("n".repeat(255));
    NewFile::create(&path).unwrap().finish().unwrap();
    assert!(path.is_file());
}

#[test]
fn a_missing_folder_is_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let error = NewFile::create(&folder.path().join("none/out")).unwrap_err();
    assert!(error.to_string().contains("make the folder first"), "{error}");
}

#[test]
fn an_output_is_no_input_and_replaces_nothing_unless_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("in"), "BLOW5").unwrap();
    fs::hard_link(at("in"), at("hard")).unwrap();
    symlink(at("in"), at("soft")).unwrap();
    symlink(at("nowhere"), at("loose")).unwrap();
    fs::write(at("other"), "other").unwrap();
    fs::write(at("empty"), "").unwrap();
    let check = |name: &str, existing| check_output(&at(name), [at("in")], existing);
    let is_index = |head: &[u8]| head.starts_with(b"index");
    for name in ["in", "hard", "soft"] {
        for existing in [Existing::Keep, Existing::Replace, Existing::ReplaceKind(|_| true)] {
            let error = check(name, existing).unwrap_err();
            assert!(matches!(error, Error::Usage(_)), "{name}: {error}");
        }
    }
    for name in ["other", "loose"] {
        let error = check(name, Existing::Keep).unwrap_err();
        assert!(error.to_string().contains("--force"), "{error}");
        check(name, Existing::Replace).unwrap();
    }
    assert!(check("other", Existing::ReplaceKind(is_index)).is_err());
    assert!(check("loose", Existing::ReplaceKind(|_| true)).is_err());
    assert!(check("other", Existing::Sidecar(is_index)).is_err());
    assert!(check("loose", Existing::Sidecar(|_| true)).is_err());
    check("empty", Existing::ReplaceKind(is_index)).unwrap();
    check("empty", Existing::Sidecar(is_index)).unwrap();
    fs::write(at("other"), "index 1").unwrap();
    check("other", Existing::ReplaceKind(is_index)).unwrap();
    check("new", Existing::Keep).unwrap();
    assert!(check(".", Existing::Replace).is_err());
    assert!(
        check_output(std::path::Path::new("/dev/null"), [at("in")], Existing::Replace).is_err()
    );
}

/// A file on a disk with room for this number of bytes, of which one write takes three.
struct Small(usize);

impl Write for Small {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(self.0).min(3);
        self.0 -= len;
        if len == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(len) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_full_where_the_last_byte_went() {
    let (mut disk, mut written) = (Small(10), 0);
    assert!(write_counted(&mut disk, b"sixsix", &mut written).is_ok() && written == 6);
    let full = write_counted(&mut disk, b"sixsix", &mut written);
    assert_eq!(full.map_err(|error| error.kind()), Err(io::ErrorKind::StorageFull));
    assert_eq!(written, 10);
}

#[test]
fn without_a_writer_a_url_is_an_error() {
    let path = std::path::Path::new("s3://b/k");
    for error in [
        NewFile::create(path).err(),
        NewFile::staged(path).err(),
        check_output(path, [""; 0], Existing::Replace).err(),
        super::NpyFolder::create(path).err(),
        super::remove(path).err(),
    ] {
        let told = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(told.contains("writing to a URL is not supported"), "{told}");
    }
    // It is no path of folders.
    super::create_parent(path).unwrap();
    assert!(!std::path::Path::new("s3:").exists());
}

#[test]
fn a_staged_file_is_a_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let new = NewFile::staged(&path).unwrap();
    fs::write(new.temporary(), "by another library").unwrap();
    assert!(!path.exists());
    new.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"by another library");
}
