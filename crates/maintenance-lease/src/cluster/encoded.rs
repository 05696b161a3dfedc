//! An object of a list in the encoding that the server chose, and the list's body in it.

use std::borrow::Cow;
use std::fmt;

use prost::Message;
use serde::de::DeserializeOwned;

use super::error::ApiError;
use super::items::Items;
use super::protobuf::{ProtobufItems, unreadable};

/// An object of a list, as the server sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoded<'a> {
    /// In JSON.
    Json(&'a [u8]),
    /// In protobuf, as a message without its type.
    Protobuf(&'a [u8]),
}

impl<'a> Encoded<'a> {
    /// Reads the object: a `J` in JSON, a `P` in protobuf. Both skip fields that they don't have.
    ///
    /// # Errors
    /// If it is something else.
    pub fn read<T, J, P>(self) -> Result<T, ApiError>
    where
        J: DeserializeOwned + Into<T>,
        P: Message + Default + TryInto<T, Error: fmt::Display>,
    {
        match self {
            Self::Json(object) => serde_json::from_slice::<J>(object)
                .map(Into::into)
                .map_err(|error| ApiError::Unreadable(error.to_string())),
            Self::Protobuf(object) => P::decode(object)
                .map_err(unreadable)?
                .try_into()
                .map_err(unreadable),
        }
    }

    /// The object in JSON, which was requested.
    ///
    /// # Errors
    /// If the server sent something else.
    pub(super) fn json(self) -> Result<&'a [u8], ApiError> {
        match self {
            Self::Json(object) => Ok(object),
            Self::Protobuf(_) => Err(ApiError::Unreadable(
                "protobuf, where JSON was requested".to_owned(),
            )),
        }
    }
}

/// The body of a list, which is split into its objects while it arrives.
pub(super) enum ListBody {
    Json(Items),
    Protobuf(ProtobufItems),
}

impl ListBody {
    /// Processes the next piece: passes every object that it completes to `each`, with the envelope so far.
    ///
    /// # Errors
    /// The first that `each` returns. Also if the body can't be split.
    pub(super) fn feed(
        &mut self,
        piece: &[u8],
        mut each: impl FnMut(Encoded<'_>, &[u8]) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        match self {
            Self::Json(items) => {
                items.feed(piece, |object, before| each(Encoded::Json(object), before))
            }
            Self::Protobuf(items) => items.feed(piece, |object, before| {
                each(Encoded::Protobuf(object), before)
            }),
        }
    }

    /// The list without its objects: JSON with an empty array. It is valid JSON only if the list is complete.
    pub(super) fn envelope(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Json(items) => items.envelope().into(),
            Self::Protobuf(items) => items.envelope().into(),
        }
    }
}
