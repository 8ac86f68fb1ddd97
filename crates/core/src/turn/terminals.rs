//! Terminals of a turn: those that the agent runs itself and those that acpipe runs for it.

use super::{TurnEvent, TurnView};
use crate::output_budget::FRAME;
use acpipe_json::{Members, value};
use acpipe_model::event::TerminalUpdate;
use acpipe_model::host::TerminalView;
use acpipe_model::tail::{Tail, end};
use serde_json::{Map, Value};

#[derive(Debug, Default)]
pub struct Terminals(Vec<Terminal>);

/// A terminal: the end of its output, and further reported details.
#[derive(Debug)]
pub struct Terminal {
    /// Id towards clients: that of the agent, unless an earlier terminal of the turn has it.
    pub(crate) id: String,
    /// The agent's id, or that of the terminal that acpipe runs.
    named: String,
    pub(crate) tool: String,
    pub(crate) output: Tail,
    pub(crate) details: Map<String, Value>,
}

/// Maximum size of kept output per terminal, in bytes.
const KEPT_OUTPUT: usize = 1024 * 1024;

/// Maximum size of terminal output in a call's result, in bytes. The end of the output is kept.
const RESULT_LIMIT: usize = 64 * 1024;

impl Terminals {
    pub fn update(&mut self, update: &TerminalUpdate<'_>, view: &mut impl TurnView) {
        let of_call = |t: &Terminal| t.named == update.id && t.tool == update.tool;
        let known = self.0.iter().rposition(of_call);
        let at = known.unwrap_or_else(|| self.add(&update.id, update.tool.clone().into_owned()));
        let terminal = &mut self.0[at];
        let (mut reported, mut changed) = (FRAME, false);
        if let Some(text) = update.output {
            let mut output = String::new();
            text.decode_into(&mut output);
            terminal.output.push(&output);
            reported += output.len();
            changed = true;
        }
        if let Some(details) = update.details {
            reported += details.get().len();
            for (name, said) in Members::of(details).without(&["terminal_id"]).iter() {
                changed |= terminal.set(name, value(said));
            }
        }
        view.event(&TurnEvent::Terminal {
            at,
            terminal,
            reported,
            changed,
            ended: false,
        });
    }

    /// Copies the state of a terminal that acpipe runs.
    pub fn served(
        &mut self,
        id: &str,
        tool: String,
        state: &TerminalView<'_>,
        view: &mut impl TurnView,
    ) {
        let known = self.0.iter().position(|t| t.named == id);
        let at = known.unwrap_or_else(|| self.add(id, tool));
        let terminal = &mut self.0[at];
        let before = terminal.output.total();
        terminal.output.follow(state.text, state.total);
        let more = terminal.output.total().saturating_sub(before);
        let mut changed = more > 0;
        if state.total > state.text.len() as u64 {
            terminal.set("truncated", true.into());
        }
        if let Some(exit) = state.exit {
            changed |= terminal.set("exit_code", exit.code.into());
            changed |= terminal.set("signal", exit.signal.clone().into());
        }
        view.event(&TurnEvent::Terminal {
            at,
            terminal,
            reported: usize::try_from(more).unwrap_or(usize::MAX),
            changed,
            ended: state.exit.is_some(),
        });
    }

    /// Adds a terminal. An agent may use the id of an earlier terminal for that of another call.
    fn add(&mut self, named: &str, tool: String) -> usize {
        let uses = self.0.iter().filter(|t| t.named == named).count();
        let first = (uses == 0).then(|| named.to_owned());
        let numbered = (uses.max(1) + 1..).map(|number| format!("{named}#{number}"));
        let mut ids = first.into_iter().chain(numbered);
        let is_free = |id: &String| self.0.iter().all(|t| t.id != *id);
        self.0.push(Terminal {
            id: ids.find(is_free).unwrap_or_default(),
            named: named.to_owned(),
            tool,
            output: Tail::new(KEPT_OUTPUT),
            details: Map::new(),
        });
        self.0.len() - 1
    }

    /// Returns all terminals in the order of their first appearance.
    pub fn all(&self) -> &[Terminal] {
        &self.0
    }

    /// Returns the end of the output of a call's terminals, joined in order; `None` for a call without
    /// terminals.
    pub fn output_of(&self, tool: &str) -> Option<String> {
        let own = || self.0.iter().filter(|t| t.tool == tool);
        own().next()?;
        let ends: Vec<&str> = own().map(|t| t.output.last(RESULT_LIMIT).0).collect();
        let all = ends.join("\n");
        let kept = end(&all, RESULT_LIMIT);
        let whole: u64 = own().map(|t| t.output.total()).sum();
        let dots = if (kept.len() as u64) < whole {
            "…"
        } else {
            ""
        };
        Some(format!("{dots}{kept}"))
    }

    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|t| t.tool.as_str())
    }
}

impl Terminal {
    /// Sets a detail. Returns `true` if it changed.
    fn set(&mut self, name: &str, detail: Value) -> bool {
        let changed = self.details.get(name) != Some(&detail);
        self.details.insert(name.to_owned(), detail);
        changed
    }
}
