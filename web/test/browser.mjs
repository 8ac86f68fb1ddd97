// Headless Chromium. CHROMIUM names the browser if it is not `chromium` in the PATH. Exit code 77: no Chromium.

import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { chromium } from 'playwright-core';

function find() {
  const names = ['chromium', 'chromium-browser', 'google-chrome'];
  const paths = (process.env.PATH ?? '').split(delimiter).flatMap((dir) => names.map((name) => join(dir, name)));
  return [process.env.CHROMIUM, ...paths].filter(Boolean).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

export async function launchBrowser() {
  const executablePath = find();
  if (!executablePath) {
    console.error('SKIPPED: Chromium not found; nothing was checked. Install it (Debian: `apt install chromium`), or set CHROMIUM to its path.');
    process.exit(77);
  }
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath, args });
}
