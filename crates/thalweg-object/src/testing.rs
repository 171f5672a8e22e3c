//! For tests that answer requests without a network. Not a part of the interface.

use std::collections::BTreeMap;

use object_store::client::HttpClient;
use thalweg_io::Result;
use thalweg_io::control::Control;
use tokio::runtime::Runtime;

use crate::address::{Access, Address};
use crate::object::{HEAD, Object, open_on};
use crate::profile::settings;
use crate::retries::Patience;

/// Opens the object at an `http` URL. `stand_in` answers the requests, and they run on `runtime`,
/// whose clock counts.
///
/// # Errors
/// Those of [`open`](crate::open).
pub fn open_over(
    url: &str,
    stand_in: HttpClient,
    runtime: &'static Runtime,
    patience: Patience,
) -> Result<Object> {
    let access = Access { stand_in: Some(stand_in), ..Access::default() };
    let address = Address::parse_with(url, access)?;
    open_on(address, 0..HEAD, Some(runtime), &Control::new(), patience)
}

/// Reads a profile from the text of a file.
pub fn profile_settings(text: &str, profile: &str) -> Option<BTreeMap<String, String>> {
    settings(text, profile)
}
