//! Networks at URLs: what the verbs print is what they print for the folder.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use thalweg_testing::http_server::{Answer, Asked, ObjectServer};

use crate::common::Folder;
use crate::urls::from_bucket;

/// A folder with a network `net` of several segments and a log, and attributes of edges.
fn network() -> Folder {
    let folder = Folder::new();
    let rows = |from: u64| {
        let row = |i: u64| format!("{},{},{}\n", i / 8, (i * 7 + from) % 4_001, i % 100);
        let rows: String = (from..from + 30_000).map(row).collect();
        format!("source,target,weight\n{rows}")
    };
    for (name, from) in [("a.csv", 0), ("b.csv", 40_000)] {
        fs::write(folder.path(name), rows(from)).unwrap();
        let types = ["--from-type", "Neuron", "--to-type", "Neuron", "--population", "links"];
        let import = ["graph", "import", name, "net", "--ids", "raw"];
        folder.ok(&[&import[..], &types[..]].concat());
    }
    folder.ok(&["graph", "add", "net", "--vertices", "Neuron:90000-90004"]);
    folder.ok(&["graph", "remove", "net", "--vertices", "Neuron:17"]);
    folder
}

/// The files of `net` as objects in a bucket.
fn objects(folder: &Folder) -> Vec<(&'static str, Vec<u8>)> {
    let files = fs::read_dir(folder.path("net")).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|path| path.file_name().unwrap() != "lock");
    let object = |path: std::path::PathBuf| {
        let key = format!("/bucket/net/{}", path.file_name().unwrap().to_str().unwrap());
        (&*Box::leak(key.into_boxed_str()), fs::read(path).unwrap())
    };
    files.map(object).collect()
}

fn served(
    behaviour: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
) -> (Folder, ObjectServer, String) {
    let folder = network();
    let server = ObjectServer::start(objects(&folder), behaviour);
    let url = server.url("/bucket/net");
    (folder, server, url)
}

/// Asks that read `net`, with `net` in the place of its URL.
const QUESTIONS: [&[&str]; 11] = [
    &["graph", "neighbors", "net", "--from", "Neuron:0-99", "--to", "Neuron"],
    &["graph", "neighbors", "net", "--from", "Neuron", "--digest"],
    &["graph", "neighbors", "net", "--from", "Neuron:5,17,4000", "--direction", "both", "--json"],
    &["graph", "neighbors", "net", "--from", "Neuron:1-40", "--where", "weight > 90 and to < 9"],
    &["graph", "neighbors", "net", "--from", "Neuron:7", "--hops", "3"],
    &["graph", "degree", "net", "--from", "Neuron", "--direction", "both", "--summary"],
    &["graph", "degree", "net", "--from", "Neuron:0-9"],
    &["graph", "check", "net", "--json"],
    &["graph", "export", "net", "OUT.csv", "--edges", "links"],
    &["graph", "export", "net", "OUT.csv", "--vertices", "Neuron", "--where", "id < 50"],
    &["graph", "export", "net", "OUT.csv", "--edges", "links", "--between", "Neuron:0-9"],
];

/// A line of JSON without the path of the store, which differs.
fn without_path(line: &str) -> String {
    let Ok(serde_json::Value::Object(mut object)) = serde_json::from_str(line) else {
        return line.to_owned();
    };
    object.remove("path");
    serde_json::Value::from(object).to_string()
}

#[test]
fn verbs_read_a_network_at_a_url_as_one_in_a_folder() {
    // Some answers are bad, as they are on a busy day.
    let (folder, server, url) = served(|asked| match asked.number % 13 {
        3 => Answer::Refused(503, "SlowDown"),
        6 => Answer::Torn(0.4),
        9 => Answer::Late(Duration::from_millis(5)),
        _ => Answer::Right,
    });
    let with_query = format!("{url}/?signature=secret");
    for (number, question) in QUESTIONS.iter().enumerate() {
        let asked = |store: &str, out: &str| -> Vec<String> {
            let replace = |word: &&str| match *word {
                "net" => store.to_owned(),
                "OUT.csv" => out.to_owned(),
                other => other.to_owned(),
            };
            question.iter().map(replace).collect()
        };
        let outcome = |store: &str, out: &str| {
            let args = asked(store, out);
            let args: Vec<&str> = args.iter().map(String::as_str).chain(["-q"]).collect();
            let done = from_bucket(&folder, &server, &args);
            let told = String::from_utf8(done.stdout).unwrap().replace(out, "OUT");
            let told: Vec<String> = told.lines().map(without_path).collect();
            let error = String::from_utf8(done.stderr).unwrap();
            assert!(!error.contains("secret"), "{error}");
            let missing = error.split_once(": not there").map(|(_, rest)| rest.to_owned());
            assert!(missing.is_some() || error.is_empty(), "{question:?}: {error}");
            (done.status.code(), told.join("\n"), missing, fs::read(folder.path(out)).ok())
        };
        let wanted = outcome("net", &format!("{number}-near.csv"));
        assert!(wanted.1.len() > 1 || wanted.3.is_some(), "{wanted:?}");
        for (kind, store) in [("s3", "s3://bucket/net"), ("http", &*with_query)] {
            assert!(outcome(store, &format!("{number}-{kind}.csv")) == wanted, "{question:?}");
        }
    }
    let info = |store: &str| {
        let done = from_bucket(&folder, &server, &["graph", "info", store, "--json"]);
        let text = String::from_utf8(done.stdout).unwrap();
        let mut info: serde_json::Value = serde_json::from_str(&text).unwrap();
        info["path"].take();
        let named = info["store"].take();
        (named.as_str().unwrap().to_owned(), info)
    };
    assert_eq!(info("s3://bucket/net").1, info("net").1);
    assert_eq!(info(&with_query).0, format!("{url}/"));
    // No verb takes a URL for a path.
    assert!(fs::read_dir(folder.path(".")).unwrap().all(|entry| {
        let name = entry.unwrap().file_name();
        !name.to_string_lossy().contains(':')
    }));
}

