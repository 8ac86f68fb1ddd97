//! Whether an agent asks for permission before it runs tools. A policy can only refuse what it is asked about.

use super::asking_words::is_unasked_mode;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;

/// When an agent asks for permission before it runs a tool that changes something.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged)]
pub enum Asking {
    /// Whatever its mode is.
    Habit(AskingHabit),
    /// In these modes of the agent, by their ids. If the policy restricts and no mode was requested, acpipe chooses
    /// the first one that the agent offers.
    Modes(Vec<String>),
}

/// Permission requests of an agent that do not depend on its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AskingHabit {
    /// The agent asks.
    Always,
    /// The agent asks about what its own settings name.
    Settings,
    /// The agent never asks.
    Never,
}

impl Asking {
    /// Returns the modes in which the agent asks, the preferred one first; empty if its mode does not matter.
    pub fn modes(&self) -> &[String] {
        match self {
            Self::Modes(modes) => modes,
            Self::Habit(_) => &[],
        }
    }
}

/// Returns why tools may run without a permission request in a session with this mode; `None` if nothing is known
/// against it. `name` is the name of the mode, if the agent lists one. `measured` is the mode in which the agent was seen
/// to run a tool without asking; it counts if nothing else is known of the agent.
pub fn asking_fault(
    asking: Option<&Asking>,
    mode: Option<&str>,
    name: Option<&str>,
    measured: Option<&str>,
) -> Option<String> {
    match (asking, mode) {
        (Some(Asking::Habit(AskingHabit::Never)), _) => {
            Some("the agent does not ask before it runs tools".to_owned())
        }
        (Some(Asking::Habit(AskingHabit::Settings)), _) => {
            Some("the agent asks only about tools that its own settings name".to_owned())
        }
        (Some(Asking::Modes(modes)), Some(mode)) if modes.iter().any(|own| own == mode) => None,
        (Some(Asking::Modes(modes)), Some(mode)) => Some(format!(
            "the agent is in the mode {mode:?}, in which it runs tools without asking; it asks in the mode {}",
            any_of(modes)
        )),
        (Some(Asking::Modes(modes)), None) => Some(format!(
            "the agent does not report its mode; it asks in the mode {}",
            any_of(modes)
        )),
        (None, _) if measured == Some(mode.unwrap_or_default()) => {
            let mode = mode.map_or(String::new(), |mode| format!(" in the mode {mode:?}"));
            Some(format!(
                "`acpipe doctor --probe` measured that the agent runs tools without asking{mode}"
            ))
        }
        (Some(Asking::Habit(AskingHabit::Always)) | None, Some(mode))
            if is_unasked_mode(mode) || name.is_some_and(is_unasked_mode) =>
        {
            let mode = if is_unasked_mode(mode) {
                mode
            } else {
                name.unwrap_or(mode)
            };
            Some(format!(
                "the agent is in the mode {mode:?}, in which agents run tools without asking"
            ))
        }
        (Some(Asking::Habit(AskingHabit::Always)) | None, _) => None,
    }
}

fn any_of(modes: &[String]) -> String {
    let modes: Vec<String> = modes.iter().map(|mode| format!("{mode:?}")).collect();
    modes.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(json: &str) -> Asking {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn agent_is_at_fault_unless_it_asks_in_its_mode() {
        let cases = [
            (Some(r#""never""#), Some("default"), true),
            (Some(r#""settings""#), None, true),
            (Some(r#""always""#), Some("agent"), false),
            (Some(r#""always""#), None, false),
            (Some(r#""always""#), Some("yolo"), true),
            (Some(r#"["default", "plan"]"#), Some("default"), false),
            (Some(r#"["default", "plan"]"#), Some("plan"), false),
            (Some(r#"["default", "plan"]"#), Some("auto"), true),
            (Some(r#"["default", "plan"]"#), Some("new-mode"), true),
            (Some(r#"["default", "plan"]"#), None, true),
            (None, None, false),
            (None, Some("code"), false),
            (None, Some("bypassPermissions"), true),
            (None, Some("auto-edit"), true),
            (None, Some("https://x.example/modes#autopilot"), true),
        ];
        for (known, mode, is_fault) in cases {
            let known = known.map(asking);
            let fault = asking_fault(known.as_ref(), mode, None, None);
            assert_eq!(fault.is_some(), is_fault, "{known:?} {mode:?} {fault:?}");
        }
    }

    #[test]
    fn mode_whose_id_or_name_says_that_it_does_not_ask_is_a_fault() {
        for (id, name, is_fault) in [
            ("m3", "Bypass permissions", true),
            ("m3", "YOLO mode", true),
            ("never-ask", "m", true),
            ("accept-all", "m", true),
            ("yolo-mode", "m", true),
            ("full-auto", "m", true),
            ("auto-accept-edits", "m", true),
            ("m3", "Ask", false),
        ] {
            let fault = asking_fault(None, Some(id), Some(name), None);
            assert_eq!(fault.is_some(), is_fault, "{id} {name}");
        }
        // The data of the agent has precedence.
        let known = asking(r#"["auto"]"#);
        let fault = asking_fault(Some(&known), Some("auto"), Some("YOLO"), None);
        assert_eq!(fault, None);
    }

    #[test]
    fn measured_mode_is_a_fault_of_an_agent_that_is_not_known() {
        for (known, mode, measured, is_fault) in [
            (None, Some("code"), "code", true),
            (None, Some("code"), "ask", false),
            (None, Some("code"), "", false),
            (None, None, "", true),
            (None, None, "code", false),
            (Some(r#""always""#), Some("code"), "code", false),
            (Some(r#"["code"]"#), Some("code"), "code", false),
            // A measurement proves nothing about other modes.
            (None, Some("auto"), "code", true),
            (Some(r#""never""#), Some("code"), "ask", true),
        ] {
            let known = known.map(asking);
            let fault = asking_fault(known.as_ref(), mode, None, Some(measured));
            assert_eq!(fault.is_some(), is_fault, "{known:?} {mode:?} {measured:?}");
        }
    }
}
