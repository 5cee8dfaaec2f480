import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../config/config.ts';
import type { HttpEvaluationService } from '../evaluation-api/client.ts';
import type { ReplaceableService } from '../evaluation-api/replaceable-service.ts';
import type { EventLog } from '../log/lines.ts';
import type { Logger } from '../log/logger.ts';
import { NEVER_POLLED } from '../monitor/poll-health.ts';
import type { Poller } from '../monitor/poller.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import type { PollHealth, Store } from '../monitor/ports/store.ts';
import { projectsOf, type ConfigInForce } from './config-in-force.ts';
import type { WorkSharing } from './work-sharing.ts';

export interface ConfigureOptions {
  readonly inForce: ConfigInForce;
  readonly store: Store;
  readonly sharing: WorkSharing | undefined;
  readonly service: ReplaceableService;
  readonly createService: (settings: Config['service']) => HttpEvaluationService;
  readonly poller: Poller;
  readonly log: EventLog;
  readonly logger: Logger;
  readonly clock: Clock;
}

/**
 * Returns the function that applies a configuration, whole or not at all. If the store fails, it rejects with a StoreError,
 * and this process keeps the old configuration.
 */
export function createConfigure(options: ConfigureOptions): (next: Config) => Promise<void> {
  const { inForce, store, sharing, service, createService, poller, log, logger, clock } = options;

  async function loadHealth(ids: readonly string[]): Promise<readonly PollHealth[]> {
    if (ids.length === 0) return [];
    const stored = new Set(await store.projects());
    return await Promise.all(
      ids.map(async (id) => (stored.has(id) ? await store.loadHealth(id) : NEVER_POLLED)),
    );
  }

  return async (next) => {
    const before = inForce.projects();
    const hasNewService = !isDeepStrictEqual(next.service, inForce.config().service);
    const nextService = hasNewService ? createService(next.service) : undefined;
    const ids = [...projectsOf(next).keys()];
    // With several workers, a worker receives the health of a project when it takes ownership.
    const added = sharing ? [] : ids.filter((id) => !before.has(id));
    let health: readonly PollHealth[];
    try {
      // Every step that can fail precedes the one change.
      health = await loadHealth(added);
      await store.configureProjects(ids, clock.now());
    } catch (error) {
      await nextService?.close();
      throw error;
    }
    for (const [index, id] of added.entries()) poller.watch(id, health[index]);
    inForce.set(next);
    for (const id of before.keys()) if (!inForce.projects().has(id)) poller.unwatch(id);
    sharing?.configure(next);
    if (nextService === undefined) {
      service.renewConnections();
    } else {
      service.replace(nextService);
      poller.dropListings();
    }
    log.setProjects(ids);
    logger.setLevel(next.log.level);
  };
}