#[test]
fn little_memory_suffices() {
    let (folder, server, url) = served(|_| Answer::Right);
    let all = |store: &str, memory: &str| {
        let args = ["graph", "neighbors", store, "--from", "Neuron", "--memory", memory];
        folder.ok(&args)
    };
    let wanted = all("net", "192MiB");
    for memory in ["192MiB", "4MiB"] {
        let before = server.asked().len();
        assert!(all(&url, memory) == wanted);
        let requests = server.asked().len() - before;
        assert!(requests < 400, "{memory}: {requests}");
    }
}

#[test]
fn files_are_opened_together_and_few_bytes_are_read() {
    // The log and the ends of the segments are not answered before all of them were asked for.
    let waiting = Arc::new((Mutex::new(0_usize), Condvar::new()));
    let (is_late, files) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let seen = (waiting.clone(), is_late.clone(), files.clone());
    let (folder, server, url) = served(move |asked| {
        let ((count, woken), is_late, files) = (&*seen.0, &seen.1, &seen.2);
        let expected = files.load(Ordering::SeqCst);
        if expected == 0 || asked.target.ends_with("manifest") {
            return Answer::Right;
        }
        let mut count = count.lock().unwrap();
        *count += 1;
        woken.notify_all();
        while *count < expected {
            let (next, waited) = woken.wait_timeout(count, Duration::from_secs(8)).unwrap();
            count = next;
            if waited.timed_out() {
                is_late.store(true, Ordering::SeqCst);
                break;
            }
        }
        Answer::Right
    });
    let parts = fs::read_dir(folder.path("net")).unwrap().filter(|file| {
        let name = file.as_ref().unwrap().file_name();
        let name = name.to_string_lossy();
        name.ends_with(".seg") || name.ends_with(".log")
    });
    let parts = parts.count();
    assert!(parts >= 3, "{parts}");
    files.store(parts, Ordering::SeqCst);
    folder.ok(&["graph", "info", &url]);
    assert!(!is_late.load(Ordering::SeqCst), "the files were opened one after the other");
    // The manifest, then each of the others once: two requests of which the second waits for the
    // first.
    assert_eq!(server.asked().len(), 1 + parts);
    assert!(server.asked()[0].target.ends_with("/manifest"));
    let before = (server.asked().len(), server.sent());
    let args = ["graph", "neighbors", &url, "--from", "Neuron:100-149", "--digest"];
    assert_eq!(folder.ok(&args).lines().count(), 50);
    let (requests, bytes) = (server.asked().len() - before.0, server.sent() - before.1);
    // At most one round each for the ids of vertices and their index, the index of the lists, the
    // vertices with lists, their offsets and their lists, for each segment and its checksums.
    assert!(requests <= 1 + parts + 6 * 2 * (parts - 1), "{requests}");
    let stored: u64 = objects(&folder).iter().map(|(_, bytes)| bytes.len() as u64).sum();
    // About half of it; a slow request may have been made a second time.
    assert!(bytes < stored * 2 / 3, "{bytes} of {stored}");
}

