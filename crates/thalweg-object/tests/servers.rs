//! The properties of stores on servers that others wrote: versitygw, moto and Garage of the
//! protocol of S3, fake-gcs-server of Google's, and Azurite of Azure's. `make servers` installs
//! them, and `make garage` Garage. A test without its server says that it was left out.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crc_fast::CrcAlgorithm;
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::azure::{AzureAccessKey, AzureAuthorizer, AzureCredential};
use object_store::client::{HttpRequest, HttpRequestBody};
use thalweg_io::control::Control;
use thalweg_io::new_file::{NewObject, Replaced};
use thalweg_io::store::Store;
use thalweg_io::urls::{Depth, Entry};
use thalweg_io::{Error, Result};
use thalweg_object::{Object, Patience, Upload, list, open};
use thalweg_testing::{no_hang, sample, store_suite};

/// The address of the server, for the run of this program that reads from it.
const ENDPOINT: &str = "AWS_ENDPOINT_URL";
// Garage wants keys of this form.
const KEY: &str = "GK0123456789abcdef01234567";
const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A program from `make servers`, or from the folders where such programs are.
fn installed(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers");
    let folders = ["bin", "venv/bin", "azurite/node_modules/.bin"].map(|name| root.join(name));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = folders.into_iter().chain(std::env::split_paths(&path));
    let found = found.map(|folder| folder.join(name)).find(|path| path.exists());
    if found.is_none() {
        println!("LEFT OUT: {name} is not installed (make servers)");
    }
    found
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server that ends when it is dropped.
struct Server {
    process: Child,
    address: String,
    #[expect(dead_code, reason = "it is dropped last")]
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts a server. `arguments` are made of its port and a folder.
    fn start(program: &Path, arguments: impl Fn(u16, &str) -> Vec<String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let process = Command::new(program)
            .args(arguments(port, folder.path().to_str().unwrap()))
            .env("ROOT_ACCESS_KEY", KEY)
            .env("ROOT_SECRET_KEY", SECRET)
            .env("GARAGE_DEFAULT_ACCESS_KEY", KEY)
            .env("GARAGE_DEFAULT_SECRET_KEY", SECRET)
            .env("GARAGE_DEFAULT_BUCKET", "bucket")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { process, address: format!("127.0.0.1:{port}"), folder };
        let address = server.address.clone();
        no_hang(move || {
            while TcpStream::connect(&address).is_err() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        server
    }

    /// Runs a test of this program again, with the server in its environment.
    fn run(&self, test: &str) {
        self.run_with(
            test,
            &[
                (ENDPOINT, &format!("http://{}", self.address)),
                ("AWS_ACCESS_KEY_ID", KEY),
                ("AWS_SECRET_ACCESS_KEY", SECRET),
                ("AWS_REGION", "us-east-1"),
            ],
        );
    }

    /// Runs a test of this program again, in this environment.
    fn run_with(&self, test: &str, environment: &[(&str, &str)]) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([test, "--exact", "--nocapture"]).env_clear();
        command.envs(environment.iter().copied());
        let output = no_hang(move || command.output().unwrap());
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("all of it held"), "{said}{errors}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Makes an object, or a bucket, of a service of S3.
fn put(address: &str, path: &str, headers: &[(&str, &str)], bytes: &[u8]) {
    let mut request = http::Request::put(format!("http://{address}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request: HttpRequest = request.body(HttpRequestBody::from(bytes.to_vec())).unwrap();
    let credential = AwsCredential { key_id: KEY.into(), secret_key: SECRET.into(), token: None };
    AwsAuthorizer::new(&credential, "s3", "us-east-1").try_authorize(&mut request, None).unwrap();
    send(address, &request, bytes);
}

/// Sends a request, which must succeed.
fn send(address: &str, request: &HttpRequest, bytes: &[u8]) {
    let (method, path) = (request.method(), request.uri().path_and_query().unwrap());
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in request.headers() {
        head += &format!("{name}: {}\r\n", value.to_str().unwrap());
    }
    head += &format!("Content-Length: {}\r\n\r\n", bytes.len());
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    // Some servers reset the connection after the answer.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 20"), "{path}: {answer}");
}

/// The server that this run is for. `None` in a run of all tests.
fn address() -> Option<String> {
    Some(std::env::var(ENDPOINT).ok()?.strip_prefix("http://")?.to_owned())
}

fn opened(key: &str) -> Object {
    let patience = Patience { read: Duration::from_secs(300), request: Duration::from_secs(60) };
    open(&format!("s3://bucket/{key}"), &Control::new(), patience).unwrap()
}

/// Not a test of its own: checks the properties of stores on the server of the environment.
#[test]
fn child() {
    let Some(address) = address() else { return };
    let next = AtomicU64::new(0);
    store_suite(&|bytes| -> Arc<dyn Store> {
        let key = format!("object-{}", next.fetch_add(1, Ordering::SeqCst));
        put(&address, &format!("/bucket/{key}"), &[], bytes);
        Arc::new(opened(&key))
    });

    // A key is taken as it is.
    put(&address, "/bucket/a%20b/%23%3F%25%C3%A9", &[], b"odd");
    let mut buf = [0; 3];
    opened("a b/#?%é").read_at(0, &mut buf).unwrap();
    assert_eq!(&buf, b"odd");

    // With checksums: one object that comes with one answer, and one that does not.
    for (key, len) in [("few", 9), ("many", 300_000)] {
        let bytes = sample(len);
        let crc = crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, &bytes) as u32;
        let crc = STANDARD.encode(crc.to_be_bytes());
        let headers = [("x-amz-sdk-checksum-algorithm", "CRC32C"), ("x-amz-checksum-crc32c", &crc)];
        put(&address, &format!("/bucket/{key}"), &headers, &bytes);
        let object = opened(key);
        let mut buf = vec![0; len];
        object.read_at(0, &mut buf).unwrap();
        assert!(buf == bytes, "{key}");
        object.read_at(1, &mut buf[..len - 1]).unwrap();
        assert!(buf[..len - 1] == bytes[1..], "{key}");
    }

    // Another version of the same length.
    let bytes = sample(200_000);
    put(&address, "/bucket/replaced", &[], &bytes);
    let object = opened("replaced");
    let other: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
    put(&address, "/bucket/replaced", &[], &other);
    let error = object.read_at(100_000, &mut [0; 1000]).unwrap_err().to_string();
    assert!(error.contains("replaced"), "{error}");

    let none = open("s3://bucket/none", &Control::new(), Patience::default()).unwrap_err();
    assert!(none.to_string().contains("there is no such object"), "{none}");
    let none = open("s3://nobucket/none", &Control::new(), Patience::default()).unwrap_err();
    assert!(none.to_string().contains("there is no such bucket"), "{none}");
    println!("all of it held");
}

/// The address of a server of Google's protocol, for the run that reads from it.
const ADDRESS: &str = "THALWEG_TEST_ADDRESS";

fn patient(url: &str) -> Result<Object> {
    let patience = Patience { read: Duration::from_secs(300), request: Duration::from_secs(60) };
    open(url, &Control::new(), patience)
}

fn upload(url: &str, bytes: &[u8], replaced: Replaced) -> Result<()> {
    let patience = Patience { read: Duration::from_secs(300), request: Duration::from_secs(60) };
    let mut upload = Box::new(Upload::create(url, replaced, &Control::new(), patience)?);
    for piece in bytes.chunks(1 << 20) {
        upload.push(piece)?;
    }
    upload.finish()
}

/// Makes an object of a service of Google. fake-gcs-server does not know the uploads of Google's
/// XML interface, which ours are.
fn insert(address: &str, key: &str, bytes: &[u8]) {
    let key: String = key.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let place = "upload/storage/v1/b/bucket/o?uploadType=media&name=";
    let request = http::Request::post(format!("http://{address}/{place}{key}"));
    let request = request.body(HttpRequestBody::from(bytes.to_vec())).unwrap();
    send(address, &request, bytes);
}

/// Checks the properties of stores on a service of another protocol than S3.
fn check(bucket: &str, put: &dyn Fn(&str, &[u8])) {
    let next = AtomicU64::new(0);
    store_suite(&|bytes| -> Arc<dyn Store> {
        let key = format!("suite/{}", next.fetch_add(1, Ordering::SeqCst));
        put(&key, bytes);
        Arc::new(patient(&format!("{bucket}/{key}")).unwrap())
    });

    let odd = "a b/#?%é.pod5";
    put(odd, b"odd");
    let mut buf = [0; 3];
    patient(&format!("{bucket}/{odd}")).unwrap().read_at(0, &mut buf).unwrap();
    assert_eq!(&buf, b"odd");

    // Another version of the same length.
    let bytes = sample(200_000);
    put("replaced", &bytes);
    let object = patient(&format!("{bucket}/replaced")).unwrap();
    let other: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
    put("replaced", &other);
    let error = object.read_at(100_000, &mut [0; 1000]).unwrap_err().to_string();
    assert!(error.contains("replaced"), "{error}");

    let mut listed = Vec::new();
    list(&format!("{bucket}/"), Depth::All, &Control::new(), Patience::default(), &mut |entry| {
        if let Entry::Object(object) = entry {
            listed.push(object.url);
        }
        Ok(true)
    })
    .unwrap();
    assert_eq!(listed.len() as u64, next.into_inner() + 2, "{listed:?}");
    for key in [odd, "replaced"] {
        assert!(listed.contains(&format!("{bucket}/{key}")), "{listed:?}");
    }

    let none = patient(&format!("{bucket}/none")).unwrap_err();
    assert!(none.to_string().contains("there is no such object"), "{none}");
    println!("all of it held");
}

/// Not a test of its own: see [`objects_of_fake_gcs_server_are_stores`].
#[test]
fn google_child() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    if std::env::var_os("GOOGLE_SERVICE_ACCOUNT_KEY").is_some() {
        check("gs://bucket", &|key, bytes| insert(&address, key, bytes));
    }
}

/// Not a test of its own: see [`objects_of_azurite_are_stores`].
#[test]
fn azure_child() {
    if std::env::var_os("AZURE_STORAGE_ENDPOINT").is_none() {
        return;
    }
    let url = |key: &str| format!("az://bucket/{key}");
    check("az://bucket", &|key, bytes| upload(&url(key), bytes, Replaced::WhatIsThere).unwrap());
    let error = upload(&url("replaced"), b"more", Replaced::Nothing).unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error}");
    let bytes = sample(21 << 20);
    upload(&url("in parts"), &bytes, Replaced::Nothing).unwrap();
    let mut buf = vec![0; bytes.len()];
    patient(&url("in parts")).unwrap().read_at(0, &mut buf).unwrap();
    assert!(buf == bytes);
    let none = patient("az://nobucket/none").unwrap_err();
    assert!(none.to_string().contains("there is no such bucket"), "{none}");
}

#[test]
fn objects_of_fake_gcs_server_are_stores() {
    let Some(program) = installed("fake-gcs-server") else { return };
    let server = Server::start(&program, |port, _| {
        let (port, host) = (port.to_string(), format!("127.0.0.1:{port}"));
        let options = ["-scheme", "http", "-host", "127.0.0.1", "-port", &port];
        let more = ["-backend", "memory", "-public-host", &host];
        options.into_iter().chain(more).map(str::to_owned).collect()
    });
    let url = format!("http://{}/storage/v1/b?project=test", server.address);
    let bucket = br#"{"name": "bucket"}"#;
    let request = http::Request::post(url).header("Content-Type", "application/json");
    let request = request.body(HttpRequestBody::from(bucket.to_vec())).unwrap();
    send(&server.address, &request, bucket);
    let key = format!(
        r#"{{"private_key": "", "private_key_id": "", "client_email": "", "disable_oauth": true,
            "gcs_base_url": "http://{}"}}"#,
        server.address
    );
    let environment = [(ADDRESS, &*server.address), ("GOOGLE_SERVICE_ACCOUNT_KEY", &key)];
    server.run_with("google_child", &environment);
}

#[test]
fn objects_of_azurite_are_stores() {
    /// The account that Azurite has.
    const ACCOUNT: &str = "devstoreaccount1";
    const ACCOUNT_KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/\
                               K1SZFPTOtr/KBHBeksoGMGw==";
    let Some(program) = installed("azurite-blob") else { return };
    let server = Server::start(&program, |port, folder| {
        let port = port.to_string();
        let options = ["--blobPort", &port, "--location", folder, "--silent"];
        options.into_iter().chain(["--skipApiVersionCheck"]).map(str::to_owned).collect()
    });
    let endpoint = format!("http://{}/{ACCOUNT}", server.address);
    let request = http::Request::put(format!("{endpoint}/bucket?restype=container"));
    let mut request: HttpRequest = request.body(HttpRequestBody::from(Vec::new())).unwrap();
    let credential = AzureCredential::AccessKey(AzureAccessKey::try_new(ACCOUNT_KEY).unwrap());
    AzureAuthorizer::new(&credential, ACCOUNT).try_authorize(&mut request).unwrap();
    send(&server.address, &request, &[]);
    server.run_with(
        "azure_child",
        &[
            ("AZURE_STORAGE_ENDPOINT", &endpoint),
            ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT),
            ("AZURE_STORAGE_ACCOUNT_KEY", ACCOUNT_KEY),
        ],
    );
}

