// What a tool call has in its input, output and metadata, whichever of them has it.

import type { DynamicToolUIPart, ToolUIPart } from 'ai';
import type { DiffBlock } from './Diff';

export type ToolPart = DynamicToolUIPart | ToolUIPart;

export interface ToolFacts {
  kind: string | null;
  diffs: DiffBlock[];
  texts: string[];
  images: { url: string; mediaType: string }[];
  rawOutput: unknown;
  note: string | null;
}

interface Block {
  type?: string;
  path?: string;
  oldText?: string | null;
  newText?: string;
  content?: { type?: string; text?: string; data?: string; mimeType?: string };
}

/** State of the call, which is under the name of the agent's protocol. */
function stateOf(part: ToolPart): Record<string, any> {
  const metadata = part.toolMetadata as Record<string, any> | undefined;
  return Object.values(metadata ?? {}).find((value) => value !== null && typeof value === 'object') ?? {};
}

function blocks(value: unknown): Block[] {
  return Array.isArray(value) ? value : [];
}

function isDiff(block: Block): boolean {
  return block.type === 'diff' && typeof block.path === 'string' && typeof block.newText === 'string';
}

export function diffsOf(content: unknown): DiffBlock[] {
  return blocks(content)
    .filter(isDiff)
    .map(({ path, oldText, newText }) => ({ path: path!, oldText, newText: newText! }));
}

export function toolFacts(part: ToolPart): ToolFacts {
  const state = stateOf(part);
  const output = (part.output ?? {}) as Record<string, any>;
  const content = output.content ?? state.content;
  const inner = blocks(content).map((block) => block.content);
  return {
    kind: state.kind ?? null,
    diffs: diffsOf(content),
    texts: inner.flatMap((block) => (block?.type === 'text' && block.text ? [block.text] : [])),
    images: inner.flatMap((block) =>
      block?.type === 'image' && block.data && block.mimeType
        ? [{ url: `data:${block.mimeType};base64,${block.data}`, mediaType: block.mimeType }]
        : [],
    ),
    rawOutput: typeof part.output === 'string' ? part.output : (output.rawOutput ?? output.terminalOutput),
    note: output.note ?? state.settled ?? null,
  };
}
