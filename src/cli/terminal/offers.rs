//! Offers of the agent in a session: its commands, models and modes.

use acpipe_model::printable::printable;
use acpipe_model::setting;
use serde_json::Value;

/// Commands, models and modes of a session's agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offers {
    pub commands: Vec<Offer>,
    pub models: Choices,
    pub modes: Choices,
}

/// Command, model or mode.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// Name of a command, or id.
    pub name: String,
    /// Description for people; may be empty.
    pub about: String,
}

/// Models or modes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    /// Id of the current one.
    pub current: Option<String>,
    pub all: Vec<Offer>,
}

impl Offers {
    /// Reads the state of a session.
    pub fn of(state: &Value) -> Self {
        let members = state.as_object().cloned().unwrap_or_default();
        Self {
            commands: list(&state["availableCommands"], "name", "description"),
            models: Choices {
                current: setting::model(&members),
                all: list(&state["models"]["availableModels"], "modelId", "name"),
            },
            modes: Choices {
                current: setting::mode(&members),
                all: list(&state["modes"]["availableModes"], "id", "name"),
            },
        }
    }

    /// Describes the current model and mode, as far as they are known.
    pub fn current(&self) -> Option<String> {
        let settings = [("model", &self.models), ("mode", &self.modes)];
        let current = settings
            .into_iter()
            .filter_map(|(name, choices)| Some(format!("{name} {}", choices.current.as_ref()?)));
        let current: Vec<String> = current.collect();
        (!current.is_empty()).then(|| current.join(", "))
    }

    /// Returns `true` if the agent has this command.
    pub fn has_command(&self, name: &str) -> bool {
        self.commands.iter().any(|command| command.name == name)
    }
}

impl Choices {
    /// Lists the models or modes, one per line; the current one has a mark.
    pub fn listed(&self, kind: &str) -> String {
        if self.all.is_empty() {
            return format!("the agent offers no {kind}s");
        }
        let lines = self.all.iter().map(|choice| {
            let is_current = self.current.as_ref() == Some(&choice.name);
            let mark = if is_current { '*' } else { ' ' };
            format!("\n {mark} {}", choice.line())
        });
        format!("{kind}s of the agent:{}", lines.collect::<String>())
    }
}

impl Offer {
    /// Returns name and description on one line.
    pub fn line(&self) -> String {
        let about = self.about.lines().next().unwrap_or_default();
        if about.is_empty() || about == self.name {
            self.name.clone()
        } else {
            format!("{}  {about}", self.name)
        }
    }
}

/// Reads a list. Entries whose names cannot be typed are left out.
fn list(list: &Value, name: &str, about: &str) -> Vec<Offer> {
    let all = list.as_array().into_iter().flatten();
    let offers = all.filter_map(|entry| {
        let name = entry[name].as_str()?;
        let is_typed = !name.is_empty() && !name.contains(char::is_whitespace);
        (is_typed && printable(name) == name).then(|| Offer {
            name: name.to_owned(),
            about: entry[about].as_str().unwrap_or_default().to_owned(),
        })
    });
    offers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn offers_are_read_from_the_state_of_a_session() {
        let offers = Offers::of(&json!({
            "modes": { "currentModeId": "plan", "availableModes": [
                { "id": "plan", "name": "Plan first" }, { "id": "code", "name": "code" }] },
            "availableCommands": [
                { "name": "init", "description": "Look around\nand more" }, { "name": "two words" }, { "name": "\u{1b}[2J" }],
        }));
        assert_eq!(
            offers.modes.listed("mode"),
            "modes of the agent:\n * plan  Plan first\n   code"
        );
        let lines: Vec<String> = offers.commands.iter().map(Offer::line).collect();
        assert_eq!(lines, ["init  Look around"]);
        assert!(offers.has_command("init") && !offers.has_command("two words"));
        assert_eq!(offers.models.listed("model"), "the agent offers no models");
        assert_eq!(offers.current().as_deref(), Some("mode plan"));
    }
}
