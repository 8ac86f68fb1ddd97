import assert from 'node:assert/strict';
import { enter, enterChat, join, pageTest, send, server, shown, turnEnd } from './harness.mjs';

pageTest('token_leaves_the_address_and_survives_a_reload', async (windows) => {
  const page = await enterChat(windows);
  assert.doesNotMatch(page.url(), /token/);
  await page.reload();
  await page.getByText('No messages yet.').waitFor();
  // Another window has no token, and the way back does not show one.
  const other = await windows.open();
  await other.goto(page.url());
  await other.getByLabel('Token').waitFor();
  await other.getByLabel('Token').fill(`${server.url}/#token=${server.token}`);
  await other.getByRole('button', { name: 'Connect' }).click();
  await other.getByText('No messages yet.').waitFor();
});

pageTest('wrong_token_is_refused_in_words', async (windows) => {
  const page = await enter(windows, {}, { token: 'wrong' });
  await page.getByRole('alert').getByText('acpipe does not accept the token.').waitFor();
  await page.getByLabel('Token').fill(server.token);
  await page.getByRole('button', { name: 'Connect' }).click();
  await page.getByRole('heading', { name: 'No session is open' }).waitFor();
  windows.expectFault(/401/);
});

pageTest('lost_connection_comes_back_and_the_turn_with_it', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'tell a long story');
  await shown(page, 'First part of the story.').waitFor();
  server.cutOff();
  try {
    await page.getByText('acpipe cannot be reached.').waitFor();
    await shown(page, 'The connection to acpipe was lost.').waitFor();
  } finally {
    server.reach();
  }
  await page.getByText('acpipe cannot be reached.').waitFor({ state: 'detached' });
  server.openGate('middle of the story');
  server.openGate('end of the story');
  await shown(page, 'The end.').waitFor();
  await turnEnd(page);
  assert.equal(await shown(page, 'First part of the story.').count(), 1);
  assert.equal(await page.getByText('The connection to acpipe was lost.').count(), 0);
});

pageTest('observer_watches_without_composer_or_dialogs', async (windows) => {
  const page = await enterChat(windows);
  const observer = await join(windows, page, {}, { token: server.observerToken });
  await observer.getByText('This window may only watch.').waitFor();
  assert.equal(await observer.getByLabel('Message', { exact: true }).count(), 0);
  assert.equal(await observer.getByRole('button', { name: 'New chat', exact: true }).count(), 0);
  await page.getByLabel(/Also here: .* \(watches\)/).waitFor();

  await send(page, 'ask me first');
  await page.getByRole('dialog').waitFor();
  await observer.getByText('Permission needed').waitFor();
  assert.equal(await observer.getByRole('dialog').count(), 0);
  await page.getByRole('dialog').getByRole('button', { name: 'Allow once' }).click();
  await shown(observer, 'Answer: once.').waitFor();
});

pageTest('error_of_a_new_chat_stays_in_its_dialog', async (windows) => {
  const page = await enter(windows);
  await page.getByRole('main').getByRole('button', { name: 'New chat' }).click();
  const dialog = page.getByRole('dialog', { name: 'New chat' });
  await dialog.getByRole('combobox', { name: 'Agent', exact: true }).waitFor();
  await dialog.locator('option[value=claude]').waitFor({ state: 'attached' });
  assert.equal(await dialog.locator('option[value=gemini]').count(), 0, 'an agent that is not installed is not offered');
  await dialog.getByLabel('Directory').fill('not/absolute');
  await dialog.getByRole('button', { name: 'Start' }).click();
  await dialog.getByText('cwd: must be an absolute path').waitFor();
});
