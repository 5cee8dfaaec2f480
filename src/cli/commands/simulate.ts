import { InvalidArgumentError, Option } from 'commander';
import { DEFAULT_PROMPTS, Life } from '../../simulator/life.ts';
import { DEFAULT_KEY, startSimulator } from '../../simulator/service.ts';
import { DEFAULT_PROJECTS } from '../../simulator/texts.ts';
import { World } from '../../simulator/world.ts';
import type { Context, Define } from '../command.ts';
import { interval, positiveInteger } from '../options.ts';

interface SimulateOptions {
  readonly port: number;
  readonly seed: number;
  /** Time between two steps, ms. */
  readonly tick: number;
  readonly projects: readonly string[];
  readonly prompts: number;
}

export const defineSimulate: Define = (command, run) => {
  command
    .option('--port <n>', 'port on 127.0.0.1; 0 is any free port', portNumber, 10580)
    .option(
      '--seed <n>',
      'seed of the simulation: the same seed gives the same changes',
      positiveInteger,
      1,
    )
    .addOption(
      new Option('--tick <duration>', 'time between two steps of the simulation')
        .argParser(interval)
        .default(1000, '1s'),
    )
    .addOption(
      new Option('--projects <ids>', 'project ids, separated by commas')
        .argParser(parseProjectIds)
        .default(DEFAULT_PROJECTS, DEFAULT_PROJECTS.join()),
    )
    .option(
      '--prompts <n>',
      'number of prompts in each project at first; it grows by half',
      positiveInteger,
      DEFAULT_PROMPTS,
    )
    .addHelpText(
      'after',
      `
Examples:
  evalwatch simulate
  evalwatch simulate --projects checkout-bot --prompts 200 --tick 200ms`,
    )
    .action(run(simulate));
};

async function simulate(context: Context, options: SimulateOptions): Promise<number> {
  const stop = Promise.withResolvers<void>();
  context.signals.onSignal = () => stop.resolve();
  const { port, seed, tick, projects, prompts } = options;
  const world = new World(projects, () => context.clock.now());
  const life = new Life(world, seed, prompts);
  const simulator = await startSimulator(world, {
    port,
    tickMs: tick,
    step: () => life.step(),
  }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE')
      error.message += '; name another port with --port, or 0 for any free one';
    throw error;
  });
  try {
    await context.stdout.write(
      `base_url  ${simulator.url}\nAPI key   ${DEFAULT_KEY}\nprojects  ${projects.join(', ')}\n`,
    );
    await stop.promise;
  } finally {
    await simulator.close();
  }
  return 0;
}

function parseProjectIds(text: string): readonly string[] {
  const ids = text.split(',').map((id) => id.trim());
  if (ids.some((id) => id === ''))
    throw new InvalidArgumentError('A project id must not be empty.');
  const duplicate = ids.find((id, index) => ids.indexOf(id) < index);
  if (duplicate !== undefined) {
    throw new InvalidArgumentError(`Project ${JSON.stringify(duplicate)} is named twice.`);
  }
  return ids;
}

/** 0 is any free port. */
function portNumber(text: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number <= 65_535) return number;
  throw new InvalidArgumentError('It must be a port from 0 to 65535.');
}
