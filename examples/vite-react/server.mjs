// The chat endpoints of the app. Clients that reach them can run commands on this machine: it listens on this machine only.
import { createServer } from 'node:http';
import { start } from 'acpipe';
import { createChatHandler, sharedClient, toNodeHandler } from 'acpipe/ai';

// With args: ['--daemon'], running answers survive the end of this server.
const client = sharedClient(() => start({ agent: process.env.AGENT ?? 'demo', permissions: 'ask', chunkProfile: 7 }));
const handler = createChatHandler(client, { questions: true });

createServer(toNodeHandler(handler)).listen(3000, '127.0.0.1');
