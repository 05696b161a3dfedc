//! The elements of a list, one by one while its body arrives.
//!
//! A list of 5,000 objects is many megabytes. A caller that keeps a few fields of each never needs all of it in
//! memory.

use memchr::memchr2;

/// Splits one JSON object that arrives in pieces into the elements of one of its arrays and the rest.
///
/// It relies on the body being JSON, which the elements' own parsing checks.
pub(crate) struct Items {
    array: &'static str,
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// The last string of the outermost object: the key of the next value.
    key: Vec<u8>,
    /// The bytes come from the array's inside.
    inside: bool,
    element: Vec<u8>,
    envelope: Vec<u8>,
}

impl Items {
    /// Cuts out the elements of the outermost object's `array`.
    pub(crate) fn of(array: &'static str) -> Self {
        Self {
            array,
            depth: 0,
            in_string: false,
            escaped: false,
            key: Vec::new(),
            inside: false,
            element: Vec::new(),
            envelope: Vec::new(),
        }
    }

    /// Processes the next piece: passes every element that it completes to `each`, with the envelope so far.
    ///
    /// # Errors
    /// The first that `each` returns.
    pub(crate) fn feed<E>(
        &mut self,
        piece: &[u8],
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = piece;
        loop {
            let (plain, special) = rest.split_at(self.plain(rest));
            self.keep(plain);
            let Some((&byte, after)) = special.split_first() else {
                return Ok(());
            };
            rest = after;
            let between = self.inside && self.depth == 2 && !self.in_string;
            self.step(byte);
            match byte {
                b',' | b']' if between => {
                    if !self.element.trim_ascii().is_empty() {
                        each(&self.element, &self.envelope)?;
                        self.element.clear();
                    }
                    if byte == b']' {
                        self.inside = false;
                        self.envelope.push(byte);
                    }
                }
                _ if self.inside => self.element.push(byte),
                _ => {
                    self.envelope.push(byte);
                    self.inside =
                        byte == b'[' && self.depth == 2 && self.key == self.array.as_bytes();
                }
            }
        }
    }

    /// The list without its elements: the object with an empty array. It is valid JSON only once the object is
    /// complete.
    pub(crate) fn envelope(&self) -> &[u8] {
        &self.envelope
    }

    /// How many bytes at the start leave the state as it is. Most of a list is inside strings.
    fn plain(&self, bytes: &[u8]) -> usize {
        let special = if self.escaped {
            Some(0)
        } else if self.in_string {
            memchr2(b'"', b'\\', bytes)
        } else {
            let mut bytes = bytes.iter();
            bytes.position(|byte| matches!(byte, b'"' | b',' | b'{' | b'}' | b'[' | b']'))
        };
        special.unwrap_or(bytes.len())
    }

    /// Appends what [`plain`](Self::plain) has found.
    fn keep(&mut self, bytes: &[u8]) {
        if self.in_string && self.depth == 1 {
            self.key.extend_from_slice(bytes);
        }
        match self.inside {
            true => self.element.extend_from_slice(bytes),
            false => self.envelope.extend_from_slice(bytes),
        }
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            if self.in_string && self.depth == 1 {
                self.key.push(byte);
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 {
                    self.key.clear();
                }
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

/// Completes the text of a list that ends before its elements.
pub(crate) fn close(envelope: &[u8]) -> Vec<u8> {
    [envelope, b"]}"].concat()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Elements and envelope of `body`, fed in pieces of `size` bytes.
    fn cut(body: &str, size: usize) -> (Vec<String>, String) {
        let mut items = Items::of("items");
        let mut elements = Vec::new();
        for piece in body.as_bytes().chunks(size) {
            let Ok(()) = items.feed(piece, |element, _| {
                elements.push(String::from_utf8_lossy(element).trim().to_owned());
                Ok::<(), Infallible>(())
            });
        }
        let envelope = String::from_utf8_lossy(items.envelope()).into_owned();
        (elements, envelope)
    }

    #[test]
    fn elements_are_complete_for_any_chunk_size() {
        let body = r#"{"kind":"items","other":{"items":[9]},"more":[8],
            "items": [ {"a":"},]\"\\"}, {"b":[1,{"c":2}]} ,3], "end":[]}"#;
        for size in [1, 2, 3, 7, 1000] {
            let (elements, envelope) = cut(body, size);
            assert_eq!(
                elements,
                [r#"{"a":"},]\"\\"}"#, r#"{"b":[1,{"c":2}]}"#, "3"],
                "in pieces of {size}"
            );
            let envelope: serde_json::Value =
                serde_json::from_str(&envelope).expect("the envelope is JSON");
            assert_eq!(envelope["items"], serde_json::json!([]));
            assert_eq!(envelope["other"], serde_json::json!({"items": [9]}));
        }
    }

    #[test]
    fn the_envelope_is_complete_only_with_the_object() {
        let body = r#"{"kind":"List","items":[{"a":"}]}"},{"b":[]}],"end":"]}"}"#;
        for end in 0..body.len() {
            let (_, envelope) = cut(&body[..end], 5);
            let read = serde_json::from_str::<serde_json::Value>(&envelope);
            assert!(read.is_err_and(|error| error.is_eof()), "{envelope}");
        }
    }

    #[test]
    fn an_empty_or_missing_array_has_no_elements() {
        assert_eq!(cut(r#"{"items":[ ]}"#, 1).0, Vec::<String>::new());
        assert_eq!(cut(r#"{"items":null}"#, 1).0, Vec::<String>::new());
        assert_eq!(cut("{}", 1).0, Vec::<String>::new());
    }
}
