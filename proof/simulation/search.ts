import { SOURCE } from '../row.ts';
import { openPlayer } from './play.ts';
import { type PartFromSeed, wholeScenario } from './scenario.ts';

const SEEDS_PER_PROCESS = 100;
const HOURS = 12;

export interface SearchOptions extends PartFromSeed {
  /** Simulated days after which the search ends. */
  readonly days: number;
  readonly projects: number;
}

/** Simulates seeds of one part for a number of days, and goes on after a finding. Returns the number of findings. */
export async function search(options: SearchOptions): Promise<number> {
  const { part, seed, days, projects, print } = options;
  await using player = await openPlayer(part, SOURCE);
  let next = seed;
  let simulated = 0;
  let cpuSeconds = 0;
  const found: string[] = [];
  while (simulated < days) {
    const scenarios = Array.from({ length: SEEDS_PER_PROCESS }, (_, n) =>
      wholeScenario(part, next + n, { hours: HOURS, projects }),
    );
    const before = cpuSeconds;
    for await (const report of player.play(scenarios)) {
      next = report.scenario.seed + 1;
      simulated += report.days;
      cpuSeconds = before + report.cpuSeconds;
      const [fault] = report.faults;
      if (fault !== undefined) {
        found.push(`seed ${report.scenario.seed}: ${fault}`);
        print(`FOUND ${part}, ${JSON.stringify({ ...report.scenario, found: fault })}`);
      }
      if (simulated >= days) break;
    }
    const rate = Math.round((simulated / cpuSeconds) * 3600);
    print(
      `${part}, seeds ${seed} to ${next - 1}: ${simulated.toFixed(1)} days, ${rate} a CPU hour`,
    );
  }
  print(`${part}: ${found.length} seeds found something`);
  for (const line of found) print(`  ${line}`);
  return found.length;
}
