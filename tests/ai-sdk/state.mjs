// State of a chat, as a UI framework stores it.

/** Time after which a wait counts as hung. */
const LIMIT = 30_000;

export class State {
  #status = 'ready';
  #messages = [];
  error;
  changed = () => {};
  get status() { return this.#status; }
  set status(status) { this.#status = status; this.changed(); }
  get messages() { return this.#messages; }
  set messages(messages) { this.#messages = messages; this.changed(); }
  pushMessage = message => { this.messages = [...this.#messages, message]; };
  popMessage = () => { this.messages = this.#messages.slice(0, -1); };
  replaceMessage = (at, message) => { this.messages = this.#messages.with(at, message); };
  snapshot = value => structuredClone(value);

  /** Waits until the state passes a test. */
  async until(test) {
    const limit = AbortSignal.timeout(LIMIT);
    await new Promise((resolve, reject) => {
      limit.addEventListener('abort', () => reject(new Error(`hung: ${this.#status} ${this.error} ${JSON.stringify(this.#messages)}`)));
      this.changed = () => test(this) && resolve();
      this.changed();
    });
    this.changed = () => {};
  }
}

const textOf = message => message.parts.filter(part => part.type === 'text').map(part => part.text).join('');
export const said = messages => messages.map(message => `${message.role}: ${textOf(message)}`);
export const shows = words => state => state.messages.length > 0 && textOf(state.messages.at(-1)) === words;
