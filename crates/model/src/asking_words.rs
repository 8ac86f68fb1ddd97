//! Words by which an agent's text says that the agent asks less: names of modes and settings, and labels of the options
//! of permission requests.
//!
//! The text is the agent's own, so the words only warn, or keep acpipe from choosing an option: they allow nothing.

/// Words that say so alone.
const UNASKED: [&str; 30] = [
    "acceptall",
    "acceptedits",
    "allowall",
    "approveall",
    "auto",
    "autoaccept",
    "autoacceptedits",
    "autoapprove",
    "autoedit",
    "automatic",
    "automatically",
    "automode",
    "autonomous",
    "autonomously",
    "autopilot",
    "autorun",
    "bypass",
    "bypasspermissions",
    "danger",
    "dangerous",
    "dangerously",
    "everything",
    "fullaccess",
    "fullauto",
    "unattended",
    "unrestricted",
    "unsafe",
    "unsupervised",
    "yolo",
    "yolomode",
];

/// Words that say so one behind the other.
const PAIRS: [[&str; 2]; 4] = [
    ["accept", "edits"],
    ["full", "access"],
    ["llm", "approve"],
    ["switch", "to"],
];

/// Words that say so before or behind one of [`ASKING`], with at most two words between them: `no more questions`,
/// `sandbox off`.
const WITHOUT: [&str; 12] = [
    "disable", "dont", "don", "less", "never", "no", "not", "off", "skip", "stop", "turn",
    "without",
];
const ASKING: [&str; 17] = [
    "approval",
    "approvals",
    "ask",
    "asking",
    "check",
    "checks",
    "confirm",
    "confirmation",
    "confirmations",
    "permission",
    "permissions",
    "prompt",
    "prompting",
    "prompts",
    "question",
    "questions",
    "sandbox",
];

/// Verbs that say so beside `all` or `always`.
const ALLOWING: [&str; 7] = [
    "accept", "allow", "approve", "proceed", "run", "trust", "yes",
];

/// Returns `true` if a mode or setting of this id or name runs tools without asking.
pub fn is_unasked_mode(text: &str) -> bool {
    // Some ids are URIs, whose fragment is the name.
    let name = text.rsplit(['#', '/']).next().unwrap_or(text);
    let words = words(name, false);
    let joined = words.concat();
    let is_policy = matches!(
        joined.as_str(),
        "never" | "alwaysapprove" | "dontask" | "neverask"
    );
    is_policy || UNASKED.contains(&joined.as_str()) || asks_less(&words) || allows_all(&words)
}

/// Returns `true` if a switch of this id or name, which is on, makes the agent ask less.
pub fn is_unasked_switch(text: &str) -> bool {
    let words = words(text, false);
    // "Auto" alone says nothing here: a switch can be "Auto-compact".
    UNASKED.contains(&words.concat().as_str()) || negates_asking(&words)
}

/// Returns `true` if a setting of this id or name is about the agent's questions.
pub fn is_about_asking(text: &str) -> bool {
    words(text, false)
        .iter()
        .any(|word| ASKING.contains(&word.as_str()))
}

/// Returns `true` if an option with this id or label (`can_quote`) changes the agent's mode, mostly to one in which it
/// asks less or not at all.
pub fn changes_mode(text: &str, can_quote: bool) -> bool {
    let words = words(text, can_quote);
    // "Do not ask again" is what an option that allows always means.
    asks_less(&words) && !words.iter().any(|word| word == "again")
        || words.iter().any(|word| is_unasked(word))
}

/// Returns `true` if an option with this id or label (`can_quote`) allows more than one call.
pub fn allows_more_than_once(text: &str, can_quote: bool) -> bool {
    let words = words(text, can_quote);
    let lasts =
        |word: &String| matches!(word.as_str(), "again" | "always" | "remember" | "session");
    asks_less(&words)
        || allows_all(&words)
        || words.iter().any(lasts)
        || has_pair(&words, |pair| pair == ["now", "on"])
}

fn is_unasked(word: &str) -> bool {
    UNASKED.contains(&word)
}

