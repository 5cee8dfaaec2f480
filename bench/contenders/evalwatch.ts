import { openSync, closeSync } from 'node:fs';
import { systemClock } from '../../src/app/clock.ts';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { openEngine, type Engine } from '../../src/app/engine.ts';
import { fileDescriptor } from '../../src/log/destination.ts';
import { createLogger } from '../../src/log/logger.ts';
import { validateSchedule } from '../../src/schedule/calendar.ts';
import { writeConfiguration } from './configuration.ts';
import type { OpenContender, Task } from './contender.ts';

/** Time until the next poll, ms. Above an hour, the poller would send no ETag. */
const POLL_EVERY_MS = 10_000;

export interface OpenedEngine {
  readonly engine: Engine;
  readonly config: Config;
  close(): Promise<void>;
}

/**
 * Opens the engine of the daemon with a configuration of its own. Log lines below `warn` are left out, because the goals
 * end with the commit.
 */
export async function openBenchEngine(task: Task): Promise<OpenedEngine> {
  const config = await loadConfig({
    file: await writeConfiguration(task),
    env: {},
    validateSchedule,
    requireSecrets: true,
  });
  const nowhere = openSync('/dev/null', 'w');
  const logger = createLogger({
    level: config.log.level,
    destination: fileDescriptor(nowhere),
    onFatalError: (error) => {
      throw error;
    },
  });
  const engine = await openEngine({ config, logger, clock: systemClock });
  await engine.configure(config);
  return {
    engine,
    config,
    close: async () => {
      await engine.close();
      closeSync(nowhere);
    },
  };
}

/** @throws {Error} if a poll fails, because then there is nothing to measure */
export async function pollAll({ engine, config }: OpenedEngine) {
  return await Promise.all(
    config.projects.map(async (project) => {
      const now = systemClock.now();
      const run = { dueAt: now, nextAt: now + POLL_EVERY_MS };
      const finished = await engine.poller.poll(project, run);
      if (finished === undefined || finished.failure !== undefined) {
        throw new Error(`a poll failed: ${finished?.failure?.message ?? 'it was cut short'}`);
      }
      return finished;
    }),
  );
}

/** Polls with the daemon's own code, from HTTP to commit. */
export const evalwatch: OpenContender = async (task) => {
  const opened = await openBenchEngine(task);
  return {
    poll: async () => {
      const finished = await pollAll(opened);
      return {
        prompts: finished.reduce((sum, { prompts = 0 }) => sum + prompts, 0),
        transitions: finished.reduce((sum, { transitions }) => sum + transitions, 0),
        unchanged: finished.filter(({ unchanged }) => unchanged).length,
      };
    },
    close: () => opened.close(),
  };
};
