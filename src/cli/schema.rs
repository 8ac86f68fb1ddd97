//! `acpipe schema`, `rpc.discover` and the files of `schemas/`. Tests generate the files from the types of `proto::wire` and
//! of the configuration file; the program contains them compressed.

use super::args::SchemaArgs;
use super::save::{Readers, create_dir, save};
use super::screen::{ScreenContent, to_stdout};
use serde_json::Value;

#[cfg(test)]
pub mod generate;
#[cfg(test)]
mod named;
#[cfg(test)]
mod tests;

/// Method that returns the `OpenRPC` document. It is not in the table of methods because it is not a command
/// for the hub.
pub const DISCOVER: &str = "rpc.discover";

const OPENRPC: &str = "openrpc.json";
const BUNDLE: &str = "bundle.schema.json";

/// Names of the files in `schemas/`.
pub const FILES: &[&str] = &[
    OPENRPC,
    BUNDLE,
    "chunk.schema.json",
    "config.schema.json",
    "turn-summary.schema.json",
];

/// Prints the `OpenRPC` document or the bundle, or writes all files to a directory.
pub fn print(args: &SchemaArgs) -> anyhow::Result<()> {
    let Some(dir) = &args.dir else {
        let text = render(if args.bundle { BUNDLE } else { OPENRPC }).unwrap_or_default();
        return to_stdout(ScreenContent::Json, |out| {
            Ok(out.write_all(text.as_bytes())?)
        });
    };
    create_dir(dir)?;
    for name in FILES {
        let path = dir.join(name);
        let text = render(name).unwrap_or_default();
        save(&path, Readers::Usual, |out| out.write_all(text.as_bytes()))?;
    }
    Ok(())
}

/// Returns the content of one of [`FILES`], or `None` for another name.
#[must_use]
pub fn render(file: &str) -> Option<String> {
    let packed: &[u8] = match file {
        OPENRPC => include_bytes!("schema/packed/openrpc.json.deflate"),
        BUNDLE => include_bytes!("schema/packed/bundle.schema.json.deflate"),
        "chunk.schema.json" => include_bytes!("schema/packed/chunk.schema.json.deflate"),
        "config.schema.json" => include_bytes!("schema/packed/config.schema.json.deflate"),
        "turn-summary.schema.json" => {
            include_bytes!("schema/packed/turn-summary.schema.json.deflate")
        }
        _ => return None,
    };
    unpack(packed)
}

fn unpack(packed: &[u8]) -> Option<String> {
    let bytes = miniz_oxide::inflate::decompress_to_vec(packed).ok()?;
    String::from_utf8(bytes).ok()
}

/// Returns the `OpenRPC` 1.3 document of the whole protocol.
#[must_use]
pub fn openrpc() -> Value {
    let text = render(OPENRPC).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}
