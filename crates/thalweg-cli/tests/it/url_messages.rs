//! What verbs say about URLs (of an unknown kind, of no bucket or server, with an index beside
//! them) and about values of options, and what they say in the end.

use std::fs;

use serde_json::Value;
use thalweg_testing::http_server::{Answer, ObjectServer};

use crate::common::Folder;
use crate::url_plans::{beside, line};
use crate::urls::{from_bucket, served};

#[test]
fn a_server_that_falls_silent_is_given_up_after_the_timeout() {
    // The first requests are answered; then the server is unplugged.
    let (folder, server) = served(|asked| match asked.number {
        0 => Answer::Right,
        1 => Answer::Stuck(0.5),
        _ => Answer::Never,
    });
    let url = server.url("/runs/r.blow5");
    let told = folder.fails(1, &["read", &url, "--timeout", "1"]);
    assert!(told.contains("the time-out being 1 s"), "{told}");
    assert!(told.contains(&url) && told.contains("without progress"), "{told}");
    // A third of the time-out for each request, and a wait between two.
    let asked = server.asked().len();
    assert!((3..=8).contains(&asked), "{asked} requests");
    for verb in ["read", "scan", "check", "info", "index", "doctor"] {
        let told = folder.fails(1, &[verb, &url, "--timeout", "1"]);
        assert!(told.contains("no answer in ") && told.contains("given up after"), "{told}");
    }
    assert!(folder.fails(2, &["read", &url, "--timeout", "0"]).contains("--timeout"));
    // Lists and new objects wait as long.
    let silent = ObjectServer::start([], |_| Answer::Never);
    for args in [
        ["scan", "s3://runs/folder/", "--timeout=1"].as_slice(),
        &["convert", "r.blow5", "s3://runs/new.blow5", "--timeout=1"],
    ] {
        let done = from_bucket(&folder, &silent, args);
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(1) && told.contains("the time-out being 1 s"), "{told}");
    }
}

#[test]
fn a_url_of_another_kind_is_told_from_a_path() {
    let folder = Folder::new();
    folder.synth("r.blow5", "20k");
    for url in ["s4://runs/r.blow5", "ftp://me:word@host/r.blow5", "htp://h/r.blow5"] {
        for args in [
            &["info", url][..],
            &["read", url],
            &["read", "r.blow5", url],
            &["scan", url],
            &["check", url],
            &["index", url],
            &["doctor", url],
            &["probe", url],
            &["evict", url],
            &["plot", url, "--out", "p.png"],
            &["convert", url, "x.pod5"],
            &["convert", "r.blow5", url],
            &["filter", "r.blow5", "--where", "samples > 1", "--out", url],
            &["merge", "r.blow5", &format!("--out={url}")],
            &["graph", "info", url],
            &["graph", "import", url, "net"],
        ] {
            let told = folder.fails(2, args);
            assert!(told.contains("not opened; known are s3://"), "{args:?}: {told}");
            assert!(!told.contains("word"), "{args:?}: {told}");
        }
    }
    let made: Vec<_> = fs::read_dir(folder.path(".")).unwrap().flatten().collect();
    assert!(
        made.iter().all(|entry| entry.file_name().to_string_lossy().starts_with("r.blow5")),
        "{made:?}"
    );
    // A folder of such a name is one.
    fs::create_dir_all(folder.path("s4:/runs")).unwrap();
    fs::copy(folder.path("r.blow5"), folder.path("s4:/runs/r.blow5")).unwrap();
    folder.ok(&["read", "s4://runs/r.blow5"]);
}

#[test]
fn schemes_may_have_capital_letters() {
    let (folder, server) = served(|_| Answer::Right);
    let ok = |args: &[&str]| {
        let done = from_bucket(&folder, &server, args);
        assert!(done.status.success(), "{args:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    let local = folder.ok(&["read", "r.blow5", "--digest"]);
    assert_eq!(ok(&["read", "S3://runs/r.blow5", "--digest"]), local);
    let http = server.url("/runs/r.blow5").replace("http", "HTTP");
    assert_eq!(ok(&["read", &http, "--digest"]), local);
    let table = ok(&["scan", "S3://runs/*.blow5", "--tsv"]);
    assert!(table.contains("runs/r.blow5"), "{table}");
    ok(&["convert", "r.blow5", "S3://runs/new.pod5", "--lossy"]);
    assert!(server.object("/runs/new.pod5").is_some());
    let told =
        from_bucket(&folder, &server, &["convert", "s3://runs/r.blow5", "S3A://runs/r.blow5"]);
    assert!(String::from_utf8_lossy(&told.stderr).contains("the output is the input"), "{told:?}");
    let file = format!("FILE://{}", folder.path("r.blow5").display());
    assert_eq!(ok(&["read", &file, "--digest"]), local);
}

/// Whoever forgets the key does not read all of a bucket.
#[test]
fn a_bucket_alone_is_no_data_set() {
    let (folder, server) = served(|_| Answer::Right);
    for args in [
        &["read", "s3://runs"][..],
        &["info", "s3://runs"],
        &["scan", "s3://runs"],
        &["merge", "s3://runs", "--out", "all.blow5"],
    ] {
        let before = server.asked().len();
        let done = from_bucket(&folder, &server, args);
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && told.contains("s3://runs/ stands for all"), "{told}");
        assert_eq!(server.asked().len(), before, "{args:?}: nothing is asked");
    }
    let all = line(&folder, &server, &["info", "s3://runs/", "--json"]);
    assert_eq!(all["files"], 3, "{all}");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let (folder, server) = served(|asked| {
        let is_none = asked.target.starts_with("/none");
        if is_none { Answer::Refused(404, "NoSuchBucket") } else { Answer::Right }
    });
    // Nothing listens at a port that was just given back.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let dead = |args: &[&str]| {
        let mut command = folder.command(args);
        command.env("AWS_ENDPOINT_URL", format!("http://{address}"));
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
        let done = command.output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{done:?}");
        String::from_utf8(done.stderr).unwrap()
    };
    for args in [
        &["read", "s3://runs/r.blow5"][..],
        &["scan", "s3://runs/"],
        &["convert", "r.blow5", "s3://runs/new.blow5"],
        &["read", &format!("http://{address}/r.blow5")],
    ] {
        let told = dead(args);
        assert!(told.contains(&format!("no connection to {address}: ")), "{args:?}: {told}");
    }
    for url in ["s3://none/r.blow5", "s3://none/", "s3://none/*.blow5"] {
        let done = from_bucket(&folder, &server, &["read", url]);
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(told.contains("no such bucket at this service"), "{url}: {told}");
        assert!(!told.contains("no such object"), "{url}: {told}");
    }
}

