import assert from 'node:assert/strict';
import { enterChat, image, join, pageTest, send, server, shown, turnEnd } from './harness.mjs';

pageTest('stop_button_cancels_the_turn', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'count slowly');
  await shown(page, 'One, two,').waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await shown(page, 'Stopped.').waitFor();
  await turnEnd(page);
  await image(page, 'stop');

  await send(page, 'hello');
  await shown(page, 'You wrote: hello').waitFor();
});

pageTest('mode_model_and_options_can_be_changed_and_follow_other_windows', async (windows) => {
  const page = await enterChat(windows);
  const other = await join(windows, page);
  await other.getByRole('combobox', { name: 'Mode', exact: true }).waitFor();
  assert.equal(await page.getByRole('combobox', { name: 'Mode', exact: true }).inputValue(), 'build');

  await page.getByRole('combobox', { name: 'Mode', exact: true }).selectOption({ label: 'Plan' });
  await page.getByRole('combobox', { name: 'Model', exact: true }).selectOption({ label: 'Smart 5' });
  await page.getByText('Options').click();
  await page.getByLabel('Thinking').click();
  await other.waitForFunction(() => [...document.querySelectorAll('.settings select')].map(({ value }) => value).join() === 'plan,smart');
  await other.getByText('Options').click();
  await other.waitForFunction(() => document.querySelector('.options input').checked);
  await image(page, 'mode-and-model');
});

pageTest('reload_in_the_middle_of_a_turn_resumes_it', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'tell a long story');
  await shown(page, 'First part of the story.').waitFor();
  await page.reload();

  await shown(page, 'First part of the story.').waitFor();
  await page.getByRole('button', { name: 'Stop' }).waitFor();
  server.openGate('middle of the story');
  await shown(page, 'Second part of the story.').waitFor();
  assert.equal(await shown(page, 'First part of the story.').count(), 1, 'nothing is shown twice');
  await image(page, 'reload');
  server.openGate('end of the story');
  await shown(page, 'The end.').waitFor();
  await turnEnd(page);
  assert.equal(await shown(page, 'First part of the story.').count(), 1, 'nothing is shown twice');
  assert.equal(await page.getByRole('region', { name: 'Tool: Read story.md' }).count(), 1);
  assert.equal(await page.getByRole('article').count(), 2);

  await page.reload();
  await shown(page, 'The end.').waitFor();
  assert.equal(await page.getByRole('article').count(), 2);
});

pageTest('turn_of_another_window_is_followed', async (windows) => {
  const page = await enterChat(windows);
  const other = await join(windows, page);
  await other.getByText('No messages yet.').waitFor();
  await send(page, 'hello there');
  await shown(other, 'You wrote: hello there').waitFor();
  assert.equal(await other.getByRole('article', { name: 'You' }).textContent(), 'hello there');

  await send(other, 'and back');
  await shown(page, 'You wrote: and back').waitFor();
  await turnEnd(page);
  assert.equal(await page.getByRole('article').count(), 4);
  assert.equal(await other.getByRole('article').count(), 4);
});

pageTest('failure_of_the_turn_is_shown_once_in_words_and_after_a_reload', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'fail');
  const failure = shown(page, 'The AI service is temporarily unavailable.');
  await failure.waitFor();
  await turnEnd(page);
  assert.equal(await failure.count(), 1);
  await page.reload();
  await failure.waitFor();
});
