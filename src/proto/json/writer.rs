//! Serializer for acpipe's own JSON, whose text is the same as that of `serde_json`.
//!
//! `serde_json` searches the names of a struct's members for characters to escape, and strings byte by byte. Both cost
//! more than the rest of writing a chunk. Names of members are constants without such characters, and strings are
//! searched eight bytes at a time.

use serde::ser::{self, Error as _, Serialize};
use serde_json::Error;

/// Appends a value as JSON. A value that cannot be serialized, which no type of this crate is, appends nothing.
pub fn write_json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let before = out.len();
    if value.serialize(Writer::new(out)).is_err() {
        out.truncate(before);
    }
}

/// Appends a number in decimal.
#[inline]
pub fn write_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a string with quotes and escapes.
#[inline]
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    if has_escapes(text.as_bytes()) {
        write_escaped(out, text);
    } else {
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
}

/// Appends the inside of a string that contains characters to escape.
#[cold]
fn write_escaped(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut begin = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if !must_escape(byte) {
            continue;
        }
        out.extend_from_slice(&bytes[begin..at]);
        begin = at + 1;
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0C => b'f',
            b'\r' => b'r',
            _ => {
                let digit = |half: u8| b"0123456789abcdef"[usize::from(half & 0xF)];
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte)]);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
    out.extend_from_slice(&bytes[begin..]);
}

/// Returns `true` if a string with this byte must escape it.
const fn must_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Returns `true` if a JSON string with these bytes as its text needs escapes.
#[inline]
#[must_use]
pub fn has_escapes(bytes: &[u8]) -> bool {
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let Ok(word) = word.try_into() else { continue };
        if word_has_escapes(u64::from_ne_bytes(word)) {
            return true;
        }
    }
    words.remainder().iter().any(|&byte| must_escape(byte))
}

/// Compares eight bytes at once: a byte becomes less than zero where a subtraction borrows, and bytes over 0x7F are
/// excluded.
#[inline]
const fn word_has_escapes(word: u64) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let quotes = word ^ (ONES * b'"' as u64);
    let backslashes = word ^ (ONES * b'\\' as u64);
    let found = word.wrapping_sub(ONES * 0x20)
        | quotes.wrapping_sub(ONES)
        | backslashes.wrapping_sub(ONES);
    found & !word & HIGH != 0
}

/// Name under which `serde_json` serializes a raw value.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// `true` for the text of a raw value, which is JSON already.
    is_raw: bool,
}

impl<'a> Writer<'a> {
    #[inline]
    fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, is_raw: false }
    }

    /// Appends a value by `serde_json`.
    fn rare(self, value: &impl Serialize) -> Result<(), Error> {
        serde_json::to_writer(self.out, value)
    }

    fn signed(self, number: i64) {
        if number < 0 {
            self.out.push(b'-');
        }
        write_number(self.out, number.unsigned_abs());
    }
}

