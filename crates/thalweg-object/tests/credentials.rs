//! Where keys come from: each test runs itself again with another environment.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use thalweg_io::control::Control;
use thalweg_io::store::Store;
use thalweg_object::{Patience, open};
use thalweg_testing::http_server::{Answer, Asked, ObjectServer};
use thalweg_testing::{no_hang, sample};

/// The URL that the run of this program for a test reads.
const URL: &str = "CREDENTIALS_TEST_URL";
/// It reads on when this file is there.
const GO: &str = "CREDENTIALS_TEST_GO";
const KEY: &str = "/bucket/key";

/// Not a test of its own: reads an object, in the environment that a test gave it.
#[test]
fn child() {
    let Ok(url) = std::env::var(URL) else { return };
    let patience = Patience { read: Duration::from_secs(60), request: Duration::from_secs(30) };
    let read = open(&url, &Control::new(), patience).and_then(|object| {
        while std::env::var(GO).is_ok_and(|path| !Path::new(&path).exists()) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut bytes = vec![0; object.size() as usize];
        object.read_at(0, &mut bytes)?;
        assert!(bytes == sample(bytes.len()));
        Ok(bytes.len())
    });
    println!("{}", read.map_or_else(|error| error.to_string(), |len| format!("{len} bytes")));
}

/// A server with an object, and a home folder.
struct World {
    server: ObjectServer,
    home: TempDir,
}

impl World {
    fn new(behaviour: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let server = ObjectServer::start([(KEY, sample(100_000))], behaviour);
        Self { server, home: tempfile::tempdir().unwrap() }
    }

    /// Writes a file below the home folder, and returns its path.
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn command(&self, environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["child", "--exact", "--nocapture"])
            .env_clear()
            .env(URL, "s3://bucket/key")
            .env("HOME", self.home.path())
            .env("AWS_ENDPOINT_URL", self.server.url(""))
            // No test asks the machine that it runs on.
            .env("AWS_METADATA_ENDPOINT", self.server.url("/none"))
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What reading the object says.
    fn read(&self, environment: &[(&str, &str)]) -> String {
        let mut command = self.command(environment);
        said(&no_hang(move || command.output().unwrap()))
    }

    /// The requests for the object.
    fn asked(&self) -> Vec<Asked> {
        let asked = self.server.asked().into_iter();
        asked.filter(|asked| asked.target.ends_with("/key")).collect()
    }

    /// Reads the object, and returns a header of each request for it.
    fn headers(&self, environment: &[(&str, &str)], name: &str) -> Vec<Option<String>> {
        self.server.forget();
        let said = self.read(environment);
        assert!(said.contains("100000 bytes"), "{said}");
        let asked = self.asked().into_iter();
        let headers: Vec<_> = asked.map(|mut asked| asked.headers.remove(name)).collect();
        assert!(headers.len() > 1, "{headers:?}");
        headers
    }

    /// Reads the object, and returns the scope of the keys that all requests are signed with, such
    /// as `key/eu-north-1`.
    fn signed_with(&self, environment: &[(&str, &str)]) -> String {
        let scope = |header: Option<String>| {
            let header = header.unwrap();
            let scope = header.split_once("Credential=").unwrap().1;
            let parts: Vec<&str> = scope.split('/').collect();
            format!("{}/{}", parts[0], parts[2])
        };
        let headers = self.headers(environment, "authorization").into_iter();
        let mut scopes: Vec<String> = headers.map(scope).collect();
        scopes.dedup();
        assert_eq!(scopes.len(), 1, "{scopes:?}");
        scopes.remove(0)
    }
}

fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    text.into_owned()
}

fn keys(name: &str, expires: &str) -> Vec<u8> {
    format!(
        "{{\"AccessKeyId\": \"{name}\", \"SecretAccessKey\": \"s\", \"Token\": \"t-{name}\", \
         \"Expiration\": \"{expires}\", \"Code\": \"Success\", \"RoleArn\": \"r\"}}"
    )
    .into_bytes()
}

const LATER: &str = "2099-01-01T00:00:00Z";
const BEFORE: &str = "2020-01-01T00:00:00Z";

