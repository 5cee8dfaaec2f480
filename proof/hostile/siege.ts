import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { scrape, type Scrape } from '../../test/support/scrape.ts';
import { promptItem, sendJson, startService } from '../../test/support/service.ts';
import { type Figures, type RowOptions, SOURCE } from '../row.ts';
import { ERROR_IDS, KINDS, ODD_IDS } from './kinds.ts';
import { KEY, type Rows, startMonitor } from './monitor.ts';
import { type Answer, echoesOf, GOOD, nastyText } from './service.ts';

/** Projects that never get hostile answers, polled every second. */
const HEALTHY = ['healthy 1', 'healthy 2', 'healthy 3'];
/** Project with a prompt whose status is another one in each listing. */
const FLAPPING = 'flapping';
const FLAPS = ['RUNNING', 'COMPLETED', 'PENDING', 'FAILED'];
/** Project of prompts with strange ids, project of prompts with hostile error_ids, and one with hostile details. */
const [ODD, ERRORS, DETAILS] = ['odd ids', 'error ids', 'details'];
const FAILING: Readonly<Record<string, readonly string[]>> = {
  [ODD]: ODD_IDS,
  [ERRORS]: Array.from({ length: 60 }, (_, n) => `error ${n}`),
  [DETAILS]: Object.keys(KINDS),
};
/** Project whose first listing has this many prompts. */
const MANY = 'many prompts';
const PROMPTS = 100_000;
const MAX_SERIES = 22;
const DURATIONS_MS = { short: 10_000, long: 120_000 };
const TIMEOUT_MS = 12_000;
/** Kinds that are hostile at the same time: more of them never answer than there are slots. */
const PARALLEL = 7;
const SLOTS = 4;
/**
 * Bounds. A healthy poll that waits for a hostile one is up to a timeout late; on a busy machine, one that waits for another
 * good answer may be seconds late. Blocks are CPU time, which a busy machine does not make longer.
 */
const BOUNDS = { lateMs: 10_000, overdueMs: 6000, growthMib: 200, blockMs: 300 };
/** Growth from one rest to the next that is no leak: idle connections stay for a while, and timers come and go. */
const MAX_GROWTH = new Map([
  ['MiB of heap', 8],
  ['TCPSocketWrap', 20],
  ['Timeout', 4],
  ['Immediate', 2],
]);
const RELOADS = 20;
const PATIENCE_MS = 250_000;
/** Reasons for any poll to fail: a busy machine, or a connection broken by the previous answer. */
const COLLATERAL = new Set(['timeout', 'network']);
const CONTROL_OR_BIDI = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/**
 * Besieges a daemon: projects get every kind of hostile answers, beside healthy ones.
 * @throws if the daemon is misled, is held up, grows, leaks, or reveals the key
 */
