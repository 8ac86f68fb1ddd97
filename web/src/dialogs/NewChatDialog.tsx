import { useEffect, useState, type FormEvent } from 'react';
import type { AgentSummary } from '../rpc/types';
import { createSession, listAgents } from '../state/client';
import { model } from '../state/model';
import { useStore } from '../state/store';
import { Modal } from './Modal';

interface Props {
  close(): void;
  created(sessionId: string): void;
}

function agentLabel({ agent, agentInfo, command, args }: AgentSummary): string {
  const title = agentInfo?.title ?? agentInfo?.name;
  if (title && title !== agent) return `${agent} · ${title}`;
  return agent === 'default' ? `default · ${[command, ...args].join(' ')}` : agent;
}

export function NewChatDialog({ close, created }: Props) {
  const sessions = useStore(model, ({ sessions }) => sessions);
  const [agents, setAgents] = useState<AgentSummary[] | null>(null);
  const [agent, setAgent] = useState('');
  const [cwd, setCwd] = useState(() => sessions?.[0]?.cwd ?? '');
  const [isStarting, setIsStarting] = useState(false);
  const [error, setError] = useState<string | null>(null);

  const fail = (failure: unknown) => setError(failure instanceof Error ? failure.message : String(failure));
  // The dialog can be opened before the page is connected.
  const isConnected = useStore(model, ({ link }) => link === 'open');
  useEffect(() => {
    if (!isConnected) return;
    listAgents()
      .then((listed) => {
        setAgents(listed);
        setAgent((chosen) => chosen || (listed.find(({ isDefault }) => isDefault)?.agent ?? listed[0]?.agent ?? ''));
      })
      .catch(fail);
  }, [isConnected]);

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setIsStarting(true);
    setError(null);
    try {
      created(await createSession(agent, cwd.trim()));
    } catch (failure) {
      fail(failure);
      setIsStarting(false);
    }
  };
  const directories = [...new Set(sessions?.map((session) => session.cwd))];
  return (
    <Modal title="New chat" close={close}>
      <form onSubmit={(event) => void submit(event)}>
        <label className="field">
          <span>Agent</span>
          <select value={agent} onChange={(event) => setAgent(event.target.value)} disabled={agents === null}>
            {agents?.map((summary) => (
              <option key={summary.agent} value={summary.agent}>
                {agentLabel(summary)}
              </option>
            ))}
          </select>
        </label>
        <label className="field">
          <span>Directory</span>
          <small id="cwd-help">Absolute path on the machine where acpipe runs. Empty: the directory of the agent.</small>
          <input
            list="directories"
            aria-describedby="cwd-help"
            value={cwd}
            spellCheck={false}
            autoCapitalize="off"
            autoComplete="off"
            onChange={(event) => setCwd(event.target.value)}
          />
        </label>
        <datalist id="directories">
          {directories.map((path) => (
            <option key={path} value={path} />
          ))}
        </datalist>
        {error !== null && (
          <p className="error" role="alert">
            {error}
          </p>
        )}
        <div className="options">
          <button type="submit" className="primary" disabled={isStarting || agent === ''}>
            {isStarting ? 'Starting the agent…' : 'Start'}
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
    </Modal>
  );
}
