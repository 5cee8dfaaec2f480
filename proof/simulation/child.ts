/** Simulates runs: `child.ts SOURCE PART SEED COUNT`. Writes a line of JSON for each, until one finds something. */
import { takeOverImmediates } from './kernel.ts';
import { simulate } from './run.ts';
import type { Part } from './scenario.ts';

const [source = '', part, first, count] = process.argv.slice(2);
takeOverImmediates();
// Expected failures are frequent, and a long stack takes longer than most events.
Error.stackTraceLimit = 3;
const bugs: string[] = [];
process.on('uncaughtException', (error) => void bugs.push(`a bug: ${error.stack}`));
try {
  for (let seed = Number(first); seed < Number(first) + Number(count); seed += 1) {
    const outcome = await simulate(source, part as Part, seed);
    const faults = [...bugs, ...outcome.faults];
    const { user, system } = process.cpuUsage();
    const trace = faults.length > 0 ? outcome.trace : [];
    const cpuSeconds = (user + system) / 1e6;
    const line = JSON.stringify({ ...outcome, seed, faults, trace, cpuSeconds });
    await new Promise((resolve) => void process.stdout.write(`${line}\n`, resolve));
    if (faults.length > 0) break;
  }
} catch (error) {
  console.error(error);
  process.exit(1);
}
process.exit();
