/**
 * Exposes the daemon and its store to faults and compares the result with the guarantees (docs/reliability.md):
 * `node scripts/proof.ts [row …] [--short] [--seed N]`. Exits 1 if a guarantee is broken.
 */
import { parseArgs } from 'node:util';
import { noticeOf } from '../proof/bug.ts';
import { ROWS } from '../proof/rows.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { short: { type: 'boolean', default: false }, seed: { type: 'string', default: '1' } },
});
const { short } = values;
const seed = Number(values.seed);
const names = ROWS.map(({ name }) => name);
const unknown = positionals.filter((name) => !names.includes(name));
if (unknown.length > 0 || !Number.isSafeInteger(seed)) {
  console.error(`usage: proof.ts [${names.join('|')} …] [--short] [--seed N]`);
  process.exit(2);
}

const broken: string[] = [];
for (const row of ROWS) {
  if (positionals.length > 0 && !positionals.includes(row.name)) continue;
  console.log(`${row.name}, seed ${seed}${short ? ', short' : ''}`);
  const started = performance.now();
  try {
    const figures = await row.run({ short, seed, print: (line) => console.log(`  … ${line}`) });
    for (const [figure, value] of figures) say(figure, value);
    if (figures.some((texts) => texts.some((text) => text.startsWith('FAILED')))) {
      broken.push(row.name);
    }
    for (const bug of [row.bug ?? []].flat()) {
      // A proof must also find the mistakes that it plants itself.
      const notice = await noticeOf(bug, (options) =>
        row.run({ short: true, seed, print: () => {}, ...options }),
      );
      say(`bug: ${bug.what}`, `noticed: ${notice.slice(0, 160)}`);
    }
  } catch (error) {
    console.log('  FAILED', error);
    broken.push(row.name);
  }
  say('took', `${Math.round((performance.now() - started) / 1000)} s`);
}
console.log(broken.length === 0 ? 'every guarantee held' : `broken: ${broken.join(', ')}`);
process.exitCode = broken.length === 0 ? 0 : 1;

function say(figure: string, value: string): void {
  console.log(`  ${figure.padEnd(48)} ${value}`);
}
