import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createTable } from '../../src/cli/table.ts';
import { loadConfig } from '../../src/config/load.ts';
import { parseBaseUrl, parseListen } from '../../src/config/addresses.ts';
import { loadWebConfig } from '../../src/config/web-file.ts';
import { causeOf } from '../../src/domain/cause.ts';
import { readErrorInfo } from '../../src/client/error-info.ts';
import { createScrub } from '../../src/client/secrets.ts';
import { bodyOf } from '../../src/client/request.ts';
import { createLogger } from '../../src/log/logger.ts';
import { validateSchedule } from '../../src/schedule/cron.ts';
import { readUrl } from '../../src/store/postgres/url.ts';
import { untrustedMessage } from '../../src/web/page/text.ts';
import { readListing } from '../support/read-listing.ts';
import { temporaryDirectory } from './config/loading.ts';

const KIBI = 1024;
const LONGEST = 64 * KIBI;
const directory = temporaryDirectory();
const logger = createLogger({
  level: 'error',
  destination: { write: () => {} },
  onFatalError: () => {},
});
const scrub = createScrub(['\\\\an\\api"key%41 of+the &lt;proof', 'sk-live-7919/+%&;']);
const columns = [['text', (row: string) => row] as const];

function written(text: string): string {
  const file = join(directory, 'file');
  writeFileSync(file, text);
  return file;
}

const load = async (text: string) =>
  loadConfig({ file: written(text), env: {}, requireSecrets: false });

/** Functions that read text from outside, and the characters of the longest text that is tried. */
const READERS: Readonly<Record<string, [longest: number, call: (text: string) => unknown]>> = {
  'scrub a key': [LONGEST, scrub],
  'a listing': [LONGEST, (text) => readListing(Buffer.from(text), 'prompt', scrub)],
  'the items of a listing, in small pieces': [
    LONGEST,
    (text) => readListing(Buffer.from(`[${text}]`), 'prompt', scrub, 8),
  ],
  'the fields of an item': [
    LONGEST,
    (text) => {
      const items = [{ id: 'p', status: text, name: text, timestamp: text }, { id: text }];
      return readListing(Buffer.from(JSON.stringify(items)), 'prompt', scrub);
    },
  ],
  'the detail of a prompt': [LONGEST, (text) => readErrorInfo(Buffer.from(text), scrub)],
  'the error of a prompt': [
    LONGEST,
    (text) => {
      const detail = { error_info: { error_id: text, error_msg: text } };
      return readErrorInfo(Buffer.from(JSON.stringify(detail)), scrub);
    },
  ],
  'an error of the service': [
    LONGEST,
    (text) => {
      const head = { statusCode: 500, headers: { location: text, etag: text } };
      return bodyOf({ head, body: Buffer.from(text) }, false, scrub, 0);
    },
  ],
  'a cause': [LONGEST, (text) => causeOf({ error_id: text, error_msg: text })],
  'a configuration': [32 * KIBI, load],
  'the options of a configuration': [
    32 * KIBI,
    (text) => {
      const value = JSON.stringify(text);
      return load(`service: {base_url: ${value}, proxy_url: ${value}, timeout: ${value}, max_response_size: ${value}, ${value}: 1}
schedule: ${value}
timezone: ${value}
projects: [{id: ${value}, schedule: ${value}}]
web: {listen: ${value}}
${value}: 1
`);
    },
  ],
  'a web configuration': [
    64 * KIBI,
    (text) => loadWebConfig(written(`basic_auth_users: {a: ${JSON.stringify(text)}}\n`)),
  ],
  'an address': [LONGEST, (text) => parseBaseUrl(`http://a/${text}`)],
  'a listen address': [LONGEST, parseListen],
  'a schedule': [LONGEST, (text) => validateSchedule(`${text} * * * *`)],
  'the address of a database': [16 * KIBI, (text) => readUrl(`postgres://a@b?${text}`)],
  'a message on the page': [LONGEST, (text) => untrustedMessage(text, 8192)],
  'a line of the log': [
    LONGEST,
    (text) => logger.error({ event: 'e', text, err: new Error(text) }, 'm'),
  ],
  'a cell of a table': [
    LONGEST,
    (text) => createTable(columns, { width: 80, color: false })([text]),
  ],
};

/** Units that readers may search, undo or nest again from every place of a run. */
const UNITS = [
  ...Array.from(` "#%&'*+,-./1:;<?@[\\a{\n\0\u001b\u202e漢`),
  ...String.raw`\\ %41 %2525 \u0041 &amp; &#65; {"a": [{ ]} *a 1,2 1d a.b. a=b& //`.split(' '),
].concat('- ', 'a: ', ' \n', '"a" ', 'x ', ', ', '\ud800');

/** Share of the longest text that the cost is compared with. */
const PART = 8;
/** Linear time makes the cost 8 times as large, quadratic time 64 times. */
const MAX_RATIO = 24;
/** What takes less for the longest text may grow as it likes, ms of CPU time. */
const FLOOR_MS = 10;
/** A text that takes this long is long enough, ms. */
const LONG_MS = 100;
const TRIES = 5;

/** Returns the CPU time of a call, ms. */
async function cost(call: (text: string) => unknown, text: string, calls = 1): Promise<number> {
  const begin = process.threadCpuUsage();
  for (let made = 0; made < calls; made += 1) {
    try {
      await call(text);
    } catch {
      // To reject a text costs as much as to accept it.
    }
  }
  const { user, system } = process.threadCpuUsage(begin);
  return (user + system) / 1000 / calls;
}

describe('the CPU time for a text from outside is linear in its length', () => {
  it.each(Object.entries(READERS))('%s', async (_, [longest, call]) => {
    const steep: string[] = [];
    for (const unit of UNITS) {
      const make = (length: number) => `x${unit.repeat(length / unit.length)}x`;
      let length = KIBI;
      let ms = await cost(call, make(length));
      while (length < longest && ms < LONG_MS) {
        length *= 2;
        ms = await cost(call, make(length));
      }
      // A busy machine makes some calls slow, but not those with the long text alone, time and again.
      let ratio = Infinity;
      for (let tries = 0; tries < TRIES && ms > FLOOR_MS && ratio > MAX_RATIO; tries += 1) {
        const part = await cost(call, make(length / PART), PART);
        ms = await cost(call, make(length));
        ratio = Math.min(ratio, ms / part);
      }
      if (ms <= FLOOR_MS || ratio <= MAX_RATIO) continue;
      steep.push(`${JSON.stringify(unit)}: ${ms} ms for ${length} characters, ${ratio} times`);
      break;
    }
    expect(steep).toEqual([]);
  });
});
