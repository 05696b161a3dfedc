//! Answers in protobuf: the elements of a list, one by one while its body arrives, and refusals.
//!
//! Field numbers are those of `generated.proto` in `k8s.io/apimachinery`.

use std::fmt;

use prost::Message;
use serde::Serialize;

use super::error::ApiError;

/// How the API server begins a body in protobuf.
pub(crate) const MAGIC: &[u8] = b"k8s\0";

/// The longest number in protobuf.
const LONGEST_VARINT: usize = 10;

/// The type of an object, which is not part of its message.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct TypeMeta {
    #[prost(string, tag = "1")]
    api_version: String,
    #[prost(string, tag = "2")]
    kind: String,
}

/// An object with its type.
#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(message, required, tag = "1")]
    type_meta: TypeMeta,
    #[prost(bytes = "vec", tag = "2")]
    raw: Vec<u8>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    #[prost(string, tag = "2")]
    resource_version: String,
    #[prost(string, tag = "3")]
    #[serde(rename = "continue")]
    next: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
struct Status {
    #[prost(string, tag = "3")]
    message: String,
    #[prost(string, tag = "4")]
    reason: String,
    #[prost(message, optional, tag = "5")]
    details: Option<StatusDetails>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
struct StatusDetails {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    kind: String,
    #[prost(message, repeated, tag = "4")]
    causes: Vec<StatusCause>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
struct StatusCause {
    #[prost(string, tag = "1")]
    reason: String,
}

/// An object as the server would have sent it in JSON.
#[derive(Serialize)]
struct WithTypeMeta<'a, T> {
    #[serde(flatten)]
    type_meta: &'a TypeMeta,
    #[serde(flatten)]
    object: T,
}

#[derive(Serialize)]
struct EmptyList<'a> {
    metadata: &'a ListMeta,
    items: [(); 0],
}

/// Splits one list that arrives in pieces into its elements and the rest.
///
/// The body is [`MAGIC`] and an [`Unknown`] whose `raw` is the list. The list has its metadata in field 1 and each
/// element in a field 2.
#[derive(Default)]
pub(crate) struct ProtobufItems {
    place: Place,
    /// The beginning of a field that has not arrived completely.
    pending: Vec<u8>,
    type_meta: TypeMeta,
    metadata: ListMeta,
    envelope: Vec<u8>,
}

/// Where the next byte belongs.
#[derive(Clone, Copy, Default)]
enum Place {
    #[default]
    Magic,
    BeforeList,
    /// In the list, of which this many bytes are left.
    List {
        left: usize,
    },
    AfterList,
}

/// What precedes the content of a field.
struct Head {
    number: usize,
    /// Its own length.
    length: usize,
    /// The length of the content.
    content: usize,
}

impl ProtobufItems {
    /// Processes the next piece: passes every element that it completes to `each`, with the envelope so far.
    ///
    /// # Errors
    /// The first that `each` returns. Also if the body is not a list in protobuf.
    pub(crate) fn feed(
        &mut self,
        piece: &[u8],
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        let mut bytes = std::mem::take(&mut self.pending);
        bytes.extend_from_slice(piece);
        let mut done = 0;
        while let Some(length) = self.step(&bytes[done..], &mut each)? {
            done += length;
        }
        bytes.drain(..done);
        self.pending = bytes;
        Ok(())
    }

    /// The list without its elements, as JSON with an empty array. It is valid JSON only if the body ended after the
    /// list and after a field.
    pub(crate) fn envelope(&self) -> Vec<u8> {
        match self.place {
            Place::AfterList if self.pending.is_empty() => self.empty_list(),
            Place::Magic if self.pending.is_empty() => Vec::new(),
            _ => b"{".to_vec(),
        }
    }

