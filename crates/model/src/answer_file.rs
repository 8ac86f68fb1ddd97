//! Files of an answer: images, audio, embedded resources and links, as content of an agent and as chunks of a client.

use crate::data_url::{DataUrl, base64_size};
use crate::event::Content;
use acpipe_json::{text, value};
use acpipe_protocol::wire::AnswerFile;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Media type of data of which nothing is known.
const UNKNOWN: &str = "application/octet-stream";

/// A file in a chunk of the answer, or in a part of a message.
pub struct ReceivedFile<'a> {
    /// Description of the file, without its data.
    pub about: AnswerFile,
    content: FileContent<'a>,
}

enum FileContent<'a> {
    Link,
    Url(DataUrl<'a>),
    Text(&'a str),
}

impl<'a> ReceivedFile<'a> {
    /// Reads a chunk or a part; `None` if it is no file.
    #[must_use]
    pub fn of_chunk(chunk: &'a Value) -> Option<Self> {
        let text = |name: &str| chunk[name].as_str();
        let block = own_metadata(&chunk["providerMetadata"]);
        let media_type = block_text(block, "mimeType").or_else(|| text("mediaType"));
        match text("type")? {
            "file" => {
                let url = text("url").unwrap_or_default();
                let uri = block_text(block, "uri");
                Some(Self::of_url(url, uri, text("filename"), media_type, block))
            }
            "source-url" => {
                let url = text("url")?;
                Some(Self::of_url(url, None, text("title"), media_type, block))
            }
            "source-document" => {
                let uri = text("sourceId")?;
                let media_type = block_text(block, "mimeType")
                    .or_else(|| text("mediaType").filter(|media_type| *media_type != UNKNOWN));
                let Some(content) = block.and_then(|block| block["resource"]["text"].as_str())
                else {
                    let name = text("filename").or_else(|| text("title"));
                    return Some(Self::of_url(uri, None, name, media_type, block));
                };
                Some(Self {
                    about: data(media_type, None, Some(uri), content.len() as u64),
                    content: FileContent::Text(content),
                })
            }
            _ => None,
        }
    }

    /// Reads a URL that is the data, or leads to it.
    fn of_url(
        url: &'a str,
        uri: Option<&str>,
        name: Option<&str>,
        media_type: Option<&str>,
        block: Option<&Value>,
    ) -> Self {
        match DataUrl::read(url) {
            Some(url) => Self {
                about: data(media_type.or(Some(url.media_type)), name, uri, url.size()),
                content: FileContent::Url(url),
            },
            None => Self {
                about: link(media_type, name, url, block),
                content: FileContent::Link,
            },
        }
    }

    /// Returns the data. `None` for a link, and for data that is not valid base64.
    #[must_use]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match &self.content {
            FileContent::Link => None,
            FileContent::Url(url) => url.bytes(),
            FileContent::Text(text) => Some(text.as_bytes().to_vec()),
        }
    }
}

/// Describes a file in the content of an agent; `None` for content that is no file.
#[must_use]
pub fn answer_file(content: &Content<'_>) -> Option<AnswerFile> {
    match content {
        Content::Data {
            media_type,
            base64,
            details,
        } => {
            let (uri, size) = (data_uri(details), base64_size(&base64.decode()));
            Some(data(Some(media_type), None, uri.as_deref(), size))
        }
        Content::Link {
            uri,
            name,
            media_type,
            details,
        } => {
            let (name, media_type) = (name.as_deref(), media_type.as_deref());
            Some(match DataUrl::read(uri) {
                Some(url) => data(media_type.or(Some(url.media_type)), name, None, url.size()),
                None => link(media_type, name, uri, Some(&value(details))),
            })
        }
        Content::Document {
            uri,
            media_type,
            details,
        } => {
            let block = value(details);
            let size = block["resource"]["text"].as_str().unwrap_or_default().len();
            Some(data(media_type.as_deref(), None, Some(uri), size as u64))
        }
        Content::Text(_) | Content::Rest(_) | Content::Texts(_) | Content::Other => None,
    }
}

/// Returns the last part of a URI, which is usually the name of a file.
#[must_use]
pub fn last_part(uri: &str) -> &str {
    uri.rsplit('/').find(|part| !part.is_empty()).unwrap_or(uri)
}

fn data(media_type: Option<&str>, name: Option<&str>, uri: Option<&str>, size: u64) -> AnswerFile {
    AnswerFile {
        media_type: media_type.map(str::to_owned),
        name: name.or_else(|| uri.map(last_part)).map(str::to_owned),
        uri: uri.map(str::to_owned),
        is_link: false,
        size: Some(size),
        path: None,
    }
}

fn link(
    media_type: Option<&str>,
    name: Option<&str>,
    uri: &str,
    block: Option<&Value>,
) -> AnswerFile {
    let uri = (!uri.is_empty()).then_some(uri);
    AnswerFile {
        media_type: media_type.map(str::to_owned),
        name: name.or(uri.map(last_part)).map(str::to_owned),
        uri: uri.map(str::to_owned),
        is_link: true,
        size: block.and_then(|block| block["size"].as_u64()),
        path: None,
    }
}

/// Returns the URI of a content block with data, or of its resource. The data is not copied.
fn data_uri(block: &RawValue) -> Option<Cow<'_, str>> {
    acpipe_json::raw_object! {
        struct FileBlock { uri = "uri", resource = "resource" }
    }
    let block: FileBlock<'_> = serde_json::from_str(block.get()).ok()?;
    let of_resource = || {
        let resource: FileBlock<'_> = serde_json::from_str(block.resource?.get()).ok()?;
        text(resource.uri)
    };
    text(block.uri).or_else(of_resource)
}

/// Returns a text member of a content block, or of its resource.
fn block_text<'b>(block: Option<&'b Value>, name: &str) -> Option<&'b str> {
    let block = block?;
    let of_resource = || block["resource"][name].as_str();
    block[name].as_str().or_else(of_resource)
}

/// Returns the metadata that acpipe writes into a chunk: the content block of the agent, under the name of its dialect.
fn own_metadata(metadata: &Value) -> Option<&Value> {
    metadata
        .as_object()?
        .values()
        .find(|block| block.is_object())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn data_of_a_chunk_is_read() {
        let resource = json!({"uri": "file:///a/b.txt", "text": "hi"});
        for (chunk, bytes, size) in [
            (
                json!({"type": "file", "url": "data:image/png;base64,aGk=", "mediaType": "image/png"}),
                Some("hi"),
                Some(2),
            ),
            (
                json!({"type": "file", "url": "data:,a%20b"}),
                Some("a b"),
                Some(3),
            ),
            (
                json!({"type": "file", "url": "data:;base64,a"}),
                None,
                Some(0),
            ),
            (
                json!({"type": "source-document", "sourceId": "file:///a/b.txt",
                    "providerMetadata": {"acp": {"resource": resource}}}),
                Some("hi"),
                Some(2),
            ),
            (
                json!({"type": "file", "url": "https://x/a.png"}),
                None,
                None,
            ),
        ] {
            let file = ReceivedFile::of_chunk(&chunk).unwrap();
            let want = bytes.map(|bytes| bytes.as_bytes().to_vec());
            assert_eq!(file.bytes(), want, "{chunk}");
            assert_eq!(file.about.size, size, "{chunk}");
            assert_eq!(file.about.is_link, size.is_none(), "{chunk}");
        }
        for other in [
            json!({"type": "reasoning-file", "url": "data:,a"}),
            json!({"type": "text-start"}),
        ] {
            assert!(ReceivedFile::of_chunk(&other).is_none(), "{other}");
        }
    }
}
