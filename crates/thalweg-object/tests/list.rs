//! Lists of objects against a server that behaves as told, in a process whose environment is set
//! for it.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::process::Command;
use std::time::Duration;

use thalweg_io::control::Control;
use thalweg_io::store::Store;
use thalweg_io::urls::{Depth, Entry};
use thalweg_io::{Error, Result};
use thalweg_object::{Patience, list, open};
use thalweg_testing::http_server::{Answer, Asked, ObjectServer};
use thalweg_testing::no_hang;

const PATIENCE: Patience =
    Patience { read: Duration::from_secs(5), request: Duration::from_secs(2) };
/// Says, to this test's own process, which part of it to run.
const PART: &str = "THALWEG_TEST_PART";

/// Names that are hard to get through URLs, XML and queries.
const ODD: [&str; 12] = [
    "a b.blow5",
    "a+b.blow5",
    "a%2Fb.blow5",
    "#?&=.blow5",
    "<é>&amp;\"'.blow5",
    "a\nb.blow5",
    "*[x]?.blow5",
    "a//b.blow5",
    "/a.blow5",
    " a ",
    "日本/語.pod5",
    "~a!(b)@$,;:.blow5",
];

/// Runs a test in a process of its own with the environment of a user of `server`; such a user has
/// no other way to name an end point. `true` in that process.
fn as_user(test: &str, server: &ObjectServer) {
    let done = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(PART, "user")
        .env("AWS_ENDPOINT_URL", server.url(""))
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "eu-north-1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{told}{}", String::from_utf8_lossy(&done.stdout));
}

fn is_user() -> bool {
    std::env::var_os(PART).is_some()
}

fn all(prefix: &str, depth: Depth) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    list(prefix, depth, &Control::new(), PATIENCE, &mut |entry| {
        entries.push(entry);
        Ok(true)
    })?;
    Ok(entries)
}

fn names(prefix: &str, depth: Depth) -> Vec<String> {
    let name = |entry| match entry {
        Entry::Object(object) => object.url,
        Entry::Folder(url) => url,
    };
    let mut names: Vec<String> = all(prefix, depth).unwrap().into_iter().map(name).collect();
    names.sort();
    names
}

