//! `data:` URLs, by which a client sends files in a prompt.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use percent_encoding::percent_decode_str;

/// Decodes base64 as browsers do, with or without padding.
const FORGIVING: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Parts of a `data:` URL (RFC 2397).
pub struct DataUrl<'a> {
    pub media_type: &'a str,
    is_base64: bool,
    data: &'a str,
}

impl<'a> DataUrl<'a> {
    /// Parses a URL; `None` if it is not a `data:` URL.
    #[must_use]
    pub fn read(url: &'a str) -> Option<Self> {
        let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
        let (media_type, is_base64) = match head.strip_suffix(";base64") {
            Some(media_type) => (media_type, true),
            None => (head, false),
        };
        let media_type = media_type.split(';').next().unwrap_or_default();
        Some(Self {
            media_type: if media_type.is_empty() {
                "text/plain"
            } else {
                media_type
            },
            is_base64,
            data,
        })
    }

    /// Returns the decoded data; `None` if it is declared as base64 and is not valid base64.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        if self.is_base64 {
            return FORGIVING.decode(self.data).ok();
        }
        Some(percent_decode_str(self.data).collect())
    }

    /// Returns the number of bytes of the data.
    pub fn size(&self) -> u64 {
        if self.is_base64 {
            return base64_size(self.data);
        }
        percent_decode_str(self.data).count() as u64
    }

    pub fn base64(&self) -> String {
        if self.is_base64 {
            self.data.to_owned()
        } else {
            STANDARD.encode(percent_decode_str(self.data).collect::<Vec<u8>>())
        }
    }
}

/// Returns the number of bytes that base64 text stands for.
#[must_use]
pub fn base64_size(base64: &str) -> u64 {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let digits = base64.bytes().filter(|byte| is_digit(byte)).count() as u64;
    digits * 3 / 4
}
