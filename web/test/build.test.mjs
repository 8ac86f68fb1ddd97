// The committed build: that of the sources, small, and without anything that the strict policy of the server forbids.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const WEB = fileURLToPath(new URL('..', import.meta.url));
const MOST_SCRIPT_BYTES = 600_000;

test('committed_build_is_that_of_the_sources', async () => {
  const outDir = mkdtempSync(join(tmpdir(), 'acpipe-page-'));
  try {
    await build({ root: WEB, logLevel: 'warn', build: { outDir, emptyOutDir: true } });
    const names = ['app.css', 'app.js', 'index.html'];
    assert.deepEqual(readdirSync(outDir).sort(), names);
    for (const name of names) {
      assert.ok(readFileSync(join(outDir, name)).equals(readFileSync(join(WEB, 'dist', name))), `dist/${name} is old; run npm run build`);
    }
  } finally {
    rmSync(outDir, { recursive: true });
  }
});

test('build_is_small_and_has_no_inline_script', () => {
  const html = readFileSync(join(WEB, 'dist/index.html'), 'utf8');
  assert.doesNotMatch(html, /<script(?![^>]*src=)|<style|\son\w+=|style=/);
  assert.ok(readFileSync(join(WEB, 'dist/app.js')).length < MOST_SCRIPT_BYTES);
});
