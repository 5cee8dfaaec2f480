import { pieces } from '../pieces.ts';
import { BY_DEFAULT, UNLEARNED } from '../expected.ts';
import { join } from 'node:path';
import type { Settlement } from '../../../src/domain/failure.ts';
import type { ObservedRecord } from '../../../src/domain/record.ts';
import { statusOf, type Kind } from '../../../src/domain/status.ts';
import type { FailedRequest, PollFailureReason } from '../../../src/monitor/errors.ts';
import type { PollFailure } from '../../../src/monitor/events.ts';
import { afterFailure, afterSuccess } from '../../../src/monitor/memory.ts';
import type { Store } from '../../../src/monitor/ports/store.ts';
import { openStoreInProcess } from '../store-in-process.ts';
import type { ShownProject, WebContent } from '../../../src/web/content.ts';
import { createPage } from '../../../src/web/page/routes.ts';
import { MonitorWatch } from '../../../src/web/monitor-watch.ts';
import { version as programVersion } from '../../../src/app/process.ts';
import { EventFeed } from '../../../src/web/events/feed.ts';
import { startWebServer } from '../../../src/web/server.ts';
import { fakeClock } from '../monitor.ts';
import { WITHOUT_PROJECTS } from '../web.ts';
import { temporaryDirectory } from '../temporary.ts';
import { compareListing } from '../../../src/domain/transition.ts';
import { withCause } from '../failures.ts';

const REFUSED: FailedRequest = {
  message: 'the service answered 401',
  url: 'https://evaluation.example.com/v2/projects/search-ranking/prompts/',
  statusCode: 401,
  detail: 'API key is not valid',
};

export const NIGHT = Date.parse('2026-11-21T03:12:40Z');
export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;

/** Raw status of a record, alone or with its name and experiment. */
export type Shown =
  string | { readonly status: string; readonly name?: string; readonly experiment?: string };

/** A status page over a real store whose clock stands still; `await using` removes it. */
export interface PageWorld extends AsyncDisposable {
  readonly clock: ReturnType<typeof fakeClock>;
  readonly store: Store;
  readonly content: WebContent;
  readonly monitor: MonitorWatch;
  configure(ids: readonly string[], options?: { readonly datasets?: boolean }): Promise<void>;
  /** Commits a poll with these records by id. */
  see(project: string, records: Readonly<Record<string, Shown>>, kind?: Kind): Promise<void>;
  /** Commits `count` failed polls in a row. */
  fail(
    project: string,
    reason: PollFailureReason,
    count?: number,
    request?: FailedRequest,
  ): Promise<void>;
  /** Settles each pending failure; one whose settlement is undefined stays pending. */
  settle(settlementOf: (promptId: string) => Settlement | undefined): Promise<void>;
  /** Changes the configuration and the monitor data of a project. */
  change(project: string, change: Partial<Omit<ShownProject, 'id' | 'health'>>): void;
  /** Reads a page; `text` is what a user sees. */
  read(target?: string, change?: Partial<WebContent>): Promise<PageRead>;
  /** Serves the whole HTTP interface. */
  serve(): Promise<AsyncDisposable & { readonly url: string }>;
}

interface PageRead {
  readonly status: number;
  readonly headers: Headers;
  readonly html: string;
  readonly text: string;
}

