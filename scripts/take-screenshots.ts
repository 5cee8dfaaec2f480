/** Takes the screenshots of the status page and of a message in docs/screenshots/ with Chromium, from fixed data. */
import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { mailOf } from '../src/notify/format/email.ts';
import { teamsBody } from '../src/notify/format/teams.ts';
import { launchBrowser } from '../test/support/page/browser.ts';
import { nightScenario } from '../test/support/page/scenarios.ts';
import { failed } from '../test/unit/notify/messages.ts';

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
  {
    file: 'experiment.png',
    path: '/projects/checkout-bot/experiments/nightly-45',
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
  const page = await browser.newPage({
    viewport: { width, height },
    colorScheme,
    timezoneId: 'Europe/Berlin',
  });
  await page.goto(server.url + path);
  await page.screenshot({ path: `${DIRECTORY}/${file}` });
  await page.close();
}
await takeMessage();
await browser.close();

/** Takes a message as Microsoft's library shows it in Teams, and as a mail. */
async function takeMessage(): Promise<void> {
  const [first, second] = failed.data.prompts;
  const [one, other] = failed.data.causes;
  if (first === undefined || second === undefined || one === undefined || other === undefined) {
    throw new Error('the message has two prompts');
  }
  const causes = [one, other].map((cause) => ({ ...cause, count: 1 }));
  const data = { ...failed.data, count: 2, prompts: [first, second], causes };
  const message = { ...failed, data };
  const { html, subject } = mailOf(message, 'evalwatch@example.com', []);
  const { attachments } = JSON.parse(teamsBody(message)) as {
    readonly attachments: readonly { readonly content: object }[];
  };
  const page = await browser.newPage({ viewport: { width: 860, height: 336 } });
  await page.setContent(`<style>
    body { zoom: 0.85; display: grid; grid-template-columns: 1fr 1fr; gap: 20px; margin: 12px; background: #e6e8eb; font: 14px Arial, sans-serif }
    body > div { background: #fff; border-radius: 6px; }
    h2 { margin: 0; padding: 10px 16px; border-bottom: 1px solid #ddd; font-size: 14px }
    p { margin: 0; padding: 6px 16px 8px; color: #444 }
    iframe { width: 100%; height: 324px; border: 0 }
    .ac-pushButton { padding: 8px 16px; border: 1px solid #bbb; border-radius: 4px; background: #fff; font-size: 14px }
  </style><body><div id="chat"><h2>In a chat</h2></div><div><h2></h2><iframe></iframe></div></body>`);
  await page.addScriptTag({
    path: fileURLToPath(import.meta.resolve('adaptivecards/dist/adaptivecards.min.js')),
  });
  await page.evaluate(`(({ content, html, subject }) => {
    const card = new AdaptiveCards.AdaptiveCard();
    card.hostConfig = new AdaptiveCards.HostConfig({
      fontFamily: 'Arial, sans-serif',
      containerStyles: { emphasis: { backgroundColor: '#f5f5f5' } },
    });
    card.parse(content);
    document.getElementById('chat').append(card.render());
    document.querySelectorAll('h2')[1].textContent = 'As a mail: ' + subject;
    // Chromium on a server has no emoji.
    const dot = '<span style="color: #d1242f">●</span>';
    const title = document.querySelector('.ac-richTextBlock');
    title.innerHTML = title.innerHTML.replace('🔴', dot);
    document.querySelector('iframe').srcdoc = html.replace('🔴', dot);
  })(${JSON.stringify({ content: attachments[0]?.content, html, subject })})`);
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${DIRECTORY}/message.png` });
  await page.close();
}