impl<'a> ser::Serializer for Writer<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Items<'a>;
    type SerializeTuple = Items<'a>;
    type SerializeTupleStruct = Items<'a>;
    type SerializeTupleVariant = Items<'a>;
    type SerializeMap = Members<'a>;
    type SerializeStruct = Members<'a>;
    type SerializeStructVariant = Members<'a>;

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        let text: &[u8] = if value { b"true" } else { b"false" };
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        self.signed(value);
        Ok(())
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        write_number(self.out, value);
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.rare(&value)
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.rare(&value)
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), Error> {
        if self.is_raw {
            self.out.extend_from_slice(value.as_bytes());
        } else {
            write_string(self.out, value);
        }
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        write_string(self.out, variant);
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        begin_variant(self.out, variant);
        value.serialize(Writer::new(self.out))?;
        self.out.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'a>, Error> {
        Ok(Items::begin(self.out, b"]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'a>, Error> {
        Ok(Items::begin(self.out, b"]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items<'a>, Error> {
        Ok(Items::begin(self.out, b"]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Items<'a>, Error> {
        begin_variant(self.out, variant);
        Ok(Items::begin(self.out, b"]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'a>, Error> {
        Ok(Members::begin(self.out, b"}"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Members<'a>, Error> {
        if name == RAW_VALUE {
            return Ok(Members::raw(self.out));
        }
        Ok(Members::begin(self.out, b"}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'a>, Error> {
        begin_variant(self.out, variant);
        Ok(Members::begin(self.out, b"}}"))
    }

    fn collect_str<T: std::fmt::Display + ?Sized>(self, value: &T) -> Result<(), Error> {
        self.serialize_str(&value.to_string())
    }
}

/// Begins the object of a variant that has content.
fn begin_variant(out: &mut Vec<u8>, variant: &str) {
    out.push(b'{');
    write_string(out, variant);
    out.push(b':');
}

/// Elements of an array.
struct Items<'a> {
    out: &'a mut Vec<u8>,
    /// Text after the last element.
    end: &'static [u8],
    is_first: bool,
}

impl<'a> Items<'a> {
    fn begin(out: &'a mut Vec<u8>, end: &'static [u8]) -> Self {
        out.push(b'[');
        Self {
            out,
            end,
            is_first: true,
        }
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        value.serialize(Writer::new(self.out))
    }

    fn finish(self) {
        self.out.extend_from_slice(self.end);
    }
}

impl ser::SerializeSeq for Items<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeTuple for Items<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeTupleStruct for Items<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeTupleVariant for Items<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish();
        Ok(())
    }
}

/// Members of an object, or the text of a raw value.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    /// Text after the last member; `None` for a raw value.
    end: Option<&'static [u8]>,
    is_first: bool,
}

impl<'a> Members<'a> {
    fn begin(out: &'a mut Vec<u8>, end: &'static [u8]) -> Self {
        out.push(b'{');
        Self {
            out,
            end: Some(end),
            is_first: true,
        }
    }

    fn raw(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            end: None,
            is_first: true,
        }
    }

    #[inline]
    fn member<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        if self.end.is_none() {
            return value.serialize(Writer {
                out: self.out,
                is_raw: true,
            });
        }
        let begin: &[u8] = if std::mem::take(&mut self.is_first) { b"\"" } else { b",\"" };
        self.out.reserve(name.len() + 4);
        self.out.extend_from_slice(begin);
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        value.serialize(Writer::new(self.out))
    }

    fn finish(self) {
        self.out.extend_from_slice(self.end.unwrap_or_default());
    }
}

impl ser::SerializeStruct for Members<'_> {
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
}

impl ser::SerializeStructVariant for Members<'_> {
    type Ok = ();
    type Error = Error;

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
}

impl ser::SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        // A key that is not a string, such as a number, is written as one.
        let before = self.out.len();
        key.serialize(Writer::new(self.out))?;
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
        value.serialize(Writer::new(self.out))
    }

    fn end(self) -> Result<(), Error> {
        self.finish();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn written(value: &impl Serialize) -> String {
        let mut out = Vec::new();
        write_json(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[track_caller]
    fn assert_as_serde_json(value: &impl Serialize) {
        assert_eq!(written(value), serde_json::to_string(value).unwrap());
    }

    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    enum Shape {
        Unit,
        NewType(Option<u8>),
        Pair(i8, f64),
        Named { first_name: &'static str, rest: () },
    }

    #[test]
    fn every_kind_of_value_is_written_as_by_serde_json() {
        let shapes = [
            Shape::Unit,
            Shape::NewType(None),
            Shape::NewType(Some(7)),
            Shape::Pair(-8, 0.1),
            Shape::Named {
                first_name: "a\"b",
                rest: (),
            },
        ];
        assert_as_serde_json(&shapes);
        let numbers = (u64::MAX, i64::MIN, 0, -1, 1.5_f32, f64::NAN, 1e300, true, 'é');
        assert_as_serde_json(&numbers);
        assert_as_serde_json(&BTreeMap::from([(-3, "x"), (12, "y")]));
        assert_as_serde_json(&BTreeMap::from([('"', [0_u8; 0])]));
        assert_as_serde_json(&json!({"a": [1, {"b": null}], "\u{1}": {}, "c\"": []}));
        assert_as_serde_json(&serde_bytes());
    }

    fn serde_bytes() -> impl Serialize {
        struct Bytes;
        impl Serialize for Bytes {
            fn serialize<S: ser::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_bytes(b"ab")
            }
        }
        Bytes
    }

    #[test]
    fn raw_values_are_written_as_they_are() {
        let raw = RawValue::from_string(r#"{"a" : "\u00e9", "b":[1e5]}"#.to_owned()).unwrap();
        assert_eq!(written(&[&raw, &raw]), format!("[{raw},{raw}]"));
    }

    #[test]
    fn every_byte_is_escaped_at_every_place_as_by_serde_json() {
        for code in (0..=0xFF).chain([0x2028, 0xFFFF, 0x1F600]) {
            let Some(c) = char::from_u32(code) else { continue };
            for before in 0..18 {
                let text = format!("{}{c}{}", "x".repeat(before), "é/".repeat(before % 5));
                assert_as_serde_json(&text);
                assert_as_serde_json(&BTreeMap::from([(text, ())]));
            }
        }
    }

    #[test]
    fn value_that_cannot_be_serialized_writes_nothing() {
        let mut out = b"before".to_vec();
        write_json(&mut out, &BTreeMap::from([(vec![1], Value::Null)]));
        assert_eq!(out, b"before");
    }
}
