//! ACP updates to AI SDK chunks, and to the message that they build.

use std::collections::HashMap;
use std::io::{self, Write};

use agent_client_protocol::v1::schema::{
    ContentBlock, SessionUpdate, ToolCall, ToolCallStatus, ToolCallUpdate,
};
use serde::Serialize;
use serde_json::{Value, json};

/// The open text or reasoning block.
#[derive(Clone, Copy, PartialEq)]
enum Block {
    Text,
    Reasoning,
}

impl Block {
    fn name(self) -> &'static str {
        match self {
            Block::Text => "text",
            Block::Reasoning => "reasoning",
        }
    }
}

/// Part of the message.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Part {
    Text { text: String },
    Reasoning { text: String },
    DynamicTool { call: Value, result: Value },
    DataPlan { data: Value },
}

#[derive(Serialize)]
struct Delta<'a> {
    r#type: &'static str,
    id: &'a str,
    delta: &'a str,
}

pub struct Translator {
    output: Vec<u8>,
    message: Vec<Part>,
    /// Positions of the tool calls in the message.
    tools: HashMap<String, usize>,
    block: Option<Block>,
    id: String,
    blocks: u64,
}

impl Translator {
    pub fn start() -> Self {
        let mut this = Self {
            output: Vec::new(),
            message: Vec::new(),
            tools: HashMap::new(),
            block: None,
            id: String::new(),
            blocks: 0,
        };
        this.write(&json!({"type": "start"}));
        this
    }

    pub fn translate(&mut self, update: SessionUpdate) {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.text(Block::Text, chunk.content),
            SessionUpdate::AgentThoughtChunk(chunk) => self.text(Block::Reasoning, chunk.content),
            SessionUpdate::ToolCall(call) => self.tool_started(call),
            SessionUpdate::ToolCallUpdate(update) => self.tool_updated(update),
            SessionUpdate::Plan(plan) => {
                self.close_block();
                let data = json!(plan.entries);
                self.write(&json!({"type": "data-plan", "data": data}));
                self.message.push(Part::DataPlan { data });
            }
            _ => {}
        }
    }

    pub fn finish(&mut self) -> io::Result<()> {
        self.close_block();
        self.write(&json!({"type": "finish"}));
        self.flush()
    }

    pub fn flush(&mut self) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(&self.output)?;
        self.output.clear();
        stdout.flush()
    }

    /// Size of the message as JSON.
    pub fn message_bytes(&self) -> usize {
        serde_json::to_vec(&self.message).map_or(0, |json| json.len())
    }

    fn write(&mut self, chunk: &impl Serialize) {
        // Values of these types are serialized to memory, which cannot fail.
        serde_json::to_writer(&mut self.output, chunk).unwrap();
        self.output.push(b'\n');
    }

    fn close_block(&mut self) {
        if let Some(block) = self.block.take() {
            self.write(&json!({"type": format!("{}-end", block.name()), "id": self.id}));
        }
    }

    fn text(&mut self, block: Block, content: ContentBlock) {
        let ContentBlock::Text(content) = content else {
            return;
        };
        if self.block != Some(block) {
            self.close_block();
            self.block = Some(block);
            self.blocks += 1;
            self.id = self.blocks.to_string();
            self.write(&json!({"type": format!("{}-start", block.name()), "id": self.id}));
            let text = String::new();
            self.message.push(match block {
                Block::Text => Part::Text { text },
                Block::Reasoning => Part::Reasoning { text },
            });
        }
        let id = std::mem::take(&mut self.id);
        self.write(&Delta {
            r#type: match block {
                Block::Text => "text-delta",
                Block::Reasoning => "reasoning-delta",
            },
            id: &id,
            delta: &content.text,
        });
        self.id = id;
        if let Some(Part::Text { text } | Part::Reasoning { text }) = self.message.last_mut() {
            text.push_str(&content.text);
        }
    }

    fn tool_started(&mut self, call: ToolCall) {
        self.close_block();
        let mut chunk = json!({"type": "tool-input-start", "toolCallId": call.tool_call_id,
            "toolName": call.kind, "title": call.title, "dynamic": true});
        self.write(&chunk);
        chunk["type"] = "tool-input-available".into();
        chunk["input"] = call.raw_input.unwrap_or_else(|| json!({}));
        self.write(&chunk);
        self.tools
            .insert(call.tool_call_id.to_string(), self.message.len());
        self.message.push(Part::DynamicTool {
            call: chunk,
            result: Value::Null,
        });
    }

    fn tool_updated(&mut self, update: ToolCallUpdate) {
        let id = update.tool_call_id.to_string();
        let fields = update.fields;
        let output = |fields: Option<Value>, content| fields.unwrap_or_else(|| json!(content));
        let chunk = match fields.status {
            Some(ToolCallStatus::Completed) => {
                let output = output(fields.raw_output, fields.content);
                json!({"type": "tool-output-available", "toolCallId": id, "output": output, "dynamic": true})
            }
            Some(ToolCallStatus::Failed) => {
                let text = output(fields.raw_output, fields.content).to_string();
                json!({"type": "tool-output-error", "toolCallId": id, "errorText": text, "dynamic": true})
            }
            _ => return,
        };
        self.close_block();
        self.write(&chunk);
        let part = self.tools.get(&id).map(|&at| &mut self.message[at]);
        if let Some(Part::DynamicTool { result, .. }) = part {
            *result = chunk;
        }
    }
}
