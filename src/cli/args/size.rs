//! Sizes in bytes, with units.

use acpipe_json::frame::DEFAULT_MAX_LINE;

/// Parses a size such as `64M`.
pub fn size(text: &str) -> Result<usize, String> {
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit
        .to_ascii_uppercase()
        .trim_end_matches("IB")
        .trim_end_matches('B')
    {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(format!("{unit:?} is not a valid unit; use K, M or G")),
    };
    let number: usize = number
        .parse()
        .map_err(|_| "a size must begin with a whole number, for example 64M".to_owned())?;
    match number
        .checked_shl(shift)
        .filter(|n| n >> shift == number && *n > 0)
    {
        Some(size) if size <= DEFAULT_MAX_LINE * 64 => Ok(size),
        _ => Err("a size must be between 1 byte and 4G".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let cases = [
            ("64M", Some(64 << 20)),
            ("100", Some(100)),
            ("2KiB", Some(2048)),
            ("1g", Some(1 << 30)),
        ];
        for (text, want) in cases {
            assert_eq!(size(text).ok(), want, "{text}");
        }
        for bad in ["", "M", "0", "5X", "99999999999999999999", "99G"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
