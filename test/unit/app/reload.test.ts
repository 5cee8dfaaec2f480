import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/app/clock.ts';
import { type Config, ConfigError } from '../../../src/config/config.ts';
import type { Engine } from '../../../src/app/engine.ts';
import type { Scheduling } from '../../../src/app/scheduling.ts';
import type { MonitorEvent } from '../../../src/monitor/events.ts';
import { StoreError } from '../../../src/monitor/errors.ts';
import { endProcess } from '../../../src/app/process.ts';
import { Reload, findChanges } from '../../../src/app/reload.ts';
import { toSource } from '../../../src/config/load.ts';
import { PATIENCE } from '../../support/evalwatch.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

vi.mock(import('../../../src/app/process.ts'), async (original) => ({
  ...(await original()),
  endProcess: vi.fn<(error: unknown) => void>(),
}));

const PLACE = { file: 'f', line: 1, column: 2 };
const CONFIG = {
  store: {},
  web: {},
  projects: [],
  sources: [],
  projectsFiles: [],
} as unknown as Config;

/** The engine of a daemon with a configuration in force, as a reload needs it. */
function engineOf(inForce: () => Config, configure: (next: Config) => void) {
  const events: MonitorEvent[] = [];
  const stopping = new AbortController();
  const engine = {
    get config() {
      return inForce();
    },
    configure: async (next: Config) => configure(next),
    expectations: { refresh: async () => {} },
    emit: (event: MonitorEvent) => void events.push(event),
    shutdown: { waits: stopping.signal },
  };
  return { engine: engine as unknown as Engine, events, stopping };
}

const scheduling = { apply: () => {} } as unknown as Scheduling;

function reloadThatThrows(error: unknown) {
  const { engine, events } = engineOf(
    () => CONFIG,
    () => {
      throw error;
    },
  );
  const reload = new Reload(engine, scheduling, systemClock, async () => CONFIG);
  return { reload, events };
}

it('a reload during a stop changes nothing', async () => {
  const configure = vi.fn<(next: Config) => void>();
  const { engine, events, stopping } = engineOf(() => CONFIG, configure);
  const reload = new Reload(engine, scheduling, systemClock, async () => CONFIG);
  stopping.abort();
  expect(await reload.run()).toEqual({ ok: false, reasons: ['evalwatch is stopping'] });
  expect(configure).not.toHaveBeenCalled();
  expect(events).toEqual([]);
});

it.each([
  new StoreError('io', 'the disk is gone'),
  new ConfigError('invalid', [{ ...PLACE, message: 'no' }]),
])('a failed reload returns and logs its reason: %s', async (error) => {
  const { reload, events } = reloadThatThrows(error);
  const reasons = [error.message];
  expect(await reload.run()).toEqual({ ok: false, reasons });
  expect(events).toEqual([{ type: 'config.reload_failed', reasons, isRepeated: false }]);
  expect(endProcess).not.toHaveBeenCalled();
});

it('an unexpected error in a reload ends the process, and is not logged as a failed reload', async () => {
  const bug = new TypeError('a bug');
  const { reload, events } = reloadThatThrows(bug);
  await expect(reload.run()).rejects.toBe(bug);
  expect(events).toEqual([]);
  expect(endProcess).toHaveBeenCalledExactlyOnceWith(bug);
});

it('reloads that wait for another one share the next', async () => {
  const reads: PromiseWithResolvers<Config>[] = [];
  const { engine } = engineOf(
    () => CONFIG,
    () => {},
  );
  const reload = new Reload(engine, scheduling, systemClock, () => {
    const read = Promise.withResolvers<Config>();
    reads.push(read);
    return read.promise;
  });
  const first = reload.run();
  await vi.waitFor(() => expect(reads).toHaveLength(1), PATIENCE);
  const waiting = Array.from({ length: 30 }, () => reload.run());
  reads[0]?.resolve(CONFIG);
  expect(await first).toEqual({ ok: true, reasons: [] });
  await vi.waitFor(() => expect(reads).toHaveLength(2), PATIENCE);
  reads[1]?.reject(new ConfigError('invalid', [{ ...PLACE, message: 'no' }]));

  const results = await Promise.all(waiting);
  expect(new Set(results.map(({ ok }) => ok))).toEqual(new Set([false]));
  expect(reads).toHaveLength(2);
});

/** Sets up a watched file. `looks` checks it and returns the number of reloads that it caused. */
async function watched() {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  const file = join(directory.path, 'evalwatch.yaml');
  await writeFile(file, 'first');
  const configOf = (text: string): Config => ({ ...CONFIG, sources: [toSource(file, text)] });
  let now = 0;
  let inForce = configOf('first');
  let next = inForce;
  let fault = '';
  let meanwhile = async () => {};
  const { engine, events } = engineOf(
    () => inForce,
    (config) => (inForce = config),
  );
  const clock = { ...systemClock, monotonic: () => now };
  const reload = new Reload(engine, scheduling, clock, async () => {
    await meanwhile();
    if (fault !== '') throw new ConfigError('invalid', [{ ...PLACE, message: fault }]);
    return next;
  });
  return {
    file,
    reload,
    failuresLogged: () =>
      events.filter((each) => each.type === 'config.reload_failed' && !each.isRepeated).length,
    write: async (text: string) => {
      next = configOf(text);
      await writeFile(file, text);
    },
    looks: async (count: number) => {
      for (let each = 0; each < count; each += 1) await reload.look();
      return events.length;
    },
    passes: (ms: number) => (now += ms),
    turnsBad: (message: string) => (fault = message),
    whileItIsRead: (action: () => Promise<void>) => (meanwhile = action),
    reloadedElsewhere: (text: string) => void (inForce = configOf(text)),
  };
}

