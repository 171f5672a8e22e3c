//! Uploads to a server that behaves well, badly, and hostilely.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg_codec::splitmix::{STEP, mix};
use thalweg_io::control::Control;
use thalweg_io::new_file::{NewObject, Replaced};
use thalweg_io::{Error, Result};
use thalweg_object::{Patience, Upload};
use thalweg_testing::http_server::{Answer, Asked, ObjectServer};
use thalweg_testing::{no_hang, sample};

const PATH: &str = "/bucket/key";
const URL: &str = "s3://bucket/key";
const MIB: usize = 1 << 20;
/// Two parts.
const LARGE: usize = 9 * MIB;

/// Short waits, so that tests of servers that never answer end soon.
const SHORT: Patience =
    Patience { read: Duration::from_secs(2), request: Duration::from_millis(500) };
/// Longer than any answer of these servers takes, even on a busy machine.
const LONG: Patience =
    Patience { read: Duration::from_secs(600), request: Duration::from_secs(600) };

fn empty(behaviour: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> ObjectServer {
    ObjectServer::start([], behaviour)
}

fn create(
    server: &ObjectServer,
    replaced: Replaced,
    control: &Control,
    patience: Patience,
) -> Result<Box<Upload>> {
    let endpoint = server.url("");
    let settings = [
        ("aws_endpoint_url", &*endpoint),
        ("aws_access_key_id", "key"),
        ("aws_secret_access_key", "secret"),
        ("aws_region", "eu-north-1"),
    ];
    Upload::create_with(URL, &settings, replaced, control, patience).map(Box::new)
}

fn upload(server: &ObjectServer, bytes: &[u8], patience: Patience) -> Result<()> {
    upload_as(server, bytes, Replaced::WhatIsThere, patience)
}

fn upload_as(
    server: &ObjectServer,
    bytes: &[u8],
    replaced: Replaced,
    patience: Patience,
) -> Result<()> {
    let mut upload = create(server, replaced, &Control::new(), patience)?;
    // Pieces as writers have them: not of the size of a part.
    for piece in bytes.chunks(MIB + 7) {
        upload.push(piece)?;
    }
    upload.finish()
}

/// Does something for each case at the same time: most of them wait.
fn for_each<T: Send>(cases: impl IntoIterator<Item = T>, test: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for case in cases {
            let test = &test;
            scope.spawn(move || test(case));
        }
    });
}

/// What a request of an upload is for.
fn purpose(asked: &Asked) -> &'static str {
    let query = asked.target.split_once('?').map_or("", |(_, query)| query);
    match (&*asked.method, query) {
        ("POST", "uploads") | ("POST", "uploads=") => "begin",
        ("PUT", "") => "put",
        ("PUT", _) => "part",
        ("POST", _) => "complete",
        ("DELETE", "") => "remove",
        ("DELETE", _) => "abort",
        _ => "look",
    }
}

fn purposes(server: &ObjectServer) -> Vec<&'static str> {
    let mut purposes: Vec<_> = server.asked().iter().map(purpose).collect();
    purposes.retain(|purpose| *purpose != "look");
    purposes
}

#[test]
fn a_small_object_is_one_request_and_a_large_one_parts() {
    for (len, wanted) in [
        (0, vec!["put"]),
        (1, vec!["put"]),
        (8 * MIB - 1, vec!["put"]),
        (8 * MIB, vec!["begin", "part", "complete"]),
        (16 * MIB + 1, vec!["begin", "part", "part", "part", "complete"]),
    ] {
        let server = empty(|_| Answer::Right);
        let bytes = sample(len);
        upload(&server, &bytes, LONG).unwrap();
        assert_eq!(purposes(&server), wanted, "{len} bytes");
        assert!(server.object(PATH) == Some(bytes), "{len} bytes");
        assert_eq!(server.unfinished(), 0);
        for asked in server.asked() {
            assert!(asked.headers.contains_key("authorization"), "{asked:?}");
            // It is for requests that read.
            assert!(!asked.headers.contains_key("x-amz-checksum-mode"), "{asked:?}");
            if matches!(purpose(&asked), "put" | "part") {
                assert!(asked.headers.contains_key("x-amz-checksum-sha256"), "{asked:?}");
            }
            if matches!(purpose(&asked), "put" | "complete") {
                assert_eq!(asked.headers["if-none-match"], "*", "{asked:?}");
            }
        }
    }
}

