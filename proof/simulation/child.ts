/**
 * Simulates seeds: `child.ts SOURCE HOURS SEED…`, where a SEED may be followed by `=` and the URL of an empty PostgreSQL
 * database for three workers. Writes a line of JSON for each, until one fails.
 */
import { countImmediates } from './kernel.ts';
import { simulate } from './run.ts';

const [source = '', hours = '', ...runs] = process.argv.slice(2);
countImmediates();
const bugs: string[] = [];
process.on('uncaughtException', (error) => void bugs.push(`a bug: ${error.stack}`));
for (const run of runs) {
  const [seed, databaseUrl] = run.split(/=(.*)/s);
  const durationMs = Number(hours) * 3_600_000;
  const outcome = await simulate({ source, seed: Number(seed), durationMs, databaseUrl });
  const faults = [...bugs, ...outcome.faults];
  const { user, system } = process.cpuUsage();
  const trace = faults.length > 0 ? outcome.trace : [];
  const cpuSeconds = (user + system) / 1e6;
  const line = JSON.stringify({ ...outcome, faults, trace, cpuSeconds });
  await new Promise((resolve) => void process.stdout.write(`${line}\n`, resolve));
  if (faults.length > 0) break;
}
process.exit();
