import { text } from 'node:stream/consumers';
import { systemClock } from '../../src/app/clock.ts';
import { endProcess } from '../../src/app/lifecycle.ts';
import { createMetrics } from '../../src/metrics/metrics.ts';
import { version } from '../../src/app/version.ts';
import { createScrapes } from '../../src/web/scrapes.ts';
import type { OpenContender, Task } from './contender.ts';
import { openBenchEngine, pollAll } from './evalwatch.ts';

/** Work of the daemon for a scrape until the text can be sent. Every project is polled before it. */
export const scrape: OpenContender = async (task) => {
  const { opened, render } = await openMetrics(task);
  const answer = createScrapes(render);
  return {
    prepare: async () => {
      await pollAll(opened);
    },
    poll: async () => ({ bytes: (await answer(undefined, 'identity')).length }),
    close: () => opened.close(),
  };
};

/** Joins the same text from its lines, which exist already. */
export const join: OpenContender = async (task) => {
  const { opened, render } = await openMetrics(task);
  let lines: readonly string[] = [];
  return {
    prepare: async () => {
      await pollAll(opened);
      lines = (await text(render())).split(/(?<=\n)/);
    },
    poll: async () => ({ bytes: Buffer.from(lines.join('')).length }),
    close: () => opened.close(),
  };
};

async function openMetrics(task: Task) {
  const opened = await openBenchEngine(task);
  const { engine } = opened;
  const nextPollAt = systemClock.now();
  const schedule = { nextPollAt, maxIntervalSeconds: 30 };
  const metrics = createMetrics({
    version,
    revision: 'bench',
    storeInfo: engine.storeInfo,
    clock: systemClock,
    store: engine.store,
    schedule: () => schedule,
    expectationsOf: engine.expectations.of,
    externalUrl: () => undefined,
    emit: engine.emit,
    onError: endProcess,
  });
  engine.observe(metrics.observe);
  metrics.setProjects(engine.projects());
  return { opened, render: () => metrics.render() };
}
