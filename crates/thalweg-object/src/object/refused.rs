//! Why a request has no answer.

use crate::refusal::Refusal;
use crate::transport::Trouble;

/// Why there is no answer.
pub(crate) enum Refused {
    Server(Refusal),
    NoAnswer(String),
    /// Nothing came for as long as a request may take.
    Late,
    Cancelled,
    NoCredentials,
    /// The service for credentials gives none.
    NoKeys(String),
    /// The answer is not one to the request.
    Invalid(String),
}

impl Refused {
    pub(crate) fn of(trouble: Option<Trouble>, error: &object_store::Error) -> Self {
        match trouble {
            Some(Trouble::Refused(refusal)) => Self::Server(refusal),
            Some(Trouble::NoAnswer(why)) => Self::NoAnswer(why),
            Some(Trouble::NoCredentials) => Self::NoCredentials,
            Some(Trouble::NoKeys(said)) => Self::NoKeys(said),
            None if is_whole(error) => Self::Invalid(
                "the server gives whole objects only, and no ranges of them: copy the object, and \
                 read the copy"
                    .into(),
            ),
            None => Self::Invalid(error.to_string()),
        }
    }
}

/// Whether a server gives whole objects only. `object_store` has one error for its own client for
/// HTTP, and another for the others.
fn is_whole(error: &object_store::Error) -> bool {
    let words = error.to_string();
    ["non-partial", "Range request not supported"].iter().any(|part| words.contains(part))
}