    /// Processes what `bytes` begin with, and returns its length; `None` if its end has not arrived.
    fn step(
        &mut self,
        bytes: &[u8],
        each: &mut impl FnMut(&[u8], &[u8]) -> Result<(), ApiError>,
    ) -> Result<Option<usize>, ApiError> {
        match self.place {
            Place::Magic if bytes.len() < MAGIC.len() => return Ok(None),
            Place::Magic if bytes.starts_with(MAGIC) => {
                self.place = Place::BeforeList;
                return Ok(Some(MAGIC.len()));
            }
            Place::Magic => return Err(unreadable("its beginning is unknown")),
            Place::List { left: 0 } => {
                self.place = Place::AfterList;
                return Ok(Some(0));
            }
            Place::BeforeList | Place::List { .. } | Place::AfterList => {}
        }
        let Some(head) = Head::read(bytes)? else {
            return Ok(None);
        };
        if let (Place::BeforeList, 2) = (self.place, head.number) {
            self.place = Place::List { left: head.content };
            return Ok(Some(head.length));
        }
        let length = head.length.saturating_add(head.content);
        let Some(content) = bytes.get(head.length..length) else {
            return Ok(None);
        };
        match (&mut self.place, head.number) {
            (Place::List { left }, number) => {
                *left = left
                    .checked_sub(length)
                    .ok_or_else(|| unreadable("an element is longer than its list"))?;
                match number {
                    1 => self.metadata = ListMeta::decode(content).map_err(unreadable)?,
                    2 => {
                        if self.envelope.is_empty() {
                            self.envelope = self.empty_list();
                            self.envelope.truncate(self.envelope.len() - b"]}".len());
                        }
                        each(content, &self.envelope)?;
                    }
                    _ => {}
                }
            }
            (Place::BeforeList, 1) => {
                self.type_meta = TypeMeta::decode(content).map_err(unreadable)?;
            }
            (_, 2) => return Err(unreadable("it has two lists")),
            _ => {}
        }
        Ok(Some(length))
    }

    fn empty_list(&self) -> Vec<u8> {
        json(
            &self.type_meta,
            EmptyList {
                metadata: &self.metadata,
                items: [],
            },
        )
    }
}

impl Head {
    /// The head at the beginning of `bytes`; `None` if its end has not arrived.
    ///
    /// # Errors
    /// If the field is a number. Lists have none.
    fn read(mut bytes: &[u8]) -> Result<Option<Self>, ApiError> {
        let all = bytes.len();
        let Some(key) = varint(&mut bytes)? else {
            return Ok(None);
        };
        if key % 8 != 2 {
            return Err(unreadable("a field of a list is a number"));
        }
        Ok(varint(&mut bytes)?.map(|content| Self {
            number: key / 8,
            length: all - bytes.len(),
            content,
        }))
    }
}

/// Takes the number at the beginning of `bytes`; `None` if its end has not arrived.
fn varint(bytes: &mut &[u8]) -> Result<Option<usize>, ApiError> {
    let beginning = bytes.iter().take(LONGEST_VARINT);
    if bytes.len() < LONGEST_VARINT && beginning.into_iter().all(|byte| *byte >= 0x80) {
        return Ok(None);
    }
    prost::decode_length_delimiter(bytes)
        .map(Some)
        .map_err(unreadable)
}

/// A `Status` in JSON, as far as it is read; `None` if `body` is something else.
pub(crate) fn status_as_json(body: &[u8]) -> Option<Vec<u8>> {
    let unknown = Unknown::decode(body.strip_prefix(MAGIC)?).ok()?;
    let status = Status::decode(&*unknown.raw).ok()?;
    Some(json(&unknown.type_meta, status))
}

fn json(type_meta: &TypeMeta, object: impl Serialize) -> Vec<u8> {
    // Text, lists and objects can always be written.
    serde_json::to_vec(&WithTypeMeta { type_meta, object }).unwrap_or_default()
}

