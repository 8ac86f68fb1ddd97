// Text and data of an agent that stall or blank a page without bounds. More random texts: CASES=1000 SEED=7.

import assert from 'node:assert/strict';
import { enterChat, pageTest, send, shown, turnEnd } from './harness.mjs';
import { TEXTS } from './hostile.mjs';

const CASES = Number(process.env.CASES ?? 12);
const SEED = Number(process.env.SEED ?? 0);

/** Without bounds, one text stalls the page for longer than this. */
const STALL_MS = 30_000;

/** Opens a chat on a machine that may be busy. */
async function enterPatiently(windows) {
  const page = await enterChat(windows);
  page.setDefaultTimeout(STALL_MS);
  return page;
}

const lastAnswer = (page) => page.getByRole('article', { name: 'Agent' }).last();

/** Checks that the whole answer is shown, or can be. */
async function checkEnd(page, end) {
  const answer = lastAnswer(page);
  const more = answer.getByRole('button', { name: /^Show [\d,]+ more characters$/ });
  if ((await more.count()) > 0) await more.last().click();
  assert.match(await answer.textContent(), new RegExp(`${end}\\s*$`));
}

pageTest('hostile_markdown_leaves_the_page_usable', async (windows) => {
  const page = await enterPatiently(windows);
  const names = Object.keys(TEXTS);
  for (const name of names) {
    await send(page, `hostile: ${name}`);
    await turnEnd(page);
    await checkEnd(page, `End of ${name}`);
  }
  // The messages are stored, so they come again.
  await page.reload();
  await shown(page, `hostile: ${names.at(-1)}`).waitFor();
  assert.equal(await page.getByRole('article', { name: 'Agent' }).count(), names.length);
  await send(page, 'hello');
  await shown(page, 'You wrote: hello').waitFor();
});

pageTest('random_markdown_leaves_the_page_usable', async (windows) => {
  const page = await enterPatiently(windows);
  for (let seed = SEED; seed < SEED + CASES; seed++) {
    await send(page, `random: ${seed}`);
    await turnEnd(page);
    await checkEnd(page, `End of ${seed}`);
  }
});

pageTest('usual_markdown_of_a_long_answer_stays_markdown', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'write a book');
  await turnEnd(page);
  const answer = lastAnswer(page);
  assert.equal(await answer.locator('.raw').count(), 0);
  assert.equal(await answer.locator('h4').count(), 200);
  assert.equal(await answer.locator('table').count(), 200);
  assert.equal(await answer.locator('li li').count(), 400);
});

pageTest('huge_parts_are_cut_until_they_are_opened', async (windows) => {
  const page = await enterPatiently(windows);
  await send(page, 'send huge parts');
  await shown(page, 'All parts were sent.').waitFor();
  await turnEnd(page);
  const change = page.getByRole('region', { name: 'Tool: Huge change' });
  const shownLines = change.locator('.diff pre span');
  assert.equal(await shownLines.count(), 2_000);
  await change.getByRole('button', { name: /^Show more of [\d,]+ lines$/ }).click();
  assert.equal(await shownLines.count(), 8_000);
  const terminal = page.getByRole('region', { name: 'Tool: Huge output' });
  assert.match(await terminal.locator('.terminal pre').textContent(), /^Show [\d,]+ more characters[^]*last line$/);
  await page.getByRole('button', { name: 'Show more of 5,000 entries' }).waitFor();
});

pageTest('one_part_with_a_fault_does_not_hide_the_others', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'send a wrong plan');
  await shown(page, 'Behind the plan.').waitFor();
  await turnEnd(page);
  await shown(page, 'Before the plan.').waitFor();
  await shown(page, 'The next part of the message cannot be shown.').waitFor();
  await send(page, 'hello');
  await shown(page, 'You wrote: hello').waitFor();
  windows.expectFault(/is not a function/);
});

pageTest('requests_with_hostile_text_can_be_answered', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'ask me with hostile text');
  const permission = page.getByRole('dialog', { name: 'Permission needed' });
  await permission.getByRole('button', { name: 'Reject' }).click();
  const question = page.getByRole('dialog', { name: 'The agent asks' });
  await question.getByRole('button', { name: 'Decline' }).click();
  await shown(page, 'Both are answered.').waitFor();
});