#[test]
fn an_object_is_visible_only_when_it_is_finished() {
    let server = empty(|_| Answer::Right);
    let bytes = sample(LARGE);
    let mut upload = create(&server, Replaced::WhatIsThere, &Control::new(), LONG).unwrap();
    upload.push(&bytes).unwrap();
    upload.seal().unwrap();
    assert_eq!((server.object(PATH), server.unfinished()), (None, 1));
    upload.finish().unwrap();
    assert!(server.object(PATH) == Some(bytes));
}

#[test]
fn an_upload_that_is_dropped_is_aborted() {
    let server = empty(|_| Answer::Right);
    let mut upload = create(&server, Replaced::WhatIsThere, &Control::new(), LONG).unwrap();
    upload.push(&sample(LARGE)).unwrap();
    drop(upload);
    assert_eq!((server.object(PATH), server.unfinished()), (None, 0));
    assert!(purposes(&server).contains(&"abort"));
    // One that has begun no parts has nothing to abort.
    let before = purposes(&server).len();
    let mut small = create(&server, Replaced::WhatIsThere, &Control::new(), LONG).unwrap();
    small.push(b"few").unwrap();
    drop(small);
    assert_eq!(purposes(&server).len(), before);
}

#[test]
fn a_noisy_server_gets_the_right_bytes() {
    for seed in 0..2_u64 {
        let server = empty(move |asked| {
            let chance = mix((seed << 32 | asked.number).wrapping_add(STEP)) % 20;
            match (chance, purpose(asked)) {
                (0 | 1, _) => Answer::Refused(503, "SlowDown"),
                (2, _) => Answer::Closed,
                (3, _) => Answer::Torn((asked.number % 10) as f64 / 10.0),
                (4, "begin") => Answer::Right,
                (4, _) => Answer::Lost,
                (5, _) => Answer::Refused(500, "InternalError"),
                (6, _) => Answer::Late(Duration::from_millis(20)),
                _ => Answer::Right,
            }
        });
        for len in [100_000, LARGE] {
            let bytes = sample(len);
            upload(&server, &bytes, LONG).unwrap();
            assert!(server.object(PATH) == Some(bytes), "{seed}: {len} bytes");
        }
    }
}

/// A server on which all requests for a purpose fail.
fn always(wanted: &'static str, answer: Answer) -> ObjectServer {
    empty(move |asked| if purpose(asked) == wanted { answer.clone() } else { Answer::Right })
}

/// A server on which only the first requests for a purpose fail.
fn at_first(wanted: &'static str, times: u64, answer: Answer) -> ObjectServer {
    let seen = AtomicU64::new(0);
    empty(move |asked| {
        if purpose(asked) == wanted && seen.fetch_add(1, Ordering::SeqCst) < times {
            answer.clone()
        } else {
            Answer::Right
        }
    })
}

#[test]
fn a_lost_answer_is_no_other_object() {
    // The server has made the object, and refuses to make it again.
    for (len, purpose) in [(100, "put"), (LARGE, "complete")] {
        for replaced in [Replaced::WhatIsThere, Replaced::Anything] {
            let server = at_first(purpose, 1, Answer::Lost);
            let bytes = sample(len);
            upload_as(&server, &bytes, replaced, LONG).unwrap();
            assert!(server.object(PATH) == Some(bytes));
            assert_eq!(server.unfinished(), 0);
        }
    }
}

#[test]
fn an_object_that_appears_meanwhile_is_kept() {
    for len in [100, LARGE] {
        for how in [Answer::Right, Answer::Careless] {
            // Services that heed no condition are asked before.
            let answer = how.clone();
            let server = empty(move |_| answer.clone());
            let mut upload = create(&server, Replaced::WhatIsThere, &Control::new(), LONG).unwrap();
            upload.push(&sample(len)).unwrap();
            server.put(PATH, b"other".to_vec());
            let error = upload.finish().unwrap_err();
            assert!(matches!(error, Error::Exists { .. }), "{how:?}: {error}");
            assert_eq!(server.object(PATH).as_deref(), Some(&b"other"[..]));
            assert_eq!(server.unfinished(), 0);
        }
    }
}

#[test]
fn an_object_that_appears_at_the_last_moment_is_kept() {
    for (len, last) in [(100, "put"), (LARGE, "complete")] {
        let server = Arc::new(std::sync::OnceLock::<ObjectServer>::new());
        let of_server = server.clone();
        let started = empty(move |asked| {
            if purpose(asked) == last {
                of_server.get().unwrap().put(PATH, b"other".to_vec());
            }
            Answer::Right
        });
        assert!(server.set(started).is_ok());
        let server = server.get().unwrap();
        let error = upload(server, &sample(len), LONG).unwrap_err();
        assert!(matches!(error, Error::Exists { .. }), "{error}");
        assert_eq!(server.object(PATH).as_deref(), Some(&b"other"[..]));
        assert_eq!(server.unfinished(), 0);
    }
}