/// The error for an object that is not protobuf.
pub(crate) fn unreadable(why: impl fmt::Display) -> ApiError {
    ApiError::Unreadable(format!("invalid protobuf: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, PartialEq, Message)]
    struct List {
        #[prost(message, required, tag = "1")]
        metadata: ListMeta,
        #[prost(bytes = "vec", repeated, tag = "2")]
        items: Vec<Vec<u8>>,
    }

    /// What the server adds to a list: its encoding, which is empty.
    const AFTER_LIST: &[u8] = &[3 << 3 | 2, 0, 4 << 3 | 2, 0];

    fn unknown(kind: &str, raw: Vec<u8>) -> Vec<u8> {
        let type_meta = TypeMeta {
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
        };
        let unknown = Unknown { type_meta, raw };
        [MAGIC, &unknown.encode_to_vec(), AFTER_LIST].concat()
    }

    fn list(items: &[&[u8]]) -> Vec<u8> {
        let metadata = ListMeta {
            resource_version: "77".to_owned(),
            next: "to\"ken".to_owned(),
        };
        let items = items.iter().map(|item| item.to_vec()).collect();
        unknown("NodeList", List { metadata, items }.encode_to_vec())
    }

    /// Elements and envelope of `body`, fed in pieces of `size` bytes.
    fn split(body: &[u8], size: usize) -> Result<(Vec<Vec<u8>>, String), ApiError> {
        let mut items = ProtobufItems::default();
        let mut elements = Vec::new();
        for piece in body.chunks(size) {
            items.feed(piece, |element, before| {
                assert!(before.ends_with(br#""continue":"to\"ken"},"items":["#));
                elements.push(element.to_vec());
                Ok(())
            })?;
        }
        let envelope = String::from_utf8_lossy(&items.envelope()).into_owned();
        Ok((elements, envelope))
    }

    #[test]
    fn elements_are_complete_for_any_chunk_size() {
        let long = [7; 300];
        let elements: [&[u8]; 4] = [b"one", b"", &long, b"k8s\0"];
        for size in [1, 2, 3, 7, 100, 1000] {
            let (read, envelope) = split(&list(&elements), size).expect("a list");
            assert_eq!(read, elements, "in pieces of {size}");
            assert_eq!(
                envelope,
                r#"{"apiVersion":"v1","kind":"NodeList","metadata":{"resourceVersion":"77","continue":"to\"ken"},"items":[]}"#
            );
        }
        let (read, envelope) = split(&list(&[]), 5).expect("a list");
        assert!(read.is_empty());
        assert!(envelope.ends_with(r#""items":[]}"#), "{envelope}");
    }

    #[test]
    fn the_envelope_is_complete_only_with_the_list() {
        let body = list(&[b"one", &[7; 300]]);
        let complete: Vec<usize> = (1..=body.len())
            .filter(|&end| {
                let (elements, envelope) = split(&body[..end], 5).expect("the beginning of a list");
                let read = serde_json::from_str::<serde_json::Value>(&envelope);
                assert!(
                    read.as_ref()
                        .map_or_else(serde_json::Error::is_eof, |_| elements.len() == 2)
                );
                read.is_ok()
            })
            .collect();
        // After the list, and after each of the fields that follow it.
        assert_eq!(complete, [4, 2, 0].map(|left| body.len() - left));
        assert_eq!(split(b"", 1).expect("nothing"), (Vec::new(), String::new()));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let list = List {
            metadata: ListMeta::default(),
            items: Vec::new(),
        };
        let inner = list.encode_to_vec();
        let field = |number: u8, content: &[u8]| {
            let head = [number << 3 | 2, u8::try_from(content.len()).expect("short")];
            [&head, content].concat()
        };
        let two_lists = [MAGIC, &field(2, &inner), &field(2, &inner)].concat();
        let number = [MAGIC, &field(2, &[5 << 3, 1])].concat();
        let too_long = [MAGIC, &[2 << 3 | 2, 3], &field(2, b"four")].concat();
        let endless = [MAGIC, &[0xff; 10]].concat();
        let no_metadata = [MAGIC, &field(2, &field(1, b"\xff"))].concat();
        for (body, why) in [
            (&b"{\"kind\""[..], "its beginning is unknown"),
            (&two_lists, "it has two lists"),
            (&number, "a field of a list is a number"),
            (&too_long, "an element is longer than its list"),
            (&endless, "varint"),
            (&no_metadata, "decode"),
        ] {
            let error = split(body, 3).expect_err(why).to_string();
            assert!(error.contains("invalid protobuf: "), "{error}");
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_status_is_read_as_if_it_were_json() {
        let status = Status {
            message: "nodes \"é\" not found".to_owned(),
            reason: "NotFound".to_owned(),
            details: Some(StatusDetails {
                name: "é".to_owned(),
                kind: "nodes".to_owned(),
                causes: vec![StatusCause {
                    reason: "FieldValueInvalid".to_owned(),
                }],
            }),
        };
        let body = unknown("Status", status.encode_to_vec());
        let read = status_as_json(&body).expect("a status");
        let read = super::super::error::Status::read(http::StatusCode::NOT_FOUND, None, &read);
        assert!(read.is_genuine() && read.is_about("nodes", "é"));
        assert!(read.has_cause("FieldValueInvalid"));
        assert_eq!(read.reason, "NotFound");
        assert_eq!(read.message, "nodes \"é\" not found");
        assert_eq!(status_as_json(b"{}"), None);
        assert_eq!(status_as_json(b"k8s\0\xff"), None);
    }
}
