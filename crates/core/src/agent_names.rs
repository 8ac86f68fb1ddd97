//! Names of agents: which names are valid, and which agent a typed name means.

use acpipe_model::builtin_agents;
use acpipe_model::builtin_agents::BuiltinAgent;
use acpipe_model::similar::by_distance;
use std::fmt;

/// Name of the agent that is used if none is named.
const RESERVED: &str = "default";

/// Maximum length of an agent's name, in bytes.
const LONGEST: usize = 64;

/// Minimum length of a prefix that stands for a name, in letters.
const SHORTEST_PREFIX: usize = 2;

/// Maximum number of similar names in an error.
const MOST_SIMILAR: usize = 3;

/// Checks that a name is a valid name for an agent.
///
/// # Errors
/// The reason why the name is not valid.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    let may = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !begins_well || name.len() > LONGEST || !name.chars().all(may) {
        return Err(
            "must have at most 64 bytes, only letters, digits, `.`, `_` and `-`, and begin with a letter or digit",
        );
    }
    if name == RESERVED {
        return Err("must not be `default`, which is reserved; use another name");
    }
    Ok(())
}

/// Agent that a typed name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentName<'a> {
    /// An agent of the user, by its name.
    Own(&'a str),
    Builtin(&'static BuiltinAgent),
}

impl<'a> AgentName<'a> {
    /// Returns the full name: the user's own, or the id of the built-in agent.
    #[must_use]
    pub fn as_str(self) -> &'a str {
        match self {
            Self::Own(name) => name,
            Self::Builtin(agent) => &agent.id,
        }
    }
}

/// Name that means no agent, or several agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameError {
    Ambiguous {
        /// Name as typed.
        name: String,
        /// Full names of the agents.
        choices: Vec<String>,
    },
    Unknown {
        /// Name as typed.
        name: String,
        /// Similar names, the nearest first.
        similar: Vec<String>,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ambiguous { name, choices } => {
                let choices = choices.join(", ");
                write!(f, "agent {name:?} is ambiguous; use one of {choices}")
            }
            Self::Unknown { name, similar } => {
                write!(f, "agent {name:?} not found; ")?;
                if !similar.is_empty() {
                    write!(f, "did you mean {}? ", similar.join(" or "))?;
                }
                f.write_str("`acpipe agents` lists all agents")
            }
        }
    }
}

impl std::error::Error for NameError {}

/// Returns the agent that a name means, among the user's own agents and the built-in ones.
///
/// The first of these that matches decides: the name of an own agent, the id or alias of a built-in agent, a
/// name that differs by the ending `-acp`, a prefix of one name or id. Then the same without regard to case.
/// An own agent hides a built-in one with the same id.
///
/// # Errors
/// The name means no agent, or several agents.
pub fn resolve<'a>(
    name: &str,
    own: impl Iterator<Item = &'a str> + Clone,
) -> Result<AgentName<'a>, NameError> {
    for case in [Case::Sensitive, Case::Insensitive] {
        let bare = name.len().checked_sub("-acp".len());
        let bare =
            bare.filter(|&end| name.is_char_boundary(end) && case.same(&name[end..], "-acp"));
        let related = [
            Some(format!("{name}-acp")),
            bare.map(|end| name[..end].to_owned()),
        ];
        let related: Vec<String> = related.into_iter().flatten().collect();
        for forms in [&[name.to_owned()][..], &related] {
            let is = |known: &str| forms.iter().any(|form| case.same(known, form));
            let owned = own.clone().filter(|own| is(own)).map(AgentName::Own);
            let builtin = builtin_agents::all().iter();
            let builtin = builtin.filter(|agent| agent.names().any(is));
            // The alias of a built-in agent that an own agent hides means the own agent.
            let builtin = builtin.map(|agent| {
                let hiding = own.clone().find(|own| *own == agent.id);
                hiding.map_or(AgentName::Builtin(agent), AgentName::Own)
            });
            for found in [owned.collect(), builtin.collect()] {
                if let Some(agent) = the_only(name, found)? {
                    return Ok(agent);
                }
            }
        }
        if let Some(agent) = the_only(name, with_prefix(name, &own, case))? {
            return Ok(agent);
        }
    }
    Err(unknown(name, own))
}

/// How names are compared.
#[derive(Debug, Clone, Copy)]
enum Case {
    Sensitive,
    Insensitive,
}

impl Case {
    fn same(self, a: &str, b: &str) -> bool {
        match self {
            Self::Sensitive => a == b,
            Self::Insensitive => a.eq_ignore_ascii_case(b),
        }
    }
}

fn with_prefix<'a>(
    prefix: &str,
    own: &(impl Iterator<Item = &'a str> + Clone),
    case: Case,
) -> Vec<AgentName<'a>> {
    if prefix.chars().count() < SHORTEST_PREFIX {
        return Vec::new();
    }
    let begins = |known: &str| {
        let begin = known.get(..prefix.len());
        begin.is_some_and(|begin| case.same(begin, prefix))
    };
    let is_hidden = |agent: &BuiltinAgent| own.clone().any(|own| own == agent.id);
    let builtin = builtin_agents::all().iter();
    let builtin = builtin.filter(|agent| begins(&agent.id) && !is_hidden(agent));
    let owned = own.clone().filter(|own| begins(own)).map(AgentName::Own);
    owned.chain(builtin.map(AgentName::Builtin)).collect()
}

