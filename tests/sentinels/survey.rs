//! Survey of every field of every type in every situation, and of the places where each was found.

use crate::drafts;
use crate::feed::play;
use crate::places::{Index, SessionSetup};
use crate::plant::{Instance, OTHER_TYPE, Planted, PlantedValue, Variation, plant};
use crate::scenes::{Situation, of_answer, of_question, of_update};
use crate::schema::{Schema, Tree, foreign};
use agent_client_protocol_schema::v1;
use schemars::schema_for;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::thread;

/// When a message was sent, and the status of its tool.
pub type When = (&'static str, &'static str);

/// Outside of turns there is no message, and most updates pass unchanged.
pub const BETWEEN_TURNS: &str = "between turns";

/// Places where one field was found in one situation.
#[derive(Debug, Clone, Default)]
pub struct Found {
    pub chunks: BTreeSet<SessionSetup>,
    pub message: BTreeSet<SessionSetup>,
    pub lost_in_chunks: bool,
    pub lost_in_message: bool,
}

/// A field and its findings; the first situation is the usual one.
#[derive(Debug)]
pub struct Field {
    pub path: String,
    pub found: Vec<(When, Found)>,
    /// Findings of closed lists, whose words are in separate instances.
    words: Vec<(When, Vec<(Value, Finding)>)>,
}

/// The fields of one kind of update.
#[derive(Debug)]
pub struct Group {
    pub kind: String,
    pub fields: Vec<Field>,
}

#[derive(Debug, Clone)]
struct Finding {
    chunks: BTreeSet<SessionSetup>,
    message: BTreeSet<SessionSetup>,
    in_turn: bool,
    /// Whether `data-acp` counts as a place.
    passes: bool,
    /// Whether its update passes unchanged because of another field in it.
    beside: bool,
}

/// Surveys everything, each kind on a separate thread.
pub fn survey() -> Vec<Group> {
    let stable = json!(schema_for!(v1::SessionNotification));
    let drafts = drafts::updates(&stable);
    let terminals = drafts::terminals(&stable);
    let mut kinds: Vec<(String, String, Vec<Tree>, Situations)> = Vec::new();
    for root in [&stable, &drafts, &terminals] {
        for (kind, variant) in Schema(root.clone()).kinds("update") {
            let mut one = root.clone();
            one["properties"]["update"] = variant;
            let name = if root == &terminals {
                "terminals of tools"
            } else {
                &kind
            };
            let trees = Schema(one).trees("params");
            kinds.push((name.to_owned(), kind, trees, of_update));
        }
    }
    let unknown = Tree::Object {
        path: "params".to_owned(),
        fields: vec![(
            "update".to_owned(),
            foreign("sessionUpdate", "params.update"),
        )],
    };
    kinds.push((
        "unknown kinds".to_owned(),
        "update".to_owned(),
        vec![unknown],
        of_update,
    ));
    let question = Schema(json!(schema_for!(v1::RequestPermissionRequest)));
    let answer = Schema(drafts::answer(&json!(schema_for!(v1::PromptResponse))));
    for (name, schema, of) in [
        ("request_permission", question, of_question as Situations),
        ("prompt_answer", answer, of_answer),
    ] {
        kinds.push((name.to_owned(), String::new(), schema.trees(name), of));
    }
    thread::scope(|scope| {
        let groups: Vec<_> = kinds
            .iter()
            .map(|(name, kind, trees, of)| scope.spawn(|| group(name, kind, trees, *of)))
            .collect();
        groups
            .into_iter()
            .map(|g| g.join().expect("a group"))
            .collect()
    })
}

/// Returns the situations of an instance: all, or only the usual one.
type Situations = fn(Instance, bool) -> Vec<Situation>;

/// Surveys one kind; in paths `prefix` stands for the update.
fn group(name: &str, prefix: &str, trees: &[Tree], situations: Situations) -> Group {
    let mut group = Group {
        kind: name.to_owned(),
        fields: Vec::new(),
    };
    for way in [Variation::Plain, Variation::UnknownFields] {
        for instance in trees.iter().filter_map(|tree| plant(tree, way)) {
            for situation in situations(named(instance, prefix), true) {
                group.look(&situation);
            }
        }
    }
    for tree in trees {
        for odd in (0..).map_while(|n| plant(tree, Variation::OtherType(n))) {
            let odd = named(odd, prefix);
            let is_odd = |p: &Planted| p.path.ends_with(OTHER_TYPE);
            let Some(path) = odd
                .planted
                .iter()
                .find(|p| is_odd(p))
                .map(|p| p.path.clone())
            else {
                continue;
            };
            let whole = path.strip_suffix(OTHER_TYPE) == Some(prefix);
            if whole || group.fields.iter().any(|f| f.path == path) {
                continue;
            }
            for mut situation in situations(odd, false) {
                situation.instance.planted.retain(is_odd);
                group.look(&situation);
            }
        }
    }
    for field in &mut group.fields {
        field.settle_words();
        // A field that was only found in updates that passed unchanged counts as lost.
        for (_, found) in &mut field.found {
            found.lost_in_chunks |= found.chunks.is_empty();
        }
    }
    group
}

