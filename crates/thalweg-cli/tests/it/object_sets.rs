//! Folders and patterns of objects as data sets, and the indexes and other files beside objects.

use std::fs;

use thalweg_testing::http_server::{Answer, Asked, ObjectServer};

use crate::common::Folder;
use crate::urls::from_bucket;

fn ok(folder: &Folder, server: &ObjectServer, args: &[&str]) -> String {
    let done = from_bucket(folder, server, args);
    assert!(done.status.success(), "{args:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// Names of files, below a folder and in a bucket: some hidden, some odd, some of no format.
const NAMES: [&str; 9] = [
    "runs/a/pass/1.blow5",
    "runs/a/pass/2 #?%+.blow5",
    "runs/a/fail/3.blow5",
    "runs/b/pass/4.blow5",
    "runs/b/pass/.5.blow5",
    "runs/.c/pass/6.blow5",
    "runs/b/pass/[7].blow5",
    "runs/é\n/pass/8.blow5",
    "runs/top.blow5",
];

/// A folder with files of reads, and a server that has them and `more` in a bucket.
fn served(behaviour: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> (Folder, ObjectServer) {
    let folder = Folder::new();
    let server = ObjectServer::start([], behaviour);
    server.set_page(3);
    for (i, name) in NAMES.iter().enumerate() {
        let seed = (i + 1).to_string();
        let path = folder.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        folder.ok(&["synth", name, "--samples", "20k", "--seed", &seed]);
        server.put(&format!("/data/{name}"), fs::read(path).unwrap());
    }
    for name in ["runs/notes.txt", "runs/a/pass/notes.txt", "other/x.blow5"] {
        fs::create_dir_all(folder.path(name).parent().unwrap()).unwrap();
        fs::write(folder.path(name), "not reads").unwrap();
        server.put(&format!("/data/{name}"), b"not reads".to_vec());
    }
    // What some programs put where a folder is.
    server.put("/data/runs/", Vec::new());
    server.put("/data/runs/a/pass/", Vec::new());
    (folder, server)
}

#[test]
fn folders_and_patterns_of_objects_are_data_sets() {
    let (folder, server) = served(|asked| match asked.number % 13 {
        4 => Answer::Refused(503, "SlowDown"),
        9 => Answer::Torn(0.5),
        _ => Answer::Right,
    });
    for pattern in [
        "runs/",
        "runs/a/",
        "runs/*/pass/*.blow5",
        "runs/*/pass/",
        "runs/*/pass",
        "runs/[ab]/p*/?.blow5",
        "runs/**/*.blow5",
        "**/pass/*5",
        "runs/**",
        "runs/b/pass/[7].blow5",
        "runs/b/pass/[[]7].blow5",
        "runs/[!a]*/**/[4-6].b*5",
        "runs/t*5",
        "runs/.*/pass/*5",
    ] {
        let local = folder.ok(&["read", pattern, "--digest"]);
        let url = format!("s3://data/{pattern}");
        assert_eq!(ok(&folder, &server, &["read", &url, "--digest"]), local, "{pattern}");
    }
    for nothing in ["runs/*.slow5", "none/", "runs/*/none/*", "**/none.blow5", "runs/a[", "*/x/"] {
        let done = from_bucket(&folder, &server, &["read", &format!("s3://data/{nothing}")]);
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code().is_some_and(|code| code == 1 || code == 2), "{nothing}: {told}");
        assert!(told.contains(nothing), "{nothing}: {told}");
    }
    let done = from_bucket(&folder, &server, &["read", "s3://*/x.blow5"]);
    assert!(String::from_utf8_lossy(&done.stderr).contains("no pattern"), "{done:?}");
    // What the bucket is asked for is no more than what may match.
    let before = server.asked().len();
    ok(&folder, &server, &["scan", "s3://data/runs/*/pass/4*", "--tsv"]);
    let lists: Vec<String> =
        server.asked().split_off(before).into_iter().map(|a| a.target).collect();
    let lists: Vec<&String> = lists.iter().filter(|target| target.contains("list-type")).collect();
    assert!(lists.iter().all(|target| target.contains("delimiter=%2F")), "{lists:?}");
    assert!(lists.iter().any(|target| target.contains("pass%2F4")), "{lists:?}");
}

#[test]
fn verbs_take_folders_and_patterns_of_objects() {
    let (folder, server) = served(|_| Answer::Right);
    let both = |args: &[&str], url: &str| {
        let with =
            |path: &str| args.iter().map(|arg| arg.replace("PATH", path)).collect::<Vec<String>>();
        let (here, there) = (with("runs/*/pass/"), with(url));
        let here: Vec<&str> = here.iter().map(String::as_str).collect();
        let there: Vec<&str> = there.iter().map(String::as_str).collect();
        (folder.ok(&here), ok(&folder, &server, &there))
    };
    let url = "s3://data/runs/*/pass/";
    let strip = |text: &str| text.replace("s3://data/", "");
    let (here, there) = both(&["scan", "PATH", "--tsv"], url);
    assert_eq!(here, strip(&there));
    let (here, there) = both(&["info", "PATH", "--json"], url);
    let number = |text: &str| {
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        (json["reads"].clone(), json["files"].clone())
    };
    assert_eq!(number(&here), number(&there));
    let (here, there) = both(&["check", "PATH"], url);
    assert_eq!(here, strip(&there));
    ok(&folder, &server, &["merge", url, "--out", "merged.blow5"]);
    folder.ok(&["merge", "runs/*/pass/", "--out", "here.blow5"]);
    let digest = |name: &str| folder.ok(&["read", name, "--digest"]);
    assert_eq!(digest("merged.blow5"), digest("here.blow5"));
    ok(&folder, &server, &["convert", "s3://data/runs/a/", "out", "--per-file", "--to", "slow5"]);
    assert!(folder.path("out/pass/2 #?%+.slow5").is_file());
    ok(&folder, &server, &["index", "s3://data/runs/a/"]);
    // A name that is there is no pattern.
    let info = ok(&folder, &server, &["info", "s3://data/runs/b/pass/[7].blow5"]);
    assert!(info.contains("read groups"), "{info}");
    for url in [server.url("/data/runs/"), server.url("/data/runs/*.blow5")] {
        let told = folder.fails(1, &["read", &url]);
        assert!(
            told.contains("web servers have no lists") || told.contains("no such object"),
            "{told}"
        );
    }
}

#[test]
fn a_thousand_objects_are_opened_many_at_a_time() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static IN_FLIGHT: AtomicU64 = AtomicU64::new(0);
    static MOST: AtomicU64 = AtomicU64::new(0);
    let folder = Folder::new();
    folder.ok(&["synth", "r.blow5", "--samples", "2k"]);
    let bytes = fs::read(folder.path("r.blow5")).unwrap();
    let server = ObjectServer::start([], |asked| {
        if asked.range.is_some() {
            MOST.fetch_max(IN_FLIGHT.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(std::time::Duration::from_millis(10));
            IN_FLIGHT.fetch_sub(1, Ordering::SeqCst);
        }
        Answer::Right
    });
    for i in 0..300 {
        server.put(&format!("/data/{i:03}.blow5"), bytes.clone());
    }
    let json = ok(&folder, &server, &["read", "s3://data/", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let one: serde_json::Value =
        serde_json::from_str(&folder.ok(&["read", "r.blow5", "--json"])).unwrap();
    assert_eq!(json["samples"].as_u64(), one["samples"].as_u64().map(|n| n * 300));
    assert!(MOST.load(Ordering::SeqCst) > 4, "{MOST:?} requests were in flight");
    // One to open each, and one to open those again that cannot stay open.
    let gets = server.asked().iter().filter(|asked| asked.range.is_some()).count();
    assert!(gets <= 600, "{gets}");
}

/// The requests that a verb makes for the index beside an object.
fn index_requests(server: &ObjectServer, since: usize) -> usize {
    server.asked()[since..].iter().filter(|asked| asked.target.ends_with(".idx")).count()
}

#[test]
fn an_index_beside_an_object_is_used_if_it_is_of_it() {
    let folder = Folder::new();
    folder.synth("r.blow5", "3M");
    folder.ok(&["convert", "r.blow5", "r.pod5", "--lossy"]);
    let ids = folder.ok(&["scan", "r.blow5", "--tsv"]);
    let id = ids.lines().nth(1).unwrap().split('\t').next().unwrap().to_owned();
    fs::write(folder.path("ids"), format!("{id}\n")).unwrap();
    for name in ["r.blow5", "r.pod5"] {
        folder.ok(&["index", name]);
        let index = fs::read(folder.path(&format!("{name}.idx"))).unwrap();
        let bytes = fs::read(folder.path(name)).unwrap();
        let wanted = folder.ok(&["read", name, "--ids", "ids", "--digest"]);
        let object = format!("/data/{name}");
        let beside = format!("{object}.idx");
        let url = format!("s3://data/{name}");
        let read = |server: &ObjectServer| {
            let cache = folder.path("cache");
            let _ = fs::remove_dir_all(&cache);
            let (before, sent) = (server.asked().len(), server.sent());
            let args = ["read", &url, "--ids", "ids", "--digest"];
            let done = folder
                .command(args)
                .env("AWS_ENDPOINT_URL", server.url(""))
                .env("AWS_ACCESS_KEY_ID", "key")
                .env("AWS_SECRET_ACCESS_KEY", "secret")
                .env("XDG_CACHE_HOME", &cache)
                .output()
                .unwrap();
            assert_eq!(String::from_utf8_lossy(&done.stdout), wanted, "{done:?}");
            (index_requests(server, before), server.sent() - sent)
        };

        // None is there: one request more.
        let server = ObjectServer::start([], |_| Answer::Right);
        server.put(&object, bytes.clone());
        let (requests, whole) = read(&server);
        assert_eq!(requests, 1, "{name}");

        // It is of the object.
        server.put(&beside, index.clone());
        let (requests, fetched) = read(&server);
        assert!(requests >= 1 && (name == "r.pod5" || fetched < whole / 2), "{fetched} of {whole}");
        // A plan needs it, too.
        let _ = fs::remove_dir_all(folder.path("cache"));
        let planned = ok(&folder, &server, &["read", &url, "--ids", "ids", "--explain"]);
        assert!(planned.contains("fetched"), "{planned}");
        // Once fetched, it stays in the cache folder.
        let args = ["read", &url, "--ids", "ids", "--digest"];
        assert_eq!(ok(&folder, &server, &args), wanted);
        let before = server.asked().len();
        assert_eq!(ok(&folder, &server, &args), wanted);
        assert_eq!(index_requests(&server, before), 0);

        // It is older than the object, and of another file.
        let other = ObjectServer::start([], |_| Answer::Right);
        other.put(&beside, index.clone());
        other.put(&object, bytes.clone());
        read(&other);
        folder.ok(&["synth", "other.blow5", "--samples", "3M", "--seed", "99", "--force"]);
        folder.ok(&["convert", "other.blow5", "other.pod5", "--lossy", "--force"]);
        let foreign = name.replace("r.", "other.");
        folder.ok(&["index", &foreign]);
        for wrong in [
            fs::read(folder.path(&format!("{foreign}.idx"))).unwrap(),
            index[..index.len() / 2].to_vec(),
            b"no index at all".to_vec(),
            Vec::new(),
        ] {
            other.put(&beside, wrong);
            read(&other);
        }
    }
}

#[test]
fn a_suite_measures_objects() {
    let (folder, server) = served(|_| Answer::Right);
    let suite = r#"
name = "objects"
pairs = 6
[file.one]
path = "s3://data/runs/top.blow5"
[file.many]
path = "s3://data/runs/a/"
[workload.read]
command = ["{thalweg}", "read", "{file}", "--json"]
report = true
[[comparison]]
name = "one"
set = { file = "one" }
arms = [{ workload = "read", name = "a" }, { workload = "read", name = "b" }]
[[comparison]]
name = "many"
set = { file = "many", level = "hot" }
arms = [{ workload = "read", name = "a" }, { workload = "read", name = "b" }]
"#;
    fs::write(folder.path("s.toml"), suite).unwrap();
    ok(&folder, &server, &["bench", "s.toml", "--yes", "--json", "r.jsonl"]);
    let lines = crate::common::json(&fs::read_to_string(folder.path("r.jsonl")).unwrap());
    let levels: Vec<&str> = lines.iter().filter_map(|line| line["level"].as_str()).collect();
    let count = |level: &str| levels.iter().filter(|found| **found == level).count();
    assert!(count("client-cold") >= 12 && count("unverified") >= 12, "{levels:?}");
    let size = fs::metadata(folder.path("runs/top.blow5")).unwrap().len();
    let places = lines.iter().filter_map(|line| line["places"].as_array()).flatten();
    let of_one = |file: &&serde_json::Value| file["file"] == "s3://data/runs/top.blow5";
    assert!(places.clone().find(of_one).is_some_and(|file| file["bytes"] == size));
    let of_many = |file: &&serde_json::Value| file["file"] == "s3://data/runs/a/";
    assert!(places.clone().find(of_many).is_some_and(|file| file["bytes"].as_u64() > Some(0)));
    let missing = suite.replace("top.blow5", "none.blow5");
    fs::write(folder.path("s.toml"), missing).unwrap();
    let done = from_bucket(&folder, &server, &["bench", "s.toml", "--yes", "--json", "n.jsonl"]);
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && told.contains("there is no such object"), "{told}");
}
