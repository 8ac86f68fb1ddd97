// The parts of acpipe's neutral protocol that the page uses. docs/reference/protocol.md describes them.

export interface SessionInfo {
  sessionId: string | null;
  agent: string | null;
  agentName: string | null;
  state: 'live' | 'opening' | 'resting' | 'foreign';
  turnId: string | null;
  cwd: string;
  title: string | null;
  mode: string | null;
  model: string | null;
  updatedAt: string | null;
  messages: number | null;
  activity?: 'idle' | 'running' | 'waiting' | null;
  clients?: number | null;
}

export interface AgentSummary {
  agent: string;
  isDefault: boolean;
  installed: boolean;
  state: string;
  command: string;
  args: string[];
  agentInfo: { name: string; title?: string | null; version?: string | null } | null;
  description?: string | null;
}

export interface SessionClient {
  clientId: string;
  name: string | null;
  version?: string | null;
  role: 'controller' | 'observer';
  isSelf: boolean;
}

export interface Choice {
  id?: string;
  modelId?: string;
  name?: string;
  description?: string | null;
}

export interface OptionValue {
  value: string;
  name?: string;
  description?: string | null;
}

export interface OptionGroup {
  name?: string;
  options: OptionValue[];
}

export interface ConfigOption {
  id: string;
  name: string;
  description?: string | null;
  category?: string | null;
  type: string;
  currentValue?: string | boolean | null;
  options?: (OptionValue | OptionGroup)[];
}

/** State of a session, by the agent's own names. */
export interface SessionState {
  title?: string | null;
  modes?: { currentModeId?: string; availableModes?: Choice[] };
  models?: { currentModelId?: string; availableModels?: Choice[] };
  configOptions?: ConfigOption[];
}

export interface Activity {
  toolName: string;
  description: string;
}

export interface Waiting {
  party: string;
  note: string;
}

export interface OfferedOption {
  optionId: string;
  name: string;
  kind: 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always' | 'unknown';
}

export interface AskedTool {
  toolCallId: string;
  toolName: string;
  title: string | null;
  kind: string | null;
  input: unknown;
  content: unknown;
  locations: unknown;
}

export interface PermissionRequest {
  sessionId: string;
  questionId: string;
  toolCall: AskedTool;
  options: OfferedOption[];
  command: string | null;
  paths: string[];
  rule: string;
}

export interface Question {
  sessionId: string | null;
  questionId: string;
  kind: 'form' | 'url' | 'plan';
  message: string;
  schema: FormSchema | null;
  url: string | null;
  options: OfferedOption[];
  toolCall: AskedTool | null;
}

export interface FormSchema {
  properties?: Record<string, FormField>;
  required?: string[];
}

export interface FormChoice {
  const: string;
  title?: string;
  description?: string;
}

export interface FormField {
  type?: string;
  title?: string;
  description?: string;
  default?: unknown;
  enum?: string[];
  enumNames?: string[];
  oneOf?: FormChoice[];
  anyOf?: FormChoice[];
  items?: { enum?: string[]; oneOf?: FormChoice[]; anyOf?: FormChoice[] };
  format?: string;
  writeOnly?: boolean;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
}
