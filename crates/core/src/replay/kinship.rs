//! Evidence that a replayed history belongs to another conversation than the stored one.
//!
//! Agents leave out, cut and reword what they replay: they wrap prompts in text of their own, replace long output by
//! its beginning, and replace a long history by a summary. None of this contradicts the stored history. The evidence
//! is therefore the opposite: not one text of the replay is related to any stored text.

use super::ReplayedMessages;
use super::compare::text;
use acpipe_model::error::Error;
use memchr::memmem;
use serde_json::Value;

/// Number of messages that are compared at each end of the replay.
const ENDS: usize = 24;

/// Length from which a text of the replay may be a summary of the history, in characters.
const SUMMARY: usize = 400;

/// Length to which the searched text is cut, and the one in which it is searched, in bytes.
const NEEDLE: usize = 256;
const HAY: usize = 8 << 10;

/// Length from which a text may be cut within a word, in bytes.
const CUT: usize = 12;

/// Length of an equal beginning that relates two texts, in bytes: agents cut texts in the middle.
const BEGINNING: usize = 64;

/// Texts of the replay that are compared with the stored ones.
#[derive(Debug, Default)]
struct ComparedTexts {
    /// Texts of the messages at both ends, as words in small letters.
    words: Vec<String>,
    /// Number of texts of the user.
    prompts: usize,
    /// Length of the longest text of the user, and of any text, in characters.
    longest_prompt: usize,
    longest: usize,
}

impl ComparedTexts {
    fn of(messages: impl Iterator<Item = Value>) -> Self {
        let mut all = Self::default();
        for message in messages {
            let text = text(&message);
            let words = words(&text);
            if words.is_empty() {
                continue;
            }
            let length = text.chars().count();
            all.longest = all.longest.max(length);
            if message["role"] == "user" {
                all.prompts += 1;
                all.longest_prompt = all.longest_prompt.max(length);
            }
            if all.words.len() == 2 * ENDS {
                all.words.remove(ENDS);
            }
            all.words.push(words);
        }
        all
    }
}

/// Returns `true` if the replay is the history of another conversation than the stored one. A replay that cannot be
/// judged is not: one without prompts, and one that may be a summary.
///
/// # Errors
/// A stored message cannot be read.
pub fn is_other_conversation<I: Iterator<Item = Result<Value, Error>>>(
    stored: impl Fn() -> I,
    replayed: &ReplayedMessages,
) -> Result<bool, Error> {
    // Nearly always both begin with the same prompt, and no more of a long history has to be read.
    let first = (
        first_words(stored())?,
        first_words(replayed.values().map(Ok))?,
    );
    if let (Some(own), Some(other)) = &first
        && are_related(own, other)
    {
        return Ok(false);
    }
    let replayed = ComparedTexts::of(replayed.values());
    if replayed.prompts == 0 || replayed.longest_prompt >= SUMMARY {
        return Ok(false);
    }
    // All of them: an agent that had the session for a while has only a part from the middle.
    let mut prompts = 0;
    for message in stored() {
        let message = message?;
        let own = words(&text(&message));
        if own.is_empty() {
            continue;
        }
        if replayed.words.iter().any(|other| are_related(&own, other)) {
            return Ok(false);
        }
        prompts += usize::from(message["role"] == "user");
    }
    let is_shorter = replayed.prompts < prompts;
    Ok(prompts > 0 && !(is_shorter && replayed.longest >= SUMMARY))
}

/// Returns the words of the first message that has any.
fn first_words(
    messages: impl Iterator<Item = Result<Value, Error>>,
) -> Result<Option<String>, Error> {
    for message in messages {
        let words = words(&text(&message?));
        if !words.is_empty() {
            return Ok(Some(words));
        }
    }
    Ok(None)
}

/// Converts a text to its words in small letters, without punctuation, each after a blank.
fn words(text: &str) -> String {
    let is_of_word = |c: char| !c.is_alphanumeric();
    let mut words = String::new();
    for word in text.split(is_of_word).filter(|word| !word.is_empty()) {
        words.push(' ');
        words.extend(word.chars().flat_map(char::to_lowercase));
        if words.len() >= HAY {
            break;
        }
    }
    words
}

