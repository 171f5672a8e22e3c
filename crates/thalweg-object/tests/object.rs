//! Objects on a server that behaves well, badly, and hostilely.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg_codec::splitmix::{STEP, mix};
use thalweg_io::control::Control;
use thalweg_io::store::Store;
use thalweg_io::{Error, Result};
use thalweg_object::{Object, Patience, open, open_with_end};
use thalweg_testing::http_server::{Answer, Asked, ObjectServer};
use thalweg_testing::{no_hang, sample, store_suite};

const PATH: &str = "/bucket/key";

/// Short waits, so that tests of servers that never answer end soon.
const SHORT: Patience =
    Patience { read: Duration::from_secs(2), request: Duration::from_millis(500) };
/// Longer than any answer of these servers takes, even on a busy machine.
const LONG: Patience =
    Patience { read: Duration::from_secs(600), request: Duration::from_secs(600) };

fn at(server: &ObjectServer, patience: Patience) -> Result<Object> {
    open(&server.url(PATH), &Control::new(), patience)
}

fn server(
    bytes: &[u8],
    behaviour: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
) -> ObjectServer {
    ObjectServer::start([(PATH, bytes.to_vec())], behaviour)
}

/// A store that keeps its server alive.
#[derive(Debug)]
struct Served(Object, #[expect(dead_code, reason = "it is dropped last")] ServerOf);

struct ServerOf(#[expect(dead_code, reason = "it is dropped last")] ObjectServer);

impl std::fmt::Debug for ServerOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a server")
    }
}

impl Store for Served {
    fn name(&self) -> &Arc<str> {
        self.0.name()
    }

    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.0.read_at(offset, buf)
    }
}

#[test]
fn an_object_is_a_store() {
    store_suite(&|bytes| {
        let server = server(bytes, |_| Answer::Right);
        Arc::new(Served(at(&server, LONG).unwrap(), ServerOf(server)))
    });
}

/// Of each hundred requests, some are refused, torn, closed or answered late.
fn noisy(seed: u64) -> impl Fn(&Asked) -> Answer + Send + Sync + 'static {
    move |asked| match mix((seed << 32 | asked.number).wrapping_add(STEP)) % 100 {
        0..5 => Answer::Refused(503, "SlowDown"),
        5..8 => Answer::Torn((asked.number % 10) as f64 / 10.0),
        8..10 => Answer::Closed,
        10..12 => Answer::Refused(500, "InternalError"),
        12 => Answer::Late(Duration::from_millis(20)),
        13 => Answer::Refused(429, "TooManyRequests"),
        _ => Answer::Right,
    }
}

#[test]
fn an_object_of_a_noisy_server_is_a_store() {
    let seed = AtomicU64::new(0);
    store_suite(&|bytes| {
        let server = server(bytes, noisy(seed.fetch_add(1, Ordering::SeqCst)));
        Arc::new(Served(at(&server, LONG).unwrap(), ServerOf(server)))
    });
}

#[test]
fn opening_takes_one_request() {
    let bytes = sample(200_000);
    let server = server(&bytes, |_| Answer::Right);
    let object = at(&server, LONG).unwrap();
    assert_eq!((object.size(), object.counts().requests), (200_000, 1));
    let mut buf = vec![0; 60_000];
    object.read_at(100, &mut buf).unwrap();
    assert!(
        buf == bytes[100..60_100] && object.counts().requests == 1,
        "the first bytes are known"
    );
    object.read_at(70_000, &mut buf).unwrap();
    assert!(buf == bytes[70_000..130_000]);
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[1].range, Some(70_000..130_000));
    assert_eq!(asked[1].headers.get("if-match").map(String::as_str), object.etag());
}

