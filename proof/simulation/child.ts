/**
 * Simulates runs: `child.ts SOURCE RUN…`. A RUN is a scenario in JSON; one of workers has a `database`: `model`, or the URL
 * of an empty PostgreSQL database. Writes a line of JSON for each run, until one finds something.
 */
import { takeOverImmediates } from './kernel.ts';
import { simulate } from './run.ts';
import type { Scenario } from './scenario.ts';

const [source = '', ...runs] = process.argv.slice(2);
takeOverImmediates();
// Expected failures are frequent, and a stack takes longer than most events. A run alone shows that of a bug.
Error.stackTraceLimit = runs.length > 1 ? 0 : 5;
const bugs: string[] = [];
process.on('uncaughtException', (error) => void bugs.push(`a bug: ${error.stack}`));
for (const run of runs) {
  const scenario = JSON.parse(run) as Scenario;
  const outcome = await simulate({ source, scenario }).catch((e) => { console.error(e); process.exit(1); });
  const faults = [...bugs, ...outcome.faults];
  const { user, system } = process.cpuUsage();
  const trace = faults.length > 0 ? outcome.trace : [];
  console.error('statements', globalThis.zz);
  const cpuSeconds = (user + system) / 1e6;
  const line = JSON.stringify({ ...outcome, scenario, faults, trace, cpuSeconds });
  await new Promise((resolve) => void process.stdout.write(`${line}\n`, resolve));
  if (faults.length > 0) break;
}
process.exit();
