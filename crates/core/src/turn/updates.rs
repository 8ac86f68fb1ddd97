//! Handling of updates, in the order in which the agent reports them.

use super::{Turn, TurnEvent, TurnView};
use acpipe_json::{JsonStr, value};
use acpipe_model::answer_file::ReceivedFile;
use acpipe_model::event::{MessagePiece, MessageRole, Original, Update};
use acpipe_protocol::ui_chunk::UiChunk;
use serde_json::value::RawValue;

impl Turn {
    /// Applies an update of the main turn.
    pub fn update(
        &mut self,
        update: &Update<'_>,
        original: Original<'_>,
        view: &mut impl TurnView,
    ) {
        view.event(&TurnEvent::Reported {
            subagent: None,
            update,
            original,
        });
        self.apply(update, original, view);
    }

    /// Applies an update that comes from a subagent or describes it.
    pub fn subagent(
        &mut self,
        id: &str,
        update: &Update<'_>,
        original: Original<'_>,
        view: &mut impl TurnView,
    ) {
        view.event(&TurnEvent::Reported {
            subagent: Some(id),
            update,
            original,
        });
        self.apply_of_subagent(id, update, original, view);
    }

    fn apply(&mut self, update: &Update<'_>, original: Original<'_>, view: &mut impl TurnView) {
        match update {
            Update::Message(piece) if piece.subagent.is_none() || self.is_subagent => {
                self.begun = true;
                self.attempt.shown |= piece.subagent.is_some();
                self.piece(piece, original, view);
            }
            _ => self.apply_other(update, original, view),
        }
    }

    /// Applies an update that is not a piece of the turn's own message.
    fn apply_other(
        &mut self,
        update: &Update<'_>,
        original: Original<'_>,
        view: &mut impl TurnView,
    ) {
        let shows = !matches!(
            update,
            Update::Session(_)
                | Update::Notice
                | Update::Context { .. }
                | Update::Step
                | Update::TextEnd { provider: None }
                | Update::TransientUpdate
                | Update::FromSubagent { .. }
                | Update::MessageMetadata(_)
                | Update::Chunk { .. }
        );
        self.begun |= shows;
        self.attempt.shown |= match update {
            Update::Other => false,
            Update::Notice | Update::FromSubagent { .. } => true,
            _ => shows,
        };
        self.in_step |= shows;
        match update {
            Update::Message(piece) => {
                if let Some(id) = &piece.subagent {
                    self.apply_of_subagent(id, update, original, view);
                }
            }
            Update::Tool(tool) => {
                if tool.status.is_some() && !self.terminals.all().is_empty() {
                    view.event(&TurnEvent::TerminalsOf {
                        call: &tool.id,
                        ended: tool.ends(),
                        terminals: self.terminals.all(),
                    });
                    if tool.ends()
                        && let Some(output) = self.terminals.output_of(&tool.id)
                    {
                        self.tools.set_terminal_output(&tool.id, output, view);
                    }
                }
                self.tools.update(tool, view);
            }
            Update::Terminal(terminal) => self.terminals.update(terminal, view),
            Update::Plan { id, data } => view.event(&TurnEvent::Plan { id, data }),
            Update::Context { cost, figures } => {
                let figures = figures.clone().unwrap_or_else(|| original.fields());
                if let Some(figures) = self.figures.report(&figures, *cost) {
                    view.event(&TurnEvent::Context { figures });
                }
            }
            // The session reports its state itself.
            Update::Session(_) => {}
            Update::Notice => view.event(&TurnEvent::Notice(original)),
            Update::Compaction { id } => view.event(&TurnEvent::Compaction { id, original }),
            Update::Subagent { id } => self.apply_of_subagent(id, update, original, view),
            Update::SubagentMessage { id } => {
                view.event(&TurnEvent::SubagentMessage { id, original });
            }
            Update::FromSubagent { id, update } => {
                self.apply_of_subagent(id, update, original, view);
            }
            Update::Step => self.step(view),
            Update::TextEnd { provider } => {
                self.messages.end_text();
                let provider = provider.as_ref().map(|(provider, said)| (*provider, said));
                view.event(&TurnEvent::TextEnded { provider });
            }
            Update::Refused { tool, reason } => {
                self.end_text(view);
                self.tools.refused(tool, reason, view);
            }
            Update::StructuredOutput(answer) => self.structured_output(answer, view),
            Update::TransientUpdate => view.event(&TurnEvent::TransientUpdate(original)),
            Update::Chunk { json, chunk } => self.pass(json, chunk, original, view),
            Update::MessageMetadata(metadata) => view.event(&TurnEvent::MessageMetadata(metadata)),
            Update::Other => {
                self.end_text(view);
                view.event(&TurnEvent::Other(original));
            }
        }
    }

