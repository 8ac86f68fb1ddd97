// A chat. Open it in two tabs: both show the same, and a request that one answers goes in the other.
import { useAcpipeChat } from 'acpipe/react';
import { useState } from 'react';
import { createRoot } from 'react-dom/client';

// The chat's id is in the address, so that a reloaded page and other tabs have the same chat.
if (location.hash === '') location.replace(`#${crypto.randomUUID()}`);

function App() {
  const chat = useAcpipeChat({ id: location.hash.slice(1), api: '/api/chat', major: 7 });
  const [text, setText] = useState('');
  const send = (event) => {
    event.preventDefault();
    if (text.trim() === '') return;
    void chat.sendMessage({ text });
    setText('');
  };
  return (
    <main>
      {!chat.isLoaded && <p>Loading…</p>}
      {chat.messages.map((message) => (
        <article key={message.id}>
          <b>{message.role}</b>
          {message.parts.map((part, index) => <Part key={index} part={part} />)}
          <Ending message={message} />
        </article>
      ))}
      {chat.requests.map((request) => <Request key={request.id} request={request} chat={chat} />)}
      {chat.error && <p role="alert">{chat.error.message}</p>}
      <form onSubmit={send}>
        <input value={text} onChange={(event) => setText(event.target.value)} placeholder="edit, or: count slow" autoFocus />
        <button>Send</button>
        <button type="button" disabled={!chat.isRunning} onClick={chat.stop}>Stop</button>
        <button type="button" onClick={chat.deleteChat}>Delete</button>
      </form>
    </main>
  );
}

function Part({ part }) {
  if (part.type === 'text') return <p style={{ whiteSpace: 'pre-wrap' }}>{part.text}</p>;
  if (part.type === 'dynamic-tool') return <p>{part.title ?? part.toolName}: {part.state}</p>;
  // Who or what decided: this user, another client, a rule, a timeout.
  if (part.type === 'data-permission' && part.data.approved !== undefined) return <p><i>{part.data.reason}</i></p>;
  return null;
}

/** An answer that did not end by itself. */
function Ending({ message }) {
  const { stopReason, error } = Object.values(message.metadata ?? {}).find((details) => details?.stopReason ?? details?.error) ?? {};
  if (error) return <p role="alert">{error.message}</p>;
  return stopReason && stopReason !== 'end_turn' ? <p><i>{stopReason}</i></p> : null;
}

function Request({ request: { id, kind, data }, chat }) {
  if (kind === 'permission') {
    const choose = ({ optionId, kind }) => chat.approve(id, { approved: kind.startsWith('allow'), optionId });
    return (
      <p>
        {data.toolCall?.title}{' '}
        {data.options.map((option) => <button key={option.optionId} onClick={() => choose(option)}>{option.name}</button>)}
      </p>
    );
  }
  return (
    <p>
      {data.message} <button onClick={() => chat.answer(id, { action: 'decline' })}>Decline</button>
    </p>
  );
}

createRoot(document.getElementById('root')).render(<App />);
