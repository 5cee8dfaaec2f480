/** Takes the screenshots of the status page in docs/screenshots/ with Chromium, from fixed data. */
import { mkdir } from 'node:fs/promises';
import { launchBrowser } from '../test/support/page/browser.ts';
import { nightScenario } from '../test/support/page/scenarios.ts';

const DIRECTORY = 'docs/screenshots';
const PICTURES = [
  { file: 'light.png', path: '/', width: 1100, height: 1400, colorScheme: 'light' },
  { file: 'dark.png', path: '/', width: 1100, height: 1400, colorScheme: 'dark' },
  { file: 'phone.png', path: '/', width: 360, height: 1500, colorScheme: 'dark' },
  {
    file: 'project.png',
    path: '/projects/checkout-bot',
    width: 1100,
    height: 1400,
    colorScheme: 'light',
  },
] as const;

await mkdir(DIRECTORY, { recursive: true });
await using world = await nightScenario();
await using server = await world.serve();
const browser = await launchBrowser();
for (const { file, path, width, height, colorScheme } of PICTURES) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme });
  await page.goto(server.url + path);
  await page.screenshot({ path: `${DIRECTORY}/${file}` });
  await page.close();
}
await browser.close();
