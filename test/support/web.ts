import { onTestFinished } from 'vitest';
import { NO_PROMPTS } from '../../src/domain/experiment.ts';
import type { WebContent } from '../../src/web/content.ts';
import { EventFeed } from '../../src/web/events/feed.ts';
import { MonitorWatch } from '../../src/web/monitor-watch.ts';
import type { ChangingProtection } from '../../src/web/security.ts';
import { startWebServer, type WebServer, type WebTimeouts } from '../../src/web/server.ts';
import { fakeClock } from './monitor.ts';
import { pieces } from './pieces.ts';

const rows = () => Promise.resolve([]);
const clock = fakeClock();
const store: WebContent['store'] = {
  projects: rows,
  statuses: rows,
  transitions: rows,
  failures: rows,
  experiments: rows,
  withoutExperiment: async () => NO_PROMPTS,
  causes: async () => ({ causes: [], others: { causes: 0, count: 0 } }),
  events: () => Promise.reject(new Error('not asked for')),
  moves: () => Promise.resolve({ since: 0, moves: [] }),
  failureCounts: rows,
};

/** What a daemon without projects shows. */
export const WITHOUT_PROJECTS: WebContent = {
  version: '1.2.3',
  clock,
  store,
  snapshot: () => Promise.resolve({ projects: [], backlog: { count: 0, oldestAt: undefined } }),
  retentionMs: 1000,
  feed: new EventFeed(store),
  renderMetrics: () => pieces('evalwatch_build_info 1\n'),
  isScheduling: () => true,
  isReady: () => true,
  isLifecycleEnabled: () => false,
  promptUrl: () => undefined,
  config: () => ({}),
  projects: () => [],
  project: () => undefined,
  monitor: () => new MonitorWatch(clock).state(),
  reload: () => Promise.resolve({ ok: true, reasons: [] }),
  pollNow: () => Promise.resolve({ polled: [], pending: 0 }),
  onBug: () => {},
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
    { ...WITHOUT_PROJECTS, ...content },
    { host, port, ...(allowedHosts && { allowedHosts }) },
    protection,
    timeouts,
  );
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= server.close());
  onTestFinished(close);
  return { url: server.url.replace('0.0.0.0', '127.0.0.1'), close };
}
