//! Checks that no field is lost: every field that agents send is found in the chunks and in the message that
//! they build, at the place that `docs/reference/fields.md` names, unless it is left out on purpose.
//!
//! After an intended change `UPDATE_FIELDS=1 cargo test --test sentinels` rewrites the table.

mod absent;
mod claude;
mod drafts;
mod feed;
mod places;
mod plant;
mod rows;
mod scenes;
mod schema;
mod survey;
mod table;

use absent::{OMISSIONS, faults};
use std::path::Path;
use std::sync::LazyLock;
use survey::{Group, survey};

static SURVEY: LazyLock<Vec<Group>> = LazyLock::new(survey);
static FRAMES: LazyLock<Vec<Group>> = LazyLock::new(claude::survey);

#[test]
fn every_field_is_found_or_left_out_on_purpose() {
    let faults = faults(&SURVEY, &[OMISSIONS]);
    let first: Vec<&str> = faults.lines().take(400).collect();
    let (count, first) = (faults.lines().count(), first.join("\n"));
    assert!(count == 0, "{count} faults:\n{first}");
}

#[test]
fn every_member_of_the_clis_frames_is_found_or_left_out_on_purpose() {
    let faults = faults(&FRAMES, &[claude::OMISSIONS]);
    assert!(
        faults.is_empty(),
        "{} faults:\n{faults}",
        faults.lines().count()
    );
}

#[test]
fn the_table_of_fields_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/fields.md");
    let have = table::write(&SURVEY, &FRAMES);
    if std::env::var_os("UPDATE_FIELDS").is_some() {
        std::fs::write(path, have).expect("docs/reference/fields.md can be written");
        return;
    }
    let want = std::fs::read_to_string(path).unwrap_or_default();
    let (mut have, mut want) = (have.lines(), want.lines());
    for line in 1.. {
        let (have, want) = (have.next(), want.next());
        assert!(
            have == want,
            "docs/reference/fields.md, line {line}:\n  have {}\n  want {}\n\
             If this is wanted: UPDATE_FIELDS=1 cargo test --test sentinels",
            have.unwrap_or("(end)"),
            want.unwrap_or("(end)"),
        );
        if have.is_none() {
            break;
        }
    }
}

/// All kinds of the schema, and a field of each depth: the walk must not stop early.
#[test]
fn schema_walk_reaches_every_field() {
    let paths: Vec<&str> = SURVEY
        .iter()
        .flat_map(|g| &g.fields)
        .map(|f| f.path.as_str())
        .collect();
    for path in [
        "user_message_chunk.content[audio].annotations.audience[] (unknown word)",
        "agent_message_chunk.content[resource].resource[blob].blob",
        "tool_call.content[content].content[resource_link].size",
        "tool_call.content[diff].oldText",
        "tool_call_update.locations[].line",
        "plan.entries[].priority",
        "available_commands_update.availableCommands[].input.hint",
        "config_option_update.configOptions[select].options[group].options[].value",
        "config_option_update.configOptions[boolean].currentValue",
        "usage_update.cost.currency",
        "notice.severity",
        "compaction_update.summary[image].uri",
        "subagent_update.state[idle].usage.totalTokens",
        "update[unknown kind].sessionUpdate",
        "tool_call_update._meta.terminal_exit.exit_code",
        "request_permission.options[].kind (unknown word)",
        "request_permission.toolCall.locations[].(unknown field)",
        "prompt_answer.stopReason (unknown word)",
        "tool_call.rawInput (of another type)",
    ] {
        assert!(paths.contains(&path), "{path} is not walked");
    }
}

/// Shows that the tests can fail: without its list each absent field is a fault, and an unused entry is one
/// too.
#[test]
fn absent_field_without_a_reason_is_a_fault() {
    let silent = faults(&SURVEY, &[]);
    for fault in [
        "notice.title (alone): not found: Message",
        "params(plan).sessionId (alone): not found: Everything",
    ] {
        assert!(silent.contains(fault), "{fault}: {silent}");
    }
    let silent = faults(&FRAMES, &[]);
    for fault in [
        "system[init].cwd (in a turn): not found: Message",
        "assistant[text].message.stop_reason (in a turn): not found: Everything",
    ] {
        assert!(silent.contains(fault), "{fault}: {silent}");
    }
    let idle = [absent::Absent {
        field: "plan.entries[].content",
        when: "*",
        from: absent::MissingFrom::Everything,
        why: "a test",
    }];
    let faults = faults(&SURVEY, &[OMISSIONS, &idle]);
    assert_eq!(
        faults,
        "plan.entries[].content (*): never absent: strike it from the list\n"
    );
}
