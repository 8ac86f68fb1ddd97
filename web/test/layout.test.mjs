import assert from 'node:assert/strict';
import { enterChat, image, pageTest, PHONE, send, server, turnEnd } from './harness.mjs';

const hasSideways = (page) => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);

pageTest('page_fits_a_phone', async (windows) => {
  const page = await enterChat(windows, PHONE);
  server.openGate('rest of the text');
  await page.getByLabel('Message', { exact: true }).fill('explain the gate');
  // On a touch keyboard Enter is a line break, so that messages can have several lines.
  await page.getByLabel('Message', { exact: true }).press('Enter');
  assert.equal(await page.getByRole('article').count(), 0);
  await page.getByLabel('Message', { exact: true }).fill('explain the gate');
  await page.getByRole('button', { name: 'Send' }).tap();
  await page.locator('table').waitFor();
  await turnEnd(page);
  assert.equal(await hasSideways(page), false, 'nothing is wider than the screen');
  for (const name of ['Send', 'Sessions']) {
    const { height } = await page.getByRole('button', { name, exact: true }).boundingBox();
    assert.ok(height >= 38, `${name} is ${height} px high, too small for a finger`);
  }
  await image(page, 'phone');

  const list = page.getByRole('navigation', { name: 'Sessions' });
  assert.equal(await list.isVisible(), false);
  await page.getByRole('button', { name: 'Sessions' }).tap();
  await list.waitFor();
  assert.equal(await list.locator('[aria-current]').count(), 1);
  await image(page, 'phone-sessions');
  // The list is over the chat, which must not get the focus.
  for (let presses = 0; presses < 8; presses++) {
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.closest('.main')), null);
  }
  await page.keyboard.press('Escape');
  await list.waitFor({ state: 'hidden' });
});

const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

/** Contrast of WCAG between the colors of an element and those behind it. */
async function contrast(page, selector) {
  return page.locator(selector).first().evaluate((element) => {
    const parse = (color) => color.match(/[\d.]+/g).map(Number);
    const luminance = (color) => {
      const [r, g, b] = parse(color).map((value) => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    let behind = element;
    while (parse(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
    const [light, dark] = [luminance(getComputedStyle(element).color), luminance(getComputedStyle(behind).backgroundColor)].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  });
}

pageTest('colors_follow_the_system_and_are_readable', async (windows) => {
  const page = await enterChat(windows);
  server.openGate('the edit');
  await send(page, 'change the limits');
  await turnEnd(page);
  const light = await background(page);
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const selector of ['.diff .added', '.diff .removed', '.tool .state', '.message.user p', '.session .facts', '.head .name p']) {
      const ratio = await contrast(page, selector);
      assert.ok(ratio >= 4.5, `${selector} has a contrast of ${ratio.toFixed(1)} in the ${scheme} scheme`);
    }
  }
  assert.notEqual(await background(page), light);
  await page.getByRole('log').evaluate((log) => log.scrollTo(0, 0));
  await image(page, 'dark');
});
