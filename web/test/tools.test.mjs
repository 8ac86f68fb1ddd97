import assert from 'node:assert/strict';
import { enterChat, image, pageTest, send, server, turnEnd } from './harness.mjs';

pageTest('tool_calls_show_state_input_output_and_changed_lines', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'change the limits');
  const edit = page.getByRole('region', { name: 'Tool: Edit src/limits.rs' });
  await edit.getByText('running').waitFor();

  server.openGate('the edit');
  await turnEnd(page);
  assert.equal(await edit.locator('.state').textContent(), 'done');
  assert.deepEqual(await edit.locator('.diff .added').allTextContents(), [
    '+     pub restore: Duration,\n',
    '+             answer: Duration::from_secs(300),\n',
  ]);
  assert.deepEqual(await edit.locator('.diff .removed').allTextContents(), ['-             answer: Duration::from_secs(60),\n']);
  assert.match(await edit.locator('.diff .label').textContent(), /src\/limits\.rs \+2 −1/);

  // A call without a change is folded.
  const read = page.getByRole('region', { name: 'Tool: Read src/lib.rs' });
  assert.equal(await read.getByText('pub mod limits;').isVisible(), false);
  await read.getByText('Read src/lib.rs').click();
  assert.equal(await read.getByText('pub mod limits;').isVisible(), true);
  assert.equal(await read.getByText('"path": "src/lib.rs"').isVisible(), true);

  const failed = page.getByRole('region', { name: 'Tool: Fetch the changelog' });
  assert.equal(await failed.locator('.state').textContent(), 'failed');
  await failed.getByText('Fetch the changelog').click();
  await failed.getByText('connection refused').waitFor();
  await page.getByRole('log').evaluate((log) => log.scrollTo(0, 0));
  await image(page, 'tool-diff');
});

pageTest('terminals_show_output_without_control_sequences', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'run the tests');
  const tool = page.getByRole('region', { name: 'Tool: cargo test --lib' });
  await tool.getByText('Compiling acpipe').waitFor();
  assert.match(await tool.locator('.terminal .label').textContent(), /running/);

  server.openGate('the compiler');
  await turnEnd(page);
  assert.equal(
    await tool.locator('.terminal pre').textContent(),
    '   Compiling acpipe v0.1.0\nrunning 2 tests\ntest lines ... ok\ntest frames ... FAILED\n',
  );
  assert.match(await tool.locator('.terminal .label').textContent(), /exit code 101/);
  await image(page, 'terminal');
});

pageTest('plan_is_updated_in_its_place', async (windows) => {
  const page = await enterChat(windows);
  await send(page, 'make a plan');
  const plan = page.getByRole('region', { name: 'Plan' });
  await plan.getByText('0 of 3 done').waitFor();
  server.openGate('the plan');
  await plan.getByText('1 of 3 done').waitFor();
  assert.deepEqual(await plan.locator('li').evaluateAll((all) => all.map((item) => item.className)), ['completed', 'in_progress', 'pending']);
  assert.equal(await plan.count(), 1);
  await image(page, 'plan');
  server.openGate('the end of the plan');
  await turnEnd(page);
});