#[test]
fn objects_of_versitygw_are_stores() {
    let Some(program) = installed("versitygw") else { return };
    let server = Server::start(&program, |port, folder| {
        let address = format!("127.0.0.1:{port}");
        ["--port", &address, "posix", folder].map(str::to_owned).to_vec()
    });
    put(&server.address, "/bucket", &[], &[]);
    server.run("child");
}

#[test]
fn objects_of_garage_are_stores() {
    let Some(program) = installed("garage") else { return };
    let server = Server::start(&program, |port, folder| {
        let settings = format!(
            r#"
            metadata_dir = "{folder}/metadata"
            data_dir = "{folder}/data"
            db_engine = "sqlite"
            replication_factor = 1
            rpc_bind_addr = "127.0.0.1:{}"
            rpc_secret = "{SECRET}"
            [s3_api]
            s3_region = "us-east-1"
            api_bind_addr = "127.0.0.1:{port}"
            "#,
            free_port()
        );
        let path = format!("{folder}/settings");
        std::fs::write(&path, settings).unwrap();
        let options = ["-c", &path, "server", "--single-node"];
        let bucket = ["--default-access-key", "--default-bucket"];
        options.into_iter().chain(bucket).map(str::to_owned).collect()
    });
    server.run("child");
}

#[test]
fn objects_of_moto_are_stores() {
    // It takes as long as all the others.
    let is_left_out = thalweg_testing::one_of() > 1;
    let Some(program) = installed("moto_server").filter(|_| !is_left_out) else { return };
    let server = Server::start(&program, |port, _| {
        ["-H", "127.0.0.1", "-p", &port.to_string()].map(str::to_owned).to_vec()
    });
    put(&server.address, "/bucket", &[], &[]);
    server.run("child");
}
