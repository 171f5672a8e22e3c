//! The buckets in which a mount changes objects: one, or all of a service.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use thalweg_io::Result;
use thalweg_io::control::Control;
use thalweg_io::open::ObjectVersion;
use thalweg_object::{Bucket, Condition, Head, Metadata, PartsUpload, Patience};

use crate::bucket::{bucket_of, is_service};

/// The objects below what is mounted. All functions are those of [`Bucket`].
pub(crate) struct Buckets {
    url: Arc<str>,
    control: Control,
    patience: Patience,
    /// By the part of a key that names the bucket ([`bucket_of`]).
    opened: Mutex<HashMap<String, Arc<Bucket>>>,
}

impl Buckets {
    pub(crate) fn new(url: &Arc<str>, control: &Control, patience: Patience) -> Result<Self> {
        let (url, control) = (url.clone(), control.clone());
        let buckets = Self { url, control, patience, opened: Mutex::default() };
        if !is_service(&buckets.url) {
            // What cannot be written shows now.
            buckets.bucket("")?;
        }
        Ok(buckets)
    }

    fn bucket(&self, name: &str) -> Result<Arc<Bucket>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = opened.get(name) {
            return Ok(bucket.clone());
        }
        let url = format!("{}{name}", self.url);
        let bucket = Arc::new(Bucket::new(&url, &self.control, self.patience)?);
        opened.insert(name.to_owned(), bucket.clone());
        Ok(bucket)
    }

    /// Does something in the bucket of a key, with the key there.
    fn at<T>(&self, key: &str, act: impl FnOnce(&Bucket, &str) -> Result<T>) -> Result<T> {
        let name = bucket_of(&self.url, key);
        act(&*self.bucket(name)?, &key[name.len()..])
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
        let to = &to[bucket_of(&self.url, to).len()..];
        self.at(from, |bucket, from| bucket.copy((from, version), to, marked, condition))
    }

    pub(crate) fn remove(&self, key: &str, condition: &Condition) -> Result<()> {
        self.at(key, |bucket, key| bucket.remove(key, condition))
    }
}
