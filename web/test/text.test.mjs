import assert from 'node:assert/strict';
import { enterChat, image, pageTest, send, server, shown, turnEnd } from './harness.mjs';

pageTest('text_streams_as_markdown_while_the_turn_runs', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'explain the gate');

  const answer = page.getByRole('article', { name: 'Agent' });
  await answer.getByText('The gate opens in').waitFor();
  await page.getByRole('button', { name: 'Stop' }).waitFor();
  assert.equal(await answer.locator('table').count(), 0, 'the rest is not sent yet');

  server.openGate('rest of the text');
  await answer.locator('table').waitFor();
  await turnEnd(page);
  assert.equal(await answer.locator('strong').textContent(), 'three');
  assert.equal(await answer.locator('ol > li').count(), 3);
  assert.equal((await answer.locator('pre code').textContent()).trim(), 'fn main() {\n    println!("1 < 2 && 3 > 2");\n}');

  // The agent sent tags and a link that would run a script.
  assert.match(await answer.textContent(), /<b onclick="alert\(1\)">this<\/b>/);
  assert.deepEqual(await answer.locator('a').evaluateAll((all) => all.map((link) => link.getAttribute('href'))), ['https://example.com/docs']);

  await page.getByRole('heading', { name: 'How the gate opens' }).waitFor();
  assert.match(await page.locator('[data-announcer]').textContent(), /Tags such as/, 'the end of the answer is announced');
  await image(page, 'streaming-text');
});

pageTest('thoughts_are_folded_until_they_are_opened', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'think first');
  await page.getByText('Thinking…').waitFor();
  server.openGate('after the thought');
  await turnEnd(page);

  const thought = page.getByText('Short');
  assert.equal(await thought.isVisible(), false);
  await page.getByText('Thoughts', { exact: true }).click();
  await thought.waitFor();
  assert.equal(await shown(page, 'I would call it').isVisible(), true);
  await image(page, 'thoughts');
});
