#!/usr/bin/env node
// Assembles the npm package of one platform from a binary of acpipe.
//
//   node platform-package.mjs BINARY linux-x64 DIRECTORY
//
// The packages become `optionalDependencies` of this one with the release that publishes them. Until then nobody owns
// their names, and an install must not look for them.
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const PLATFORMS = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64', 'win32-x64'];

const [binary, platform, directory] = process.argv.slice(2);
if (!directory || !PLATFORMS.includes(platform)) {
  console.error(`usage: node platform-package.mjs BINARY ${PLATFORMS.join('|')} DIRECTORY`);
  process.exit(2);
}

const read = (file) => readFileSync(new URL(file, import.meta.url), 'utf8');
const { version, license } = JSON.parse(read('package.json'));
const [os, cpu] = platform.split('-');
const file = os === 'win32' ? 'acpipe.exe' : 'acpipe';

mkdirSync(join(directory, 'bin'), { recursive: true });
copyFileSync(binary, join(directory, 'bin', file));
chmodSync(join(directory, 'bin', file), 0o755);
writeFileSync(join(directory, 'LICENSE'), read('../../LICENSE'));
writeFileSync(join(directory, 'README.md'), `The program of [acpipe](https://www.npmjs.com/package/acpipe) for ${platform}.\n`);
const manifest = {
  name: `@acpipe/${platform}`,
  version,
  description: `The program of acpipe for ${platform}`,
  license,
  os: [os],
  cpu: [cpu],
  files: ['bin'],
};
writeFileSync(join(directory, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