fn has_pair(words: &[String], is: impl Fn([&str; 2]) -> bool) -> bool {
    words.windows(2).any(|pair| is([&pair[0], &pair[1]]))
}

fn asks_less(words: &[String]) -> bool {
    negates_asking(words)
        || words.iter().any(|word| is_unasked(word))
        || has_pair(words, |pair| PAIRS.contains(&pair))
}

/// Returns `true` for words such as `no more questions` or `sandbox off`.
fn negates_asking(words: &[String]) -> bool {
    let is_without = |word: &String| WITHOUT.contains(&word.as_str());
    let is_asking = |word: &String| ASKING.contains(&word.as_str());
    words
        .windows(words.len().clamp(1, 4))
        .any(|near| near.iter().any(is_without) && near.iter().any(is_asking))
}

fn allows_all(words: &[String]) -> bool {
    has_pair(words, |[first, second]| {
        let is_all = |word| matches!(word, "all" | "always");
        let is_verb = |word| ALLOWING.contains(&word);
        is_verb(first) && is_all(second)
            || first == "always" && is_verb(second)
            || first == "to" && second == "all"
    })
}

/// Returns the words of a text in small letters: `exitPlanAuto` has three. A label can quote a command, for example,
/// whose words do not count.
fn words(text: &str, can_quote: bool) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut quoted, mut was_small) = (false, false);
    // "Don't" is one word.
    for c in text.chars().filter(|c| !matches!(c, '\'' | '\u{2019}')) {
        quoted ^= can_quote && c == '`';
        let begins = !c.is_alphanumeric() || c.is_uppercase() && was_small;
        was_small = c.is_lowercase();
        if begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && c.is_alphanumeric()
            && !quoted
        {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_modes_that_do_not_ask_are_known() {
        for name in [
            "yolo",
            "YOLO mode",
            "Bypass permissions",
            "Bypass all permissions",
            "Dangerously skip permissions",
            "danger-full-access",
            "No confirmation",
            "Skip approvals",
            "Without approval",
            "Trust all tools",
            "Unsafe",
            "Unattended",
            "Automatic",
            "auto-accept-edits",
            "autoEdit",
            "bypassPermissions",
            "dontAsk",
            "never",
            "never-ask",
            "accept-all",
            "alwaysApprove",
            "llm_approve",
            "agent-full-access",
            "https://x.example/modes#autopilot",
        ] {
            assert!(is_unasked_mode(name), "{name}");
        }
        for name in [
            "Ask",
            "Always ask",
            "ask-always",
            "default",
            "Manual approval",
            "plan",
            "Code",
            "read-only",
            "https://auto.example/modes#ask",
            "",
        ] {
            assert!(!is_unasked_mode(name), "{name}");
        }
    }

    #[test]
    fn switches_that_end_the_questions_are_known() {
        for (name, is_unasked) in [
            ("yolo", true),
            ("YOLO mode", true),
            ("auto_approve", true),
            ("Skip permissions", true),
            ("Auto-compact", false),
            ("Ask before edits", false),
        ] {
            assert_eq!(is_unasked_switch(name), is_unasked, "{name}");
        }
        assert!(is_about_asking("Approval policy"));
        assert!(!is_about_asking("Thinking"));
    }

    #[test]
    fn labels_that_allow_more_than_the_call_are_known() {
        for label in [
            "Yes, don't ask again",
            "Yes, and don\u{2019}t ask again for this session",
            "Allow for session",
            "Always",
            "Yes to all",
            "Turn off prompts",
            "Allow without confirmation from now on",
            "Stop asking",
            "Remember my choice",
            "Do not prompt",
            "Switch to agent mode",
            "Sandbox off",
            "Accept all",
            "No more questions",
            "Allow all tools",
            "Disable approval",
            "Disable permission checks",
            "Proceed always",
            "Run without approval",
            "Go autonomous",
        ] {
            assert!(allows_more_than_once(label, true), "{label}");
        }
        for label in [
            "Allow",
            "Allow once",
            "Yes, proceed",
            "Yes, manually approve edits",
            "Run `ask --never`",
            "Yes, enter plan mode",
        ] {
            assert!(!allows_more_than_once(label, true), "{label}");
        }
    }
}
