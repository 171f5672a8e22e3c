//! Changes in a bucket, against a server that behaves well and badly.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg_io::Error;
use thalweg_io::control::Control;
use thalweg_object::{Bucket, Condition, Metadata, Patience};
use thalweg_testing::http_server::{Answer, Asked, ObjectServer};

const MIB: usize = 1 << 20;

fn server(behaviour: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> ObjectServer {
    ObjectServer::start([], behaviour)
}

/// Runs a test with a folder of a bucket of a server.
fn with_bucket(server: &ObjectServer, test: impl FnOnce(Bucket)) {
    with_url(server, "s3://bucket/runs/", test);
}

fn with_url(server: &ObjectServer, url: &str, test: impl FnOnce(Bucket)) {
    let settings = [
        ("aws_endpoint_url", &*server.url("")),
        ("aws_access_key_id", "key"),
        ("aws_secret_access_key", "secret"),
        ("aws_region", "eu-north-1"),
    ];
    let patience = Patience::of(Duration::from_secs(3));
    test(Bucket::with_settings(url, &settings, &Control::new(), patience).unwrap());
}

fn kind(result: Result<String, Error>) -> ErrorKind {
    match result {
        Err(Error::Io { source, .. }) => source.kind(),
        other => panic!("{other:?}"),
    }
}

/// Another mark each time.
fn mark() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed).to_string()
}

fn metadata(pairs: &[(&str, &str)]) -> Metadata {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn objects_are_put_under_conditions() {
    let server = server(|_| Answer::Right);
    with_bucket(&server, |bucket| {
        let given = metadata(&[("mode", "33188"), ("mtime", "1.5")]);
        let first =
            bucket.put("a b", "one".into(), (&given, &mark()), &Condition::Nothing).unwrap();
        assert_eq!(server.object("/bucket/runs/a b").unwrap(), b"one");
        let head = bucket.head("a b").unwrap().unwrap();
        assert_eq!((head.version.size, &head.version.tag), (3, &first));
        assert_eq!(head.metadata["mode"], "33188");
        assert!(head.version.modified.is_some());
        let put = |text: &'static str, condition| {
            bucket.put("a b", text.into(), (&Metadata::new(), &mark()), &condition)
        };
        assert_eq!(kind(put("two", Condition::Nothing)), ErrorKind::StaleNetworkFileHandle);
        let second = put("two", Condition::Tag(first.clone())).unwrap();
        assert_eq!(kind(put("three", Condition::Tag(first))), ErrorKind::StaleNetworkFileHandle);
        assert_ne!(put("three", Condition::Anything).unwrap(), second);
        bucket.remove("a b", &Condition::Anything).unwrap();
        bucket.remove("a b", &Condition::Anything).unwrap();
        assert_eq!(bucket.head("a b").unwrap(), None);
        assert_eq!(kind(put("four", Condition::Tag(second))), ErrorKind::NotFound);
    });
}

#[test]
fn keys_are_any_but_those_that_lead_elsewhere() {
    let server = server(|_| Answer::Right);
    with_url(&server, "s3://bucket", |bucket| {
        for key in ["folder/", "a//b", "é +%", "x#?&=\n"] {
            bucket.put(key, "x".into(), (&Metadata::new(), &mark()), &Condition::Nothing).unwrap();
            assert!(server.object(&format!("/bucket/{key}")).is_some(), "{key:?}");
            let head = bucket.head(key).unwrap().unwrap();
            bucket
                .copy((key, &head.version), &format!("{key}2"), None, &Condition::Anything)
                .unwrap();
            assert!(server.object(&format!("/bucket/{key}2")).is_some(), "{key:?}");
            bucket.remove(key, &Condition::Anything).unwrap();
            assert!(server.object(&format!("/bucket/{key}")).is_none(), "{key:?}");
        }
        let put =
            bucket.put("a/../b", "x".into(), (&Metadata::new(), &mark()), &Condition::Nothing);
        assert!(matches!(put, Err(Error::Unsupported { .. })), "{put:?}");
    });
}

