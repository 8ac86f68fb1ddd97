//! Receipt of a restore: what the agent remembers, and what happens to the stored messages.

use super::doubts::RECOVERY_ADVICE;
use crate::config::OnLost;
use crate::log::{LARGE, Log};
use crate::profile::Profile;
use crate::replay::{ReplayedMessages, first_unstored, is_other_conversation};
use crate::session::history::transcript;
use crate::session::{Conversation, Given, Preamble};
use acpipe_model::error::Error;
use acpipe_protocol::wire::{Attempt, Memory, Recovery, Rung};
use serde_json::Value;

/// Session as the agent has it now.
#[derive(Clone, Copy)]
pub struct TakenSession<'a> {
    /// Identity of the agent.
    pub agent: &'a str,
    /// Agent session id.
    pub id: &'a str,
    pub is_fork: bool,
    /// Key of the agent's program.
    pub program: &'a str,
    /// `true` if the agent receives the stored messages with each prompt.
    pub receives_history: bool,
    /// `true` if the agent remembers earlier prompts by itself.
    pub remembers: bool,
}

/// Creates the receipt, and stores replayed messages beyond the stored ones.
pub fn receipt_of(
    rung: Rung,
    taken: TakenSession<'_>,
    failed: Vec<Attempt>,
    replayed: Option<ReplayedMessages>,
    on_lost: OnLost,
    talk: &mut Conversation,
    at: &str,
) -> Result<Recovery, Error> {
    // The running turn is not history.
    let before = match talk.turns.prompted() {
        Some(running) => running.messages_before,
        None => talk.output.log().count(),
    };
    let memory = match rung {
        Rung::Live | Rung::Resume => Memory::Kept,
        Rung::Load => Memory::Replayed,
        Rung::New if before > 0 && taken.receives_history => Memory::Kept,
        Rung::New if before > 0 && taken.remembers => Memory::Lost,
        Rung::New => Memory::None,
    };
    let missed = match rung {
        _ if taken.receives_history => 0,
        Rung::New => 0,
        Rung::Live | Rung::Resume | Rung::Load => talk.known.missed_by(taken.agent, before),
    };
    let (agent, id) = (taken.agent.to_owned(), taken.id.to_owned());
    let created = rung == Rung::New || taken.is_fork;
    talk.known.give(
        agent,
        id,
        before,
        Given {
            at,
            created,
            program: taken.program,
        },
    );
    let repeated = replayed.as_ref().map(|messages| messages.len() as u64);
    // Cleared messages must not come back.
    let cleared = talk.output.log().count() == 0 && talk.output.log().seq() > 0;
    let mut warning = None;
    let adopted = match replayed {
        Some(replayed) if !cleared => {
            warning = contradiction(talk.output.log(), &replayed)?;
            store_replayed(replayed, talk, at)?
        }
        _ => 0,
    };
    let unknown = match memory {
        Memory::Lost => 0..before,
        _ => before.saturating_sub(missed)..before,
    };
    talk.preamble = Preamble {
        needs_instructions: rung == Rung::New || before == 0,
        history: transcript(talk.output.log(), unknown, on_lost.reinject)?,
    };
    if memory == Memory::Lost {
        // A running turn must not lose its first part.
        if on_lost.clear && !talk.turns.is_prompted() {
            talk.output.clear(at, true)?;
        }
    }
    let reinjected = talk
        .preamble
        .history
        .as_ref()
        .map_or(0, |text| text.chars().count() as u64);
    Ok(Recovery {
        rung,
        memory,
        failed,
        // An agent replays nothing on resume: this history was read separately.
        replayed: repeated.filter(|_| rung == Rung::Load),
        messages: talk.output.log().count(),
        adopted,
        reinjected,
        missed,
        not_restored: Vec::new(),
        differing_settings: Vec::new(),
        agent_command: None,
        warning,
        chosen_mode: None,
        policy_warning: None,
        handed_over_from: None,
        instructions_in_prompt: false,
    })
}

/// Stores the replayed messages beyond the stored ones; returns their number.
fn store_replayed(
    replayed: ReplayedMessages,
    talk: &mut Conversation,
    at: &str,
) -> Result<u64, Error> {
    let first = first_unstored(stored(talk.output.log()), &replayed)?;
    let adopted = replayed.len().saturating_sub(first);
    let (is_large, is_new) = (replayed.size() > LARGE, talk.output.log().is_empty());
    if is_large {
        // The messages are written in pieces. After a crash, the next load of the session adds the rest.
        talk.log_identity(at);
    }
    replayed.consume(first, |message| {
        talk.output.record_message(at, message);
    });
    if is_large && let Err(error) = talk.output.begin_write() {
        if is_new {
            let _ = talk.output.remove(false);
        }
        return Err(error);
    }
    Ok(adopted as u64)
}

fn stored(log: &Log) -> impl Iterator<Item = Result<Value, Error>> {
    (0..log.count()).filter_map(|place| {
        let message = log.message(usize::try_from(place).ok()?, Profile::V7);
        message.transpose()
    })
}

/// Returns a warning if the replayed history belongs to another conversation than the stored one.
fn contradiction(log: &Log, replayed: &ReplayedMessages) -> Result<Option<String>, Error> {
    let is_other = is_other_conversation(|| stored(log), replayed)?;
    Ok(is_other.then(|| {
        let count = replayed.len();
        format!(
            "the agent replayed another conversation: none of its {count} messages is stored in this session, so \
                 it may remember something else; {RECOVERY_ADVICE}"
        )
    }))
}
