import assert from 'node:assert/strict';
import { enterChat, image, pageTest, send, server, shown, turnEnd } from './harness.mjs';

const focused = (page) => page.evaluate(() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent);

pageTest('keyboard_sends_breaks_lines_and_stops', async (windows) => {
  const page = await enterChat(windows);
  const message = page.getByLabel('Message', { exact: true });
  await message.click();
  await page.keyboard.type('one');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('two');
  assert.equal(await message.inputValue(), 'one\ntwo');
  await page.keyboard.press('Enter');
  await shown(page, 'You wrote: one').waitFor();
  await turnEnd(page);

  await page.keyboard.type('count slowly');
  await page.keyboard.press('Enter');
  await shown(page, 'One, two,').waitFor();
  await page.keyboard.press('Escape');
  await shown(page, 'Stopped.').waitFor();
  await image(page, 'keyboard');
});

pageTest('dialog_keeps_the_focus_and_is_answered_by_keyboard', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'ask me first');
  const dialog = page.getByRole('dialog', { name: 'Permission needed' });
  await dialog.waitFor();

  // A user who was typing must not approve with the next Enter.
  await page.keyboard.press('Enter');
  await page.keyboard.press('Space');
  assert.equal(await dialog.isVisible(), true);
  assert.equal(await focused(page), 'Permission needed');

  const reached = new Set();
  for (let presses = 0; presses < 12; presses++) {
    await page.keyboard.press('Tab');
    reached.add(await focused(page));
    assert.ok(await page.evaluate(() => document.activeElement === document.body || document.activeElement.closest('dialog') !== null), 'the focus left the dialog');
  }
  for (const name of ['Allow once', 'Always allow `cargo test`', 'Reject', 'Decide later']) assert.ok(reached.has(name), `Tab does not reach ${name}`);

  // Escape closes the dialog without an answer, and does not stop the turn.
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  await page.getByText('The agent waits for your answer.').waitFor();
  assert.equal(await focused(page), 'Answer');
  assert.equal(await shown(page, 'Stopped.').count(), 0);
  await page.keyboard.press('Enter');
  await dialog.waitFor();
  await dialog.getByRole('button', { name: 'Reject' }).focus();
  await page.keyboard.press('Enter');
  await shown(page, 'Answer: reject.').waitFor();
});

pageTest('all_controls_are_reached_with_tab', async (windows) => {
  const page = await enterChat(windows);
  server.openGate('rest of the text');
  await send(page, 'explain the gate');
  await turnEnd(page);
  await page.getByLabel('Message', { exact: true }).fill('draft');
  await page.evaluate(() => document.activeElement.blur());
  const wanted = await page.evaluate(() => {
    const all = [...document.querySelectorAll('button, select, textarea, summary, a[href]')];
    return all.filter((element) => element.checkVisibility()).length;
  });
  const reached = await page.evaluate(() => new Promise((resolve) => {
    globalThis.seen = new Set();
    addEventListener('focusin', ({ target }) => globalThis.seen.add(target));
    resolve();
  })).then(async () => {
    for (let presses = 0; presses < wanted + 10; presses++) await page.keyboard.press('Tab');
    return page.evaluate(() => [...globalThis.seen].filter((element) => element.matches('button, select, textarea, summary, a[href]')).length);
  });
  assert.equal(reached, wanted);
});
