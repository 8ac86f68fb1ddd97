// One browser for all tests, a server for each test, windows of the page, and images of it.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { existsSync } from 'node:fs';
import { launchBrowser } from './browser.mjs';
import { isMock, startServer } from './server.mjs';

const IMAGES = fileURLToPath(new URL('../../docs/images/page/', import.meta.url));
const WIDE = { viewport: { width: 1100, height: 760 } };
export const PHONE = { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true };
const TIMEOUT_MS = 10_000;

/** The server of the running test. */
export let server;
let browser;

before(async () => {
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
});

/** A window of another user: it shares no storage with the others. Faults of the page in it fail the test. */
class Windows {
  #contexts = [];
  #faults = [];

  async open(options = {}) {
    const context = await browser.newContext({ colorScheme: 'light', reducedMotion: 'reduce', ...WIDE, ...options });
    this.#contexts.push(context);
    const page = await context.newPage();
    page.setDefaultTimeout(TIMEOUT_MS);
    page.on('pageerror', (error) => this.#faults.push(`error on the page: ${error.message}`));
    page.on('console', (message) => {
      // Failed requests are logged by the browser, too; tests that cut the connection expect them.
      if (message.type() !== 'error' || /ERR_|WebSocket/.test(message.text())) return;
      this.#faults.push(`${message.text()} (${message.location().url})`);
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(server.url) && !request.url().startsWith('data:')) this.#faults.push(`request to ${request.url()}`);
    });
    return page;
  }

  /** Errors that the test expects. */
  expectFault(pattern) {
    const rest = this.#faults.filter((fault) => !pattern.test(fault));
    assert.notEqual(rest.length, this.#faults.length, `no fault matches ${pattern}: ${this.#faults}`);
    this.#faults = rest;
  }

  check() {
    assert.deepEqual(this.#faults, []);
  }

  close() {
    return Promise.all(this.#contexts.map((context) => context.close()));
  }
}

/** Declares a test of the page, which gets its windows. */
export function pageTest(name, body) {
  test(name, async () => {
    server = await startServer();
    const windows = new Windows();
    try {
      await body(windows);
      windows.check();
    } finally {
      await windows.close();
      await server.stop();
    }
  });
}

/** Opens the page as its user does, with the URL that acpipe prints. */
export async function enter(windows, options, { token = server.token, session } = {}) {
  const page = await windows.open(options);
  await page.goto(`${server.url}/#${new URLSearchParams({ token, ...(session && { session }) })}`);
  return page;
}

/** Opens the page and begins a chat with the default agent. */
export async function enterChat(windows, options) {
  const page = await enter(windows, options);
  await page.getByRole('main').getByRole('button', { name: 'New chat' }).click();
  const dialog = page.getByRole('dialog', { name: 'New chat' });
  await dialog.getByLabel('Directory').fill(server.cwd);
  await dialog.getByRole('button', { name: 'Start' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.getByText('No messages yet.').waitFor();
  return page;
}

export function sessionOf(page) {
  return new URLSearchParams(new URL(page.url()).hash.slice(1)).get('session');
}

/** Opens the session of a window in another window. */
export function join(windows, page, options, access = {}) {
  return enter(windows, options, { session: sessionOf(page), ...access });
}

export async function send(page, text) {
  await page.getByLabel('Message', { exact: true }).fill(text);
  await page.getByLabel('Message', { exact: true }).press('Enter');
}

/** Text among the messages. It may be in the announcement for screen readers, too. */
export function shown(page, text) {
  return page.getByRole('log').getByText(text);
}

/** Waits until the turn is over. */
export function turnEnd(page) {
  return page.getByRole('button', { name: 'Send' }).waitFor();
}

/**
 * Writes an image of the page with UPDATE_IMAGES=1; else the image of docs/images/page must exist. Images with the
 * prefix `real-` are of a real acpipe, all others of the mock server.
 */
export async function image(page, name) {
  if (name.startsWith('real-') === isMock) return;
  const path = `${IMAGES}${name}.png`;
  if (process.env.UPDATE_IMAGES) await page.screenshot({ path, animations: 'disabled', caret: 'hide' });
  else assert.ok(existsSync(path), `${path} is missing; write it with UPDATE_IMAGES=1`);
}
