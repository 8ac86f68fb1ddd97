//! Files and sources of a message as content blocks.

use crate::acp_updates::content::{link_block, part_block, resource_block};
use serde_json::Value;

/// Converts a file or source to a content block. Members of the original block in its metadata are taken out of
/// `about` and added to the block.
pub fn block(part: &Value, about: &mut Value) -> Value {
    let said = |name: &str| part[name].as_str();
    let uri = said("sourceId").or(said("url")).unwrap_or_default();
    let media_type = said("mediaType");
    let Some(members) = about.as_object_mut() else {
        return part_block(part);
    };
    let resource = members.remove("resource");
    let mut block = match resource {
        // An embedded resource.
        Some(resource) => {
            let uri = resource["uri"].as_str().unwrap_or(uri);
            let mut block = if let Some(text) = resource["text"].as_str() {
                resource_block(uri, media_type, "text", text)
            } else {
                let data = uri_data(said("url").unwrap_or_default());
                resource_block(uri, media_type, "blob", data)
            };
            copy_missing(&resource, &mut block["resource"]);
            if resource.get("mimeType").is_none() && resource["text"].is_string() {
                drop_member(&mut block["resource"], "mimeType");
            }
            block
        }
        // A link: its name is the title, or the end of its address.
        None if !uri.starts_with("data:") => {
            let name = members.get("name").and_then(Value::as_str);
            let name = name.or(said("title")).or(said("filename"));
            let media_type = members.get("mimeType").and_then(Value::as_str);
            link_block(uri, name, media_type)
        }
        None => part_block(part),
    };
    for name in ["uri", "name", "mimeType", "description", "size", "title"] {
        if let Some(value) = members.remove(name) {
            block[name] = value;
        }
    }
    block
}

fn uri_data(url: &str) -> &str {
    url.split_once(";base64,").map_or("", |(_, data)| data)
}

fn copy_missing(from: &Value, to: &mut Value) {
    for (name, value) in from.as_object().into_iter().flatten() {
        if to[name].is_null() {
            to[name] = value.clone();
        }
    }
}

fn drop_member(object: &mut Value, name: &str) {
    if let Some(object) = object.as_object_mut() {
        object.remove(name);
    }
}