export async function besiege({ short, print, source = SOURCE }: RowOptions): Promise<Figures> {
  const faults: string[] = [];
  await using service = await startTurncoat();
  const { answers, arrivals, flaps } = service;
  const kinds = Object.keys(KINDS);
  const projects = [
    ...kinds.map((id, index) => ({
      id,
      ...(id.startsWith('come back') && { api_key_file: `key${index}` }),
    })),
    ...[...HEALTHY, FLAPPING].map((id) => ({ id, schedule: '* * * * * *' })),
    ...[...Object.keys(FAILING), MANY].map((id) => ({ id })),
  ];
  await using monitor = await startMonitor(source, service.url, projects, {
    timeout: `${TIMEOUT_MS}ms`,
    max_concurrency: SLOTS,
    max_response_size: '16MiB',
  });
  // A project that fails waits behind healthy ones, so each fails once without being slow.
  for (const id of kinds) {
    await monitor.poll(id);
    answers.set(id, ({ socket }) => void socket.end('HTTP/1.1 500 x\r\nconnection: close\r\n\r\n'));
    await monitor.poll(id);
  }
  for (const id of Object.keys(FAILING)) await monitor.poll(id);
  const atFirst = await scrape(monitor.url);
  const rested = await monitor.atRest();
  const measured = await monitor.measure();
  for (const times of arrivals.values()) times.length = 0;

  service.turn();
  for (const id of Object.keys(FAILING)) await monitor.poll(id);
  const { prompts } = await monitor.poll(MANY);
  if (prompts !== PROMPTS) faults.push(`${prompts} prompts of a long listing`);
  let polls = 0;
  const end = performance.now() + (short ? DURATIONS_MS.short : DURATIONS_MS.long);
  const rounds = function* () {
    do yield* Object.entries(KINDS);
    while (performance.now() < end && faults.length === 0);
  };
  const queue = rounds();
  await Promise.all(
    Array.from({ length: PARALLEL }, async () => {
      for (const [id, { ends, answers: variants }] of queue) {
        for (const [index, answer] of variants.entries()) {
          answers.set(id, answer);
          const { ok, reason, transitions } = await monitor.poll(id);
          polls += 1;
          const isRight = ends.includes(reason ?? 'ok') || (!ok && COLLATERAL.has(reason ?? ''));
          if (!isRight || transitions > 0) {
            faults.push(`${id}, answer ${index}: ${reason ?? 'ok'}, ${transitions} transitions`);
          }
        }
      }
    }),
  );
  const { growthMib, blockMs } = await measured();
  const lateness = [...arrivals.values()].flatMap(latenessOf);
  print(`${polls} polls of ${kinds.length} kinds`);

  answers.clear();
  const during = await scrape(monitor.url);
  for (let reloads = 0; reloads < RELOADS; reloads += 1) {
    const { status } = await fetch(`${monitor.url}/-/reload`, { method: 'POST' });
    if (status !== 200) faults.push(`a reload answered ${status}`);
  }
  for (const id of kinds) if (id !== 'come back in an hour') await returns(id);
  async function returns(id: string): Promise<void> {
    const { ok, reason, transitions } = await monitor.poll(id);
    if (!ok || transitions > 0) faults.push(`${id} does not come back: ${reason}, ${transitions}`);
  }
  const rowsOf = (path: string, id: string) =>
    monitor.rows(`${path}?limit=1000&project=${encodeURIComponent(id)}`);
  const deadline = performance.now() + PATIENCE_MS;
  for (const id of [ODD, ERRORS]) {
    const isSettled = async () =>
      (await rowsOf('failures', id)).every(({ settled }) => settled === true);
    while (!(await isSettled())) {
      if (performance.now() > deadline) throw new Error(`the failures of ${id} have not ended`);
      await setTimeout(500);
    }
  }
  for (const [name, count] of await monitor.atRest()) {
    const before = rested.get(name) ?? 0;
    if (count - before <= (MAX_GROWTH.get(name) ?? 0)) continue;
    faults.push(`a leak: ${name} went from ${before} to ${count} at rest`);
  }
  const after = await scrape(monitor.url);
  const told: string[] = [atFirst.text, during.text, after.text];
  const read = async (path: string, id: string): Promise<Rows> => {
    const rows = await rowsOf(path, id);
    told.push(JSON.stringify(rows));
    return rows;
  };
  const statusesOf = async (id: string) =>
    (await read('prompts', id))
      .map(({ prompt_id, status, missing }) => [prompt_id, status, missing].join(' '))
      .toSorted()
      .join();
  const expected = 'completed COMPLETED 0,failed FAILED 0,pending PENDING 0,running RUNNING 0';
  for (const id of [...kinds, ...HEALTHY]) {
    const shown = await statusesOf(id);
    if (shown !== expected) faults.push(`${id} shows ${shown}`);
    if ((await read('transitions', id)).length > 0) faults.push(`${id} has transitions`);
  }
  faults.push(...(await judgeFailing(read)), ...judgeErrorIds(after));
  const moves = (await read('transitions', FLAPPING)).map(({ to }) => to).toReversed();
  // The last listings may not be stored yet.
  if (moves.length < flaps.length - 3 || moves.some((to, index) => to !== flaps[index + 1])) {
    faults.push(`shown ${flaps.join()}, recorded ${moves.join()}`);
  }
  const code = await monitor.stop();
  for (const name of await readdir(monitor.directory)) {
    if (name.includes('.db')) told.push(await readFile(join(monitor.directory, name), 'latin1'));
  }
  told.push(JSON.stringify(monitor.lines), ...monitor.garbled);
  const { faults: misled, longestMs } = service.judge();
  const latest = Math.max(...lateness);
  const overdueMs = longestMs - TIMEOUT_MS;
  faults.push(
    ...misled,
    ...(latest <= BOUNDS.lateMs ? [] : [`a healthy poll was ${latest} ms late`]),
    ...(overdueMs <= BOUNDS.overdueMs ? [] : [`an answer was open ${overdueMs} ms too long`]),
    ...(growthMib <= BOUNDS.growthMib ? [] : [`memory grew by ${growthMib} MiB`]),
    ...(blockMs <= BOUNDS.blockMs ? [] : [`the event loop was held up for ${blockMs} ms`]),
    ...echoesOf(KEY)
      .filter((echo) => told.some((text) => text.includes(echo)))
      .map((echo) => `the key is told as ${echo}`),
    ...monitor.garbled.map((line) => `no log line: ${line.slice(0, 200)}`),
    ...(monitor.lines.some(({ event }) => event === 'forged') ? ['a forged line'] : []),
    ...(code === 0 ? [] : [`ended with ${code}`]),
  );
  if (faults.length > 0) throw new Error(faults.slice(0, 30).join('\n'));
  return [
    ['kinds of hostility, polls that met them', `${kinds.length}, ${polls}`],
    ['polls of healthy projects', `${lateness.length}, at most ${Math.ceil(latest)} ms late`],
    ['answers without an end, open after their deadline', `${Math.ceil(overdueMs)} ms at most`],
    ['event loop held up', `${Math.round(blockMs)} ms of CPU time at most`],
    ['memory', `${Math.round(growthMib)} MiB more at most`],
  ];
}

