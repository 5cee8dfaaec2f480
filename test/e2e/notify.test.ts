import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mailOf } from '../../src/notify/format/email.ts';
import { teamsBody } from '../../src/notify/format/teams.ts';
import { IN_CI } from '../support/debian-tool.ts';
import { launchBrowser } from '../support/page/browser.ts';
import { chromiumPath } from '../support/page/chromium.ts';
import { HOSTILE, withText } from '../unit/notify/messages.ts';

const CARDS = fileURLToPath(import.meta.resolve('adaptivecards/dist/adaptivecards.min.js'));
/** Shows a card as Teams does, by Microsoft's library. */
const RENDER = `(content) => {
  const card = new AdaptiveCards.AdaptiveCard();
  card.parse(content);
  document.body.append(card.render());
}`;

/** What is seen, and what is wrong: elements and events that only a text from outside can have made. */
const LOOK = `() => ({
  text: document.body.innerText,
  links: Array.from(document.links, ({ href }) => href),
  foreign: document.querySelectorAll('body script, img, iframe, form').length,
  hacked: globalThis.hacked,
})`;
interface Seen {
  readonly text: string;
  readonly links: readonly string[];
  readonly foreign: number;
  readonly hacked: unknown;
}

describe.runIf(chromiumPath !== undefined || IN_CI)('a hostile text', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  const texts = HOSTILE.filter((text) => text.trim() !== '' && text.length < 200);

  it('is only text in a mail and in a card', async () => {
    const page = await browser.newPage();
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    for (const text of texts) {
      const [message] = withText(text);
      if (message === undefined) throw new Error('no message');
      await page.setContent(mailOf(message, 'evalwatch@example.com', []).html as string);
      const mail: Seen = await page.evaluate(`(${LOOK})()`);
      await page.setContent('<body></body>');
      await page.addScriptTag({ path: CARDS });
      const { attachments } = JSON.parse(teamsBody(message)) as {
        readonly attachments: readonly { readonly content: object }[];
      };
      await page.evaluate(`(${RENDER})(${JSON.stringify(attachments[0]?.content)})`);
      const card: Seen = await page.evaluate(`(${LOOK})()`);

      for (const { text: seen, links, foreign, hacked } of [mail, card]) {
        expect({ foreign, hacked }).toEqual({ foreign: 0, hacked: undefined });
        expect(links.filter((href) => !href.startsWith('https://eval.example.com/'))).toEqual([]);
        expect(seen).toContain('10,000 prompts of ');
        // Letters and signs, as far as all escapes leave them alone.
        expect(seen.replaceAll('\u200b', '')).toContain(
          /^[^\r\n\p{C}]{1,20}/u.exec(text)?.[0].trim() ?? '',
        );
      }
    }
    await page.close();

    expect(requests).toEqual([]);
  });
});