export async function openPageWorld(start = NIGHT): Promise<PageWorld> {
  const clock = fakeClock(start);
  const monitor = new MonitorWatch(clock);
  const directory = await temporaryDirectory();
  const path = join(directory.path, 'store.db');
  const store = await openStoreInProcess({ path, clock, emit: monitor.observe });
  const projects = new Map<string, ShownProject>();

  async function commit(
    id: string,
    failure: PollFailure | undefined,
    listings: Parameters<Store['commitPoll']>[0]['listings'],
    token: string,
  ): Promise<void> {
    const project = projectOf(id);
    const at = clock.now();
    const health = failure
      ? afterFailure(project.health, at, failure)
      : afterSuccess(project.health, at, 60_000);
    await store.commitPoll({ project: id, at, health, token, listings });
    projects.set(id, { ...project, health });
  }

  function projectOf(id: string): ShownProject {
    const project = projects.get(id);
    if (project === undefined) throw new Error(`${id} is not configured`);
    return project;
  }

  const content: WebContent = {
    ...WITHOUT_PROJECTS,
    version: programVersion,
    clock,
    store,
    snapshot: (project) => store.snapshot(project),
    retentionMs: 90 * 24 * HOUR,
    feed: new EventFeed(store),
    renderMetrics: () => pieces(''),
    projects: () => [...projects.values()],
    project: (id) => projects.get(id),
    monitor: () => monitor.state(),
    onBug: (error) => {
      throw error;
    },
  };

  return {
    clock,
    store,
    content,
    monitor,
    configure: async (ids, { datasets = false } = {}) => {
      await store.configureProjects(ids, clock.now());
      const health = await Promise.all(ids.map((id) => store.loadHealth(id)));
      projects.clear();
      for (const [index, id] of ids.entries()) {
        const known = health[index];
        if (known === undefined) throw new Error('not loaded');
        projects.set(id, {
          ...BY_DEFAULT,
          expectations: UNLEARNED,
          id,
          datasets,
          health: known,
          isHealthKnown: true,
          isIdle: false,
          nextPollAt: clock.now() + 20 * SECOND,
          pause: undefined,
        });
      }
    },
    see: async (id, shown, kind = 'prompt') => {
      const { token, listings } = await store.loadKnown(id, [kind]);
      const known = listings.get(kind);
      if (known === undefined) throw new Error('not loaded');
      const records = new Map(
        Object.entries(shown).map(([each, is]) => [each, recordOf(each, is)]),
      );
      const listing = {
        records,
        idsWithoutStatus: new Set<string>(),
        complete: true,
        anomalies: [],
      };
      const { changes } = await compareListing(known, listing, {
        at: clock.now(),
        missingAfter: 2,
      });
      await commit(id, undefined, new Map([[kind, changes]]), token);
    },
    fail: async (id, reason, count = 1, { message, ...details } = REFUSED) => {
      for (let failure = 0; failure < count; failure += 1) {
        await commit(id, { reason, message, details }, new Map(), '');
      }
    },
    settle: async (settlementOf) => {
      for (const failure of await store.pendingFailures({ limitPerProject: 1000 })) {
        const settlement = settlementOf(failure.promptId);
        if (settlement !== undefined)
          await store.settleFailure(failure, withCause(settlement), clock.now());
      }
    },
    change: (id, change) => {
      projects.set(id, { ...projectOf(id), ...change });
    },
    read: async (target = '/', change = {}) => {
      const answer = await createPage({ ...content, ...change }).request(target);
      const { status, headers } = answer;
      const html = await answer.text();
      return { status, headers, html, text: textOf(html) };
    },
    serve: async () => {
      const server = await startWebServer(content, { host: '127.0.0.1', port: 0 });
      return { url: server.url, [Symbol.asyncDispose]: () => server.close() };
    },
    [Symbol.asyncDispose]: async () => {
      await store.close();
      await directory[Symbol.asyncDispose]();
    },
  };
}

/** Returns what a reader sees of a page, on one line. */
function textOf(html: string): string {
  return html
    .replaceAll(/<(svg|head)\b[\s\S]*?<\/\1>|<\/(?:d[dt]|t[dh])>/g, ' ')
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/\s+/g, ' ');
}

function recordOf(id: string, shown: Shown): ObservedRecord {
  const all: Exclude<Shown, string> = typeof shown === 'string' ? { status: shown } : shown;
  const { status: raw, name = `name of ${id}`, experiment } = all;
  const status = statusOf(raw);
  const statusRaw = status === 'UNKNOWN' ? raw : undefined;
  return { id, status, statusRaw, name, timestamp: undefined, experiment };
}
