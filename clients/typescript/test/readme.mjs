#!/usr/bin/env node
// Writes the examples of the README that begin with a file name into a directory; prints the names.
//
//   node test/readme.mjs DIRECTORY
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
for (const [, code] of readme.matchAll(/^```js\n([^]*?)^```$/gm)) {
  const [, name] = /^\/\/ ([a-z]+\.[cm]js)\n/.exec(code) ?? [];
  if (!name) throw new Error(`an example does not begin with a file name:\n${code}`);
  writeFileSync(join(process.argv[2], name), code);
  console.log(name);
}
