/** The daemon's own code in the process that is measured. */
import { openSync, closeSync } from 'node:fs';
import { systemClock } from '../src/app/clock.ts';
import { openEngine } from '../src/app/engine.ts';
import { version } from '../src/app/process.ts';
import { loadConfig } from '../src/config/load.ts';
import { inTurns } from '../src/domain/turns.ts';
import { createLogger, fileDescriptor } from '../src/log/logger.ts';
import { Metrics } from '../src/metrics/metrics.ts';
import { NEVER_POLLED } from '../src/monitor/memory.ts';
import type { OpenContender, Task } from './measure.ts';
import { writeConfiguration } from './processes.ts';

const POLLS_PER_TURN = 200;

/** Polls from HTTP to commit. */
const evalwatch: OpenContender = async (task) => {
  const { poll, close } = await open(task);
  return { poll, close };
};

/** Work for a scrape until its text is there. Every project is polled before it. */
const scrape: OpenContender = async (task) => {
  const { poll, close, render } = await openMetrics(task);
  return {
    prepare: async () => void (await poll()),
    poll: async () => {
      await render();
      return undefined;
    },
    close,
  };
};

/** Joins the same text from its lines, which exist already. */
const join: OpenContender = async (task) => {
  const { poll, close, render } = await openMetrics(task);
  let lines: readonly string[] = [];
  return {
    prepare: async () => {
      await poll();
      lines = Buffer.concat(await render())
        .toString()
        .split(/(?<=\n)/);
    },
    poll: async () => {
      Buffer.from(lines.join(''));
      return undefined;
    },
    close,
  };
};

export const CONTENDERS: Readonly<Record<string, OpenContender>> = {
  evalwatch,
  'evalwatch scrape': scrape,
  join,
};

/** Opens the daemon's engine. Log lines below `warn` are left out, because the goals end with the commit. */
async function open({ directory, baseUrl, projects, isChanging, fresh }: Task) {
  const file = await writeConfiguration(directory, baseUrl, projects);
  const config = await loadConfig({ file, env: {}, requireSecrets: true });
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
  let rounds = 0;
  return {
    engine,
    /** @throws {Error} if a poll fails or finds something else than was served, because then there is nothing to measure */
    poll: async () => {
      const polls: ReturnType<typeof engine.poll>[] = [];
      // As the scheduler does, which starts polls for at most 10 ms in a turn of the event loop.
      await inTurns(
        config.projects,
        ({ id }) => {
          polls.push(engine.poll(id, { dueAt: systemClock.now() }));
        },
        POLLS_PER_TURN,
      );
      const finished = await Promise.all(polls);
      let prompts = 0;
      let transitions = 0;
      for (const each of finished) {
        if (each === undefined || each.failure !== undefined) {
          throw new Error(`a poll failed: ${each?.failure?.message ?? 'it was cut short'}`);
        }
        prompts += each.prompts ?? 0;
        transitions += each.transitions;
      }
      const mustMove = isChanging && !fresh && rounds > 0;
      if (transitions > 0 !== mustMove) throw new Error(`${transitions} transitions were found`);
      rounds += 1;
      return prompts;
    },
    close: async () => {
      await engine.close();
      closeSync(nowhere);
    },
  };
}

async function openMetrics(task: Task) {
  const opened = await open(task);
  const { engine } = opened;
  const nextPollAt = systemClock.now();
  const metrics = new Metrics({
    version,
    revision: 'bench',
    storeInfo: engine.opened.info,
    logLines: { debug: 0, info: 0, warn: 0, error: 0 },
    clock: systemClock,
    store: engine.store,
    healthOf: (id) => engine.health(id) ?? NEVER_POLLED,
    schedule: () => ({ nextPollAt, maxIntervalSeconds: 30 }),
    isQuiet: () => false,
    expectationsOf: engine.expectations.of,
    externalUrl: () => undefined,
    receivers: () => [],
    emit: engine.emit,
  });
  engine.observe(metrics.observe);
  metrics.observe({ type: 'config.applied', projects: engine.projects });
  return { ...opened, render: () => metrics.render() };
}
