//! Profiles of the tools for AWS: `~/.aws/config` and `~/.aws/credentials`.
//!
//! Keys that stand in these files, the region and the end point are read here. The files are no
//! plain INI: settings may be nested by indentation, and `[profile NAME]` of one is `[NAME]` of the
//! other. For keys that a program, a role or single sign-on gives, see the feature `aws-profiles`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use thalweg_io::{Error, Result};

/// The most bytes of a file that are read.
const MOST_BYTES: u64 = 1 << 20;

/// Settings of a profile that say where its keys come from, and that in words. These go before keys
/// in the files, which a role may be taken with.
const BEFORE_KEYS: [(&str, &str); 3] = [
    ("role_arn", "a role"),
    ("sso_session", "single sign-on"),
    ("sso_start_url", "single sign-on"),
];
/// These come after keys in the files.
const AFTER_KEYS: [(&str, &str); 2] =
    [("login_session", "aws login"), ("credential_process", "a program")];

/// The settings of a profile, by their names in lower case.
type Settings = BTreeMap<String, String>;

/// The settings of a profile in the text of a file, where it is named in one of two ways. `None` if
/// it is not there.
pub(crate) fn settings(text: &str, profile: &str) -> Option<Settings> {
    let mut found = None;
    let mut is_inside = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(section) = trimmed.strip_prefix('[') {
            let name = section.split(']').next().unwrap_or_default().trim();
            let plain = name.strip_prefix("profile").filter(|rest| rest.starts_with([' ', '\t']));
            let name = plain.unwrap_or(name).trim();
            is_inside = name.trim_matches(['"', '\'']) == profile;
            if is_inside {
                found.get_or_insert_with(Settings::new);
            }
            continue;
        }
        // An indented line belongs to the setting above it.
        let is_nested = line.starts_with([' ', '\t']);
        if let (Some(found), true, false, Some((name, value))) =
            (&mut found, is_inside, is_nested, trimmed.split_once('='))
        {
            let comment = [" #", " ;", "\t#", "\t;"].iter().filter_map(|mark| value.find(mark));
            let value = &value[..comment.min().unwrap_or(value.len())];
            found.insert(name.trim().to_lowercase(), value.trim().to_owned());
        }
    }
    found
}

/// The profile that the environment names, or the one named `default`.
#[derive(Debug)]
pub(crate) struct Profile {
    name: String,
    settings: Settings,
}

