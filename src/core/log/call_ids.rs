//! Ids of the tool calls in a log.

use super::Log;
use crate::proto::json::string_len;
use memchr::memmem::Finder;

/// Size of the end of a log that is searched, in bytes. The search happens once for an opened session.
const SEARCHED: u64 = 8 << 20;

impl Log {
    /// Passes the ids of the tool calls in the newest part of the log to `note`, each at least once. A disk
    /// that does not respond is not waited for.
    pub fn each_call_id(&self, mut note: impl FnMut(&str)) {
        let end = self.file.end();
        let begin = self.file.begin().max(end.saturating_sub(SEARCHED));
        if begin >= end || self.file.is_slow() {
            return;
        }
        let finder = Finder::new(br#""toolCallId":"#);
        // Ids that cannot be read are not known; the next call of such an id has the same one.
        let _ = self.lines(begin..end, |line, _| {
            for at in finder.find_iter(line) {
                let json = &line[at + finder.needle().len()..];
                let id = string_len(json).and_then(|len| json.get(..len));
                let id = id.and_then(|id| serde_json::from_slice::<String>(id).ok());
                if let Some(id) = id {
                    note(&id);
                }
            }
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::store::{MemoryStore, Store as _};

    fn ids(lines: &str) -> Vec<String> {
        let mut file = MemoryStore.open("a").unwrap();
        file.append(lines.as_bytes()).unwrap();
        let mut ids = Vec::new();
        let log = Log::open(file).unwrap();
        log.each_call_id(|id| ids.push(id.to_owned()));
        ids
    }

    #[test]
    fn ids_in_the_newest_part_of_a_log_are_found() {
        let line = r#"{"record":"update","turnId":"t","update":{"toolCallId":"a\"b","text":"\"toolCallId\":\"no\""}}"#;
        let unreadable = r#"{"toolCallId":7,"toolCallId":"torn"#;
        assert_eq!(ids(""), Vec::<String>::new());
        assert_eq!(
            ids(&format!("{line}\n{unreadable}\n{line}\n")),
            ["a\"b", "a\"b"]
        );
        let long = format!("{}\n", "x".repeat(usize::try_from(SEARCHED).unwrap()));
        assert_eq!(ids(&format!("{line}\n{long}")), Vec::<String>::new());
    }
}