#[test]
fn the_end_comes_with_the_beginning() {
    let bytes = sample(300_000);
    let open = |server: &ObjectServer| {
        open_with_end(&server.url(PATH), 100_000, &Control::new(), LONG).unwrap()
    };
    let at_end = |object: &Object| {
        let mut buf = vec![0; 100_000];
        object.read_at(200_000, &mut buf).unwrap();
        assert!(buf == bytes[200_000..]);
        object.counts().requests
    };
    let right = server(&bytes, |_| Answer::Right);
    let object = open(&right);
    object.read_at(250_000, &mut [0; 100]).unwrap();
    assert_eq!(at_end(&object), 2);
    assert_eq!(at_end(&object), 3, "what was read as a whole is not kept");
    // Whatever the server has against it, the end is read as other bytes are.
    let against = [
        Answer::Refused(501, "NotImplemented"),
        Answer::Refused(503, "SlowDown"),
        Answer::Whole,
        Answer::OtherVersion,
        Answer::OtherRange(5),
        Answer::Short(0.5),
        Answer::Torn(0.5),
        Answer::Closed,
    ];
    for answer in against {
        let refused = answer.clone();
        let against = server(&bytes, move |asked| match asked.suffix {
            Some(_) => refused.clone(),
            None => Answer::Right,
        });
        assert_eq!(at_end(&open(&against)), 3, "{answer:?}");
    }
    // It has fewer bytes, or none.
    for size in [0, 50_000] {
        let short = server(&bytes[..size], |_| Answer::Right);
        let mut buf = vec![0; size];
        open(&short).read_at(0, &mut buf).unwrap();
        assert!(buf == bytes[..size]);
    }
}

#[test]
fn a_torn_body_is_resumed() {
    let bytes = sample(1 << 20);
    let server = server(&bytes, |asked| match asked.number {
        1 | 2 => Answer::Torn(0.5),
        _ => Answer::Right,
    });
    let object = at(&server, LONG).unwrap();
    let mut buf = vec![0; 1 << 19];
    object.read_at(1 << 19, &mut buf).unwrap();
    assert!(buf == bytes[1 << 19..]);
    let ranges: Vec<_> = server.asked().into_iter().filter_map(|asked| asked.range).collect();
    assert_eq!(ranges[1..], [1 << 19..1 << 20, 3 << 18..1 << 20, 7 << 17..1 << 20]);
    assert_eq!(object.counts().retries, 2);
}

#[test]
fn a_replaced_object_is_an_error() {
    let bytes = sample(300_000);
    let server = server(&bytes, |_| Answer::Right);
    let object = at(&server, LONG).unwrap();
    server.put(PATH, sample(299_999));
    let mut buf = vec![0; 1000];
    let error = object.read_at(200_000, &mut buf).unwrap_err().to_string();
    assert!(error.contains("replaced") && error.contains("at byte 200000"), "{error}");
}

#[test]
fn a_server_that_ignores_conditions_cannot_mix_versions() {
    let bytes = sample(300_000);
    let server = server(&bytes, |asked| match asked.number {
        0 => Answer::Right,
        1 => Answer::Torn(0.5),
        _ => Answer::OtherVersion,
    });
    let object = at(&server, LONG).unwrap();
    let mut buf = vec![0; 100_000];
    let error = object.read_at(200_000, &mut buf).unwrap_err().to_string();
    assert!(error.contains("replaced") && error.contains("at byte 250000"), "{error}");
}