/**
 * Starts the service: its projects are healthy until `turn()`, and a project with an entry in `answers` gets that answer.
 * An answer without an end is open until the daemon closes its connection.
 */
async function startTurncoat() {
  const answers = new Map<string, Answer>();
  const arrivals = new Map(HEALTHY.map((id): [string, number[]] => [id, []]));
  const flaps: string[] = [];
  const faults: string[] = [];
  const open = new Map<object, number>();
  let hasTurned = false;
  let longestMs = 0;
  let held = 0;
  const trap = await startService((_, response) => void response.end());
  const elsewhere = new URL(trap.url).host;
  const service = await startService(({ path, project, headers }, response) => {
    const key = String(headers['x-api-key']);
    const [, prompt] = /^\/v2\/prompts\/([^/]+)\/$/.exec(path) ?? [];
    const id = project ?? decodeURIComponent(prompt ?? '');
    const isStolen =
      project !== undefined && path !== `/v2/projects/${encodeURIComponent(project)}/prompts/`;
    if (!key.startsWith(KEY) || id === '' || isStolen) faults.push(`the service was asked ${path}`);
    const hostility = project === undefined ? detailAnswer(id) : answers.get(project);
    const { socket } = response;
    if (hasTurned && project === 'come back in an hour') held += 1;
    if (hostility !== undefined && socket !== null) {
      const at = performance.now();
      open.set(socket, at);
      socket.once('finish', () => open.delete(socket));
      socket.once('close', () => {
        if (open.delete(socket)) longestMs = Math.max(longestMs, performance.now() - at);
      });
      hostility({ socket, key, elsewhere });
    } else if (project === undefined) {
      sendJson(response, { status: 'FAILED', error_info: errorInfoOf(id, key) });
    } else {
      arrivals.get(project)?.push(Date.now());
      response.setHeader('etag', `"${key}"`);
      response.end(listingOf(project, key));
    }
  });

  /** Returns the hostile answer to a request for details. One asks for an hour, which would hold the others. */
  function detailAnswer(id: string): Answer | undefined {
    if (!hasTurned || id === 'come back in an hour') return undefined;
    return new Map(Object.entries(KINDS)).get(id)?.answers[0];
  }

  function listingOf(project: string, key: string): string {
    if (project === FLAPPING) {
      const status = FLAPS[flaps.length % FLAPS.length] ?? '';
      flaps.push(status);
      return JSON.stringify([promptItem('mover', status)]);
    }
    if (project === MANY) {
      const items = Array.from({ length: PROMPTS }, (_, n) => ({ id: `p${n}`, status: 'FAILED' }));
      return JSON.stringify(items);
    }
    const status = hasTurned ? 'FAILED' : 'RUNNING';
    const items = FAILING[project]?.map((id) => ({
      ...promptItem(id, status),
      name: nastyText(key),
    }));
    return items === undefined ? GOOD : JSON.stringify(items);
  }

  return {
    url: service.url,
    answers,
    /** Times of the requests for each healthy project. */
    arrivals,
    /** The status of the flapping prompt in each listing. */
    flaps,
    turn: () => {
      hasTurned = true;
    },
    /** What the requests show: a misled daemon, and for how long the longest answer was open. */
    judge: () => {
      for (const at of open.values()) longestMs = Math.max(longestMs, performance.now() - at);
      const wrong = [
        ...faults,
        ...(trap.arrivals.length === 0 ? [] : [`${trap.arrivals.length} requests elsewhere`]),
        ...(held <= 1 ? [] : ['asked again within the hour']),
      ];
      return { faults: wrong, longestMs };
    },
    [Symbol.asyncDispose]: async () => {
      await service[Symbol.asyncDispose]();
      await trap[Symbol.asyncDispose]();
    },
  };
}

