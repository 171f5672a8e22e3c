//! Verbs on objects at URLs: what they print is what they print for the file.

use std::fs;
use std::time::Duration;

use thalweg_testing::http_server::{Answer, Asked, ObjectServer};

use crate::common::Folder;

/// A folder with a file of each format of reads, and a server that has these files in a bucket.
pub(crate) fn served(
    behaviour: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
) -> (Folder, ObjectServer) {
    let folder = Folder::new();
    folder.synth("r.blow5", "300k");
    folder.ok(&["convert", "r.blow5", "r.pod5", "--lossy"]);
    folder.ok(&["convert", "r.blow5", "r.slow5"]);
    let files = ["/runs/r.blow5", "/runs/r.pod5", "/runs/r.slow5"];
    let object = |path: &'static str| {
        let name = path.rsplit('/').next().unwrap();
        (path, fs::read(folder.path(name)).unwrap())
    };
    let server = ObjectServer::start(files.map(object), behaviour);
    (folder, server)
}

/// The output of a verb that reads from a bucket of the server.
pub(crate) fn from_bucket(
    folder: &Folder,
    server: &ObjectServer,
    args: &[&str],
) -> std::process::Output {
    folder
        .command(args)
        .env("AWS_ENDPOINT_URL", server.url(""))
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "eu-north-1")
        .output()
        .unwrap()
}

#[test]
fn objects_are_read_as_files_are() {
    // Some answers are bad, as they are on a busy day.
    let (folder, server) = served(|asked| match asked.number % 11 {
        3 => Answer::Refused(503, "SlowDown"),
        5 => Answer::Torn(0.4),
        7 => Answer::Late(Duration::from_millis(5)),
        _ => Answer::Right,
    });
    for name in ["r.blow5", "r.pod5", "r.slow5"] {
        let local = folder.ok(&["read", name, "--digest"]);
        let http = server.url(&format!("/runs/{name}?signature=secret"));
        assert_eq!(folder.ok(&["read", &http, "--digest"]), local);
        let url = format!("s3://runs/{name}");
        let done = from_bucket(&folder, &server, &["read", &url, "--digest"]);
        assert_eq!(String::from_utf8_lossy(&done.stdout), local, "{done:?}");
        let checked = from_bucket(&folder, &server, &["check", &url]);
        assert!(checked.status.success(), "{checked:?}");
        assert!(from_bucket(&folder, &server, &["info", &url]).status.success());
        let table = format!("{name}.csv");
        let scanned = from_bucket(&folder, &server, &["scan", &url, "--out", &table]);
        assert!(scanned.status.success(), "{scanned:?}");
    }
    let of_bucket =
        server.asked().into_iter().filter(|asked| asked.headers.contains_key("authorization"));
    assert!(of_bucket.count() > 10, "requests are signed");
    // No verb takes a URL for a path of a new folder.
    assert!(fs::read_dir(folder.path(".")).unwrap().all(|entry| {
        let name = entry.unwrap().file_name();
        !name.to_string_lossy().contains(':')
    }));
}

#[test]
fn the_index_of_an_object_is_of_its_version() {
    let (folder, server) = served(|_| Answer::Right);
    let url = server.url("/runs/r.blow5");
    let ids = folder.ok(&["scan", "r.blow5", "--tsv"]);
    let id = ids.lines().nth(1).unwrap().split('\t').next().unwrap().to_owned();
    fs::write(folder.path("ids"), format!("{id}\n")).unwrap();
    let wanted = folder.ok(&["read", "r.blow5", "--ids", "ids", "--digest"]);
    let fetched = |before: u64| server.sent() - before;

    let before = server.sent();
    assert_eq!(folder.ok(&["read", &url, "--ids", "ids", "--digest"]), wanted);
    let whole = fetched(before);
    let before = server.sent();
    assert_eq!(folder.ok(&["read", &url, "--ids", "ids", "--digest"]), wanted);
    assert!(fetched(before) < whole / 2, "the index was kept");

    // Another version has another index.
    folder.synth("other.blow5", "200k");
    server.put("/runs/r.blow5", fs::read(folder.path("other.blow5")).unwrap());
    let other = folder.ok(&["scan", "other.blow5", "--tsv"]);
    assert_eq!(folder.ok(&["scan", &url, "--tsv"]).lines().count(), other.lines().count());
    let info = folder.ok(&["info", &url]);
    assert!(info.contains("no index"), "{info}");
}