/// Returns the agent that was found, if any.
///
/// # Errors
/// Several agents were found.
fn the_only<'a>(name: &str, found: Vec<AgentName<'a>>) -> Result<Option<AgentName<'a>>, NameError> {
    if let [] | [_] = found[..] {
        return Ok(found.first().copied());
    }
    let choices = found.into_iter().map(|agent| agent.as_str().to_owned());
    Err(NameError::Ambiguous {
        name: name.to_owned(),
        choices: choices.collect(),
    })
}

fn unknown<'a>(name: &str, own: impl Iterator<Item = &'a str>) -> NameError {
    let builtin = builtin_agents::all().iter().flat_map(BuiltinAgent::names);
    let mut similar = by_distance(name, own.chain(builtin));
    similar.dedup();
    similar.truncate(MOST_SIMILAR);
    NameError::Unknown {
        name: name.to_owned(),
        similar: similar.into_iter().map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: [&str; 9] = [
        "reviewer",
        "Writer",
        "goose",
        "tools-acp",
        "qwen-code",
        "team",
        "TEAM",
        "clint",
        "cursory",
    ];

    #[test]
    fn names_resolve_in_order_of_precedence() {
        let cases = [
            // Own names, also such that hide a built-in agent or an alias.
            ("reviewer", "own reviewer"),
            ("goose", "own goose"),
            ("qwen-code", "own qwen-code"),
            ("team", "own team"),
            ("TEAM", "own TEAM"),
            // Ids and aliases of built-in agents.
            ("claude", "builtin claude"),
            ("claude-acp", "builtin claude-acp"),
            ("codex-acp", "builtin codex"),
            ("github-copilot-cli", "builtin copilot"),
            ("cursor", "builtin cursor"),
            // The ending `-acp` added or removed.
            ("tools", "own tools-acp"),
            ("reviewer-acp", "own reviewer"),
            ("goose-acp", "own goose"),
            ("opencode-acp", "builtin opencode"),
            ("agoragentic", "builtin agoragentic-acp"),
            // Prefixes of names and ids.
            ("rev", "own reviewer"),
            ("goo", "own goose"),
            ("gem", "builtin gemini"),
            ("opencod", "builtin opencode"),
            // Without regard to case.
            ("Reviewer", "own reviewer"),
            ("writer", "own Writer"),
            ("OpenCode", "builtin opencode"),
            ("Gemini-ACP", "builtin gemini"),
            ("GEM", "builtin gemini"),
            ("wri", "own Writer"),
        ];
        for (name, want) in cases {
            let found = match resolve(name, OWN.into_iter()) {
                Ok(AgentName::Own(name)) => format!("own {name}"),
                Ok(AgentName::Builtin(agent)) => format!("builtin {}", agent.id),
                Err(error) => error.to_string(),
            };
            assert_eq!(found, want, "{name}");
        }
    }

    #[test]
    fn unclear_names_are_errors_with_choices() {
        let cases = [
            (
                "claud",
                "agent \"claud\" is ambiguous; use one of claude, claude-acp",
            ),
            ("cli", "agent \"cli\" is ambiguous; use one of clint, cline"),
            ("Team", "agent \"Team\" is ambiguous; use one of team, TEAM"),
            (
                "revewer",
                "agent \"revewer\" not found; did you mean reviewer? `acpipe agents` lists all agents",
            ),
            (
                "kmi",
                "agent \"kmi\" not found; did you mean kimi? `acpipe agents` lists all agents",
            ),
            (
                "frobnicate",
                "agent \"frobnicate\" not found; `acpipe agents` lists all agents",
            ),
            ("", "agent \"\" not found; `acpipe agents` lists all agents"),
            (
                "é-acp",
                "agent \"é-acp\" not found; did you mean pi-acp? `acpipe agents` lists all agents",
            ),
        ];
        for (name, want) in cases {
            let error = resolve(name, OWN.into_iter()).unwrap_err();
            assert_eq!(error.to_string(), want);
        }
        let one_letter = resolve("w", OWN.into_iter()).unwrap_err();
        assert!(matches!(one_letter, NameError::Unknown { .. }));
    }

    #[test]
    fn names_of_agents_have_plain_letters() {
        let long = "a".repeat(LONGEST);
        for name in ["a", "1", "reviewer-2", "a.b_c", "claude", long.as_str()] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        let longer = "a".repeat(LONGEST + 1);
        for name in ["", "-a", ".a", "a b", "a/b", "é", "a\n", longer.as_str()] {
            let why = check_name(name).unwrap_err();
            assert!(why.starts_with("must have at most 64 bytes"), "{name:?}");
        }
        let why = check_name("default").unwrap_err();
        assert!(why.contains("reserved"), "{why}");
    }

    #[test]
    fn names_of_builtin_agents_are_valid() {
        for agent in builtin_agents::all() {
            for name in agent.names() {
                assert_eq!(check_name(name), Ok(()), "{name}");
            }
        }
    }
}
