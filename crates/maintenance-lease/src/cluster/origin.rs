//! Whether an answer is an API server's at all: what stands in the way to it, such as a proxy with a login
//! page, answers in its place, and calls that a success.

use http::{HeaderValue, Response, header};
use kube::client::Body;

use super::error::ApiError;
use super::requests::Call;

/// As many characters of a body are told.
const SHOWN: usize = 60;

/// Where an answer comes from: what it is to, and what it says that it is.
pub(crate) struct Origin<'c> {
    call: &'c Call,
    content_type: Option<HeaderValue>,
}

impl<'c> Origin<'c> {
    pub(crate) fn of(call: &'c Call, answer: &Response<Body>) -> Self {
        Self {
            call,
            content_type: answer.headers().get(header::CONTENT_TYPE).cloned(),
        }
    }

    /// Expects an object in JSON, as all answers of an API server are, in a body that begins like this.
    ///
    /// # Errors
    /// [`ApiError::NotKubernetes`], where it is something else.
    pub(crate) fn expect_object(&self, beginning: &[u8]) -> Result<(), ApiError> {
        match beginning.trim_ascii_start().first() {
            Some(b'{') => Ok(()),
            Some(_) => {
                let shown = format!("begins with {:?}", one_line(beginning, SHOWN));
                Err(self.not_kubernetes(match self.media_type() {
                    Some(media_type) => format!("is {media_type} and {shown}"),
                    None => shown,
                }))
            }
            None => Err(self.not_kubernetes("is empty".to_owned())),
        }
    }

    /// Expects anything but a page for people. Of a body that goes on for ever, that is all that can be
    /// told before something comes.
    ///
    /// # Errors
    /// As [`expect_object`](Self::expect_object).
    pub(crate) fn expect_no_page(&self) -> Result<(), ApiError> {
        match self.media_type() {
            Some("text/html") => Err(self.not_kubernetes("is text/html".to_owned())),
            _ => Ok(()),
        }
    }

    fn not_kubernetes(&self, what: String) -> ApiError {
        let path = self.call.path.split('?').next().unwrap_or_default();
        ApiError::NotKubernetes {
            asked: format!("{} {path}", self.call.method),
            what,
        }
    }

    /// Its content type, less the parameters; of visible characters only.
    fn media_type(&self) -> Option<&str> {
        let content_type = self.content_type.as_ref()?.to_str().ok()?;
        let media_type = content_type.split(';').next()?.trim();
        (!media_type.is_empty() && media_type.len() <= SHOWN).then_some(media_type)
    }
}

/// At most `most` characters of the beginning of `body`, with single spaces for its white space.
pub(crate) fn one_line(body: &[u8], most: usize) -> String {
    let text = String::from_utf8_lossy(body);
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if let Some((end, _)) = line.char_indices().nth(most) {
            line.truncate(end);
            line.push('…');
            break;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::requests::Accept;

    fn said(content_type: Option<&'static str>, body: &[u8]) -> Option<String> {
        let call = Call::get("/api/v1/nodes?watch=true".to_owned(), Accept::Json);
        let origin = Origin {
            call: &call,
            content_type: content_type.map(HeaderValue::from_static),
        };
        origin
            .expect_object(body)
            .err()
            .map(|error| error.to_string())
    }

    #[test]
    fn a_page_is_told_in_a_line_with_what_was_asked() {
        let page =
            b"<!DOCTYPE html>\r\n<html>\n  <head><title>Log \"in\"\x1b[31m</title></head>\n</html>";
        assert_eq!(
            said(Some("text/html; charset=utf-8"), page).as_deref(),
            Some(
                r#"the server's answer to GET /api/v1/nodes is not Kubernetes': it is text/html and begins with "<!DOCTYPE html> <html> <head><title>Log \"in\"\u{1b}[31m</title></h…"; a proxy or a login page may be in the way"#
            )
        );
    }

    #[test]
    fn what_has_no_readable_type_is_told_by_its_beginning() {
        for content_type in [None, Some(""), Some("; charset=utf-8")] {
            let said = said(content_type, b"OK").expect("an error");
            assert!(said.contains("': it begins with \"OK\"; "), "{said}");
        }
        let said = said(None, b" \n").expect("an error");
        assert!(said.contains("': it is empty; "), "{said}");
    }

    #[test]
    fn an_object_is_taken_whatever_it_is_called() {
        for content_type in [None, Some("application/json"), Some("text/plain")] {
            assert_eq!(said(content_type, b" {\"kind\":\"Node\"}"), None);
        }
    }

    #[test]
    fn a_line_has_so_many_characters_at_most() {
        assert_eq!(one_line("é\té".as_bytes(), 3), "é é");
        assert_eq!(one_line("é\té é".as_bytes(), 3), "é é…");
        assert_eq!(one_line(b"", 3), "");
    }
}
