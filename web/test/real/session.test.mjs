// Only with a real acpipe: sessions over several windows, and the images of docs/guides/browser.md that follow one.

import assert from 'node:assert/strict';
import { enterChat, image, join, pageTest, PHONE, send, server, shown, turnEnd } from '../harness.mjs';

const IPHONE = { ...PHONE, userAgent: 'Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X) Version/26.0 Mobile Safari/604.1' };

pageTest('turn_survives_a_reload_and_is_approved_on_a_phone', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'mend the limits');
  await shown(page, 'I read the limits first.').waitFor();
  await image(page, 'real-1-begin');

  await page.reload();
  await page.getByRole('button', { name: 'Stop' }).waitFor();
  await shown(page, 'I read the limits first.').waitFor();
  assert.equal(await shown(page, 'I read the limits first.').count(), 1, 'nothing is shown twice');
  assert.equal(await page.getByRole('article').count(), 2);
  await image(page, 'real-2-reload');

  const phone = await join(windows, page, IPHONE);
  await shown(phone, 'I read the limits first.').waitFor();
  server.openGate('the limits are read');
  const here = page.getByRole('dialog', { name: 'Permission needed' });
  const there = phone.getByRole('dialog', { name: 'Permission needed' });
  await Promise.all([here.waitFor(), there.waitFor()]);
  await image(phone, 'real-3-phone');
  await there.getByRole('button', { name: 'Allow once' }).tap();

  await here.waitFor({ state: 'detached' });
  await page.getByText('Answered by Safari on iPhone.').waitFor();
  for (const window of [page, phone]) {
    await shown(window, 'The tests pass.').waitFor();
    await turnEnd(window);
    const tool = window.getByRole('region', { name: 'Tool: cargo test --lib' });
    assert.equal(await tool.count(), 1);
    assert.equal(await tool.locator('.state').textContent(), 'done');
    assert.equal(await window.getByRole('article').count(), 2);
    for (const text of ['I read the limits first.', 'The tests pass.']) assert.equal(await shown(window, text).count(), 1);
  }
  assert.match(await page.locator('.decision').textContent(), /^Approved by Safari on iPhone/);
  await image(page, 'real-4-answered');
  await image(phone, 'real-5-phone-after');

  // The stored messages are those that the stream had.
  await page.reload();
  await shown(page, 'The tests pass.').waitFor();
  assert.equal(await page.getByRole('article').count(), 2);
  assert.equal(await page.getByRole('region', { name: 'Tool: cargo test --lib' }).count(), 1);
});

pageTest('prompts_of_two_windows_run_one_after_another', async (windows) => {
  const page = await enterChat(windows);
  const other = await join(windows, page);
  await other.getByText('No messages yet.').waitFor();
  for (const [window, text] of [[page, 'from here'], [other, 'from there']]) {
    await window.getByLabel('Message', { exact: true }).fill(text);
  }
  await Promise.all([page, other].map((window) => window.getByLabel('Message', { exact: true }).press('Enter')));
  for (const window of [page, other]) {
    for (const text of ['from here', 'from there']) await shown(window, `You wrote: ${text}`).waitFor();
    await turnEnd(window);
    await window.waitForFunction(() => document.querySelectorAll('article').length === 4);
    const texts = await window.getByRole('article').allTextContents();
    assert.equal(new Set(texts).size, 4, texts.join(' | '));
  }
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll('article').length === 4);
});
