/**
 * Serves the HTTP interface of a copy of src/ three times: open, with a login, and with client certificates. Arguments: the
 * copy, and a file with certificates. Writes its addresses as a line of JSON. Each answer names its route.
 */
import { pieces } from '../../test/support/pieces.ts';
import { BY_DEFAULT } from '../../test/support/expected.ts';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import bcrypt from 'bcrypt';
import type * as ClockRoom from '../../src/app/clock.ts';
import { NEVER_POLLED } from '../../src/monitor/poll-health.ts';
import type { FinishedPoll } from '../../src/monitor/events.ts';
import type * as FeedRoom from '../../src/web/events/feed.ts';
import type * as AssetsRoom from '../../src/web/page/assets.ts';
import type * as MonitorRoom from '../../src/web/page/model/monitor-state.ts';
import type { Protection } from '../../src/domain/protection.ts';
import type * as ServerRoom from '../../src/web/server.ts';
import type { Certificate } from '../../test/support/certificates.ts';
import { PASSWORD, PROJECTS, PROTECTED, type Served, USER } from './served.ts';

const [source = '', certificates = ''] = process.argv.slice(2);
const room = async (file: string) => (await import(join(source, file))) as unknown;
const { systemClock: clock } = (await room('app/clock.ts')) as typeof ClockRoom;
const { createEventFeed } = (await room('web/events/feed.ts')) as typeof FeedRoom;
const { loadAssets } = (await room('web/page/assets.ts')) as typeof AssetsRoom;
const { watchMonitor } = (await room('web/page/model/monitor-state.ts')) as typeof MonitorRoom;
const { startWebServer } = (await room('web/server.ts')) as typeof ServerRoom;

const at = 0;
const rowOf = (route: string) => ({
  transitionId: 1,
  at,
  since: at,
  project: `${PROTECTED} ${route}`,
});
const store = {
  snapshot: () =>
    Promise.resolve({
      projects: [
        {
          project: `${PROTECTED} projects`,
          configuredAt: at,
          health: NEVER_POLLED,
          listings: new Map(),
        },
      ],
      backlog: { count: 0, oldestAt: undefined },
    }),
  projects: () => Promise.resolve([...PROJECTS]),
  statuses: () =>
    Promise.resolve([
      {
        ...rowOf('prompts'),
        promptId: 'p',
        promptName: '',
        status: 'RUNNING',
        statusRaw: '',
        missing: 0,
      } as const,
    ]),
  transitions: () =>
    Promise.resolve([
      { ...rowOf('transitions'), kind: 'prompt', id: 'p', from: 'NEW', to: 'RUNNING' } as const,
    ]),
  failures: () =>
    Promise.resolve([
      {
        ...rowOf('failures'),
        promptId: 'p',
        promptName: '',
        settlement: undefined,
        cause: undefined,
      } as const,
    ]),
  causes: () =>
    Promise.resolve({
      causes: [
        {
          cause: '0123456789abcdef',
          count: 1,
          projects: 1,
          firstAt: at,
          lastAt: at,
          isNew: true,
          transitionId: 1,
          errorInfo: { error_id: `${PROTECTED} causes`, error_msg: null },
        },
      ],
      others: { causes: 0, count: 0 },
    }),
};
// Streams stay silent.
const feed = {
  ...createEventFeed({ events: () => new Promise(() => {}) }, clock),
  read: () => new Promise<never>(() => {}),
  end: () => Promise.resolve({ transition: 0, settlement: 0 }),
};
const nextPollAt = undefined;
const content = {
  renderMetrics: () => pieces(`${PROTECTED} metrics\n`),
  metricsContentType: 'text/plain; version=0.0.4; charset=utf-8',
  isReady: () => true,
  onBug: (error: unknown) => {
    throw error;
  },
  api: {
    store,
    feed,
    clock,
    health: () => NEVER_POLLED,
    nextPollAt: () => nextPollAt,
    configured: () => undefined,
    expectationsOf: () => undefined,
  },
  page: {
    version: PROTECTED,
    clock,
    store: {
      ...store,
      moves: () => Promise.resolve({ since: 0, moves: [] }),
      failureCounts: () => Promise.resolve([]),
    },
    retentionMs: 1000,
    promptUrl: () => undefined,
    isReady: () => true,
    isLifecycleEnabled: () => true,
    projects: () =>
      PROJECTS.map((id) => {
        const none = { nextPollAt, isHealthKnown: true, expectations: undefined };
        return { ...BY_DEFAULT, id, datasets: false, health: NEVER_POLLED, ...none };
      }),
    monitor: () => watchMonitor(clock).state(),
  },
  isLifecycleEnabled: () => true,
  reload: () => Promise.resolve({ ok: true, reasons: [] }),
  pollNow: async (project?: string) => {
    if (project !== undefined && !PROJECTS.includes(project)) {
      return { refusal: 'unknown', error: 'unknown' } as const;
    }
    const outcome = { failure: undefined, prompts: 1, transitions: 0, durationMs: 1 };
    const poll = { project: `${PROTECTED} poll`, ...outcome } as FinishedPoll;
    return { polled: [poll], pending: 0 };
  },
};

async function serve(protection?: Protection): Promise<number> {
  const changing = protection && { first: protection, now: () => Promise.resolve(protection) };
  const { url } = await startWebServer(content, { host: '127.0.0.1', port: 0 }, changing);
  return Number(new URL(url).port);
}

const { server, authority } = JSON.parse(readFileSync(certificates, 'utf8')) as Record<
  'server' | 'authority',
  Certificate
>;
const headers = {};
const users = new Map([[USER, bcrypt.hashSync(PASSWORD, 4)]]);
const context = { cert: server.cert, key: server.key, ca: authority.cert };
const served: Served = {
  ports: {
    open: await serve(),
    login: await serve({ tls: undefined, users, headers }),
    certificate: await serve({
      tls: { context, clientAuth: 'RequireAndVerifyClientCert' },
      users: new Map(),
      headers,
    }),
  },
  assets: Object.values(loadAssets()).map(({ path }) => `/${path}`),
};
console.log(JSON.stringify(served));
