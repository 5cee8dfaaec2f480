import { SOURCE } from '../row.ts';
import { openPlayer } from './play.ts';
import { type PartFromSeed, type Scenario, wholeScenario } from './scenario.ts';

const SIZE = { hours: 1.25, projects: 3 };

export interface RepeatOptions extends PartFromSeed {
  readonly seeds: number;
}

/** Simulates each seed twice, in two processes and in opposite orders. Returns the number of seeds with two traces. */
export async function repeat({ part, seed, seeds, print }: RepeatOptions): Promise<number> {
  await using player = await openPlayer(part, SOURCE);

  async function digestsOf(
    scenarios: readonly Scenario[],
    digests = new Map<number, string>(),
  ): Promise<ReadonlyMap<number, string>> {
    for await (const { scenario, digest, faults } of player.play(scenarios)) {
      digests.set(scenario.seed, digest);
      // A finding ends the process.
      const rest = scenarios.slice(scenarios.indexOf(scenario) + 1);
      if (faults.length > 0) print(`FOUND ${JSON.stringify({ ...scenario, found: faults[0] })}`);
      if (faults.length > 0) return await digestsOf(rest, digests);
    }
    return digests;
  }

  const scenarios = Array.from({ length: seeds }, (_, n) => wholeScenario(part, seed + n, SIZE));
  const first = await digestsOf(scenarios);
  const second = await digestsOf(scenarios.toReversed());
  const different = scenarios.filter((one) => first.get(one.seed) !== second.get(one.seed));
  for (const one of different) print(`two traces: ${JSON.stringify(one)}`);
  print(
    `${part}, seeds ${seed} to ${seed + seeds - 1}: ${seeds - different.length} of ${seeds} wrote the same trace twice`,
  );
  return different.length;
}
