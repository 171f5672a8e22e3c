//! A store for tests that refuses, loses answers, or is changed by others.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use thalweg_testing::http_server::{Answer, Asked, ObjectServer};

type Rule = Box<dyn FnMut(&Asked) -> Answer + Send>;

/// A server whose rule may change.
pub(super) struct Store {
    pub(super) server: ObjectServer,
    rule: Arc<Mutex<Rule>>,
}

impl Store {
    pub(super) fn new() -> Self {
        let rule: Arc<Mutex<Rule>> = Arc::new(Mutex::new(Box::new(|_| Answer::Right)));
        let asked = rule.clone();
        let server = ObjectServer::start([], move |request| (asked.lock().unwrap())(request));
        Self { server, rule }
    }

    pub(super) fn rule(&self, rule: impl FnMut(&Asked) -> Answer + Send + 'static) {
        *self.rule.lock().unwrap() = Box::new(rule);
    }

    /// Answers all requests as it should.
    pub(super) fn mend(&self) {
        self.rule(|_| Answer::Right);
    }

    /// Refuses some requests.
    pub(super) fn refuse(&self, is_refused: impl Fn(&Asked) -> bool + Send + 'static) {
        self.rule(move |asked| match is_refused(asked) {
            true => Answer::Refused(403, "AccessDenied"),
            false => Answer::Right,
        });
    }

    /// Puts the next object without an answer, and refuses all others.
    pub(super) fn lose(&self) {
        let mut is_first = true;
        self.rule(move |asked| match &*asked.method {
            "PUT" if std::mem::take(&mut is_first) => Answer::Lost,
            "PUT" => Answer::Refused(403, "AccessDenied"),
            _ => Answer::Right,
        });
    }

    pub(super) fn object(&self, key: &str) -> Option<String> {
        let bytes = self.server.object(&format!("/bucket/{key}"))?;
        Some(String::from_utf8(bytes).unwrap())
    }

    /// Puts an object as another program does.
    pub(super) fn put(&self, key: &str, content: &str) {
        self.server.put(&format!("/bucket/{key}"), content.into());
    }
}

pub(super) fn is_copy(asked: &Asked) -> bool {
    asked.headers.contains_key("x-amz-copy-source")
}

pub(super) fn is_put(asked: &Asked) -> bool {
    asked.method == "PUT" && !is_copy(asked)
}

pub(super) fn append(path: &Path, content: &str) -> File {
    let mut file = File::options().read(true).append(true).open(path).unwrap();
    file.write_all(content.as_bytes()).unwrap();
    file
}