#[test]
fn objects_are_copied_with_their_metadata_or_others() {
    let server = server(|_| Answer::Right);
    with_bucket(&server, |bucket| {
        let bucket = bucket.with_largest_copy(5 * MIB as u64);
        let bytes: Vec<u8> = (0..11 * MIB + 5).map(|at| (at / 77) as u8).collect();
        for len in [0, 1000, bytes.len()] {
            let bytes = bytes[..len].to_vec();
            let given = metadata(&[("mode", "1")]);
            bucket.put("a", bytes.clone().into(), (&given, &mark()), &Condition::Anything).unwrap();
            let version = bucket.head("a").unwrap().unwrap().version;
            let tag = bucket.copy(("a", &version), "b", None, &Condition::Anything).unwrap();
            let head = bucket.head("b").unwrap().unwrap();
            assert_eq!((&head.version.tag, head.version.size), (&tag, len as u64));
            assert_eq!(head.metadata["mode"], "1");
            assert!(server.object("/bucket/runs/b").unwrap() == bytes);
            let other = metadata(&[("mtime", "7")]);
            let given = Some((&other, "other"));
            bucket.copy(("b", &head.version), "b", given, &Condition::Anything).unwrap();
            let found = bucket.head("b").unwrap().unwrap().metadata;
            assert_eq!((found.get("mtime"), found.get("mode")), (Some(&"7".to_owned()), None));
            server.put("/bucket/runs/a", vec![1; 7]);
            let copied = bucket.copy(("a", &version), "c", None, &Condition::Anything);
            assert_eq!(kind(copied), ErrorKind::StaleNetworkFileHandle);
            assert_eq!(server.unfinished(), 0);
        }
    });
}

/// An object that another program has put somewhere is neither replaced nor removed.
#[test]
fn copies_and_removals_have_conditions() {
    let server = server(|_| Answer::Right);
    with_bucket(&server, |bucket| {
        let bucket = bucket.with_largest_copy(5 * MIB as u64);
        for len in [3, 6 * MIB] {
            let given = metadata(&[("mode", "1")]);
            let put = |key, byte| {
                let bytes = vec![byte; len].into();
                bucket.put(key, bytes, (&given, &mark()), &Condition::Anything).unwrap();
                bucket.head(key).unwrap().unwrap().version
            };
            let (a, b) = (put("a", 1), put("b", 2));
            let copy = |condition| bucket.copy(("a", &a), "b", None, &condition);
            assert_eq!(kind(copy(Condition::Nothing)), ErrorKind::AlreadyExists);
            assert_eq!(kind(copy(Condition::Tag(a.tag.clone()))), ErrorKind::AlreadyExists);
            assert_eq!(server.object("/bucket/runs/b").unwrap()[0], 2);
            copy(Condition::Tag(b.tag.clone())).unwrap();
            assert_eq!(server.object("/bucket/runs/b").unwrap()[0], 1);
            // It has gone meanwhile.
            bucket.remove("b", &Condition::Tag(a.tag.clone())).unwrap();
            assert_eq!(kind(copy(Condition::Tag(b.tag.clone()))), ErrorKind::AlreadyExists);
            copy(Condition::Nothing).unwrap();
            // The object that is copied is another one, and the condition holds.
            bucket.remove("b", &Condition::Anything).unwrap();
            put("a", 3);
            assert_eq!(kind(copy(Condition::Nothing)), ErrorKind::StaleNetworkFileHandle);
            let removed = bucket.remove("a", &Condition::Tag(a.tag.clone()));
            assert_eq!(kind(removed.map(|()| String::new())), ErrorKind::StaleNetworkFileHandle);
            assert_eq!(server.object("/bucket/runs/a").unwrap()[0], 3);
            assert_eq!(server.unfinished(), 0);
        }
    });
}

#[test]
fn parts_may_be_sent_again() {
    let server = server(|_| Answer::Right);
    with_bucket(&server, |bucket| {
        let upload = bucket.begin("a", (&metadata(&[("mode", "1")]), &mark())).unwrap();
        let part = |number, byte, len| {
            bucket.put_part("a", &upload, number, vec![byte; len].into()).unwrap()
        };
        part(0, 7, 5 * MIB);
        let last = part(1, 9, 10);
        let first = part(0, 8, 5 * MIB);
        assert!(server.object("/bucket/runs/a").is_none());
        let tags = [first, last];
        let tag = bucket.complete("a", &upload, &tags, &Condition::Nothing).unwrap();
        let head = bucket.head("a").unwrap().unwrap();
        assert_eq!((head.version.tag, &*head.metadata["mode"]), (tag, "1"));
        assert_eq!(server.object("/bucket/runs/a").unwrap()[5 * MIB - 1..][..2], [8, 9]);
        let upload = bucket.begin("a", (&Metadata::new(), &mark())).unwrap();
        let tags = [bucket.put_part("a", &upload, 0, vec![1].into()).unwrap()];
        let completed = bucket.complete("a", &upload, &tags, &Condition::Nothing);
        assert_eq!(kind(completed), ErrorKind::StaleNetworkFileHandle);
        bucket.abort("a", &upload).unwrap();
        bucket.abort("a", &upload).unwrap();
        assert_eq!(server.unfinished(), 0);
    });
}