#[test]
fn values_of_options_are_explained() {
    let folder = Folder::new();
    folder.synth("r.blow5", "20k");
    for seconds in ["0.01", "0", "1h", "86401"] {
        let told = folder.fails(2, &["read", "r.blow5", "--timeout", seconds]);
        assert!(told.contains("no whole number of seconds from 1 to 86400"), "{told}");
    }
    let told = folder.fails(2, &["read", "r.blow5", "--cache", "10"]);
    assert!(told.contains("10 bytes: give 1 MiB or more, as in 20GB"), "{told}");
    let told = folder.fails(2, &["read", "r.blow5", "--cache", "much"]);
    assert!(told.contains("\"much\" is not a size, as in 20GB"), "{told}");
}

#[test]
fn the_index_beside_an_object_is_told() {
    let (folder, server) = beside(|_| Answer::Right);
    let url = "s3://runs/r.blow5";
    let info = |more: &[&str]| line(&folder, &server, &[&["info", url, "--json"], more].concat());
    let codes = |info: &Value| info["findings"].to_string();
    let none = info(&[]);
    assert!(codes(&none).contains("no_index") && none["reads"].is_null(), "{none}");
    folder.ok(&["index", "r.blow5"]);
    let index = fs::read(folder.path("r.blow5.idx")).unwrap();
    server.put("/runs/r.blow5.idx", index);
    let there = info(&[]);
    assert!(codes(&there).contains("index_beside"), "{there}");
    assert!(codes(&there).contains("s3://runs/r.blow5.idx (") && there["reads"].is_null());
    let doctor = line(&folder, &server, &["doctor", url, "--json"]);
    assert!(codes(&doctor).contains("s3://runs/r.blow5.idx"), "{doctor}");
    // To count takes the index, and not the file.
    let before = server.sent();
    let counted = info(&["--count"]);
    assert!(server.sent() - before < 300_000, "{} bytes", server.sent() - before);
    assert_eq!(counted["reads_from"], "index", "{counted}");
    assert_eq!(counted["reads"], folder.json(&["info", "r.blow5", "--json"])[0]["reads"]);
    let here = info(&[]);
    assert!(!codes(&here).contains("index") && here["reads"] == counted["reads"], "{here}");
    // An index of an earlier object is none.
    fs::remove_dir_all(folder.path("cache")).unwrap();
    server.put("/runs/r.blow5", fs::read(folder.path("r.blow5")).unwrap());
    let older = info(&[]);
    assert!(codes(&older).contains("older than the object"), "{older}");
}

#[test]
fn filter_and_scan_say_what_they_did() {
    let folder = Folder::new();
    folder.synth("r.blow5", "300k");
    let all = folder.json(&["info", "r.blow5", "--count", "--json"])[0]["reads"].as_u64().unwrap();
    let said = |args: &[&str]| {
        let done = folder.run(args);
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stderr).unwrap()
    };
    let told = said(&["filter", "r.blow5", "--out", "f.pod5", "--where", "samples > 0", "--lossy"]);
    let line = format!("kept {all} of {all} reads of 1 file -> f.pod5, ");
    assert!(told.lines().any(|told| told.starts_with(&line)), "{told}");
    let told = said(&["scan", "r.blow5", "r.blow5", "--out", "r.csv"]);
    assert!(told.contains(&format!("{all} reads of 1 file -> r.csv, ")), "{told}");
    let told = said(&["scan", "r.blow5", "--where", "samples < 0"]);
    assert!(told.starts_with("0 reads of 1 file -> standard output, "), "{told}");
}
