//! Arrays and objects of the JSON serializer.

use super::JsonWriter;
use serde::ser::{self, Error as _, Serialize};
use serde_json::Error;

/// Elements of an array.
pub struct Items<'a> {
    out: &'a mut Vec<u8>,
    limit: usize,
    /// Text after the last element.
    end: &'static [u8],
    is_first: bool,
}

impl<'a> Items<'a> {
    pub fn begin(JsonWriter { out, limit, .. }: JsonWriter<'a>, end: &'static [u8]) -> Self {
        out.push(b'[');
        Self {
            out,
            limit,
            end,
            is_first: true,
        }
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        value.serialize(JsonWriter::new(self.out, self.limit))
    }

    fn finish(self) {
        self.out.extend_from_slice(self.end);
    }
}

/// Implements the traits of `serde` for arrays, which differ in the name of their method only.
macro_rules! arrays {
    ($($array:ident: $method:ident),* $(,)?) => {
        $(impl ser::$array for Items<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.item(value)
            }

            fn end(self) -> Result<(), Error> {
                self.finish();
                Ok(())
            }
        })*
    };
}

arrays! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}

/// Members of an object, or the text of a raw value.
pub struct MembersWriter<'a> {
    out: &'a mut Vec<u8>,
    limit: usize,
    /// Text after the last member; `None` for a raw value.
    end: Option<&'static [u8]>,
    is_first: bool,
}

impl<'a> MembersWriter<'a> {
    pub fn begin(JsonWriter { out, limit, .. }: JsonWriter<'a>, end: &'static [u8]) -> Self {
        out.push(b'{');
        Self {
            out,
            limit,
            end: Some(end),
            is_first: true,
        }
    }

    pub fn raw(JsonWriter { out, limit, .. }: JsonWriter<'a>) -> Self {
        Self {
            out,
            limit,
            end: None,
            is_first: true,
        }
    }

    #[inline]
    fn member<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        if self.end.is_none() {
            return value.serialize(JsonWriter {
                out: self.out,
                is_raw: true,
                limit: self.limit,
            });
        }
        let begin: &[u8] = if std::mem::take(&mut self.is_first) {
            b"\""
        } else {
            b",\""
        };
        self.out.reserve(name.len() + 4);
        self.out.extend_from_slice(begin);
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        value.serialize(JsonWriter::new(self.out, self.limit))
    }

    fn finish(self) {
        self.out.extend_from_slice(self.end.unwrap_or_default());
    }
}

/// Implements the traits of `serde` for objects with constant names.
macro_rules! structs {
    ($($object:ident),*) => {
        $(impl ser::$object for MembersWriter<'_> {
            type Ok = ();
            type Error = Error;

            #[inline]
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.member(name, value)
            }

            fn end(self) -> Result<(), Error> {
                self.finish();
                Ok(())
            }
        })*
    };
}

structs!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for MembersWriter<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        // A key that is not a string, such as a number, is written as one.
        let before = self.out.len();
        key.serialize(JsonWriter::new(self.out, self.limit))?;
        match self.out.get(before) {
            Some(b'"') => Ok(()),
            Some(b'-' | b'0'..=b'9') => {
                self.out.insert(before, b'"');
                self.out.push(b'"');
                Ok(())
            }
            _ => Err(Error::custom("a key must be a string")),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.out.push(b':');
        value.serialize(JsonWriter::new(self.out, self.limit))
    }

    fn end(self) -> Result<(), Error> {
        self.finish();
        Ok(())
    }
}