/// Returns `true` if one of two texts contains the other, or both begin alike.
fn are_related(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() {
        (one.as_bytes(), other.as_bytes())
    } else {
        (other.as_bytes(), one.as_bytes())
    };
    let begins_alike = short.len() >= BEGINNING && short[..BEGINNING] == long[..BEGINNING];
    let needle = &short[..short.len().min(NEEDLE)];
    // Only a longer text may end within a word, where it was cut.
    let is_end = |at: usize| matches!(long.get(at + needle.len()), None | Some(b' '));
    let mut found = memmem::find_iter(long, needle);
    begins_alike || found.any(|at| needle.len() >= CUT || is_end(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Builds messages: `>text` of the user, `text` of the agent.
    fn history(told: &[&str]) -> Vec<Value> {
        let message = |told: &&str| {
            let (role, text) = match told.strip_prefix('>') {
                Some(text) => ("user", text),
                None => ("assistant", *told),
            };
            json!({ "role": role, "parts": [{ "type": "text", "text": text }] })
        };
        told.iter().map(message).collect()
    }

    fn is_other(stored: &[&str], replayed: &[&str]) -> bool {
        let mut all = ReplayedMessages::default();
        for message in history(replayed) {
            all.push(&message);
        }
        is_other_conversation(|| history(stored).into_iter().map(Ok), &all).unwrap()
    }

    const STORED: &[&str] = &[
        ">Why does the build fail?",
        "The linker is missing.",
        ">Install it",
        "Done: binutils is installed now.",
    ];

    #[test]
    fn replay_without_anything_in_common_is_another_conversation() {
        for replayed in [
            &[">secret of d", "I know: secret of d"][..],
            &[">secret of d"],
            &[">Write a poem", "Roses", ">Another one", "Violets"],
            // Its answers may be long.
            &[">Write", &"verse ".repeat(500), ">More", "no"],
        ] {
            assert!(is_other(STORED, replayed), "{replayed:?}");
        }
        let own = [">secret of c", "I know: secret of c"];
        assert!(is_other(&own, &[">secret of d", "I know: secret of d"]));
    }

    #[test]
    fn reworded_cut_and_compacted_replays_are_not() {
        let wrapped = ">Context: today is Monday. WHY does  the build fail?! (answer briefly)";
        let summary = format!(
            "The user has worked on a compiler. {}",
            "More. ".repeat(100)
        );
        let as_prompt = format!(">{summary}");
        let cases: &[&[&str]] = &[
            STORED,
            &STORED[..1],
            &STORED[2..],
            &[],
            // Text around a prompt, other case, white space and punctuation.
            &[wrapped, "So."],
            // Only one text is related.
            &[">Q", "A", ">install it", "x"],
            &[">Q", "The linker is..."],
            // Text that was cut at the end.
            &[">Why does the bui…", "?"],
            // Without prompts nothing is judged.
            &["Something else"],
            &[">?!", "Something else"],
            // A summary in place of the history.
            &[&as_prompt],
            &[&as_prompt, "Go on.", ">What is next?", "Nothing."],
            &[">What did we do so far?", &summary],
        ];
        for replayed in cases {
            assert!(!is_other(STORED, replayed), "{replayed:?}");
        }
        assert!(
            !is_other(&["only an answer"], &[">Q", "A"]),
            "no stored prompt"
        );
        let long = format!(">{}{}", "word ".repeat(20), "the rest of the prompt");
        let cut = format!(">{}[... 1 line]", "word ".repeat(15));
        assert!(!is_other(&[&long], &[&cut, "A"]), "cut in the middle");
    }

    #[test]
    fn both_ends_of_long_histories_are_compared() {
        let numbered = |what: &str| -> Vec<String> {
            (0..100).map(|n| format!(">{what} number {n}")).collect()
        };
        let (stored, other) = (numbered("prompt"), numbered("wish"));
        let stored: Vec<&str> = stored.iter().map(String::as_str).collect();
        let mut replayed: Vec<&str> = other.iter().map(String::as_str).collect();
        assert!(is_other(&stored, &replayed));
        for place in [0, 99] {
            let before = std::mem::replace(&mut replayed[place], ">prompt number 99");
            assert!(!is_other(&stored, &replayed), "{place}");
            replayed[place] = before;
        }
    }

    /// Another agent had the session before and after.
    #[test]
    fn replay_of_a_part_of_the_stored_history_is_not_another_conversation() {
        let numbered = |n: usize| [format!(">{n:03} asked"), format!("{n:03} told")];
        let stored: Vec<String> = (0..100).flat_map(numbered).collect();
        let stored: Vec<&str> = stored.iter().map(String::as_str).collect();
        for part in [0..2, 98..102, 120..198, 30..32] {
            assert!(!is_other(&stored, &stored[part.clone()]), "{part:?}");
        }
    }
}