/** Returns the error_info of a prompt. */
function errorInfoOf(id: string, key: string) {
  const n = Number(id.slice('error '.length));
  const errorId = id.startsWith('error ') ? ERROR_IDS[n % ERROR_IDS.length]?.(n) : 'E';
  return { error_id: errorId, error_msg: nastyText(key) };
}

/** Returns how late each request was, ms: it was due at the next second after the previous one. */
function latenessOf(arrivals: readonly number[]): readonly number[] {
  return arrivals.slice(1).map((at, index) => {
    const due = (Math.floor((arrivals[index] ?? at) / 1000) + 1) * 1000;
    return Math.max(0, at - due);
  });
}

/** Checks that each prompt that failed has one transition and one failure, with nothing made up. */
async function judgeFailing(read: (path: string, id: string) => Promise<Rows>) {
  const faults: string[] = [];
  for (const [project, ids] of Object.entries(FAILING)) {
    const moves = await read('transitions', project);
    const failures = await read('failures', project);
    for (const id of ids) {
      const isOf = (row: Rows[number]) => row['prompt_id'] === id;
      const told = moves.filter(isOf).map(({ from, to }) => `${String(from)} ${String(to)}`);
      const [failure, ...others] = failures.filter(isOf);
      const info = failure?.['error_info'] as { error_id: string | null } | null | undefined;
      const reason = id === '.' || id === '..' ? 'invalid_id' : null;
      const isMadeUp = project === DETAILS && info?.error_id !== 'E' && info !== null;
      const isWrong = project !== DETAILS && failure?.['reason'] !== reason;
      if (told.join() !== 'RUNNING FAILED' || others.length > 0 || isMadeUp || isWrong) {
        faults.push(
          `${project}, ${JSON.stringify(id).slice(0, 40)}: ${told.join()} ${JSON.stringify(failure)}`,
        );
      }
    }
  }
  return faults;
}

/** Checks the series of hostile error_ids. */
function judgeErrorIds({ samples, text }: Scrape): readonly string[] {
  const series = [...samples].filter(([name]) =>
    name.startsWith(`evalwatch_prompt_failures_total{project="${ERRORS}"`),
  );
  const count = series.reduce((sum, [, value]) => sum + value, 0);
  return [
    ...(series.length === MAX_SERIES ? [] : [`${series.length} series of one project`]),
    ...(count === FAILING[ERRORS]?.length ? [] : [`${count} failures are counted`]),
    ...(text.includes('project="beta"') || CONTROL_OR_BIDI.test(text)
      ? ['the scrape is forged']
      : []),
  ];
}
