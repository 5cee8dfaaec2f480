import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { MonitorEvent } from '../../../../src/monitor/events.ts';
import { Poller } from '../../../../src/monitor/poller.ts';
import { openStoreInProcess } from '../../../support/store-in-process.ts';
import { createApi as createRoutes } from '../../../../src/web/api/api.ts';
import type { ShownProject, WebContent } from '../../../../src/web/content.ts';
import { answerError } from '../../../../src/web/errors.ts';
import { EventFeed } from '../../../../src/web/events/feed.ts';
import { fakeClock, listingOf, neverStopping, scriptedService } from '../../../support/monitor.ts';
import { BY_DEFAULT, UNLEARNED } from '../../../support/expected.ts';
import { WITHOUT_PROJECTS } from '../../../support/web.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

/** Creates the API with the answers to errors that it has in the web server. */
export function createApi(content: WebContent): ReturnType<typeof createRoutes> {
  const onBug = (bug: unknown) => {
    throw bug;
  };
  return createRoutes({ ...content, onBug }).onError((error) => answerError(error, onBug));
}

/** Starts an API over a real store and a real poller, whose service a test scripts. */
export async function startApi(projects: readonly string[] = ['p', 'q']) {
  const directory = await temporaryDirectory();
  const clock = fakeClock();
  const observers: ((event: MonitorEvent) => void)[] = [];
  const emit = (event: MonitorEvent) => {
    for (const observe of observers) observe(event);
  };
  const store = await openStoreInProcess({ path: join(directory.path, 'store.db'), clock, emit });
  onTestFinished(async () => {
    await store.close();
    await directory[Symbol.asyncDispose]();
  });
  await store.configureProjects(projects, clock.now());
  const service = scriptedService();
  const missingAfter = () => 3;
  const shutdown = neverStopping();
  const poller = new Poller({
    service,
    store,
    clock,
    emit,
    missingAfter,
    maxIntervalMs: () => 60_000,
    shutdown,
  });
  const feed = new EventFeed(store);
  observers.push(feed.observe);
  /** Only `p` is in the configuration. */
  const shown = (id: string): ShownProject | undefined =>
    id === 'p'
      ? {
          ...BY_DEFAULT,
          id,
          datasets: false,
          team: 'search',
          health: poller.health(id),
          isHealthKnown: true,
          isIdle: false,
          nextPollAt: clock.now() + 5000,
          pause: undefined,
          expectations: UNLEARNED,
        }
      : undefined;
  const content: WebContent = {
    ...WITHOUT_PROJECTS,
    store,
    snapshot: (project) => store.snapshot(project),
    feed,
    clock,
    project: shown,
  };
  const api = createApi(content);

  /** Polls a project that shows these raw statuses by id. Without prompts the poll fails. */
  async function poll(
    project: string,
    prompts?: Readonly<Record<string, string>>,
    datasets?: Readonly<Record<string, string>>,
  ): Promise<void> {
    if (prompts === undefined) service.fails('timeout');
    else service.shows(listingOf(prompts));
    if (datasets !== undefined) service.showsDatasets(listingOf(datasets));
    clock.advance(1000);
    const run = { dueAt: clock.now() };
    await poller.poll({ id: project, datasets: datasets !== undefined }, run);
  }

  return {
    api,
    content,
    observers,
    store,
    clock,
    poll,
    request: (path: string) => api.request(path),
  };
}