impl Profile {
    /// Reads the profile from both files. `None` if none is named and there is none.
    ///
    /// # Errors
    /// [`Error::Usage`] if the one that the environment names is not there.
    pub(crate) fn load(variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let home = variable("HOME").map(PathBuf::from);
        let place = |name: &str, file: &str| {
            let folder = home.as_ref().map(|home| home.join(".aws"));
            variable(name).map(PathBuf::from).or_else(|| Some(folder?.join(file)))
        };
        let named = variable("AWS_PROFILE").or_else(|| variable("AWS_DEFAULT_PROFILE"));
        let name = named.clone().unwrap_or_else(|| "default".into());
        let places = [
            place("AWS_CONFIG_FILE", "config"),
            place("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
        ];
        let mut merged: Option<Settings> = None;
        for path in places.iter().flatten() {
            if let Some(settings) = settings(&text(path)?, &name) {
                merged.get_or_insert_default().extend(settings);
            }
        }
        match merged {
            Some(settings) => Ok(Some(Self { name, settings })),
            None if named.is_some() => {
                let places: Vec<_> =
                    places.iter().flatten().map(|path| path.display().to_string()).collect();
                let places = places.join(" and ");
                let why = format!("AWS_PROFILE={name}: no such profile is in {places}");
                Err(Error::Usage(why.into()))
            }
            None => Ok(None),
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether the file itself has keys.
    fn has_keys(&self) -> bool {
        self.get("aws_access_key_id").is_some() && self.get("aws_secret_access_key").is_some()
    }

    /// Where the keys come from, in words, if not from the files.
    fn elsewhere(&self) -> Option<&'static str> {
        let find = |places: &[(&'static str, &'static str)]| {
            places.iter().find(|(name, _)| self.get(name).is_some()).map(|(_, words)| *words)
        };
        find(&BEFORE_KEYS).or_else(|| find(&AFTER_KEYS).filter(|_| !self.has_keys()))
    }

    /// Gives the settings to a client that does not have them from the environment.
    ///
    /// # Errors
    /// [`Error::Usage`] for keys that are not in the files, without the feature `aws-profiles`.
    pub(crate) fn apply(&self, mut builder: AmazonS3Builder) -> Result<AmazonS3Builder> {
        use AmazonS3ConfigKey as Key;
        let known = |builder: &AmazonS3Builder, key| builder.get_config_value(&key);
        if let Some(region) = self.get("region")
            && known(&builder, Key::Region).is_none()
        {
            builder = builder.with_region(region);
        }
        if let Some(endpoint) = self.get("endpoint_url")
            && known(&builder, Key::Endpoint).or(known(&builder, Key::S3Endpoint)).is_none()
        {
            builder = builder.with_endpoint(endpoint);
        }
        let others = [Key::AccessKeyId, Key::SecretAccessKey, Key::WebIdentityTokenFile];
        let is_public = known(&builder, Key::SkipSignature).is_some_and(|skips| skips == "true");
        if is_public || others.into_iter().any(|key| known(&builder, key).is_some()) {
            return Ok(builder);
        }
        if let Some(words) = self.elsewhere() {
            let region = self.get("sso_region").or_else(|| self.get("region"));
            return elsewhere(&self.name, region, builder, words);
        }
        for (name, key) in [
            ("aws_access_key_id", Key::AccessKeyId),
            ("aws_secret_access_key", Key::SecretAccessKey),
            ("aws_session_token", Key::Token),
        ] {
            if let Some(value) = self.get(name).filter(|_| self.has_keys()) {
                builder = builder.with_config(key, value);
            }
        }
        Ok(builder)
    }
}

#[cfg(feature = "aws-profiles")]
use crate::profile_keys::elsewhere;

/// Without the feature `aws-profiles`, keys that are elsewhere are not fetched.
#[cfg(not(feature = "aws-profiles"))]
fn elsewhere(
    name: &str,
    _: Option<&str>,
    _: AmazonS3Builder,
    words: &str,
) -> Result<AmazonS3Builder> {
    let why = format!(
        "the profile {name} gets its keys by {words}, which this build does not do: run eval \
         \"$(aws configure export-credentials --profile {name} --format env)\" before, or build \
         with the feature aws-profiles"
    );
    Err(Error::Usage(why.into()))
}

/// The text of a file; empty if there is none.
fn text(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Error::io(&path.display().to_string().into(), "reading", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Profile, settings};

    const CONFIG: &str = "\
# a comment
[default]
region = eu-north-1
s3 =
    region = nested
    addressing_style = path
[profile lab]
Region=us-west-2 # the lab's
endpoint_url = http://127.0.0.1:7070
aws_access_key_id = key
[profile sso]
sso_session = corp
[sso-session corp]
region = elsewhere
[ profile 'two words' ]
region = x
[profile lab]
output = json
";

    #[test]
    fn a_profile_has_the_settings_of_its_sections() {
        let of = |profile: &str, name: &str| settings(CONFIG, profile)?.get(name).cloned();
        assert_eq!(of("default", "region").as_deref(), Some("eu-north-1"));
        assert_eq!(of("default", "addressing_style"), None);
        assert_eq!(of("lab", "region").as_deref(), Some("us-west-2"));
        assert_eq!(of("lab", "output").as_deref(), Some("json"));
        assert_eq!(of("lab", "endpoint_url").as_deref(), Some("http://127.0.0.1:7070"));
        assert_eq!(of("two words", "region").as_deref(), Some("x"));
        assert_eq!(settings(CONFIG, "profile lab"), None);
        assert_eq!(settings("", "default"), None);
        let odd = settings("[a\n=\nb\nc==d\n[]\n", "a").unwrap_or_default();
        assert_eq!(odd.get("c").map(String::as_str), Some("=d"));
    }

    #[test]
    fn a_profile_that_is_named_must_exist() {
        let of = |name: &'static str| {
            Profile::load(&move |variable| match variable {
                "AWS_PROFILE" => Some(name.to_owned()),
                _ => None,
            })
        };
        let error = of("lab").map(drop).map_err(|error| error.to_string());
        assert!(error.is_err_and(|error| error.contains("AWS_PROFILE=lab")));
        assert!(of("").is_ok_and(|profile| profile.is_none()));
    }
}
