//! Unknown fields in a client's messages: rejected, unless the client asked to ignore them.

use super::error::{Error, ErrorKind, clip};
use super::similar::nearest;
use acpipe_protocol::fault::fault;
use acpipe_protocol::fields::{Fields, Unknown};
use acpipe_protocol::wire::UnknownFields;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Rejects parameters that have an unknown field.
///
/// # Errors
/// `invalidParams`: `field` is the path of the first unknown field, `choices` are the known names in that
/// place.
pub fn check(fields: &Fields, json: &str) -> Result<(), Error> {
    let unknown = fields.unknown_in(json);
    let Some(first) = unknown.first() else {
        return Ok(());
    };
    let message = unknown
        .iter()
        .map(|one| describe(&path(one), one))
        .collect::<Vec<_>>()
        .join("; ");
    let error = Error::new(ErrorKind::InvalidParams, clip(&message));
    Err(error
        .with("field", path(first))
        .with("choices", first.known.clone()))
}

/// Parses the result in a client's response to a request of this method.
///
/// # Errors
/// Reason as text for people: an unknown field, or a result of another type. It quotes nothing of the result, which
/// may be a password.
pub fn read<T: DeserializeOwned>(
    method: &str,
    result: &RawValue,
    unknown_fields: UnknownFields,
) -> Result<T, String> {
    if unknown_fields == UnknownFields::Refuse {
        let unknown = Fields::of(method).unknown_in(result.get());
        if !unknown.is_empty() {
            let all = unknown.iter().map(|one| describe(object(one), one));
            return Err(clip(&all.collect::<Vec<_>>().join("; ")));
        }
    }
    serde_json::from_str(result.get()).map_err(|error| clip(&fault(result.get(), &error)))
}

fn path(unknown: &Unknown) -> String {
    // The client may have sent `name=value` in place of the name.
    let name = unknown.name.split('=').next().unwrap_or_default();
    let dot = if unknown.object.is_empty() { "" } else { "." };
    clip(&format!("{}{dot}{name}", unknown.object))
}

/// Returns the path of the object that has an unknown field.
fn object(unknown: &Unknown) -> &str {
    match unknown.object.as_str() {
        "" => "result",
        object => object,
    }
}

fn describe(path: &str, unknown: &Unknown) -> String {
    let known = unknown.known.iter().map(String::as_str);
    if let Some(near) = nearest(&unknown.name, known) {
        return format!("{path}: unknown field; did you mean {near:?}?");
    }
    if unknown.known.is_empty() {
        return format!("{path}: unknown field; this object has no fields");
    }
    format!(
        "{path}: unknown field; the known fields are {}",
        unknown.known.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_protocol::wire;
    use serde_json::json;

    fn refused(method: &str, given: &serde_json::Value) -> Error {
        check(&Fields::of(method), &given.to_string()).unwrap_err()
    }

    #[test]
    fn the_nearest_name_is_suggested_else_all_are_listed() {
        for (given, field, why) in [
            (
                json!({"trunId": "t"}),
                "trunId",
                "trunId: unknown field; did you mean \"turnId\"?",
            ),
            (
                json!({"whenbusy": "reject"}),
                "whenbusy",
                "did you mean \"whenBusy\"?",
            ),
            (
                json!({"session_id": "s"}),
                "session_id",
                "did you mean \"sessionId\"?",
            ),
            (
                json!({"priority": 1}),
                "priority",
                "the known fields are context, degrade, elapsedMs, message, ",
            ),
            (
                json!({"a": 1, "rety": true}),
                "a",
                "; rety: unknown field; did you mean \"retry\"?",
            ),
        ] {
            let error = refused("session/prompt", &given);
            assert!(error.message.contains(why), "{error}");
            assert_eq!(error.kind, ErrorKind::InvalidParams);
            assert_eq!(error.data["field"], field);
            assert!(
                error.data["choices"]
                    .as_array()
                    .unwrap()
                    .contains(&json!("turnId"))
            );
        }
        let error = refused(
            "session/ensure",
            &json!({"options": {"disallowedTool": ["Bash"]}}),
        );
        assert_eq!(error.data["field"], "options.disallowedTool");
        assert!(
            error.message.contains("did you mean \"disallowedTools\"?"),
            "{error}"
        );
        let error = refused("rpc.discover", &json!({"x=s3cret": 1}));
        assert_eq!(error.message, "x: unknown field; this object has no fields");
    }

    #[test]
    fn unknown_fields_of_answers_are_refused_unless_ignored() {
        let answer = json!({"action": "decline", "typed": "no"}).to_string();
        let answer = RawValue::from_string(answer).unwrap();
        let read = |mode| read::<wire::QuestionAnswer>("question/ask", &answer, mode);
        assert_eq!(
            read(UnknownFields::Refuse).unwrap_err(),
            "result: unknown field; the known fields are action, content"
        );
        assert!(read(UnknownFields::Ignore).is_ok());
    }
}
