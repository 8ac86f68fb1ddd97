// An app's server as the README builds it, in a process of its own that a test can kill.
//
//   node app-server.mjs PORT OPTIONS     OPTIONS: those of `start`, as JSON
import { createServer } from 'node:http';
import { start } from 'acpipe';
import { createChatHandler, toNodeHandler } from 'acpipe/ai';

const [port, options] = process.argv.slice(2);
const handler = createChatHandler(() => start(JSON.parse(options)));
createServer(toNodeHandler(handler)).listen(Number(port), '127.0.0.1', function () {
  process.stdout.write(`${this.address().port}\n`);
});