fn named(mut instance: Instance, prefix: &str) -> Instance {
    for Planted { path, .. } in &mut instance.planted {
        if let Some(rest) = path.strip_prefix("params.update") {
            *path = format!("{prefix}{}", rest.replace("_meta[terminal_", "_meta[_"));
        } else if let Some(rest) = path.strip_prefix("params") {
            *path = format!("params({prefix}){rest}");
        }
        for part in ["info", "output", "exit"] {
            *path = path.replace(&format!("_meta[_{part}]"), "_meta");
        }
    }
    instance
}

impl Group {
    fn look(&mut self, situation: &Situation) {
        let got = play(&situation.scene);
        let chunks = Index::of_chunks(&got.chunks);
        let message = Index::of_message(&got.message);
        let planted = &situation.instance.planted;
        let in_turn = situation.when != BETWEEN_TURNS;
        // `data-acp` is the place of everything that the schema does not know, and of updates outside of
        // turns.
        let any_foreign = planted.iter().any(|p| p.foreign);
        for Planted {
            path,
            what,
            foreign,
        } in planted
        {
            let sight = Finding {
                chunks: chunks.places(what),
                message: message.places(what),
                in_turn,
                // The fields beside an unknown update pass with it.
                passes: *foreign || path.starts_with("params(update)"),
                beside: any_foreign && !foreign,
            };
            let field = self.field(path);
            let when = (situation.when, situation.status);
            match what {
                // Situations differ by status, but the words of the status are compared with each other.
                PlantedValue::Choice(word) if path.ends_with(".status") && !when.1.is_empty() => {
                    entry(&mut field.words, (when.0, "")).push((word.clone(), sight));
                }
                PlantedValue::Choice(word) => {
                    entry(&mut field.words, when).push((word.clone(), sight));
                }
                PlantedValue::Text(_) | PlantedValue::Number(_) => field.note(when, sight),
            }
        }
    }

    /// Returns the field with this path; a new one is inserted after its closest relatives.
    fn field(&mut self, path: &str) -> &mut Field {
        let known = self.fields.iter().position(|f| f.path == path);
        let at = known.unwrap_or_else(|| {
            let cuts = path.char_indices().rev();
            let mut parents = cuts
                .filter(|(_, c)| " .[".contains(*c))
                .map(|(at, _)| &path[..at]);
            let last = |parent: &str| self.fields.iter().rposition(|f| f.path.starts_with(parent));
            let at = parents
                .find_map(last)
                .map_or(self.fields.len(), |at| at + 1);
            let field = Field {
                path: path.to_owned(),
                found: Vec::new(),
                words: Vec::new(),
            };
            self.fields.insert(at, field);
            at
        });
        &mut self.fields[at]
    }
}

impl Field {
    /// Creates a field that was looked for in one situation.
    pub fn seen(path: String, when: &'static str, found: Found) -> Self {
        Self {
            path,
            found: vec![((when, ""), found)],
            words: Vec::new(),
        }
    }

    fn note(&mut self, when: When, mut sight: Finding) {
        let found = entry(&mut self.found, when);
        if !sight.passes {
            let passed_on = sight.beside && sight.chunks.iter().all(|(kind, _)| kind == "data-acp");
            if passed_on && !sight.chunks.is_empty() {
                return;
            }
            sight.chunks.retain(|(kind, _)| kind != "data-acp");
            sight.message.retain(|(kind, _)| kind != "data-acp");
        }
        found.lost_in_chunks |= sight.chunks.is_empty();
        found.lost_in_message |= sight.in_turn && sight.message.is_empty();
        found.chunks.extend(sight.chunks);
        found.message.extend(sight.message);
    }

    /// A closed list counts as found at the places where each of its words was found.
    fn settle_words(&mut self) {
        for (when, sights) in std::mem::take(&mut self.words) {
            let words: BTreeSet<String> = sights.iter().map(|(word, _)| word.to_string()).collect();
            assert!(words.len() > 1, "{}: only {words:?} {when:?}", self.path);
            let sight = Finding {
                chunks: common(sights.iter().map(|(_, s)| &s.chunks)),
                message: common(sights.iter().map(|(_, s)| &s.message)),
                ..sights[0].1
            };
            self.note(when, sight);
        }
    }
}

fn entry<K: PartialEq, V: Default>(all: &mut Vec<(K, V)>, key: K) -> &mut V {
    let at = all.iter().position(|(k, _)| *k == key).unwrap_or_else(|| {
        all.push((key, V::default()));
        all.len() - 1
    });
    &mut all[at].1
}

/// Returns the places whose paths are in every set.
fn common<'a>(sets: impl Iterator<Item = &'a BTreeSet<SessionSetup>>) -> BTreeSet<SessionSetup> {
    let mut places: BTreeMap<&String, (usize, BTreeSet<SessionSetup>)> = BTreeMap::new();
    let mut count = 0;
    for set in sets {
        count += 1;
        let paths: BTreeSet<&String> = set.iter().map(|(_, path)| path).collect();
        for path in paths {
            let (seen, all) = places.entry(path).or_default();
            *seen += 1;
            all.extend(set.iter().filter(|(_, p)| p == path).cloned());
        }
    }
    let everywhere = places.into_values().filter(|(seen, _)| *seen == count);
    everywhere.flat_map(|(_, all)| all).collect()
}