describe('the watch of the configuration', () => {
  it('new content is reloaded once, after two checks have found it', async () => {
    const { write, looks } = await watched();
    expect(await looks(3)).toBe(0);
    await write('second');
    expect(await looks(1)).toBe(0);
    expect(await looks(1)).toBe(1);
    expect(await looks(5)).toBe(1);
  });

  it('content that changes at every check is not reloaded', async () => {
    const { write, looks } = await watched();
    for (const part of ['f', 'fi', 'fir', 'firs']) {
      await write(part);
      expect(await looks(1)).toBe(0);
    }
    await write('first');
    expect(await looks(5)).toBe(0);
  });

  it('content that changes again before it is loaded is not reloaded', async () => {
    const { write, looks, whileItIsRead } = await watched();
    await write('half');
    whileItIsRead(() => write('whole'));
    expect(await looks(3)).toBe(0);
    expect(await looks(1)).toBe(1);
  });

  it('a missing file is reloaded only after five checks', async () => {
    const { file, write, looks, turnsBad } = await watched();
    await rm(file);
    expect(await looks(4)).toBe(0);
    await write('first');
    expect(await looks(5)).toBe(0);
    turnsBad('no');
    await rm(file);
    expect(await looks(4)).toBe(0);
    expect(await looks(5)).toBe(1);
  });

  it('a failed reload is repeated after a minute, or without a delay for other content', async () => {
    const { write, looks, passes, turnsBad } = await watched();
    turnsBad('no');
    await write('bad');
    expect(await looks(9)).toBe(1);
    passes(59_999);
    expect(await looks(1)).toBe(1);
    passes(1);
    expect(await looks(9)).toBe(2);
    turnsBad('');
    await write('first');
    expect(await looks(9)).toBe(3);
    passes(600_000);
    expect(await looks(1)).toBe(3);
  });

  it('content that another reload applies meanwhile is not reloaded again', async () => {
    const { write, looks, whileItIsRead, reloadedElsewhere } = await watched();
    await write('second');
    whileItIsRead(async () => reloadedElsewhere('second'));
    expect(await looks(5)).toBe(0);
  });

  it('content that another reload has applied is skipped, unless a reload failed since', async () => {
    const { reload, write, looks, turnsBad, reloadedElsewhere } = await watched();
    await write('second');
    reloadedElsewhere('second');
    expect(await looks(3)).toBe(0);
    turnsBad('no');
    await reload.run();
    expect(await looks(3)).toBe(2);
  });

  it('a failure is logged once for each content, and again on request', async () => {
    const { reload, write, looks, passes, turnsBad, failuresLogged } = await watched();
    turnsBad('no');
    await write('bad');
    expect(await looks(2)).toBe(1);
    passes(60_000);
    expect(await looks(1)).toBe(2);
    expect(failuresLogged()).toBe(1);
    await write('worse');
    expect(await looks(2)).toBe(3);
    expect(failuresLogged()).toBe(2);
    await reload.run();
    expect(failuresLogged()).toBe(3);
    passes(60_000);
    expect(await looks(1)).toBe(5);
    expect(failuresLogged()).toBe(3);
  });
});

const project = (id: string, options: object = {}) => ({ id, key: { file: '/key' }, ...options });
const configOf = (projects: readonly object[], options: object = {}) =>
  ({ service: {}, web: {}, log: {}, jitterMs: 0, projects, ...options }) as unknown as Config;

it('findChanges returns added, removed and changed projects', () => {
  const before = configOf([project('same'), project('gone'), project('moved', { team: 'a' })]);
  const after = configOf([project('moved', { team: 'b' }), project('same'), project('new')]);

  expect(findChanges(before, after)).toEqual({
    added: ['new'],
    removed: ['gone'],
    changed: ['moved'],
    omitted: undefined,
    sections: [],
  });
});

it('findChanges returns other changed options by their name in the file, without values', () => {
  const before = configOf([], { service: { proxyUrl: 'http://user:one@proxy' } });
  const after = configOf([project('p', { key: { env: 'KEY', value: 'secret' } })], {
    service: { proxyUrl: 'http://user:two@proxy' },
    jitterMs: 1,
    missingAfter: 2,
    web: { enableLifecycle: true },
    metrics: { experiments: 5 },
    log: { level: 'debug' },
    notify: [{ name: 'chat', url: { env: 'URL', value: 'secret' } }],
  });

  const changes = findChanges(before, after);

  expect(changes.sections).toEqual([
    'service',
    'jitter',
    'missing_after',
    'web',
    'metrics',
    'log',
    'notify',
  ]);
  expect(JSON.stringify(changes)).not.toMatch(/secret|one|two/);
});

it('findChanges returns at most 20 ids of each kind, and the number of the others', () => {
  const many = Array.from({ length: 1000 }, (_, index) => project(`p${index}`));

  const { added, omitted } = findChanges(configOf([]), configOf(many));

  expect(added).toEqual(many.slice(0, 20).map(({ id }) => id));
  expect(omitted).toBe(980);
});

it('findChanges reports a changed prompt_url as a change of the section service', () => {
  const after = configOf([], { promptUrl: 'https://eval.example.com/{prompt_id}' });
  expect(findChanges(configOf([]), after).sections).toEqual(['service']);
});