/// The error of opening an object, and the number of requests that it took.
fn refused(behaviour: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> (Error, usize) {
    let server = server(&sample(100), behaviour);
    let error = at(&server, SHORT).unwrap_err();
    (error, server.asked().len())
}

#[test]
fn what_cannot_pass_is_not_tried_again() {
    for (status, code, words) in [
        (403, "AccessDenied", "a signed URL is valid for a time"),
        (403, "RequestTimeTooSkewed", "clock"),
        (400, "ExpiredToken", "expired"),
        (404, "NoSuchBucket", "no such bucket"),
        (301, "PermanentRedirect", "another region"),
        (501, "NotImplemented", "501"),
    ] {
        let (error, tries) = refused(move |_| Answer::Refused(status, code));
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(tries, 1, "{error}");
    }
    let error = open(&server(b"", |_| Answer::Right).url("/no"), &Control::new(), SHORT);
    let Err(Error::Io { source, .. }) = error else { panic!("{error:?}") };
    assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn what_may_pass_is_tried_again_and_given_up() {
    for (answer, words) in [
        (Answer::Refused(503, "SlowDown"), "503 SlowDown"),
        (Answer::Refused(500, "InternalError"), "500 InternalError"),
        (Answer::Closed, "given up after 3 tries"),
        (Answer::Torn(0.0), "given up after"),
        (Answer::Never, "no answer"),
        (Answer::Stuck(0.0), "no answer"),
        // What came of the first answer is not kept, and is no progress.
        (Answer::Torn(0.5), "tries"),
        (Answer::Stuck(0.5), "no answer"),
        // A byte now and then is none, either.
        (Answer::Trickling, "no answer"),
    ] {
        let repeated = answer.clone();
        let (error, tries) = refused(move |_| repeated.clone());
        assert!(error.to_string().contains(words), "{answer:?}: {error}");
        assert!(tries > 1, "{answer:?}: {error}");
    }
}

#[test]
fn answers_that_lie_are_errors() {
    for answer in [
        Answer::OtherRange(1),
        Answer::Whole,
        Answer::Headers(206, "Content-Range: bytes 0-99/100\r\nETag: \"x\""),
        Answer::Headers(206, "Content-Range: bytes 0-99/18446744073709551615\r\nETag: \"x\""),
        Answer::Headers(206, "Content-Range: bytes 99-0/100\r\nETag: \"x\""),
        Answer::Headers(206, "Content-Range: bytes 0-18446744073709551615/7\r\nETag: \"x\""),
        Answer::Headers(206, "Content-Range: nonsense\r\nETag: \"x\""),
        Answer::Headers(206, "ETag: \"x\""),
        Answer::Headers(204, "ETag: \"x\""),
        Answer::Headers(302, "Location: /bucket/key"),
        Answer::Raw(b"HTTP/1.1 206 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde"),
        Answer::Raw(b"HTTP/1.1 206 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"),
        Answer::Raw(b"HTTP/1.1 999999 OK\r\n\r\n"),
        Answer::Raw(b"not HTTP at all"),
        Answer::Raw(b"\0\0\0\0"),
        Answer::Raw(b""),
    ] {
        let repeated = answer.clone();
        let error = no_hang(move || refused(move |_| repeated.clone()).0);
        assert!(error.to_string().contains(PATH), "{answer:?}: {error}");
    }
}

/// As Amazon and Azurite refuse: in chunks, on a connection that stays open.
#[test]
fn a_refusal_in_chunks_needs_no_end_of_the_connection() {
    let answer = b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n\
                   7\r\n<Error>\r\n1B;x=y\r\n<Code>NoSuchBucket</Code>\n\n\n\r\n0\r\n\r\n";
    let error = no_hang(move || {
        let server = server(&sample(100), move |_| Answer::RawAndOpen(answer));
        at(&server, LONG).unwrap_err()
    });
    assert!(error.to_string().contains("there is no such bucket"), "{error}");
}

#[test]
fn bytes_beyond_the_length_are_not_taken_for_the_next_answer() {
    let bytes = sample(500_000);
    let server = server(&bytes, |asked| match asked.number % 2 {
        0 => Answer::Right,
        _ => Answer::TooLong(1000),
    });
    let object = at(&server, LONG).unwrap();
    let mut buf = vec![0; 1000];
    for offset in (100_000..400_000).step_by(1000) {
        object.read_at(offset, &mut buf).unwrap();
        assert!(buf == bytes[offset as usize..offset as usize + 1000]);
    }
}

#[test]
fn a_server_that_goes_away_is_an_error() {
    let bytes = sample(1 << 20);
    let mut server = server(&bytes, |asked| match asked.number {
        0..3 => Answer::Right,
        _ => Answer::Stuck(0.5),
    });
    let object = at(&server, SHORT).unwrap();
    let mut buf = vec![0; 1000];
    object.read_at(500_000, &mut buf).unwrap();
    server.end();
    let error = no_hang(move || object.read_at(600_000, &mut buf).unwrap_err());
    assert!(error.to_string().contains("given up after"), "{error}");
}

#[test]
fn a_read_is_cancelled_while_it_waits() {
    for stuck in [Answer::Never, Answer::Stuck(0.3), Answer::Refused(503, "SlowDown")] {
        let server = server(&sample(1 << 20), move |asked| match asked.number {
            0 => Answer::Right,
            _ => stuck.clone(),
        });
        let control = Control::new();
        let object = open(&server.url(PATH), &control, LONG).unwrap();
        let canceller = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            control.cancel();
        });
        let error = no_hang(move || object.read_at(500_000, &mut [0; 1000]).unwrap_err());
        assert!(matches!(error, Error::Cancelled), "{error:?}");
        canceller.join().unwrap();
    }
}