#[test]
fn what_is_wrong_with_a_network_at_a_url_is_said() {
    let (folder, server, url) = served(|asked| match &asked.target {
        target if target.starts_with("/nowhere/") => Answer::Refused(404, "NoSuchBucket"),
        _ => Answer::Right,
    });
    let told = folder.fails(1, &["graph", "info", &server.url("/bucket/none?key=secret")]);
    assert!(told.contains("/bucket/none: the object `manifest`"), "{told}");
    assert!(told.contains("aws s3 cp --recursive") && !told.contains("secret"), "{told}");
    let done = from_bucket(&folder, &server, &["graph", "info", "s3://nowhere/net"]);
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.code() == Some(1) && told.contains("there is no such bucket"), "{told}");
    for args in [
        &["graph", "add", &*url, "--vertices", "Neuron:1"][..],
        &["graph", "remove", &*url, "--vertices", "Neuron:1"],
        &["graph", "compact", &*url],
        &["graph", "import", "a.csv", &*url],
        &["graph", "check", &*url, "--repair", "mended"],
        &["graph", "check", "net", "--repair", &*url],
        &["graph", "insert", &*url, "--edges", "3"],
    ] {
        let before = server.asked().len();
        let done = folder.run(args);
        let told = String::from_utf8(done.stderr).unwrap();
        let is_refused = told.contains("changing a network at a URL is not supported; copy it");
        assert!(!done.status.success() && is_refused, "{args:?}: {told}");
        assert_eq!(server.asked().len(), before, "{args:?}");
        assert!(!folder.path("mended").exists() && !folder.path("http:").exists());
    }
    let told = folder.fails(1, &["graph", "import", &server.url("/bucket/e.csv"), "new"]);
    assert!(told.contains("a list of edges at a URL") && !folder.path("new").exists(), "{told}");

    let segment = fs::read_dir(folder.path("net")).unwrap().find_map(|file| {
        let path = file.unwrap().path();
        (path.extension()? == "seg").then_some(path)
    });
    let segment = segment.unwrap();
    let name = segment.file_name().unwrap().to_str().unwrap();
    let key = format!("/bucket/net/{name}");
    let bytes = fs::read(&segment).unwrap();
    let info = ["graph", "info", &*url];
    // Shorter and longer than the manifest says, of the same length and other bytes, and gone.
    let mut other = bytes.clone();
    let end = other.len() - 20;
    other[end] ^= 1;
    for (there, words) in [
        (bytes[..bytes.len() / 2].to_vec(), name),
        ([&bytes[..], &[0; 40_000]].concat(), name),
        ([&bytes[4096..], &bytes[4096..]].concat(), name),
        (Vec::new(), name),
        (other, name),
    ] {
        server.put(&key, there);
        let told = folder.fails(1, &info);
        assert!(told.contains(words), "{told}");
    }
    server.put(&key, bytes);
    folder.ok(&info);
    // A manifest that names files that are not there.
    folder.ok(&["graph", "compact", "net"]);
    let manifest = fs::read(folder.path("net/manifest")).unwrap();
    server.put("/bucket/net/manifest", manifest.clone());
    let told = folder.fails(1, &info);
    assert!(told.contains(".seg") && told.contains("not found"), "{told}");
    server.put("/bucket/net/manifest", manifest[..manifest.len() - 9].to_vec());
    let told = folder.fails(1, &info);
    assert!(told.contains("manifest"), "{told}");
}

#[test]
fn a_network_that_is_replaced_while_it_is_read_is_an_error() {
    let is_replaced = Arc::new(AtomicBool::new(false));
    let seen = is_replaced.clone();
    // Segments are of another version once they are open.
    let (folder, _server, url) = served(move |asked| {
        if asked.target.ends_with(".seg") && asked.headers.contains_key("if-match") {
            seen.store(true, Ordering::SeqCst);
            return Answer::OtherVersion;
        }
        Answer::Right
    });
    let told = folder.fails(1, &["graph", "neighbors", &url, "--from", "Neuron", "--digest"]);
    assert!(is_replaced.load(Ordering::SeqCst));
    assert!(told.contains("replaced after it was opened"), "{told}");
}

#[cfg(feature = "hdf5")]
#[test]
fn hdf5_files_at_urls_are_imported() {
    let folder = Folder::new();
    let synth =
        ["synth", "n.h5", "--kind", "neuroglial", "--neurons", "2000", "--astrocytes", "10"];
    folder.ok(&synth);
    folder.ok(&["graph", "import", "n.h5", "net"]);
    folder.ok(&["graph", "export", "net", "s.h5"]);
    let object = |path: &'static str, file: &str| (path, fs::read(folder.path(file)).unwrap());
    let server =
        ObjectServer::start([object("/b/n.h5", "n.h5"), object("/b/s.h5", "s.h5")], |asked| {
            if asked.number % 7 == 3 { Answer::Torn(0.5) } else { Answer::Right }
        });
    for (number, name) in ["n.h5", "s.h5"].iter().enumerate() {
        let (near, far) = (format!("near{number}"), format!("far{number}"));
        folder.ok(&["graph", "import", name, &near]);
        let url = format!("{}?key=secret", server.url(&format!("/b/{name}")));
        folder.ok(&["graph", "import", &url, &far]);
        let told = |store: &str| {
            let info = folder.ok(&["graph", "info", store]);
            info.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        assert!(!told(&near).is_empty() && told(&near) == told(&far));
        let lists = |store: &str| {
            folder.ok(&["graph", "neighbors", store, "--from", "Astrocyte", "--digest"])
        };
        assert_eq!(lists(&near), lists(&far));
        let manifest = fs::read_to_string(folder.path(&far).join("manifest")).unwrap();
        assert!(!manifest.contains("secret"));
    }
}
