//! Length of a value as JSON.

use serde::Serialize;
use std::io;

/// Returns the length of a value's JSON text without building it.
pub fn size(value: &impl Serialize) -> usize {
    let mut counted = Counted(0);
    // Counting cannot fail; a value that cannot be serialized has length 0.
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
