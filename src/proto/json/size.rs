//! How long a value is as JSON.

use serde::Serialize;
use std::io;

/// The length of a value's JSON, which is made in no place.
pub fn size(value: &impl Serialize) -> usize {
    let mut counted = Counted(0);
    // Counting cannot fail; what is no JSON has none.
    let _ = serde_json::to_writer(&mut counted, value);
    counted.0
}

struct Counted(usize);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn size_is_the_length_of_the_text() {
        for value in [json!(null), json!({"a": ["\n", 1.5]})] {
            assert_eq!(size(&value), value.to_string().len());
        }
    }
}
