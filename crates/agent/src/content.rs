//! Content of prompts and answers: files, and their ACP content blocks.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// File in a prompt or an answer: an image, audio, the content of another file, or a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// URI of the file. Required for links.
    pub uri: Option<String>,
    /// Name for people.
    pub name: Option<String>,
    /// Media type, such as `image/png`.
    pub media_type: Option<String>,
    /// Content of the file.
    pub data: FileData,
}

/// Content of a [`File`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileData {
    /// The bytes of the file.
    Bytes(Vec<u8>),
    /// The text of the file.
    Text(String),
    /// No content: the URI refers to it.
    Link,
}

impl File {
    /// Creates a file from bytes. A media type `image/…` or `audio/…` makes it an image or audio.
    pub fn bytes(media_type: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            uri: None,
            name: None,
            media_type: Some(media_type.into()),
            data: FileData::Bytes(bytes.into()),
        }
    }

    /// Creates a text file.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            uri: Some(uri.into()),
            name: None,
            media_type: None,
            data: FileData::Text(text.into()),
        }
    }

    /// Creates a link to a file.
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: Some(uri.into()),
            name: Some(name.into()),
            media_type: None,
            data: FileData::Link,
        }
    }

    /// Sets the name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the media type.
    #[must_use]
    pub fn of_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }

    /// Returns the content block.
    pub(super) fn block(&self) -> Value {
        let uri = self.uri.as_deref();
        let name = self.name.as_deref();
        let media = self.media_type.as_deref();
        let family = media.and_then(|media| media.split('/').next());
        let mut block = match (&self.data, family) {
            (FileData::Bytes(bytes), Some(kind @ ("image" | "audio"))) => {
                let mut block = json!({ "type": kind, "data": BASE64_STANDARD.encode(bytes) });
                if let ("image", Some(uri)) = (kind, uri) {
                    block["uri"] = uri.into();
                }
                block["mimeType"] = media.into();
                return block;
            }
            (FileData::Link, _) => {
                let mut block = json!({ "type": "resource_link", "uri": uri.unwrap_or_default() });
                block["name"] = name.or(uri).unwrap_or("file").into();
                if let Some(media) = media {
                    block["mimeType"] = media.into();
                }
                return block;
            }
            (FileData::Bytes(bytes), _) => json!({ "blob": BASE64_STANDARD.encode(bytes) }),
            (FileData::Text(text), _) => json!({ "text": text }),
        };
        let named = || format!("attachment:///{}", name.unwrap_or("file"));
        block["uri"] = uri.map_or_else(named, str::to_owned).into();
        if let Some(media) = media {
            block["mimeType"] = media.into();
        }
        json!({ "type": "resource", "resource": block })
    }

    /// Parses a content block other than text; `None` if it is not valid.
    pub(super) fn of_block(block: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let decode = |value: &Value| BASE64_STANDARD.decode(value.as_str()?).ok();
        let (fields, data) = match block["type"].as_str()? {
            "image" | "audio" => (block, FileData::Bytes(decode(&block["data"])?)),
            "resource_link" => {
                block["uri"].as_str()?;
                (block, FileData::Link)
            }
            "resource" => {
                let resource = &block["resource"];
                let data = match resource["text"].as_str() {
                    Some(text) => FileData::Text(text.to_owned()),
                    None => FileData::Bytes(decode(&resource["blob"])?),
                };
                (resource, data)
            }
            _ => return None,
        };
        let uri = text(&fields["uri"]);
        let last = |uri: &String| uri.rsplit('/').next().map(str::to_owned);
        Some(Self {
            name: text(&fields["name"]).or_else(|| uri.as_ref().and_then(last)),
            media_type: text(&fields["mimeType"]),
            uri,
            data,
        })
    }
}