#[test]
fn profiles_have_keys_regions_and_end_points() {
    let world = World::new(|_| Answer::Right);
    world.file(
        ".aws/credentials",
        "[default]\naws_access_key_id=first\naws_secret_access_key=s\n\
         [lab]\naws_access_key_id = lab # ours\naws_secret_access_key = s\naws_session_token = t\n",
    );
    let endpoint = world.server.url("");
    let config = format!("[profile lab]\nregion = eu-north-1\nendpoint_url = {endpoint}\n");
    let config = world.file("elsewhere", &config);
    assert_eq!(world.signed_with(&[]), "first/us-east-1");
    let lab = [("AWS_PROFILE", "lab"), ("AWS_CONFIG_FILE", &config)];
    assert_eq!(world.signed_with(&lab), "lab/eu-north-1");
    let tokens = world.headers(&lab, "x-amz-security-token");
    assert!(tokens.iter().all(|token| token.as_deref() == Some("t")), "{tokens:?}");

    // The environment goes before the files.
    let mixed = [
        lab[0],
        lab[1],
        ("AWS_ACCESS_KEY_ID", "own"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
        ("AWS_REGION", "us-west-1"),
    ];
    assert_eq!(world.signed_with(&mixed), "own/us-west-1");
    let tokens = world.headers(&mixed, "x-amz-security-token");
    assert!(tokens.iter().all(Option::is_none), "keys and token are of one source: {tokens:?}");

    // The end point of the profile alone.
    let mut command = world.command(&lab);
    command.env_remove("AWS_ENDPOINT_URL");
    let said = said(&no_hang(move || command.output().unwrap()));
    assert!(said.contains("100000 bytes"), "{said}");

    let said = world.read(&[("AWS_PROFILE", "other")]);
    assert!(said.contains("AWS_PROFILE=other: no such profile") && said.contains(".aws/config"));
}

#[cfg(not(feature = "aws-profiles"))]
#[test]
fn a_profile_whose_keys_are_elsewhere_says_what_to_do() {
    let world = World::new(|_| Answer::Right);
    world.file(
        ".aws/config",
        "[profile sso]\nsso_session = corp\n[profile program]\ncredential_process = /bin/keys\n\
         [profile role]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = role\n\
         aws_access_key_id = k\naws_secret_access_key = s\n\
         [default]\nsso_start_url = https://example.org\n",
    );
    for (name, words) in [("sso", "single sign-on"), ("program", "a program"), ("role", "a role")] {
        let said = world.read(&[("AWS_PROFILE", name)]);
        assert!(said.contains(words), "{said}");
        let export = format!("aws configure export-credentials --profile {name} --format env");
        assert!(said.contains(&export), "{said}");
    }
    assert!(world.read(&[]).contains("--profile default"));
    // Who needs no keys of the profile is not told.
    let said = world.read(&[("AWS_SKIP_SIGNATURE", "true")]);
    assert!(said.contains("100000 bytes"), "{said}");
}

#[cfg(feature = "aws-profiles")]
#[test]
fn keys_of_a_program_are_fetched() {
    let world = World::new(|_| Answer::Right);
    let text = "{\"Version\": 1, \"AccessKeyId\": \"program\", \"SecretAccessKey\": \"s\"}";
    let printed = world.file("keys", text);
    let config =
        format!("[profile p]\nregion = eu-north-1\ncredential_process = /bin/cat {printed}\n");
    world.file(".aws/config", &config);
    assert_eq!(world.signed_with(&[("AWS_PROFILE", "p")]), "program/eu-north-1");
    world.file(".aws/config", "[profile p]\ncredential_process = /bin/false\n");
    let said = world.read(&[("AWS_PROFILE", "p")]);
    assert!(said.contains("the profile p gives no keys"), "{said}");
}

#[test]
fn containers_give_keys_and_new_ones_when_they_expire() {
    let world = World::new(|_| Answer::Right);
    let file = world.file("token", "letter");
    let uri = world.server.url("/keys");
    let container = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &*uri),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &*file),
    ];
    world.server.put("/keys", keys("pod", LATER));
    assert_eq!(world.signed_with(&container), "pod/us-east-1");
    let asked = world.server.asked();
    let letters: Vec<_> = asked.iter().filter(|asked| asked.target == "/keys").collect();
    assert_eq!(letters.len(), 1, "keys that hold are kept");
    assert_eq!(letters[0].headers["authorization"], "letter");

    world.server.put("/keys", keys("old", BEFORE));
    world.server.forget();
    let go = world.home.path().join("go");
    let child = world.command(&container).env(GO, &go).spawn().unwrap();
    while world.asked().is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
    world.server.put("/keys", keys("new", LATER));
    fs::write(&go, "").unwrap();
    let said = said(&no_hang(move || child.wait_with_output().unwrap()));
    assert!(said.contains("100000 bytes"), "{said}");
    let used: Vec<_> = world
        .asked()
        .into_iter()
        .map(|asked| asked.headers["x-amz-security-token"].clone())
        .collect();
    assert_eq!((used.first().unwrap().as_str(), used.last().unwrap().as_str()), ("t-old", "t-new"));
}

