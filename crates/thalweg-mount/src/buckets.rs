//! The buckets in which a mount changes objects: one, or all of a service.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use thalweg_io::control::Control;
use thalweg_io::open::ObjectVersion;
use thalweg_io::{Error, Result};
use thalweg_object::{Bucket, Condition, Head, Metadata, PartsUpload, Patience};

use crate::bucket::is_service;

/// The objects below what is mounted. All functions are those of [`Bucket`].
pub(crate) enum Buckets {
    One(Box<Bucket>),
    All(Service),
}

/// All buckets of a service: the first part of a key is the name of one.
pub(crate) struct Service {
    url: Arc<str>,
    control: Control,
    patience: Patience,
    opened: Mutex<HashMap<String, Arc<Bucket>>>,
}

impl Service {
    fn bucket(&self, name: &str) -> Result<Arc<Bucket>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = opened.get(name) {
            return Ok(bucket.clone());
        }
        let url = format!("{}{name}/", self.url);
        let bucket = Arc::new(Bucket::new(&url, &self.control, self.patience)?);
        opened.insert(name.to_owned(), bucket.clone());
        Ok(bucket)
    }
}

impl Buckets {
    pub(crate) fn new(url: &Arc<str>, control: &Control, patience: Patience) -> Result<Self> {
        if !is_service(url) {
            let bucket = Bucket::new(url, control, patience)?;
            return Ok(Self::One(Box::new(bucket)));
        }
        let (url, control) = (url.clone(), control.clone());
        Ok(Self::All(Service { url, control, patience, opened: Mutex::default() }))
    }

    /// Does something in the bucket of a key, with the key there.
    fn at<T>(&self, key: &str, act: impl FnOnce(&Bucket, &str) -> Result<T>) -> Result<T> {
        let service = match self {
            Self::One(bucket) => return act(bucket, key),
            Self::All(service) => service,
        };
        match key.split_once('/') {
            Some((name, rest)) => act(&*service.bucket(name)?, rest),
            None => {
                Err(Error::Usage(format!("{}{key} is no object in a bucket", service.url).into()))
            }
        }
    }

    pub(crate) fn head(&self, key: &str) -> Result<Option<Head>> {
        self.at(key, Bucket::head)
    }

    pub(crate) fn holds(&self, key: &str, condition: &Condition) -> Result<bool> {
        self.at(key, |bucket, key| bucket.holds(key, condition))
    }

    pub(crate) fn put(
        &self,
        key: &str,
        bytes: Bytes,
        marked: (&Metadata, &str),
        condition: &Condition,
    ) -> Result<String> {
        self.at(key, |bucket, key| bucket.put(key, bytes, marked, condition))
    }

    pub(crate) fn begin(&self, key: &str, marked: (&Metadata, &str)) -> Result<PartsUpload> {
        self.at(key, |bucket, key| bucket.begin(key, marked))
    }

    pub(crate) fn put_part(
        &self,
        key: &str,
        upload: &PartsUpload,
        number: usize,
        bytes: Bytes,
    ) -> Result<String> {
        self.at(key, |bucket, key| bucket.put_part(key, upload, number, bytes))
    }

    pub(crate) fn complete(
        &self,
        key: &str,
        upload: &PartsUpload,
        tags: &[String],
        condition: &Condition,
    ) -> Result<String> {
        self.at(key, |bucket, key| bucket.complete(key, upload, tags, condition))
    }

    pub(crate) fn abort(&self, key: &str, upload: &PartsUpload) -> Result<()> {
        self.at(key, |bucket, key| bucket.abort(key, upload))
    }

    /// Both keys are in one bucket.
    pub(crate) fn copy(
        &self,
        (from, version): (&str, &ObjectVersion),
        to: &str,
        marked: Option<(&Metadata, &str)>,
        condition: &Condition,
    ) -> Result<String> {
        self.at(from, |bucket, rest| {
            let to = &to[from.len() - rest.len()..];
            bucket.copy((rest, version), to, marked, condition)
        })
    }

    pub(crate) fn remove(&self, key: &str, condition: &Condition) -> Result<()> {
        self.at(key, |bucket, key| bucket.remove(key, condition))
    }
}
