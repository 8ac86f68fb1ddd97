// Clients that are opened when they are needed.
import type { Acpipe } from '../client.js';

/** A client that is opened at the first call, and again if that failed or the client was closed. */
export class LazyClient {
  #opening: Promise<Acpipe> | undefined;
  #client: Acpipe | undefined;

  get(open: () => Promise<Acpipe>): Promise<Acpipe> {
    // It gave up to reconnect, or the app closed it.
    if (this.#client?.state === 'closed') this.#opening = undefined;
    return (this.#opening ??= this.#open(open));
  }

  async #open(open: () => Promise<Acpipe>): Promise<Acpipe> {
    this.#client = undefined;
    try {
      const client = await Promise.resolve().then(open);
      this.#client = client;
      return client;
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }
}

/** A value of the process: frameworks load copies of modules, for each route and after a change in development. */
export function ofProcess<Value>(name: string, create: () => Value): Value {
  const values = globalThis as { [name: symbol]: Value | undefined };
  return (values[Symbol.for(`acpipe.${name}`)] ??= create());
}

const CLIENTS = ofProcess('clients', () => new Map<string, LazyClient>());

/**
 * Returns a function that opens a client at its first call, and again if that failed or the client was closed. All calls
 * in this process share the client, also those of other copies of the module: Next.js and other frameworks load copies for
 * each route, and after each change in development.
 *
 * @param open - Starts or connects the client.
 * @param name - Name of the client, if the app has several.
 */
export function sharedClient(open: () => Promise<Acpipe>, name = 'default'): () => Promise<Acpipe> {
  return () => {
    const client = CLIENTS.get(name) ?? new LazyClient();
    CLIENTS.set(name, client);
    return client.get(open);
  };
}
