#!/usr/bin/env node
// Builds dist/esm and dist/cjs from src.
import { execFileSync } from 'node:child_process';
import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('.', import.meta.url)));
rmSync('dist', { recursive: true, force: true });
copyFileSync('../../LICENSE', 'LICENSE'); // npm packs it only from here

const tsc = fileURLToPath(new URL('node_modules/typescript/bin/tsc', import.meta.url));
const formats = { esm: { module: 'ESNext', type: 'module' }, cjs: { module: 'CommonJS', type: 'commonjs' } };
for (const [format, { module, type }] of Object.entries(formats)) {
  const out = `dist/${format}`;
  execFileSync(process.execPath, [tsc, '-p', '.', '--module', module, '--outDir', out], { stdio: 'inherit' });
  // Only these lines differ between the formats: CommonJS has no `import.meta`.
  copyFileSync(`src/packages.${format}.js`, `${out}/packages.js`);
  copyFileSync('src/packages.d.ts', `${out}/packages.d.ts`);
  // Each folder is of its own format, and so are its type declarations.
  writeFileSync(`${out}/package.json`, `${JSON.stringify({ type, sideEffects: false })}\n`);
}
