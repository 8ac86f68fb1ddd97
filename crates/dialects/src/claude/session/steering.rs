//! Messages that are sent while a turn runs. The CLI takes such a message when the model has called a tool; if the
//! turn ends before, the message begins a turn of its own.
//!
//! Owns the messages that the CLI has not taken. It may not write to the CLI: it says what to withdraw and to interrupt.

/// Messages that the CLI has not taken.
#[derive(Debug, Default)]
pub(super) struct Steering(Vec<SteeringMessage>);

/// Message that the CLI has not taken.
#[derive(Debug)]
struct SteeringMessage {
    uuid: String,
    /// `true` after its withdrawal was requested.
    withdrawn: bool,
}

impl Steering {
    pub(super) fn add(&mut self, uuid: String) {
        self.0.push(SteeringMessage {
            uuid,
            withdrawn: false,
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records that the CLI has taken a message, or withdrawn it. Returns `true` if a message that was to be withdrawn
    /// begins a turn, which has to be interrupted.
    pub(super) fn taken(&mut self, uuid: &str, begins: bool) -> bool {
        let at = self.0.iter().position(|own| own.uuid == uuid);
        at.is_some_and(|at| self.0.remove(at).withdrawn && begins)
    }

    /// Records the end of a turn. `users` are the ids of the messages that the turn took, as JSON; `reports`: whether the
    /// CLI reports when it takes a message.
    pub(super) fn turn_over(&mut self, users: &str, reports: bool) {
        self.0
            .retain(|own| reports && !users.contains(own.uuid.as_str()));
    }

    /// Returns the messages to withdraw since an interrupted turn did not take them. `queued` are the ids of the waiting
    /// messages, as JSON.
    pub(super) fn withdraw(&mut self, queued: &str) -> Vec<String> {
        let waiting = self.0.iter_mut().filter(|own| queued.contains(&own.uuid));
        let withdrawn = waiting.map(|own| {
            own.withdrawn = true;
            own.uuid.clone()
        });
        withdrawn.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_withdrawn_message_that_begins_a_turn_is_interrupted() {
        let mut steering = Steering::default();
        steering.add("a".to_owned());
        steering.add("b".to_owned());
        assert_eq!(steering.withdraw(r#"["a"]"#), ["a"]);
        assert!(!steering.taken("b", true), "it was not withdrawn");
        assert!(steering.taken("a", true));
        assert!(!steering.taken("a", true) && steering.is_empty());
    }

    #[test]
    fn messages_that_a_turn_did_not_take_stay_only_if_the_cli_reports_them() {
        let mut steering = Steering::default();
        steering.add("a".to_owned());
        steering.add("b".to_owned());
        steering.turn_over(r#"["a"]"#, true);
        assert!(!steering.is_empty());
        steering.turn_over("", false);
        assert!(steering.is_empty());
    }
}
