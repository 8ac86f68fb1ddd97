import assert from 'node:assert/strict';
import { enterChat, image, join, pageTest, PHONE, send, server, shown, turnEnd } from './harness.mjs';
import { isMock } from './server.mjs';

pageTest('permission_dialog_offers_the_options_of_the_agent', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'ask me first');
  const dialog = page.getByRole('dialog', { name: 'Permission needed' });
  await dialog.waitFor();
  assert.match(await dialog.textContent(), /cargo test --lib/);
  assert.deepEqual(await dialog.locator('.options button').allTextContents(), ['Allow once', 'Always allow `cargo test`', 'Reject']);
  await page.locator('.session .badge.waiting').waitFor();
  await image(page, 'permission');

  await dialog.getByLabel('Note to the agent').fill('only the fast ones');
  await dialog.getByRole('button', { name: 'Allow once' }).click();
  await shown(page, 'Answer: once.').waitFor();
  const tool = page.getByRole('region', { name: 'Tool: cargo test --lib' });
  assert.match(await tool.locator('.decision').textContent(), /^Approved.* · .*Allow once.* · “only the fast ones”$/);
});

pageTest('refused_tool_shows_the_refusal', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'ask me first');
  await page.getByRole('dialog').getByRole('button', { name: 'Reject' }).click();
  await turnEnd(page);
  const tool = page.getByRole('region', { name: 'Tool: cargo test --lib' });
  assert.equal(await tool.locator('.state').textContent(), 'refused');
  assert.match(await tool.locator('.decision').textContent(), /^Refused/);
});

pageTest('question_dialog_is_a_form_of_the_schema', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'ask me something');
  const dialog = page.getByRole('dialog', { name: 'The agent asks' });
  await dialog.getByText('How shall the store be built?').waitFor();
  assert.equal(await dialog.getByLabel('Pool size').inputValue(), '8', 'the default of the schema');

  // Wrong values are not sent.
  await dialog.getByRole('button', { name: 'Answer' }).click();
  await dialog.getByText('Name is required.').waitFor();
  await dialog.getByLabel('Name').fill('s');
  await dialog.getByRole('radio', { name: 'SQLite' }).check();
  await dialog.getByRole('button', { name: 'Answer' }).click();
  await dialog.getByText('Name needs at least 2 characters.').waitFor();

  await dialog.getByLabel('Name').fill('store');
  await dialog.getByLabel('Pool size').fill('100');
  await dialog.getByRole('button', { name: 'Answer' }).click();
  await dialog.getByText('Pool size must be at most 64.').waitFor();
  await dialog.getByLabel('Pool size').fill('16');
  await dialog.getByLabel('Migrate now').check();
  await dialog.getByLabel('Turns').check();
  await image(page, 'question');
  await dialog.getByRole('button', { name: 'Answer' }).click();

  const expected = 'Answer: accept {"name":"store","database":"sqlite","size":16,"migrate":true,"tables":["turns"]}';
  await shown(page, expected).waitFor();
});

pageTest('plan_is_approved_in_a_dialog', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'plan it with me');
  const dialog = page.getByRole('dialog', { name: 'Approve the plan' });
  await dialog.getByRole('heading', { name: 'The plan', exact: true }).waitFor();
  await dialog.getByLabel('Note to the agent').fill('write first');
  await dialog.getByRole('button', { name: 'Keep planning' }).click();
  await shown(page, 'Answer: accept no').waitFor();
  await shown(page, 'write first').first().waitFor();
});

pageTest('answer_of_a_second_window_closes_the_dialog_and_names_the_window', async (windows) => {
  const page = await enterChat(windows);
  const phone = await join(windows, page, { ...PHONE, userAgent: 'Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X) Version/26.0 Mobile Safari/604.1' });
  await page.getByLabel('Also here: Safari on iPhone').waitFor();

  await send(page, 'ask me first');
  const here = page.getByRole('dialog', { name: 'Permission needed' });
  const there = phone.getByRole('dialog', { name: 'Permission needed' });
  await Promise.all([here.waitFor(), there.waitFor()]);
  assert.equal(await page.locator('.presence summary').textContent(), '+1', 'the chat endpoint is not shown as a client');
  await image(phone, 'second-window-phone');
  await there.getByRole('button', { name: 'Always allow' }).click();

  await here.waitFor({ state: 'detached' });
  await page.getByText('Answered by Safari on iPhone.').waitFor();
  await turnEnd(page);
  const tool = page.getByRole('region', { name: 'Tool: cargo test --lib' });
  assert.match(await tool.locator('.decision').textContent(), /^Approved by Safari on iPhone/);
  await image(page, 'second-window');

  // The phone followed the turn that it had not begun.
  await shown(phone, 'Answer: always.').waitFor();
  assert.equal(await phone.getByRole('article').count(), 2);
});

pageTest('message_instead_of_an_answer_refuses_the_request', async (windows) => {
  const page = await enterChat(windows);
  const phone = await join(windows, page, PHONE);
  await send(page, 'ask me first');
  await phone.getByRole('dialog', { name: 'Permission needed' }).waitFor();
  const dialog = page.getByRole('dialog', { name: 'Permission needed' });
  await dialog.getByRole('button', { name: 'Decide later' }).click();
  await page.getByRole('button', { name: 'Answer' }).waitFor();
  await send(page, 'think first');
  await phone.getByRole('dialog').waitFor({ state: 'detached' });
  server.openGate('after the thought');
  await shown(page, 'I would call it').waitFor();
  await turnEnd(page);
  assert.equal(await page.getByRole('button', { name: 'Answer' }).count(), 0);
  const tool = page.getByRole('region', { name: 'Tool: cargo test --lib' });
  await tool.getByText('because the user sent a new message').waitFor();
  assert.equal(await tool.locator('.state').textContent(), 'refused');
  assert.equal(await page.getByRole('article').count(), 4, 'two messages of the user, two answers');
});

// A real acpipe does not get another answer at the moment of the click.
if (isMock) {
  pageTest('answer_after_that_of_another_client_says_so', async (windows) => {
    const page = await enterChat(windows);
    await send(page, 'ask another first');
    await page.getByRole('dialog').getByRole('button', { name: 'Allow once' }).click();
    await page.getByText('Your answer came too late. Answered by the terminal.').waitFor();
    await turnEnd(page);
    const tool = page.getByRole('region', { name: 'Tool: cargo test --lib' });
    assert.match(await tool.locator('.decision').textContent(), /^Refused by the terminal/);
  });
}
