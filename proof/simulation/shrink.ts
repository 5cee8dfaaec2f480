import type { Player, Report } from './play.ts';
import type { Scenario } from './scenario.ts';

/** Time without faults at the end of each run, hours, and a little more. */
const CALM_HOURS = 0.76;
/** Numbers of projects that are tried. */
const FEWER_PROJECTS = [1, 2, 3, 6];
/** Maximum number of smaller runs that are tried. */
const MAX_TRIES = 60;
/** Number of seeds that are tried with fewer projects or faults, which change everything else, too. */
const SEEDS = 2;

/** Looks for a run that finds something with fewer projects, fewer kinds of faults, or in a shorter time. */
export async function shrink(player: Player, found: Report): Promise<Report> {
  let best = found;
  let tries = 0;

  async function findsSomething(candidate: Scenario, seeds: number): Promise<boolean> {
    for (let n = 0; n < seeds && tries < MAX_TRIES; n += 1) {
      tries += 1;
      const scenario = { ...candidate, seed: candidate.seed + n };
      for await (const report of player.play([scenario])) {
        if (report.faults.length === 0) continue;
        best = report;
        return true;
      }
    }
    return false;
  }

  async function shorten(): Promise<void> {
    const { scenario, days } = best;
    // The shorter run has the same events up to the fault, if it came before the time without faults.
    const hours = Math.ceil((days * 24 + CALM_HOURS) * 100) / 100;
    if (hours < scenario.hours) await findsSomething({ ...scenario, hours }, 1);
    const half = best.scenario.hours / 2;
    if (half > CALM_HOURS) await findsSomething({ ...best.scenario, hours: half }, 1);
  }

  await shorten();
  for (const projects of FEWER_PROJECTS) {
    if (best.scenario.projects <= projects) break;
    await findsSomething({ ...best.scenario, projects }, SEEDS);
  }
  for (const kind of best.scenario.kinds) {
    const kinds = best.scenario.kinds.filter((other) => other !== kind);
    await findsSomething({ ...best.scenario, kinds }, SEEDS);
  }
  await shorten();
  return best;
}
