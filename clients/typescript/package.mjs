#!/usr/bin/env node
// Assembles the npm package from the built sources: its manifest has the packages of the platforms as optional
// dependencies, of which npm installs the one that fits. Those are published first, in the same version.
//
//   node package.mjs DIRECTORY
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { common, PLATFORMS, source } from './manifest.mjs';

const [directory] = process.argv.slice(2);
if (!directory) {
  console.error('usage: node package.mjs DIRECTORY');
  process.exit(2);
}

mkdirSync(directory, { recursive: true });
for (const file of [...source.files, 'README.md', 'LICENSE']) {
  cpSync(fileURLToPath(new URL(file, import.meta.url)), join(directory, file), { recursive: true });
}
// The sources are private, so that nobody publishes them without the programs.
const { private: _, scripts, devDependencies, ...manifest } = source;
const programs = Object.fromEntries(PLATFORMS.map((platform) => [`@acpipe/${platform}`, source.version]));
writeFileSync(
  join(directory, 'package.json'),
  `${JSON.stringify({ ...manifest, ...common, optionalDependencies: programs }, null, 2)}\n`,
);
