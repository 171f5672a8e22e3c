//! What is planned for objects at URLs, and what is measured of their service: `--explain`, `probe`
//! and `doctor`.

use std::collections::HashSet;
use std::fs;

use serde_json::Value;
use thalweg_testing::http_server::{Answer, Asked, ObjectServer};

use crate::common::{Folder, json};
use crate::urls::{from_bucket, served};

/// The bytes of an object that is large enough for a probe.
const LARGE: usize = 2 << 20;

/// The JSON line of a verb that reads from a bucket, and that must succeed.
pub(crate) fn line(folder: &Folder, server: &ObjectServer, args: &[&str]) -> Value {
    let done = from_bucket(folder, server, args);
    assert!(done.status.success(), "{args:?}: {done:?}");
    json(&String::from_utf8(done.stdout).unwrap()).pop().unwrap()
}

/// How many requests a verb makes.
fn asked(server: &ObjectServer, verb: impl FnOnce()) -> usize {
    let before = server.asked().len();
    verb();
    server.asked().len() - before
}

/// The different GETs of a verb and their bytes, and all of them. They are the same, unless the
/// machine is so busy that a request is made a second time.
fn taken(server: &ObjectServer, verb: impl FnOnce()) -> [(u64, u64); 2] {
    let before = server.asked().len();
    verb();
    let ranges = server.asked().split_off(before).into_iter().map(|asked| asked.range.unwrap());
    let all: Vec<_> = ranges.map(|range| (range.start, range.end)).collect();
    let different: HashSet<_> = all.iter().copied().collect();
    let bytes = |sum: u64, (start, end): &(u64, u64)| sum + end - start;
    let of_all = (all.len() as u64, all.iter().fold(0, bytes));
    [(different.len() as u64, different.iter().fold(0, bytes)), of_all]
}

/// Some ids of the reads in a file, as a list named `ids`. Returns how many.
fn write_ids(folder: &Folder, file: &str) -> usize {
    let table = folder.ok(&["scan", file, "--tsv"]);
    let ids = table.lines().skip(1).step_by(7).filter_map(|line| line.split('\t').next());
    let list: Vec<_> = ids.map(|id| format!("{id}\n")).collect();
    fs::write(folder.path("ids"), list.concat()).unwrap();
    list.len()
}