#[test]
fn a_service_without_conditions_is_asked_without() {
    for (len, purpose) in [(100, "put"), (LARGE, "complete")] {
        let server = at_first(purpose, 1, Answer::Refused(501, "NotImplemented"));
        let bytes = sample(len);
        upload(&server, &bytes, LONG).unwrap();
        assert!(server.object(PATH) == Some(bytes));
    }
}

#[test]
fn what_is_there_is_replaced_where_that_is_allowed() {
    for len in [100, LARGE] {
        for replaced in [Replaced::WhatIsThere, Replaced::Anything] {
            let server = empty(|_| Answer::Right);
            server.put(PATH, b"old".to_vec());
            upload_as(&server, &sample(len), replaced, LONG).unwrap();
            assert!(server.object(PATH) == Some(sample(len)));
        }
        let server = empty(|_| Answer::Right);
        server.put(PATH, b"old".to_vec());
        let error = upload_as(&server, &sample(len), Replaced::Nothing, LONG).unwrap_err();
        assert!(matches!(error, Error::Exists { .. }), "{error}");
        assert_eq!(server.object(PATH).as_deref(), Some(&b"old"[..]));
    }
}

#[test]
fn refusals_say_what_to_do() {
    for (status, code, words) in [
        (403, "AccessDenied", "may not write it"),
        (404, "NoSuchBucket", "no such bucket"),
        (403, "RequestTimeTooSkewed", "clock"),
        (400, "ExpiredToken", "expired"),
        (301, "PermanentRedirect", "another region"),
    ] {
        for len in [100, LARGE] {
            let server = empty(move |asked| match purpose(asked) {
                "look" | "abort" => Answer::Right,
                _ => Answer::Refused(status, code),
            });
            let error = upload(&server, &sample(len), SHORT).unwrap_err().to_string();
            assert!(error.starts_with(URL) && error.contains(words), "{error}");
            assert_eq!(purposes(&server).len(), 1, "{error}");
        }
    }
    // A bucket that is not there is told before anything is written.
    let server = empty(|_| Answer::Refused(404, "NoSuchBucket"));
    let error = create(&server, Replaced::WhatIsThere, &Control::new(), SHORT).unwrap_err();
    assert!(error.to_string().contains("no such bucket"), "{error}");
    // Credentials that may write, but not look.
    let server = empty(|asked| match purpose(asked) {
        "look" => Answer::Refused(403, "AccessDenied"),
        _ => Answer::Right,
    });
    upload(&server, b"few", SHORT).unwrap();
    assert_eq!(server.object(PATH).as_deref(), Some(&b"few"[..]));
    // And those that may neither: before anything is written.
    let server = empty(|_| Answer::Refused(403, "AccessDenied"));
    let error = create(&server, Replaced::WhatIsThere, &Control::new(), SHORT).unwrap_err();
    assert!(error.to_string().contains("may not write it"), "{error}");
}

#[test]
fn what_may_pass_is_tried_again_and_given_up() {
    let answers = [
        Answer::Refused(503, "SlowDown"),
        Answer::Never,
        Answer::Closed,
        Answer::Torn(0.5),
        Answer::Stuck(0.5),
        Answer::Raw(b"not HTTP"),
    ];
    let of = |wanted, len, answers: &[Answer]| {
        answers.iter().map(|answer| (wanted, len, answer.clone())).collect::<Vec<_>>()
    };
    let mut cases = of("put", 100, &answers[..2]);
    cases.extend(of("begin", LARGE, &answers[..2]));
    cases.extend(of("part", LARGE, &answers));
    for_each(cases, |(wanted, len, answer)| {
        let server = always(wanted, answer.clone());
        let (error, server) =
            no_hang(move || (upload(&server, &sample(len), SHORT).unwrap_err(), server));
        assert!(error.to_string().contains("given up after"), "{answer:?}: {error}");
        let tries = purposes(&server).iter().filter(|purpose| **purpose == wanted).count();
        assert!(tries > 1, "{wanted}, {answer:?}: {error}");
        assert_eq!((server.object(PATH), server.unfinished()), (None, 0), "{answer:?}");
    });
}

#[test]
fn answers_that_lie_are_errors() {
    let answers = [
        Answer::Headers(200, "X-No: etag"),
        Answer::Headers(204, "ETag: \"x\""),
        Answer::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n<Error/>\n"),
        Answer::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n<Upl"),
        Answer::Raw(b"\0\0\0\0"),
    ];
    let cases = answers.iter().flat_map(|answer| [("begin", answer), ("complete", answer)]);
    for_each(cases, |(wanted, answer)| {
        let server = always(wanted, answer.clone());
        let (error, server) =
            no_hang(move || (upload(&server, &sample(LARGE), SHORT).unwrap_err(), server));
        assert!(error.to_string().starts_with(URL), "{answer:?}: {error}");
        assert_eq!(server.object(PATH), None, "{wanted}, {answer:?}: {error}");
    });
}

