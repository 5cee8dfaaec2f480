import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import pRetry from 'p-retry';
import { scrape, type Scrape } from '../../test/support/scrape.ts';
import { KEY, writeConfiguration } from '../../test/support/soak/configuration.ts';
import { temporaryDirectory } from '../../test/support/temporary.ts';
import { type Figures, type RowOptions, SOURCE } from '../row.ts';
import { DETAILS, HEALTHY, ODD } from './cast.ts';
import { formOf } from './form.ts';
import { haveAllEnded, judge, judgeAlways, judgeMeanwhile, TIMEOUT_MS } from './judge.ts';
import { ask, startHostileService, startWatchedDaemon, until } from './party.ts';

const MOST_BYTES = '16MiB';
/** More slots than kinds that never answer: until their first timeout, these hold slots like healthy ones. */
const SLOTS = 48;
const LOOK_EVERY_MS = 1000;
/** Minimum duration of the hostility. */
const DURATIONS_MS = { tests: 2000, short: 6000, long: 120_000 };
/** Maximum wait on a busy machine, ms. */
const PATIENCE_MS = 250_000;
const LONGEST_HOLD_MS = 5 * 60_000;
const API_PATHS = [
  'projects',
  'prompts?limit=1000',
  'transitions?limit=1000',
  'failures?limit=1000',
];

/**
 * Runs a whole daemon against a service of which most projects turn hostile for a while, each in its own way.
 * @throws if the daemon is misled, is held up or reveals the key
 */
export async function besiege({ short, print, source = SOURCE }: RowOptions): Promise<Figures> {
  const form = formOf({ short, source });
  await using directory = await temporaryDirectory();
  await using service = await startHostileService(form);
  const hostile = Object.keys(service.ends);
  const ids = [...hostile, ...HEALTHY, ODD, DETAILS];
  // A Retry-After holds every project with the same key.
  const waiting = [...hostile.filter((kind) => kind.includes('come back')), DETAILS];
  for (const [index] of waiting.entries()) {
    await writeFile(join(directory.path, `key-${index}`), `${KEY}/${index}`);
  }
  const config = await writeConfiguration(
    directory.path,
    service.url,
    ids.map((id) => ({
      id,
      datasets: false,
      schedule: scheduleOf(id, service.huge),
      ...(waiting.includes(id) && { api_key_file: `key-${waiting.indexOf(id)}` }),
    })),
    {
      timeout: `${TIMEOUT_MS}ms`,
      service: { max_concurrency: SLOTS, max_response_size: MOST_BYTES },
    },
  );
  await using daemon = await startWatchedDaemon(source, config);
  const isUp = (seen: Scrape, those: readonly string[]) =>
    those.every((project) => seen.value('evalwatch_project_up', { project }) === 1);
  await until('all projects up', async () => isUp(await scrape(daemon.url), ids));
  await setTimeout(short ? 0 : 10_000);
  const before = await scrape(daemon.url);
  const quietRss = await daemon.rss();
  daemon.resetBlock();

  const told: string[] = [];
  const look = async (judgeGlimpse = judgeAlways) => {
    const seen = await scrape(daemon.url);
    told.push(seen.text);
    await daemon.read();
    const rss = { quiet: quietRss, most: daemon.mostRss() };
    const report = await service.report();
    const { ends } = service;
    const blockMs = await daemon.blockMs();
    const faults = judgeGlimpse({ form, seen, before, daemon, rss, blockMs, report, ends });
    if (faults.length > 0) throw new Error(faults.slice(0, 20).join('\n'));
    return seen;
  };
  service.be('hostile');
  const end = performance.now() + DURATIONS_MS[form];
  let during = await look(judgeMeanwhile);
  while (performance.now() < end || !haveAllEnded(service.ends, during, before)) {
    if (performance.now() > end + PATIENCE_MS) throw new Error('some kinds were never tried');
    await setTimeout(LOOK_EVERY_MS);
    during = await look(judgeMeanwhile);
  }
  print(`${hostile.length} kinds have been hostile`);
  service.be('good');
  const returning = short ? ids.filter((id) => !service.held.includes(id)) : ids;
  const deadline = performance.now() + (short ? PATIENCE_MS : LONGEST_HOLD_MS + PATIENCE_MS);
  let after = await look();
  while (!isUp(after, returning)) {
    if (performance.now() > deadline) throw new Error('not every project came back');
    await setTimeout(LOOK_EVERY_MS);
    after = await look();
  }
  // The error_infos are fetched one by one, and all of them are judged.
  await until('the failures of strange ids have ended', async () => {
    const body = await readApi(
      daemon.url,
      `failures?limit=1000&project=${encodeURIComponent(ODD)}`,
    );
    const { data } = JSON.parse(body) as {
      readonly data?: readonly { readonly settled: boolean }[];
    };
    return data !== undefined && data.length > 0 && data.every(({ settled }) => settled);
  });
  for (const path of API_PATHS) told.push(await readApi(daemon.url, path));
  const report = await service.report();
  const blockMs = await daemon.blockMs();
  const { code, stderr } = await daemon.stop();
  const [statuses = '', transitions = '', failures = ''] = await Promise.all(
    ['status', 'transitions', 'failures'].map((command) => ask(source, command, config)),
  );
  const files = (await readdir(directory.path)).filter((name) => name.includes('.db'));
  const stored = await Promise.all(
    files.map((name) => readFile(join(directory.path, name), 'latin1')),
  );
  return judge({
    form,
    ends: service.ends,
    held: service.held,
    before,
    during,
    seen: after,
    daemon,
    report,
    code,
    statuses: rowsOf(statuses),
    transitions: rowsOf(transitions),
    failures: rowsOf(failures),
    told: [...told, ...stored, await daemon.stdout(), stderr, statuses, transitions, failures],
    rss: { quiet: quietRss, most: daemon.mostRss() },
    blockMs,
    key: KEY,
  });
}

/**
 * Only healthy projects are polled every second: each poll waits for the disk, which is not the subject here. Huge ones are
 * polled in turn: `max_response_size` and `max_concurrency` limit what several take together.
 */
function scheduleOf(id: string, huge: readonly string[]): string {
  if (HEALTHY.some((healthy) => healthy === id)) return '* * * * * *';
  return huge.includes(id) ? `${huge.indexOf(id)}-59/${huge.length} * * * * *` : '*/3 * * * * *';
}

function rowsOf(text: string) {
  return JSON.parse(text) as readonly Readonly<Record<string, unknown>>[];
}

/** Reads a path of the API, with retries: the daemon ends an answer that a busy machine reads too slowly. */
async function readApi(url: string, path: string): Promise<string> {
  return await pRetry(async () => await (await fetch(`${url}/api/v1/${path}`)).text());
}
