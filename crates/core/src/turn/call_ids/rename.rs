//! Replacement of the agent's ids of tool calls in what the agent sends.

use super::{CallIds, CallState};
use crate::turn::Turn;
use acpipe_json::{Members, to_raw};
use acpipe_model::event::{ToolUpdate, Update, call_id, is_text};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Ids that were replaced in an update: the agent's id and the call's, for each.
pub type Renamed = Vec<(String, String)>;

/// The open turns of a session: the prompted one and the background turn.
#[derive(Debug, Clone, Copy)]
pub struct OpenTurns<'a>(pub [Option<&'a Turn>; 2]);

impl<'a> OpenTurns<'a> {
    fn all(self) -> impl Iterator<Item = &'a Turn> {
        self.0.into_iter().flatten()
    }

    fn state(self, caller: Option<&str>, id: &str) -> Option<CallState> {
        self.all().find_map(|turn| turn.call_state(caller, id))
    }
}

impl CallIds {
    /// Replaces the ids of tool calls in an update of the agent or, with `caller`, of one of its subagents.
    pub fn rename(
        &mut self,
        turns: OpenTurns<'_>,
        caller: Option<&str>,
        update: &mut Update<'_>,
    ) -> Renamed {
        let mut renamed = Renamed::new();
        self.make_room(turns.all().flat_map(Turn::call_ids));
        match update {
            Update::Tool(tool) => {
                let latest = self.latest(caller, &tool.id);
                let state = latest.and_then(|id| turns.state(caller, id));
                if state == Some(CallState::Open) && latest == Some(&*tool.id) && !tool.is_id_made {
                    // The usual case, without copies.
                    self.begun = None;
                    return renamed;
                }
                let latest = latest.unwrap_or_default().to_owned();
                let repeats = || turns.all().any(|turn| turn.repeats(caller, &latest, tool));
                let own = self.of_update(caller, tool, state, repeats);
                if tool.is_id_made {
                    renamed.push((tool.id.clone().into_owned(), own.clone()));
                }
                replace(&mut tool.id, own, &mut renamed);
            }
            Update::Terminal(terminal) => {
                let state = self.state(turns, None, &terminal.tool);
                let own = self.of_terminal(&terminal.tool, terminal.begins, state);
                replace(&mut terminal.tool, own, &mut renamed);
            }
            Update::Refused { tool, .. } => {
                let own = self.latest_or_new(caller, tool);
                replace(tool, own, &mut renamed);
            }
            Update::FromSubagent { id, update } => {
                let own = self.named(turns, id);
                replace(id, own, &mut renamed);
                renamed.extend(self.rename(turns, Some(id), update));
            }
            Update::Subagent { id } => {
                let own = self.named(turns, id);
                replace(id, own, &mut renamed);
            }
            Update::Message(piece) => {
                if let Some(parent) = &mut piece.subagent {
                    let own = self.named(turns, parent);
                    replace(parent, own, &mut renamed);
                }
            }
            Update::Chunk { chunk, .. } if chunk.names_call() => {
                let as_update = ToolUpdate {
                    begins: chunk.begins_call(),
                    id: call_id(chunk.tool_call_id),
                    ..ToolUpdate::default()
                };
                let state = self.state(turns, None, &as_update.id);
                let own = self.of_update(None, &as_update, state, || false);
                if own != as_update.id || !is_text(chunk.tool_call_id) {
                    renamed.push((as_update.id.into_owned(), own));
                }
            }
            _ => {}
        }
        renamed
    }

    /// Replaces the id of the call of a permission request. `may_be_late` says whether the request may concern
    /// the call of this id in an earlier turn.
    pub fn rename_asked(
        &mut self,
        turns: OpenTurns<'_>,
        caller: Option<&str>,
        tool: &mut ToolUpdate<'_>,
        may_be_late: impl FnOnce(&str) -> bool,
    ) {
        self.make_room(turns.all().flat_map(Turn::call_ids));
        let named = caller.map(str::to_owned);
        let found = named.or_else(|| self.caller_of(turns, &tool.id));
        let caller = found.as_deref();
        let latest = self.latest(caller, &tool.id);
        let state = latest.and_then(|id| turns.state(caller, id));
        let may_be_late = latest.is_some_and(may_be_late);
        let own = self.of_request(caller, &tool.id, state, may_be_late);
        replace(&mut tool.id, own, &mut Renamed::new());
    }

    /// Returns the id of the call that the agent names without its caller: an open one if there is one.
    pub fn named(&mut self, turns: OpenTurns<'_>, id: &str) -> String {
        if self.renamed.is_empty() && !self.is_made(id) {
            return id.to_owned();
        }
        let caller = self.caller_of(turns, id);
        self.latest_or_new(caller.as_deref(), id)
    }

    /// Returns the state of the latest call that the caller named `id`.
    fn state(&self, turns: OpenTurns<'_>, caller: Option<&str>, id: &str) -> Option<CallState> {
        turns.state(caller, self.latest(caller, id)?)
    }