#[test]
fn requests_are_repeated_and_lost_answers_found() {
    let server = server(|asked| match asked.number % 4 {
        0 => Answer::Refused(503, "SlowDown"),
        1 if asked.method != "HEAD" => Answer::Lost,
        2 if asked.method != "HEAD" => Answer::Torn(0.5),
        _ => Answer::Right,
    });
    with_bucket(&server, |bucket| {
        for number in 0..20 {
            let key = number.to_string();
            let put = |condition| {
                bucket.put(
                    &key,
                    format!("{number}").into(),
                    (&Metadata::new(), &mark()),
                    &condition,
                )
            };
            let tag = put(Condition::Nothing).unwrap();
            assert_eq!(server.object(&format!("/bucket/runs/{number}")).unwrap(), key.as_bytes());
            let upload = bucket.begin(&key, (&Metadata::new(), &mark())).unwrap();
            let tags = [bucket.put_part(&key, &upload, 0, "parts".into()).unwrap()];
            bucket.complete(&key, &upload, &tags, &Condition::Tag(tag)).unwrap();
            assert_eq!(server.object(&format!("/bucket/runs/{number}")).unwrap(), b"parts");
            let version = bucket.head(&key).unwrap().unwrap().version;
            let copy = format!("{key}.copy");
            let tag = bucket.copy((&key, &version), &copy, None, &Condition::Nothing).unwrap();
            assert_eq!(server.object(&format!("/bucket/runs/{copy}")).unwrap(), b"parts");
            bucket.remove(&copy, &Condition::Tag(tag)).unwrap();
            bucket.remove(&key, &Condition::Anything).unwrap();
        }
    });
}

#[test]
fn a_server_without_conditions_is_asked_first() {
    let server = server(|asked| {
        let has = asked.headers.keys().any(|name| name.starts_with("if-"));
        if has && asked.method != "HEAD" {
            Answer::Refused(501, "NotImplemented")
        } else {
            Answer::Right
        }
    });
    with_bucket(&server, |bucket| {
        let put = |condition| bucket.put("a", "x".into(), (&Metadata::new(), &mark()), &condition);
        let tag = put(Condition::Nothing).unwrap();
        assert_eq!(kind(put(Condition::Nothing)), ErrorKind::StaleNetworkFileHandle);
        put(Condition::Tag(tag)).unwrap();
        assert_eq!(
            kind(put(Condition::Tag("\"other\"".into()))),
            ErrorKind::StaleNetworkFileHandle
        );
        let version = bucket.head("a").unwrap().unwrap().version;
        let copy = |condition| bucket.copy(("a", &version), "b", None, &condition);
        let tag = copy(Condition::Nothing).unwrap();
        server.put("/bucket/runs/c", vec![1; 7]);
        let copied = bucket.copy(("a", &version), "c", None, &Condition::Nothing);
        assert_eq!(kind(copied), ErrorKind::AlreadyExists);
        assert!(bucket.remove("b", &Condition::Tag("\"other\"".into())).is_err());
        bucket.remove("b", &Condition::Tag(tag)).unwrap();
        assert!(bucket.head("b").unwrap().is_none());
    });
}

#[test]
fn refusals_are_told() {
    let server = server(|_| Answer::Refused(403, "AccessDenied"));
    with_bucket(&server, |bucket| {
        let put = bucket.put("a", "x".into(), (&Metadata::new(), &mark()), &Condition::Nothing);
        assert!(put.as_ref().unwrap_err().to_string().contains("s3://bucket/runs/a"), "{put:?}");
        assert_eq!(kind(put), ErrorKind::PermissionDenied);
        assert!(bucket.remove("a", &Condition::Anything).is_err());
    });
    let error = Bucket::new("gs://bucket/", &Control::new(), Patience::default()).unwrap_err();
    assert!(error.to_string().contains("--read-only"), "{error}");
}
