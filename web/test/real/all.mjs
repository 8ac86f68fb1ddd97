// The tests of the page against a real acpipe: the program that ACPIPE names, or target/debug/acpipe.
//
//   npm run test:real
//   PAGE_CONTROL=test/real/control.mjs node test/turns.test.mjs        one file

import { fileURLToPath } from 'node:url';

process.env.PAGE_CONTROL = fileURLToPath(new URL('control.mjs', import.meta.url));
await import('./session.test.mjs');
await import('../all.mjs');
