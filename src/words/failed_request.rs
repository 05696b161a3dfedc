//! Why a request failed, in words.

use connect::ConnectError;
use maintenance_lease::ApiError;

use super::time::length;
use crate::text::escape;

/// Why a request failed, as part of a sentence.
pub(super) fn cause(error: &ApiError) -> String {
    if let ApiError::TimedOut(after) = error {
        return format!("no answer within {}", length((*after).into()));
    }
    let known = words(error).map(|(cause, _)| cause);
    known.unwrap_or_else(|| escape(&error.to_string()))
}

/// Why a request failed, and the next step, if there are better words than those of the library.
pub(super) fn words(error: &ApiError) -> Option<(String, Option<String>)> {
    let error = match error {
        ApiError::Transport(source) => ConnectError::classify(source)?,
        ApiError::TimedOut(after) => ConnectError::timed_out(*after),
        ApiError::Status(status) if status.code == 401 => {
            ConnectError::unauthorized(&status.message)
        }
        ApiError::CutShort { .. } => {
            let again = "run the command again".to_owned();
            return Some((escape(&error.to_string()), Some(again)));
        }
        ApiError::NotKubernetes { .. } => {
            let check =
                "check the server address, and any proxy or login page in between".to_owned();
            return Some((escape(&error.to_string()), Some(check)));
        }
        _ => return None,
    };
    Some((escape(&error.to_string()), error.hint()))
}