fn server(behaviour: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> ObjectServer {
    let server = ObjectServer::start([], behaviour);
    server.set_page(2);
    server
}

#[test]
fn lists_are_whole() {
    if is_user() {
        let wanted: Vec<String> = (0..7).map(|i| format!("s3://bucket/runs/{i}.blow5")).collect();
        assert_eq!(names("s3://bucket/runs/", Depth::One)[..7], wanted);
        assert_eq!(names("s3://bucket/runs/", Depth::One)[7..], ["s3://bucket/runs/deep/"]);
        assert_eq!(names("s3://bucket/runs/d", Depth::All), ["s3://bucket/runs/deep/er/x"]);
        assert_eq!(names("s3://bucket", Depth::One), ["s3://bucket/runs/"]);
        assert!(names("s3://bucket/none/", Depth::All).is_empty());
        assert!(names("s3://other/", Depth::All).is_empty());
        let Entry::Object(object) = all("s3://bucket/runs/3", Depth::One).unwrap().remove(0) else {
            panic!("a folder");
        };
        let opened = open(&object.url, &Control::new(), PATIENCE).unwrap();
        assert_eq!((object.size, object.version.as_deref()), (3, opened.etag()));
        // Whoever has enough asks for no more.
        let mut count = 0;
        list("s3://bucket/runs/", Depth::All, &Control::new(), PATIENCE, &mut |_| {
            count += 1;
            Ok(count < 3)
        })
        .unwrap();
        assert_eq!(count, 3);
        return;
    }
    // Some answers are bad.
    let server = server(|asked| match asked.number % 7 {
        2 => Answer::Refused(503, "SlowDown"),
        3 => Answer::Torn(0.5),
        5 => Answer::Closed,
        _ => Answer::Right,
    });
    for i in 0..7 {
        server.put(&format!("/bucket/runs/{i}.blow5"), vec![0; i]);
    }
    server.put("/bucket/runs/deep/er/x", Vec::new());
    as_user("lists_are_whole", &server);
    assert!(server.asked().iter().all(|asked| asked.headers.contains_key("authorization")));
}

#[test]
fn odd_names_are_listed_and_opened() {
    if is_user() {
        let mut wanted = ODD.map(|name| format!("s3://bucket/{name}"));
        wanted.sort();
        assert_eq!(names("s3://bucket/", Depth::All), wanted);
        for (i, name) in ODD.iter().enumerate() {
            let url = format!("s3://bucket/{name}");
            let object = open(&url, &Control::new(), PATIENCE).unwrap();
            assert_eq!(object.size(), i as u64, "{name:?}");
            assert!(names(&url, Depth::One).contains(&url), "{name:?}");
        }
        return;
    }
    let server = server(|_| Answer::Right);
    for (i, name) in ODD.iter().enumerate() {
        server.put(&format!("/bucket/{name}"), vec![7; i]);
    }
    as_user("odd_names_are_listed_and_opened", &server);
}

#[test]
fn lists_that_lie_are_errors() {
    if is_user() {
        for (bucket, words) in [
            ("endless", "the same part of the list again"),
            ("denied", "AWS_SKIP_SIGNATURE"),
            ("nobucket", "there is no such bucket"),
            ("nonsense", "listing"),
            ("html", "listing"),
            ("negative", "listing"),
            ("empty", "listing"),
        ] {
            let url = format!("s3://{bucket}/");
            let error = no_hang(move || all(&url, Depth::All).unwrap_err()).to_string();
            assert!(error.contains(words) && error.contains(bucket), "{bucket}: {error}");
        }
        // What was not asked for is not taken.
        assert!(names("s3://elsewhere/runs/", Depth::All).is_empty());
        for url in ["http://127.0.0.1:1/runs/", "https://127.0.0.1:1/"] {
            assert!(matches!(all(url, Depth::All), Err(Error::Unsupported { .. })), "{url}");
        }
        return;
    }
    const ENDLESS: &str = "<ListBucketResult><NextContinuationToken>7</NextContinuationToken>\
                           </ListBucketResult>";
    const OTHER: &str = "<ListBucketResult><Contents><Key>../x</Key><Size>1</Size></Contents>\
                         </ListBucketResult>";
    const NEGATIVE: &str = "<ListBucketResult><Contents><Key>x</Key><Size>-1</Size></Contents>\
                            </ListBucketResult>";
    let server = server(|asked| {
        let bucket = asked.target.split(['/', '?']).nth(1).unwrap_or_default();
        match bucket {
            "endless" => Answer::Body(ENDLESS),
            "denied" => Answer::Refused(403, "AccessDenied"),
            "nobucket" => Answer::Refused(404, "NoSuchBucket"),
            "nonsense" => Answer::Body("\0\0\0"),
            "html" => Answer::Body("<html><body>hello</html>"),
            "negative" => Answer::Body(NEGATIVE),
            "empty" => Answer::Body(""),
            "elsewhere" => Answer::Body(OTHER),
            _ => Answer::Right,
        }
    });
    as_user("lists_that_lie_are_errors", &server);
}

#[test]
fn a_list_is_cancelled_while_it_waits() {
    if is_user() {
        let control = Control::new();
        let canceller = control.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            canceller.cancel();
        });
        let long = Patience { read: Duration::from_secs(600), request: Duration::from_secs(600) };
        let ended =
            no_hang(move || list("s3://bucket/", Depth::All, &control, long, &mut |_| Ok(true)));
        assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
        thread.join().unwrap();
        return;
    }
    let server = server(|_| Answer::Never);
    as_user("a_list_is_cancelled_while_it_waits", &server);
}
