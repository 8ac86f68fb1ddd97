#!/usr/bin/env node
// Assembles the npm package of one platform from a binary of acpipe. Packages of the same version name it as an optional
// dependency: see package.mjs.
//
//   node platform-package.mjs BINARY linux-x64 DIRECTORY
import { chmodSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { common, PLATFORMS } from './manifest.mjs';

const [binary, platform, directory] = process.argv.slice(2);
if (!directory || !PLATFORMS.includes(platform)) {
  console.error(`usage: node platform-package.mjs BINARY ${PLATFORMS.join('|')} DIRECTORY`);
  process.exit(2);
}
const [os, cpu] = platform.split('-');

mkdirSync(join(directory, 'bin'), { recursive: true });
copyFileSync(binary, join(directory, 'bin/acpipe'));
chmodSync(join(directory, 'bin/acpipe'), 0o755);
// A license beside the program has those of its libraries, too.
const license = join(dirname(binary), 'LICENSE');
copyFileSync(existsSync(license) ? license : new URL('../../LICENSE', import.meta.url), join(directory, 'LICENSE'));
writeFileSync(join(directory, 'README.md'), `The program of [acpipe](https://www.npmjs.com/package/acpipe) for ${platform}.\n`);
const manifest = {
  name: `@acpipe/${platform}`,
  ...common,
  description: `The program of acpipe for ${platform}`,
  os: [os],
  cpu: [cpu],
  files: ['bin'],
};
writeFileSync(join(directory, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