#[test]
fn what_is_wrong_with_an_object_is_said() {
    let (folder, server) = served(|asked| match &*asked.target {
        "/runs/denied" => Answer::Refused(403, "AccessDenied"),
        "/runs/moved" => Answer::Refused(301, "PermanentRedirect"),
        "/runs/skewed" => Answer::Refused(403, "RequestTimeTooSkewed"),
        _ => Answer::Right,
    });
    for (name, words) in [
        ("none", "there is no such object"),
        ("denied", "AWS_SKIP_SIGNATURE"),
        ("moved", "another region"),
        ("skewed", "clock"),
    ] {
        for verb in ["info", "read", "check"] {
            let done = from_bucket(&folder, &server, &[verb, &format!("s3://runs/{name}")]);
            let told = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.code() == Some(1) && told.contains(words), "{verb}: {told}");
        }
    }
    let done = from_bucket(&folder, &server, &["doctor", "s3://runs"]);
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && told.contains("no object in it"), "{told}");
    // A query may hold a signature.
    let told = folder.fails(1, &["info", &server.url("/none?X-Amz-Signature=abc")]);
    assert!(told.contains("/none: ") && !told.contains("abc"), "{told}");
}

#[test]
fn no_signature_is_printed_or_written() {
    let (folder, server) = served(|_| Answer::Right);
    let url = |name: &str| {
        let plain = server.url(&format!("/runs/{name}"));
        plain.replace("http://", "http://me:word@") + "?X-Amz-Signature=SECRET"
    };
    let (blow5, pod5) = (url("r.blow5"), url("r.pod5"));
    for args in [
        vec!["scan", &blow5],
        vec!["scan", &blow5, "--out", "table.csv"],
        vec!["info", &pod5, "--json"],
        vec!["check", &pod5, "--json"],
        vec!["doctor", &pod5, "--json"],
        vec!["merge", &blow5, &blow5, "--out", "merged.blow5"],
        vec!["split", &blow5, "--by", "file", "--out", "parts"],
        vec!["convert", &blow5, &blow5],
        vec!["check", &blow5, "--salvage", &blow5],
        vec!["evict", &blow5],
        vec!["read", &blow5, "--ids", &blow5],
    ] {
        let done = folder.command(&args).output().unwrap();
        let said = [&*done.stdout, &*done.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(!said.contains("SECRET") && !said.contains("word"), "{args:?}: {said}");
        assert!(!said.contains("panicked"), "{args:?}: {said}");
    }
    let table = fs::read_to_string(folder.path("table.csv")).unwrap();
    assert!(table.contains("/runs/r.blow5") && !table.contains("SECRET"), "{table}");
    let parts: Vec<_> = fs::read_dir(folder.path("parts")).unwrap().collect();
    let name = |part: &std::io::Result<fs::DirEntry>| part.as_ref().unwrap().file_name();
    assert!(parts.iter().all(|part| !name(part).to_string_lossy().contains("SECRET")), "{parts:?}");
}

#[test]
fn a_service_without_a_scheme_is_a_mistake_and_an_empty_one_is_none() {
    let (folder, server) = served(|_| Answer::Right);
    let info = |endpoint: &str| {
        let mut command = folder.command(["info", "s3://runs/r.pod5", "--timeout", "2"]);
        command.env("AWS_ENDPOINT_URL", endpoint).env("AWS_ENDPOINT_URL_S3", server.url(""));
        command.env("AWS_SKIP_SIGNATURE", "true").env("AWS_REGION", "eu-north-1");
        command.output().unwrap()
    };
    let mistaken = info("127.0.0.1:9000");
    let said = String::from_utf8_lossy(&mistaken.stderr).into_owned();
    assert_eq!(mistaken.status.code(), Some(1), "{said}");
    assert!(said.contains("AWS_ENDPOINT_URL") && said.contains("http://"), "{said}");
    let done = info("");
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn the_index_of_a_pod5_file_is_written_to_a_bucket() {
    let (folder, server) = served(|_| Answer::Right);
    let out = "s3://runs/r.pod5.idx";
    let done = from_bucket(&folder, &server, &["index", "r.pod5", "--output", out]);
    assert!(done.status.success(), "{done:?}");
}
