// Text of an agent that would run a script, load something or leave the page, in every place that shows text of agents.

import assert from 'node:assert/strict';
import { enterChat, pageTest, send, shown, turnEnd } from './harness.mjs';

pageTest('text_of_an_agent_is_never_html_nor_a_script', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'inject');
  await page.getByRole('dialog').getByRole('button', { name: 'Reject' }).click();
  await shown(page, 'All of it was sent.').waitFor();
  await turnEnd(page);
  await page.locator('details').evaluateAll((all) => all.forEach((one) => (one.open = true)));

  assert.equal(await page.evaluate(() => window.injected), undefined);
  const main = page.getByRole('main');
  for (const tag of ['script', 'iframe', 'form[action]', 'object', 'embed', 'svg', 'style', 'b', '[onerror]', '[onclick]', '[style]']) {
    assert.equal(await main.locator(tag).count(), 0, tag);
  }
  // Only the address of a known scheme is a link, and no image is loaded from elsewhere.
  const links = await main.locator('a').evaluateAll((all) => all.map((link) => link.getAttribute('href')));
  assert.deepEqual([...new Set(links)], ['https://example.com/x.png', 'https://example.com/', 'mailto:a@example.com']);
  const images = await main.locator('img').evaluateAll((all) => all.map((image) => image.src.slice(0, 19)));
  assert.deepEqual([...new Set(images)], ['data:image/svg+xml;']);
  // Everything stands there as text.
  assert.ok((await main.textContent()).includes('<img src=x onerror="window.injected=1">'));
});
