/**
 * The daemon without its schedule and its HTTP interface: it polls, stores and emits, but starts in a quarter of the time
 * and polls without a pause. Arguments: a copy of src/, a configuration as JSON, and the number of rounds, after which it
 * retries what is pending and ends.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type * as Clock from '../../src/app/clock.ts';
import type { Config } from '../../src/config/config.ts';
import type * as Engine from '../../src/app/engine.ts';
import type * as Destination from '../../src/log/destination.ts';
import type * as Logger from '../../src/log/logger.ts';
import type { Observer } from '../../src/monitor/events.ts';

const [source = '', file = '', rounds = ''] = process.argv.slice(2);

async function load<Room>(path: string): Promise<Room> {
  return (await import(pathToFileURL(join(source, path)).href)) as Room;
}

const { openEngine } = await load<typeof Engine>('app/engine.ts');
const { createLogger } = await load<typeof Logger>('log/logger.ts');
const { fileDescriptor } = await load<typeof Destination>('log/destination.ts');
const { systemClock: clock } = await load<typeof Clock>('app/clock.ts');
const config = JSON.parse(await readFile(file, 'utf8')) as Config;
const logger = createLogger({
  level: config.log.level,
  destination: fileDescriptor(1),
  onFatalError: () => process.exit(1),
});
const engine = await openEngine({ config, logger, clock });
const { poller, reporter, shutdown } = engine;
const wakeOnFailure: Observer = (event) => {
  if (event.type === 'record.transition' && event.transition.to === 'FAILED') reporter.wake();
};
engine.observe(wakeOnFailure);
await engine.configure(config);
reporter.start();
for (let round = 0; round < Number(rounds); round += 1) {
  const now = clock.now();
  const run = { dueAt: now, nextAt: now + 1000 };
  await Promise.all(config.projects.map((project) => poller.poll(project, run)));
  // Two listings of the same millisecond could not be told apart afterwards.
  await setTimeout(3);
}
await reporter.stop();
await reporter.drain(config.projects.map(({ id }) => id));
shutdown.begin(1000);
await engine.close();