#[test]
fn a_slow_request_is_made_twice() {
    let bytes = sample(1 << 20);
    let server = server(&bytes, |asked| match asked.number {
        100 => Answer::Never,
        _ => Answer::Right,
    });
    // No retry can help: requests may take ten minutes.
    let object = at(&server, LONG).unwrap();
    let read = no_hang(move || {
        let mut buf = vec![0; 1000];
        for offset in (100_000..1_000_000).step_by(5000) {
            object.read_at(offset, &mut buf).unwrap();
            assert!(buf == bytes[offset as usize..offset as usize + 1000]);
        }
        object.counts()
    });
    assert!(read.hedges >= 1 && read.retries == 0, "{read:?}");
}

#[test]
fn weak_tags_are_compared_and_not_sent() {
    let answer = |tag: &'static str| move |_: &Asked| Answer::Headers(206, tag);
    let server = server(b"", answer("Content-Range: bytes 0-0/1\r\nETag: W/\"weak\""));
    // The body is missing; what matters is the request.
    assert!(at(&server, SHORT).is_err());
    assert!(server.asked().iter().all(|asked| !asked.headers.contains_key("if-match")));
}

/// An answer with a checksum, as S3 gives it.
fn summed(algorithm: &str, sum: &str, kind: &str) -> Answer {
    let lines = format!("x-amz-checksum-{algorithm}: {sum}\r\nx-amz-checksum-type: {kind}\r\n");
    Answer::With(lines)
}

#[test]
fn a_checksum_of_the_whole_object_is_verified() {
    let digits = |answer: Answer| server(b"123456789", move |_| answer.clone());
    for (algorithm, sum) in [
        ("crc32", "y/Q5Jg=="),
        ("crc32c", "4waSgw=="),
        ("crc64nvme", "rosUhgp5mIg="),
        ("sha1", "98O8HYCOBHMq32eZZczDTKeuNEE="),
        ("sha256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="),
    ] {
        let right = digits(summed(algorithm, sum, "FULL_OBJECT"));
        let object = at(&right, LONG).map_err(|error| format!("{algorithm}: {error}")).unwrap();
        assert_eq!(object.counts().requests, 1, "{algorithm}");
        let wrong = digits(summed(algorithm, &sum.replace(['8', '4', '5'], "0"), "FULL_OBJECT"));
        let error = at(&wrong, LONG).unwrap_err().to_string();
        let words = format!("bytes 0 to 9 have the {algorithm} {sum}, and the store says ");
        assert!(error.contains(&words) && error.contains("twice"), "{error}");
        assert_eq!(wrong.asked().len(), 2, "it is fetched once more");
    }
    let once = server(b"123456789", |asked| match asked.number {
        0 => summed("crc32", "AAAAAA==", "FULL_OBJECT"),
        _ => summed("crc32", "y/Q5Jg==", "FULL_OBJECT"),
    });
    assert_eq!(at(&once, LONG).unwrap().counts().requests, 2);
}

#[test]
fn a_checksum_of_something_else_is_not_taken_for_one_of_the_bytes() {
    for (sum, kind) in [
        // A checksum of checksums; with a range, S3 leaves out the number of parts.
        ("AAAAAA==-2", "COMPOSITE"),
        ("AAAAAA==", "COMPOSITE"),
        ("AAAAAA==-2", "FULL_OBJECT"),
        ("AAAAAA==", "SOMETHING"),
        ("no base64", "FULL_OBJECT"),
    ] {
        let server = server(b"123456789", move |_| summed("crc32", sum, kind));
        assert_eq!(at(&server, LONG).unwrap().counts().requests, 1, "{sum} {kind}");
    }
    // Some servers give the checksum of the whole object for each range.
    let bytes = sample(300_000);
    let server = server(&bytes, |_| summed("crc32", "AAAAAA==", "FULL_OBJECT"));
    let object = at(&server, LONG).unwrap();
    let mut buf = vec![0; 300_000];
    for range in [0..299_999, 1..300_000, 100_000..200_000] {
        object.read_at(range.start as u64, &mut buf[range.clone()]).unwrap();
        assert!(buf[range.clone()] == bytes[range]);
    }
    let error = object.read_at(0, &mut buf).unwrap_err().to_string();
    assert!(error.contains("bytes 0 to 300000 have the crc32"), "{error}");
}
