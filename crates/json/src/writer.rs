//! Serializer for acpipe's own JSON, whose text is the same as that of `serde_json`.
//!
//! `serde_json` searches the names of a struct's members for characters to escape, and strings byte by byte. Both cost
//! more than the rest of writing a chunk. Names of members are constants without such characters, and strings are
//! searched eight bytes at a time.

mod compound;

use compound::{Items, MembersWriter};
use serde::ser::{self, Error as _, Serialize};
use serde_json::Error;

/// Appends a value as JSON. A value that cannot be serialized, which no type of this crate is, appends nothing.
pub fn write_json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    write_json_within(out, value, usize::MAX);
}

/// Like [`write_json`]. Returns `false` and appends nothing if the buffer would become longer than about `limit` bytes.
pub fn write_json_within(
    out: &mut Vec<u8>,
    value: &(impl Serialize + ?Sized),
    limit: usize,
) -> bool {
    let before = out.len();
    let is_written = value.serialize(JsonWriter::new(out, limit)).is_ok();
    if !is_written {
        out.truncate(before);
    }
    is_written
}

/// Appends a number in decimal.
#[inline]
pub fn write_number(out: &mut Vec<u8>, number: u64) {
    // Writing into memory cannot fail.
    let _ = serde_json::to_writer(out, &number);
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
    plain_len(bytes) < bytes.len()
}

/// Returns the number of bytes before the first one that a JSON string must escape.
#[inline]
#[must_use]
pub fn plain_len(bytes: &[u8]) -> usize {
    let (words, _) = bytes.as_chunks::<8>();
    let plain = |word: &&[u8; 8]| !word_has_escapes(u64::from_ne_bytes(**word));
    let begin = 8 * words.iter().take_while(plain).count();
    let rest = &bytes[begin..];
    let found = rest.iter().position(|&byte| must_escape(byte));
    begin + found.unwrap_or(rest.len())
}

/// Compares eight bytes at once: a byte becomes less than zero where a subtraction borrows, and bytes over 0x7F are
/// excluded.
#[inline]
const fn word_has_escapes(word: u64) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let quotes = word ^ (ONES * b'"' as u64);
    let backslashes = word ^ (ONES * b'\\' as u64);
    let found =
        word.wrapping_sub(ONES * 0x20) | quotes.wrapping_sub(ONES) | backslashes.wrapping_sub(ONES);
    found & !word & HIGH != 0
}

/// Name under which `serde_json` serializes a raw value.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

struct JsonWriter<'a> {
    out: &'a mut Vec<u8>,
    /// `true` for the text of a raw value, which is JSON already.
    is_raw: bool,
    /// Length of `out` above which no string is appended.
    limit: usize,
}

impl<'a> JsonWriter<'a> {
    #[inline]
    fn new(out: &'a mut Vec<u8>, limit: usize) -> Self {
        Self {
            out,
            is_raw: false,
            limit,
        }
    }
}

/// Implements the serialization of numbers by `serde_json`.
macro_rules! numbers {
    ($($method:ident: $number:ty),* $(,)?) => {
        $(fn $method(self, value: $number) -> Result<(), Error> {
            serde_json::to_writer(self.out, &value)
        })*
    };
}

impl<'a> ser::Serializer for JsonWriter<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Items<'a>;
    type SerializeTuple = Items<'a>;
    type SerializeTupleStruct = Items<'a>;
    type SerializeTupleVariant = Items<'a>;
    type SerializeMap = MembersWriter<'a>;
    type SerializeStruct = MembersWriter<'a>;
    type SerializeStructVariant = MembersWriter<'a>;

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        let text: &[u8] = if value { b"true" } else { b"false" };
        self.out.extend_from_slice(text);
        Ok(())
    }

    numbers! {
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_f32: f32,
        serialize_f64: f64,
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), Error> {
        if value.len() > self.limit.saturating_sub(self.out.len()) {
            return Err(Error::custom("too long"));
        }
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
        value.serialize(JsonWriter::new(self.out, self.limit))?;
        self.out.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'a>, Error> {
        Ok(Items::begin(self, b"]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'a>, Error> {
        Ok(Items::begin(self, b"]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items<'a>, Error> {
        Ok(Items::begin(self, b"]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Items<'a>, Error> {
        begin_variant(self.out, variant);
        Ok(Items::begin(self, b"]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<MembersWriter<'a>, Error> {
        Ok(MembersWriter::begin(self, b"}"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<MembersWriter<'a>, Error> {
        if name == RAW_VALUE {
            return Ok(MembersWriter::raw(self));
        }
        Ok(MembersWriter::begin(self, b"}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<MembersWriter<'a>, Error> {
        begin_variant(self.out, variant);
        Ok(MembersWriter::begin(self, b"}}"))
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

#[cfg(test)]
mod tests;