/// Checks that a verb takes the GETs and bytes that it explains.
fn explains(folder: &Folder, server: &ObjectServer, args: &[&str], more: &[&str]) {
    let mut plan = Value::Null;
    let explained = [args, &["--explain", "--json"]].concat();
    let for_plan = asked(server, || plan = line(folder, server, &explained));
    let number = |name: &str| plan[name].as_u64().unwrap();
    let all = (number("all_requests"), number("all_bytes"));
    assert!(plan["before"]["requests"].as_u64().unwrap() <= for_plan as u64, "{args:?}: {plan}");
    let run = [args, more].concat();
    let [different, made] = taken(server, || {
        let done = from_bucket(folder, server, &run);
        assert!(done.status.success(), "{run:?}: {done:?}");
    });
    assert!((different.0..=made.0).contains(&all.0), "{args:?}: {different:?} {made:?} {plan}");
    assert!((different.1..=made.1).contains(&all.1), "{args:?}: {different:?} {made:?} {plan}");
    assert!(all.0 > 0 && number("rounds") > 0, "{plan}");
    let cost = all.0 as f64 * 0.4e-6 + all.1 as f64 * 0.09e-9;
    assert!((plan["cost_usd"].as_f64().unwrap() / cost - 1.0).abs() < 1e-9, "{plan}");
    assert!(plan["predicted_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_run_takes_the_requests_that_were_explained() {
    let (folder, server) = served(|_| Answer::Right);
    write_ids(&folder, "r.blow5");
    for name in ["r.blow5", "r.pod5", "r.slow5"] {
        let url = &format!("s3://runs/{name}");
        assert!(from_bucket(&folder, &server, &["index", url]).status.success());
        let out = format!("from-{name}.out");
        explains(&folder, &server, &["read", url], &[]);
        explains(&folder, &server, &["read", url, "--ids", "ids"], &[]);
        explains(&folder, &server, &["scan", url], &[]);
        let other = if name == "r.slow5" { "blow5" } else { "slow5" };
        let to = ["convert", url, &out, "--to", other, "--lossy"];
        explains(&folder, &server, &to, &[]);
    }
    let words = folder.ok(&["read", &server.url("/runs/r.blow5"), "--explain", "--price-gb", "0"]);
    assert!(words.contains("as of S3 within its region"), "{words}");
    assert!(words.contains("GETs, ") && words.contains("0 USD for 1 GB"), "{words}");
    let told = folder.fails(2, &["read", "r.blow5", "--explain", "--price-get=-1"]);
    assert!(told.contains("a price in US dollars"), "{told}");
    // Nothing is asked of a service for a file.
    assert_eq!(
        folder.json(&["read", "r.blow5", "--explain", "--json"])[0]["cost_usd"],
        Value::Null
    );
}

#[cfg(feature = "hdf5")]
#[test]
fn a_run_over_hdf5_takes_the_requests_that_were_explained() {
    let folder = Folder::new();
    folder.ok(&["synth", "run.nxs", "--kind", "nexus-live", "--size", "1MB"]);
    folder.synth("r.blow5", "300k");
    folder.ok(&["convert", "r.blow5", "r.fast5", "--lossy"]);
    write_ids(&folder, "r.blow5");
    let object = |name: &str| fs::read(folder.path(name)).unwrap();
    let objects = [("/runs/run.nxs", object("run.nxs")), ("/runs/r.fast5", object("r.fast5"))];
    let server = ObjectServer::start(objects, |_| Answer::Right);
    let (nexus, fast5) = ("s3://runs/run.nxs", "s3://runs/r.fast5");
    let bank = "/entry/bank1_events/event_id";
    explains(&folder, &server, &["read", nexus], &[]);
    explains(&folder, &server, &["read", nexus, bank], &[]);
    explains(&folder, &server, &["read", nexus, bank, "--select", "10:500"], &[]);
    explains(&folder, &server, &["read", nexus, "--slice", "1/3"], &[]);
    explains(&folder, &server, &["read", fast5], &[]);
    explains(&folder, &server, &["read", fast5, "--ids", "ids"], &[]);
    explains(&folder, &server, &["scan", fast5], &[]);
}

/// An index of a POD5 object says where the signal rows are, and is not believed where it is
/// damaged.
#[test]
fn reads_by_id_need_no_metadata_of_the_signal_table() {
    let folder = Folder::new();
    folder.ok(&["synth", "r.pod5", "--kind", "pod5", "--samples", "6M", "--signal", "none"]);
    let object = fs::read(folder.path("r.pod5")).unwrap();
    // Its end, which comes when it is opened, does not have all of it.
    assert!(object.len() > 4 << 20);
    let server = ObjectServer::start([("/runs/r.pod5", object)], |_| Answer::Right);
    let url = "s3://runs/r.pod5";
    let ids = write_ids(&folder, "r.pod5");
    let local = folder.ok(&["read", "r.pod5", "--ids", "ids", "--digest"]);
    assert!(from_bucket(&folder, &server, &["index", url]).status.success());
    let by_id = || {
        let mut digests = String::new();
        let verb = || {
            let done = from_bucket(&folder, &server, &["read", url, "--ids", "ids", "--digest"]);
            digests = String::from_utf8(done.stdout).unwrap();
        };
        let [different, _] = taken(&server, verb);
        assert_eq!(digests, local);
        different.0
    };
    let with_places = by_id();
    assert!(with_places <= 2 + ids as u64, "{with_places} requests for {ids}");
    let mut damaged = 0;
    for entry in fs::read_dir(folder.path("cache/thalweg/index")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        let last = bytes.len() - 4000;
        bytes[last] ^= 1;
        fs::write(&path, bytes).unwrap();
        damaged += 1;
    }
    assert!(damaged > 0 && by_id() > with_places, "the damaged block is looked up in the file");
}

/// The objects that match a pattern, or are named, are found at the same time, and not one after
/// the other.
#[cfg(feature = "hdf5")]
#[test]
fn patterns_and_names_take_no_more_rounds_than_the_whole_file() {
    let folder = Folder::new();
    folder.ok(&["synth", "run.nxs", "--kind", "nexus-live", "--size", "1MB", "--banks", "40"]);
    let rounds = |path: &[&str]| {
        let args = [&["read", "run.nxs"], path, &["--explain", "--json"]].concat();
        let plan = folder.json(&args);
        (plan[0]["arrays"].as_u64().unwrap(), plan[0]["finding_rounds"].as_u64().unwrap())
    };
    let (all, most) = rounds(&[]);
    let (events, taken) = rounds(&["/entry/bank*_events/event_id"]);
    assert!(events == 40 && all > events, "{events} of {all}");
    assert!(taken <= most, "{taken} rounds, and {most} for the whole file");
    let names: Vec<_> = (1..=40).map(|bank| format!("/entry/bank{bank}_events/event_id")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let (events, taken) = rounds(&names);
    assert_eq!(events, 40);
    assert!(taken <= most, "{taken} rounds, and {most} for the whole file");
}

/// A report counts the requests that a server got. Of a request that was made a second time, one
/// may end before it goes out.
fn assert_made(counts: &Value, got: usize) {
    let made = counts["requests"].as_u64().unwrap();
    let hedges = counts["hedges"].as_u64().unwrap();
    assert!((made - hedges..=made).contains(&(got as u64)), "{counts}, and the server got {got}");
}

#[test]
fn a_report_counts_what_was_received() {
    let (folder, server) = served(|asked| match asked.number {
        1 => Answer::Refused(503, "SlowDown"),
        2 => Answer::Torn(0.5),
        _ => Answer::Right,
    });
    for verb in [&["read"][..], &["convert", "out.slow5"]] {
        let url = "s3://runs/r.blow5";
        let (verb, more) = verb.split_at(1);
        let mut report = Value::Null;
        let args = [verb, &[url], more, &["--json"]].concat();
        let requests = asked(&server, || report = line(&folder, &server, &args));
        let counts = &report["object_store"];
        assert_made(counts, requests);
        // What tears a body is received in part only.
        assert!(counts["bytes"].as_u64().unwrap() > 0);
        if verb == ["read"] {
            assert_eq!(counts["retries"], 2, "{report}");
        }
    }
    let words = folder.ok(&["read", &server.url("/runs/r.blow5")]);
    assert!(words.contains("received in ") && words.contains("0 tried again"), "{words}");
    let report = &folder.json(&["read", "r.blow5", "--json"])[0];
    assert!(report.get("object_store").is_none(), "{report}");
}

/// A server of the files of [`served`], and of a large object.
fn with_large(
    behaviour: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
) -> (Folder, ObjectServer) {
    let (folder, server) = served(behaviour);
    server.put("/runs/large", (0..LARGE).map(|at| ((at * at) >> 7) as u8).collect());
    (folder, server)
}

#[test]
fn a_probed_service_is_planned_for() {
    let (folder, server) = with_large(|_| Answer::Right);
    let mut probe = Value::Null;
    let args = ["probe", "s3://runs/large", "--budget-s", "8", "--json"];
    let requests = asked(&server, || probe = line(&folder, &server, &args));
    assert_made(&probe["object_store"], requests);
    assert!(server.asked().iter().all(|asked| asked.method == "GET"), "nothing is written");
    let (median, p99) = (&probe["latency"]["median_s"], &probe["latency"]["p99_s"]);
    assert_eq!(*median, probe["model"]["latency_s"]);
    assert!(median.as_f64().unwrap() > 0.0 && p99.as_f64() >= median.as_f64(), "{probe}");

    let plan = |url: &str| line(&folder, &server, &["read", url, "--explain", "--json"]);
    let of_bucket = plan("s3://runs/r.blow5");
    assert_eq!(of_bucket["model_origin"], "measured", "{of_bucket}");
    assert_eq!(of_bucket["model"], probe["model"]);
    let doctor = line(&folder, &server, &["doctor", "s3://runs/r.blow5", "--json"]);
    assert_eq!(doctor["model"], probe["model"]);
    let other = plan(&server.url("/runs/r.blow5"));
    assert_eq!(other["model_origin"], "prior", "another way to the server: {other}");

    // A measurement holds for 30 days.
    let place = folder.path(probe["saved_as"].as_str().unwrap());
    let mut saved: Value = serde_json::from_slice(&fs::read(&place).unwrap()).unwrap();
    let (from, to) = (&saved["measured_at_unix_s"], &saved["expires_at_unix_s"]);
    assert_eq!(to.as_u64().unwrap() - from.as_u64().unwrap(), 30 * 24 * 60 * 60);
    saved["expires_at_unix_s"] = saved["measured_at_unix_s"].clone();
    fs::write(&place, saved.to_string()).unwrap();
    assert_eq!(plan("s3://runs/r.blow5")["model_origin"], "prior");

    let http = server.url("/runs/large?signature=secret");
    let words = folder.ok(&["probe", &http, "--budget-s", "8"]);
    assert!(words.contains("small requests/s") && words.contains("it took "), "{words}");
    assert!(!words.contains("secret"), "{words}");
    assert_eq!(plan(&server.url("/runs/r.pod5"))["model_origin"], "measured");
}

#[test]
fn a_service_that_cannot_be_probed_leaves_no_model() {
    let (folder, server) = with_large(|asked| match asked.number {
        0 => Answer::Right,
        _ => Answer::Never,
    });
    let done = from_bucket(&folder, &server, &["probe", "s3://runs/large", "--timeout", "1"]);
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(1) && told.contains("the time-out being 1 s"), "{told}");
    server.put("/runs/small", vec![0; 1000]);
    let told = folder.fails(2, &["probe", &format!("file://{}", folder.path("r.blow5").display())]);
    assert!(told.contains("give its path"), "{told}");
    assert!(!folder.path("cache/thalweg/models").exists());
}

/// A BLOW5 file that is large enough for an index to be looked for beside it, and a server of it.
pub(crate) fn beside(
    behaviour: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
) -> (Folder, ObjectServer) {
    let folder = Folder::new();
    folder.synth("r.blow5", "2M");
    let object = fs::read(folder.path("r.blow5")).unwrap();
    assert!(object.len() > 1 << 20);
    let server = ObjectServer::start([("/runs/r.blow5", object)], behaviour);
    (folder, server)
}

/// The GET for an index that is not there is counted, and is made by the run, too.
#[cfg(feature = "hdf5")]
#[test]
fn asking_for_an_index_is_explained() {
    let folder = Folder::new();
    folder.ok(&["synth", "run.nxs", "--kind", "nexus-live", "--size", "3MB"]);
    let object = fs::read(folder.path("run.nxs")).unwrap();
    let server = ObjectServer::start([("/runs/run.nxs", object)], |_| Answer::Right);
    let read = ["read", "s3://runs/run.nxs", "/entry/bank1_events/event_id"];
    let plan = line(&folder, &server, &[&read[..], &["--explain", "--json"]].concat());
    assert_eq!(plan["model_origin"], "prior", "{plan}");
    let before = server.asked().len();
    assert!(from_bucket(&folder, &server, &read).status.success());
    let asked = server.asked().split_off(before);
    assert!(asked.iter().any(|asked| asked.target.ends_with(".idx")), "{asked:?}");
    // Of a request that was made a second time, the same range is asked for again.
    let different: HashSet<_> = asked.iter().map(|a| (&a.target, a.range.clone())).collect();
    let planned = plan["all_requests"].as_u64().unwrap() as usize;
    assert!((different.len()..=asked.len()).contains(&planned), "{planned} of {asked:?}");
}

#[test]
fn a_plan_knows_the_cache() {
    let (folder, server) = beside(|_| Answer::Right);
    let read = ["read", "s3://runs/r.blow5", "--cache", "1GB,free=0B"];
    let explain = |more: &[&str]| {
        line(&folder, &server, &[&read[..], &["--explain", "--json"], more].concat())
    };
    let cold = explain(&[]);
    assert_eq!(cold["model_origin"], "prior", "{cold}");
    assert!(cold["all_requests"].as_u64().unwrap() > 1, "{cold}");
    assert!(from_bucket(&folder, &server, &read).status.success());
    let warm = explain(&[]);
    assert_eq!(warm["model_origin"], "cache", "{warm}");
    assert_eq!(warm["all_requests"], 1, "the version of the object is asked for: {warm}");
    assert!(warm["cost_usd"].as_f64().unwrap() < cold["cost_usd"].as_f64().unwrap() / 10.0);
    assert!(warm["requests"].as_u64().unwrap() > 0, "those to the disc: {warm}");
    let made = asked(&server, || assert!(from_bucket(&folder, &server, &read).status.success()));
    assert_eq!(made, 1);
    let done = from_bucket(&folder, &server, &[&read[..], &["--explain"]].concat());
    let words = String::from_utf8(done.stdout).unwrap();
    assert!(words.contains("the disc with the cache") && words.contains("1 GET,"), "{words}");
}

#[test]
fn only_one_file_is_explained() {
    let folder = Folder::new();
    folder.synth("a.blow5", "20k");
    folder.synth("b.blow5", "20k");
    let told = folder.fails(2, &["read", "a.blow5", "b.blow5", "--explain"]);
    assert!(told.contains("--explain is about one file, and these are 2"), "{told}");
    for verb in ["read", "scan", "convert"] {
        let help = folder.ok(&[verb, "--help"]).replace("\n          ", " ");
        assert!(help.contains("Of one file"), "{help}");
    }
}

/// A probe says what it may take, and ends when its time is over. A model of half a probe is none.
#[test]
fn a_probe_keeps_to_its_budget() {
    let (folder, server) = with_large(|asked| match asked.number {
        0 => Answer::Right,
        _ => Answer::Trickling,
    });
    let started = std::time::Instant::now();
    let done = from_bucket(&folder, &server, &["probe", "s3://runs/large", "--budget-s", "2"]);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    let told = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{told}");
    assert!(told.contains("takes up to 2 s, 50000 GETs and 4.00 GB"), "{told}");
    assert!(told.contains("no model is saved"), "{told}");
    assert!(!folder.path("cache/thalweg/models").exists());
    // So does a limit of bytes.
    let (folder, server) = with_large(|_| Answer::Right);
    let args = ["probe", "s3://runs/large", "--budget-s", "2", "--most", "2MB"];
    let before = server.sent();
    let done = from_bucket(&folder, &server, &args);
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(1) && told.contains("no model is saved"), "{told}");
    // Those that are made a second time come on top.
    assert!(server.sent() - before < 3_000_000, "{}", server.sent() - before);
    assert!(!folder.path("cache/thalweg/models").exists());
}
