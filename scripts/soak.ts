/**
 * Lets the daemon watch a lively simulated service through faults, half of the time undisturbed and half of it killed again
 * and again, and compares what it recorded, showed and told with what it was served. Exits with 1 if anything differs.
 */
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { soakFaults } from '../test/support/soak/faults.ts';
import { figuresOf } from '../test/support/soak/figures.ts';
import { soak } from '../test/support/soak/soak.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '300' },
    kills: { type: 'string', default: '20' },
    faults: { type: 'string', default: 'all' },
    seed: { type: 'string', default: '1' },
    projects: { type: 'string', default: '6' },
  },
});
const seconds = Number(values.seconds) / 2;
const seed = Number(values.seed);
const projects = Number(values.projects);
const faults = soakFaults(values.faults);

const found: string[] = [];
for (const kills of [0, Number(values.kills)]) {
  const report = await soak({ seconds, kills, faults, seed, projects });
  console.log(`${seconds} s, ${kills} kills, ${projects} projects, seed ${seed}`);
  for (const [name, figure] of figuresOf(report)) console.log(`  ${name.padEnd(24)}${figure}`);
  for (const difference of report.differences) console.log(`  - ${difference}`);
  found.push(...report.differences);
  if (report.differences.length > 0) {
    const file = join(tmpdir(), `evalwatch-soak-${process.pid}-${kills}.json`);
    const text = JSON.stringify(report.observation, (_, value: unknown) =>
      value instanceof Map ? [...(value as Map<unknown, unknown>)] : value,
    );
    await writeFile(file, text);
    console.log(`  all that was observed: ${file}`);
  }
}
console.log(`${found.length} differences`);
process.exitCode = found.length === 0 ? 0 : 1;