#[test]
fn a_service_for_keys_that_refuses_is_named() {
    let world = World::new(|asked| match asked.target.split('?').next() {
        Some("/keys" | "/sts") => Answer::Refused(403, "AccessDenied"),
        _ => Answer::Right,
    });
    let file = world.file("token", "letter");
    let (uri, sts) = (world.server.url("/keys"), world.server.url("/sts"));
    let away = "http://127.0.0.1:1/sts";
    for (environment, words) in [
        (
            vec![
                ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &*uri),
                ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &*file),
            ],
            "no credentials: 127.0.0.1/keys answered 403 AccessDenied",
        ),
        (
            vec![
                ("AWS_WEB_IDENTITY_TOKEN_FILE", &*file),
                ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r"),
                ("AWS_ENDPOINT_URL_STS", &*sts),
            ],
            "no credentials: 127.0.0.1/sts answered 403 AccessDenied",
        ),
        (
            vec![
                ("AWS_WEB_IDENTITY_TOKEN_FILE", &*file),
                ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r"),
                ("AWS_ENDPOINT_URL_STS", away),
            ],
            "127.0.0.1/sts, which gives credentials, does not answer",
        ),
        (vec![], "no credentials: 127.0.0.1/none/latest/api/token answered 404"),
    ] {
        let said = world.read(&environment);
        assert!(said.contains(words), "{said}");
        assert!(!said.contains("letter"), "{said}");
    }
}

#[test]
fn web_identities_and_machines_have_keys() {
    let world = World::new(|_| Answer::Right);
    let file = world.file("token", "letter");
    let sts = world.server.url("/sts");
    let answer = format!(
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>\
         <SessionToken>t</SessionToken><SecretAccessKey>s</SecretAccessKey>\
         <AccessKeyId>web</AccessKeyId><Expiration>{LATER}</Expiration>\
         </Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
    );
    world.server.put("/sts", answer.into_bytes());
    let web = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", &*file),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r"),
        ("AWS_ENDPOINT_URL_STS", &*sts),
    ];
    // Static keys of the default profile come after it.
    world.file(".aws/credentials", "[default]\naws_access_key_id=d\naws_secret_access_key=s\n");
    assert_eq!(world.signed_with(&web), "web/us-east-1");
    assert!(world.server.asked().iter().any(|asked| {
        asked.target.contains("WebIdentityToken=letter") && asked.method == "POST"
    }));
    fs::remove_dir_all(world.home.path().join(".aws")).unwrap();

    let endpoint = world.server.url("/imds");
    let role = "/imds/latest/meta-data/iam/security-credentials/";
    world.server.put("/imds/latest/api/token", b"session".to_vec());
    world.server.put(role, b"reader".to_vec());
    world.server.put(&format!("{role}reader"), keys("machine", LATER));
    let machine = [("AWS_METADATA_ENDPOINT", &*endpoint)];
    assert_eq!(world.signed_with(&machine), "machine/us-east-1");
}

#[test]
fn requests_are_as_the_environment_says() {
    let world = World::new(|_| Answer::Right);
    let own = [("AWS_ACCESS_KEY_ID", "own"), ("AWS_SECRET_ACCESS_KEY", "s")];
    let with = |more| [own[0], own[1], more];
    let every = |headers: Vec<Option<String>>, value: Option<&str>| {
        assert!(headers.iter().all(|header| header.as_deref() == value), "{headers:?}");
    };
    let payer = with(("AWS_REQUEST_PAYER", "true"));
    every(world.headers(&payer, "x-amz-request-payer"), Some("requester"));
    every(world.headers(&own, "x-amz-request-payer"), None);
    every(world.headers(&own, "x-amz-checksum-mode"), Some("ENABLED"));
    let signed = world.headers(&own, "authorization");
    assert!(signed.iter().flatten().all(|header| header.contains(";x-amz-checksum-mode;")));
    let asks_not = with(("AWS_RESPONSE_CHECKSUM_VALIDATION", "when_required"));
    every(world.headers(&asks_not, "x-amz-checksum-mode"), None);
    every(world.headers(&[("AWS_SKIP_SIGNATURE", "true")], "authorization"), None);

    // The bucket is in the name of the host, and not in the path.
    world.server.put("/key", sample(100_000));
    let said = world.read(&with(("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true")));
    assert!(said.contains("100000 bytes"), "{said}");
    assert_eq!(world.asked().last().unwrap().target, "/key");
}