    fn apply_of_subagent(
        &mut self,
        id: &str,
        update: &Update<'_>,
        original: Original<'_>,
        view: &mut impl TurnView,
    ) {
        match update {
            // A notice is not part of any message.
            Update::Notice => view.event(&TurnEvent::Notice(original)),
            Update::TransientUpdate => view.event(&TurnEvent::TransientUpdate(original)),
            // The session and the subagent both report it.
            Update::SubagentMessage { .. } => self.apply(update, original, view),
            // The update describes another subagent, started by this one.
            Update::Subagent { id: own } if own != id => {
                self.apply_of_subagent(own, update, original, view);
            }
            Update::FromSubagent { id, update } => {
                self.apply_of_subagent(id, update, original, view);
            }
            _ => {
                self.begun = true;
                self.attempt.shown = true;
                self.in_step = true;
                self.subagents
                    .update(id, &self.message_id, update, original, view);
            }
        }
    }

    /// Passes on a chunk, or as data if readers would reject it.
    fn pass(
        &mut self,
        json: &RawValue,
        chunk: &UiChunk<'_>,
        original: Original<'_>,
        view: &mut impl TurnView,
    ) {
        if !self.passed.follow(chunk) {
            view.event(&TurnEvent::Other(original));
            return;
        }
        let kind = chunk.type_name();
        let text = chunk.delta.and_then(JsonStr::new);
        match (kind.as_ref(), text) {
            ("text-delta" | "reasoning-delta", Some(text)) => {
                self.begun = true;
                self.messages.passed(text, kind == "text-delta");
            }
            ("file" | "source-url" | "source-document", _) => {
                self.begun = true;
                self.attempt.shown = true;
                if let Some(file) = ReceivedFile::of_chunk(&value(json)) {
                    self.messages.passed_file(file.about);
                }
            }
            ("message-metadata" | "start-step" | "reset-step", _) => {}
            _ if chunk.is_transient() || kind.ends_with("-start") || kind.ends_with("-end") => {}
            _ => {
                self.begun = true;
                self.attempt.shown = true;
            }
        }
        view.event(&TurnEvent::Chunk { json, chunk });
    }

    fn piece(
        &mut self,
        piece: &MessagePiece<'_>,
        original: Original<'_>,
        view: &mut impl TurnView,
    ) {
        self.tools.clear_last_failure();
        let text = piece.content.text();
        let Some(text) = text.filter(|_| piece.role != MessageRole::User) else {
            self.in_step = true;
            self.messages.content(piece);
            view.event(&TurnEvent::Content { piece, original });
            return;
        };
        self.in_step |= !(text.is_empty() && piece.about.is_empty());
        let may_have_halves = text.may_have_halves();
        if let Some(continues) = self.messages.text(piece, text, may_have_halves) {
            view.event(&TurnEvent::Text {
                piece,
                text,
                continues,
                may_have_halves,
            });
        }
    }

    /// Ends the current text, because something else follows.
    pub fn end_text(&mut self, view: &mut impl TurnView) {
        self.messages.end_text();
        view.event(&TurnEvent::TextEnded { provider: None });
    }

    /// Begins another step, unless the current one is empty.
    fn step(&mut self, view: &mut impl TurnView) {
        self.end_text(view);
        if self.in_step {
            self.tools.end_step(view);
            self.in_step = false;
        }
    }

    pub(super) fn structured_output(&mut self, answer: &RawValue, view: &mut impl TurnView) {
        self.end_text(view);
        view.event(&TurnEvent::StructuredOutput(answer));
        self.structured_output = Some(answer.to_owned());
    }
}