    /// Returns the subagent that made the call which the agent names without its caller; `None` for a call of
    /// the agent itself.
    fn caller_of(&self, turns: OpenTurns<'_>, id: &str) -> Option<String> {
        let state = |caller: Option<&str>| self.state(turns, caller, id);
        let own = state(None);
        if own == Some(CallState::Open) {
            return None;
        }
        let all = || turns.all().flat_map(Turn::subagent_ids);
        let open = all().find(|caller| state(Some(caller)) == Some(CallState::Open));
        let known = || all().find(|caller| own.is_none() && state(Some(caller)).is_some());
        open.or_else(known).map(str::to_owned)
    }
}

fn replace(id: &mut Cow<'_, str>, own: String, renamed: &mut Renamed) {
    if *id != own {
        renamed.push((id.clone().into_owned(), own.clone()));
        *id = Cow::Owned(own);
    }
}

/// Returns the parameters of a permission request with this id of the call; `None` if they have it.
pub fn with_asked_call_id(params: &RawValue, own: &str) -> Option<Box<RawValue>> {
    let mut members = Members::of(params);
    let call = with_call_id(members.get("toolCall")?, |_| Some(own.to_owned()))?;
    members.set_owned("toolCall", &call);
    Some(to_raw(&members))
}

/// Returns a chunk of a tool call with another id of the call; `None` if it stays the same.
pub fn with_call_id_of_chunk(
    chunk: &RawValue,
    rename: impl FnOnce(&str) -> Option<String>,
) -> Option<Box<RawValue>> {
    let mut members = Members::of(chunk);
    let own = rename(&call_id(members.get("toolCallId")))?;
    members.set_owned("toolCallId", &own);
    Some(to_raw(&members))
}

/// Returns a JSON object with another id in its member `toolCallId`; `None` if it stays the same, or has none.
pub fn with_call_id(
    object: &RawValue,
    rename: impl FnOnce(&str) -> Option<String>,
) -> Option<Box<RawValue>> {
    let mut members = Members::of(object);
    let raw = members.get("toolCallId");
    raw?;
    let (id, is_text) = (call_id(raw).into_owned(), is_text(raw));
    let own = rename(&id).filter(|own| *own != id || !is_text)?;
    members.set_owned("toolCallId", &own);
    Some(to_raw(&members))
}

#[cfg(test)]
mod tests {
    use super::super::MAX_COUNTED;
    use super::*;
    use crate::turn::{TurnEvent, TurnView};
    use acpipe_model::event::Original;
    use serde_json::{Value, json};
    use std::sync::Arc;

    struct NoView;

    impl TurnView for NoView {
        fn event(&mut self, _: &TurnEvent<'_>) {}
    }

    fn original() -> Original<'static> {
        Original {
            line: "",
            cut: |_| None,
            fields: |_| Members::default(),
        }
    }