#[test]
fn bytes_that_were_changed_on_the_way_are_refused() {
    // The server finds other bytes than those whose sum was sent.
    let server = empty(|asked| match purpose(asked) {
        "part" => Answer::Refused(400, "XAmzContentSHA256Mismatch"),
        _ => Answer::Right,
    });
    let error = upload(&server, &sample(LARGE), LONG).unwrap_err().to_string();
    assert!(error.contains("XAmzContentSHA256Mismatch"), "{error}");
    assert_eq!((server.object(PATH), server.unfinished()), (None, 0));
}

#[test]
fn an_upload_is_cancelled_while_it_waits() {
    let answers = [Answer::Never, Answer::Stuck(0.3), Answer::Refused(503, "SlowDown")];
    let purposes = ["begin", "part", "complete", "put"];
    let cases = purposes.iter().flat_map(|wanted| answers.iter().map(move |stuck| (wanted, stuck)));
    for_each(cases, |(&wanted, stuck)| {
        let control = Control::new();
        let canceller = control.clone();
        let answer = stuck.clone();
        let server = empty(move |asked| {
            if purpose(asked) != wanted {
                return Answer::Right;
            }
            canceller.cancel();
            answer.clone()
        });
        let len = if wanted == "put" { 100 } else { LARGE };
        let (error, server) = no_hang(move || {
            let mut upload = create(&server, Replaced::WhatIsThere, &control, LONG).unwrap();
            let done = upload.push(&sample(len)).and_then(|()| upload.finish());
            (done.unwrap_err(), server)
        });
        assert!(matches!(error, Error::Cancelled), "{wanted}, {stuck:?}: {error}");
        assert_eq!(server.object(PATH), None, "{wanted}");
        // The server may carry out the abort after the client has gone on.
        no_hang(move || {
            while server.unfinished() > 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
    });
}

#[test]
fn memory_is_bounded_however_slow_the_service_is() {
    let server = empty(|asked| match purpose(asked) {
        "part" => Answer::Never,
        _ => Answer::Right,
    });
    let taken = no_hang(move || {
        let mut upload = create(&server, Replaced::WhatIsThere, &Control::new(), SHORT).unwrap();
        let piece = vec![1; MIB];
        let taken = (0..1000).take_while(|_| upload.push(&piece).is_ok()).count();
        drop(upload);
        taken
    });
    assert!(taken <= 64, "{taken} MiB are in memory");
}

#[test]
fn many_uploads_share_the_room() {
    let server = Arc::new(empty(|_| Answer::Right));
    let endpoint = server.url("");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let endpoint = &endpoint;
            scope.spawn(move || {
                let settings = [
                    ("aws_endpoint_url", &**endpoint),
                    ("aws_access_key_id", "key"),
                    ("aws_secret_access_key", "secret"),
                ];
                let url = format!("s3://bucket/{number}");
                let control = Control::new();
                let mut upload = Box::new(
                    Upload::create_with(&url, &settings, Replaced::Nothing, &control, LONG)
                        .unwrap(),
                );
                upload.push(&sample(LARGE + number)).unwrap();
                upload.finish().unwrap();
            });
        }
    });
    for number in 0..8 {
        let object = server.object(&format!("/bucket/{number}"));
        assert!(object == Some(sample(LARGE + number)), "{number}");
    }
}

#[test]
fn a_plain_server_takes_no_objects() {
    let server = empty(|_| Answer::Right);
    let url = server.url("/file?signature=secret");
    let error = Upload::create(&url, Replaced::Anything, &Control::new(), SHORT).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
    assert!(server.asked().is_empty());
}

#[test]
fn sealed_objects_wait_in_little_memory() {
    let server = empty(|_| Answer::Right);
    let mut sealed = Vec::new();
    for _ in 0..24 {
        let mut upload = create(&server, Replaced::Anything, &Control::new(), LONG).unwrap();
        upload.push(&sample(MIB)).unwrap();
        upload.seal().unwrap();
        sealed.push(upload);
    }
    // At most 16 MiB stay; the service has the others.
    assert!(server.unfinished() >= 8 && server.object(PATH).is_none());
    for upload in sealed {
        upload.finish().unwrap();
    }
    assert!(server.object(PATH) == Some(sample(MIB)) && server.unfinished() == 0);
}
