//! Reads the parameters of a request; what is wrong with them is said by the field's name.

use std::path::PathBuf;

use agent_client_protocol_schema::v1::{ContentBlock, Error, RawValue};
use serde_json::{Map, Value, json};

/// The parameters of one request.
pub struct Params(Map<String, Value>);

/// The error for a field that is missing or not what it has to be.
pub fn invalid(field: &str, what: &str) -> Error {
    Error::new(-32602, format!("`{field}` {what}")).data(json!({ "field": field }))
}

impl Params {
    /// Reads a message's `params`; none at all are the same as `{}`.
    pub fn read(raw: Option<&RawValue>) -> Result<Self, Error> {
        let Some(raw) = raw else {
            return Ok(Self(Map::new()));
        };
        serde_json::from_str(raw.get())
            .map(Self)
            .map_err(|_| invalid("params", "must be an object"))
    }

    fn required(&self, field: &str) -> Result<&Value, Error> {
        self.0
            .get(field)
            .ok_or_else(|| invalid(field, "is missing"))
    }

    /// A required string.
    pub fn text(&self, field: &str) -> Result<&str, Error> {
        self.required(field)?
            .as_str()
            .ok_or_else(|| invalid(field, "must be a string"))
    }

    /// A string that may be absent or null.
    pub fn optional_text(&self, field: &str) -> Result<Option<&str>, Error> {
        match self.0.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.text(field).map(Some),
        }
    }

    /// A required number without sign or fraction.
    pub fn number(&self, field: &str) -> Result<u64, Error> {
        self.required(field)?
            .as_u64()
            .ok_or_else(|| invalid(field, "must be a whole number"))
    }

    /// The session that is meant.
    pub fn session(&self) -> Result<&str, Error> {
        self.text("sessionId")
    }

    /// The working directory. ACP wants it absolute, since the two sides may not start in the same place.
    pub fn cwd(&self) -> Result<PathBuf, Error> {
        let cwd = PathBuf::from(self.text("cwd")?);
        if cwd.is_absolute() {
            Ok(cwd)
        } else {
            Err(invalid("cwd", "must be an absolute path"))
        }
    }

    /// Checks that `mcpServers` is there. The demo has no model to give their tools to, so it starts none.
    pub fn mcp_servers(&self) -> Result<(), Error> {
        match self.required("mcpServers")? {
            Value::Array(_) => Ok(()),
            _ => Err(invalid("mcpServers", "must be a list; send [] for none")),
        }
    }

    /// The blocks of a prompt, all of a kind that `initialize` promised to take.
    pub fn prompt(&self) -> Result<Vec<ContentBlock>, Error> {
        let Value::Array(blocks) = self.required("prompt")? else {
            return Err(invalid("prompt", "must be a list of content blocks"));
        };
        let block = |(index, block): (usize, &Value)| {
            let field = format!("prompt[{index}]");
            match serde_json::from_value(block.clone()) {
                Ok(ContentBlock::Audio(_)) => {
                    Err(invalid(&field, "is audio, which this agent does not take"))
                }
                Ok(block) => Ok(block),
                Err(error) => Err(invalid(&field, &format!("is not a content block: {error}"))),
            }
        };
        blocks.iter().enumerate().map(block).collect()
    }
}