    fn update(json: &RawValue) -> Update<'_> {
        let chunk = Box::new(serde_json::from_str(json.get()).unwrap());
        Update::Chunk { json, chunk }
    }

    #[test]
    fn chunks_of_a_used_call_id_get_an_id_of_their_own() {
        let mut ids = CallIds::default();
        let mut turn = Turn::start("m".to_owned(), &Value::Null, &Arc::default(), &mut NoView);
        let chunk = |kind: &str| json!({"type": kind, "toolCallId": "a", "toolName": "Bash", "input": {}, "output": 1});
        let step = json!({"type": "start-step"});
        for (chunk, want) in [
            (chunk("tool-input-start"), "a"),
            (chunk("tool-input-available"), "a"),
            (chunk("tool-output-available"), "a"),
            (chunk("tool-output-available"), "a"),
            (chunk("tool-input-available"), "a#2"),
            (step, "a"),
            // In another step readers take the input for that of another call.
            (chunk("tool-input-available"), "a#3"),
            (chunk("tool-output-error"), "a#3"),
        ] {
            let json = to_raw(&chunk);
            let renamed = ids.rename(OpenTurns([Some(&turn), None]), None, &mut update(&json));
            let own = renamed.first().map_or("a", |(_, own)| own);
            assert_eq!(own, want, "{chunk}");
            let replaced = with_call_id(&json, |_| Some(own.to_owned()));
            let json = replaced.unwrap_or(json);
            turn.update(&update(&json), original(), &mut NoView);
        }
        let calls: Vec<String> = turn
            .tool_calls()
            .0
            .into_iter()
            .map(|call| call.call_id)
            .collect();
        assert_eq!(calls, ["a", "a#2", "a#3"]);
    }

    #[test]
    fn id_of_an_open_turn_is_not_given_again_when_the_count_begins_again() {
        let mut ids = CallIds::default();
        let mut turn = Turn::start("m".to_owned(), &Value::Null, &Arc::default(), &mut NoView);
        let begins = |id: &str| {
            Update::Tool(Box::new(ToolUpdate {
                id: id.to_owned().into(),
                begins: true,
                status: Some("completed".into()),
                ..ToolUpdate::default()
            }))
        };
        let id_of = |update: &Update<'_>| match update {
            Update::Tool(tool) => tool.id.clone().into_owned(),
            _ => unreachable!(),
        };
        let mut first = begins("a");
        ids.rename(OpenTurns([Some(&turn), None]), None, &mut first);
        turn.update(&first, original(), &mut NoView);
        for n in 0..2 * MAX_COUNTED {
            let mut other = begins(&format!("x{n}"));
            ids.rename(OpenTurns([Some(&turn), None]), None, &mut other);
            assert!(ids.uses.len() <= MAX_COUNTED);
        }
        let mut again = begins("a");
        if let Update::Tool(tool) = &mut again {
            tool.title = Some("another call".into());
        }
        ids.rename(OpenTurns([Some(&turn), None]), None, &mut again);
        assert_eq!(id_of(&again), "a#2");
    }

    #[test]
    fn tool_that_an_endpoint_ran_unasked_is_found_once() {
        let mut turn = Turn::start("m".to_owned(), &Value::Null, &Arc::default(), &mut NoView);
        for (kind, id, executed) in [
            ("tool-input-available", "ran", false),
            ("tool-output-available", "ran", false),
            ("tool-output-available", "ran", false),
            ("tool-input-available", "asked", true),
            ("tool-approval-request", "asked", true),
            // acpipe answers no approval requests of endpoints.
            ("tool-input-available", "not approved", true),
            ("tool-approval-request", "not approved", true),
            ("tool-output-available", "not approved", true),
            ("tool-input-available", "failed", true),
            ("tool-output-error", "failed", true),
            ("tool-input-available", "denied", true),
            ("tool-output-denied", "denied", true),
            ("tool-input-available", "may have run", true),
            // acpipe runs no tools of the client.
            ("tool-input-available", "of the client", false),
        ] {
            let json = to_raw(
                &json!({"type": kind, "toolCallId": id, "toolName": "Bash", "approvalId": "q",
                "input": {"command": "rm x"}, "output": 1, "providerExecuted": executed}),
            );
            turn.update(&update(&json), original(), &mut NoView);
        }
        turn.note_open_calls(false);
        turn.note_open_calls(false);
        let found: Vec<(String, bool)> = turn
            .take_unapproved_runs("/")
            .into_iter()
            .map(|ran| {
                assert_eq!(ran.subject.command.as_deref(), Some("rm x"));
                (ran.tool.tool_call_id, ran.is_certain)
            })
            .collect();
        let want = [
            ("ran", true),
            ("not approved", true),
            ("failed", false),
            ("may have run", false),
        ];
        assert_eq!(
            found,
            want.map(|(id, is_certain)| (id.to_owned(), is_certain))
        );
    }

    #[test]
    fn call_of_an_endpoint_is_judged_by_all_its_inputs_and_without_any() {
        let mut turn = Turn::start("m".to_owned(), &Value::Null, &Arc::default(), &mut NoView);
        for chunk in [
            json!({"type": "tool-input-available", "toolCallId": "a", "toolName": "Bash", "input": {"command": "rm x"}}),
            json!({"type": "tool-input-available", "toolCallId": "a", "toolName": "Bash", "input": {"command": "ls"}}),
            json!({"type": "tool-output-available", "toolCallId": "a", "output": 1}),
            json!({"type": "tool-output-available", "toolCallId": "never announced", "output": 1}),
        ] {
            let json = to_raw(&chunk);
            turn.update(&update(&json), original(), &mut NoView);
        }
        let [known, unknown] = &turn.take_unapproved_runs("/")[..] else {
            panic!("two runs");
        };
        assert_eq!(known.subject.lines, ["ls", "rm x"]);
        assert_eq!(unknown.tool.tool_call_id, "never announced");
        assert!(unknown.subject.opaque);
    }

    #[test]
    fn chunk_of_a_call_without_a_text_as_id_gets_one() {
        let mut ids = CallIds::default();
        for (chunk, want) in [
            (
                json!({"type": "tool-input-available", "toolCallId": 7}),
                "7",
            ),
            (json!({"type": "tool-input-available"}), "no-id"),
        ] {
            let json = to_raw(&chunk);
            let renamed = ids.rename(OpenTurns([None, None]), None, &mut update(&json));
            assert_eq!(renamed, [(want.to_owned(), want.to_owned())]);
            let renamed = with_call_id_of_chunk(&json, |id| Some(id.to_owned())).unwrap();
            let renamed: Value = serde_json::from_str(renamed.get()).unwrap();
            assert_eq!(renamed["toolCallId"], want);
        }
    }

    #[test]
    fn only_the_id_of_the_call_changes_in_parameters() {
        let params = to_raw(
            &json!({"sessionId": "s", "toolCall": {"toolCallId": "a", "title": "x"}, "options": []}),
        );
        let renamed = with_asked_call_id(&params, "a#2").unwrap();
        assert_eq!(renamed.get(), params.get().replace(r#""a""#, r#""a#2""#));
        assert!(with_asked_call_id(&params, "a").is_none());
        let number = to_raw(&json!({"toolCallId": 7}));
        let renamed = with_call_id(&number, |id| Some(id.to_owned())).unwrap();
        assert_eq!(renamed.get(), r#"{"toolCallId":"7"}"#);
        assert!(with_call_id(&to_raw(&json!({})), |_| Some("a".to_owned())).is_none());
    }
}
