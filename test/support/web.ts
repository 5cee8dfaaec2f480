import { onTestFinished } from 'vitest';
import { NEVER_POLLED } from '../../src/monitor/poll-health.ts';
import type { WebContent } from '../../src/web/app.ts';
import { EventFeed } from '../../src/web/events/feed.ts';
import { watchMonitor } from '../../src/app/monitor-watch.ts';
import type { ChangingProtection } from '../../src/web/security.ts';
import { startWebServer, type WebServer, type WebTimeouts } from '../../src/web/server.ts';
import { fakeClock } from './monitor.ts';
import { pieces } from './pieces.ts';

const rows = () => Promise.resolve([]);
const store = {
  events: () => Promise.reject(new Error('not asked for')),
};
export const api = {
  feed: new EventFeed(store),
  clock: fakeClock(),
  store: {
    snapshot: () => Promise.resolve({ projects: [], backlog: { count: 0, oldestAt: undefined } }),
    projects: rows,
    statuses: rows,
    transitions: rows,
    failures: rows,
    causes: async () => ({ causes: [], others: { causes: 0, count: 0 } }),
  },
  health: () => NEVER_POLLED,
  nextPollAt: () => undefined,
  configured: () => undefined,
  expectationsOf: () => undefined,
};
const clock = fakeClock();
export const statusPage = {
  version: '1.2.3',
  clock,
  store: {
    ...api.store,
    moves: () => Promise.resolve({ since: 0, moves: [] }),
    failureCounts: () => Promise.resolve([]),
  },
  retentionMs: 1000,
  promptUrl: () => undefined,
  isReady: () => true,
  isLifecycleEnabled: () => false,
  projects: () => [],
  project: () => undefined,
  monitor: () => watchMonitor(clock).state(),
};

export interface WebOptions {
  readonly allowedHosts?: () => readonly string[];
  readonly protection?: ChangingProtection;
  readonly timeouts?: Partial<WebTimeouts>;
  readonly host?: string;
  readonly port?: number;
}

/** Starts the web server with the content of a daemon without projects. It ends with the test. */
export async function startWeb(
  content: Partial<WebContent> = {},
  { allowedHosts, protection, timeouts, host = '127.0.0.1', port = 0 }: WebOptions = {},
): Promise<WebServer> {
  const server = await startWebServer(
    {
      renderMetrics: () => pieces('evalwatch_build_info 1\n'),
      metricsContentType: 'text/plain; version=0.0.4; charset=utf-8',
      isReady: () => true,
      onBug: () => {},
      api,
      page: statusPage,
      isLifecycleEnabled: () => false,
      reload: () => Promise.resolve({ ok: true, reasons: [] }),
      pollNow: () => Promise.resolve({ polled: [], pending: 0 }),
      ...content,
    },
    { host, port, ...(allowedHosts && { allowedHosts }) },
    protection,
    timeouts,
  );
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= server.close());
  onTestFinished(close);
  return { url: server.url.replace('0.0.0.0', '127.0.0.1'), close };
}
