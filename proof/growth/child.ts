/**
 * Gives ever longer texts of every kind to every function that reads untrusted text. Arguments: a copy of src/, a directory,
 * a part of the names of the functions, the length and the time (ms) at which texts are long enough, the number of kinds of
 * texts besides runs of characters, and a seed to choose them by. Prints a line before each function, and for each kind of
 * text.
 */
import { registerHooks } from 'node:module';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { randomNumbers } from '../random.ts';
import { SOURCE } from '../row.ts';
import type { Growth } from './measure.ts';
import type { TextRule } from './texts.ts';

/** Line that this program prints. */
export type Finding =
  { readonly function: string } | { readonly fault: string } | (Growth & { readonly rule: string });

const [source = SOURCE, directory = '', part = '', ...numbers] = process.argv.slice(2);
const [length = 0, ms = 0, further = 0, seed = 0] = numbers.map(Number);
// The parent has stopped reading.
process.stdout.on('error', () => process.exit(1));
const own = pathToFileURL(SOURCE).href;
const other = pathToFileURL(source).href;
registerHooks({
  resolve: (specifier, context, next) => {
    const found = next(specifier, context);
    return { ...found, url: found.url.replace(own, other) };
  },
});
const { measureGrowth } = await import('./measure.ts');
const { textFunctions } = await import('./text-functions.ts');
const { CHARACTER_RUNS, OTHER_RULES } = await import('./texts.ts');

const random = randomNumbers(seed);

function someOf(rules: readonly TextRule[], count: number): readonly TextRule[] {
  if (count >= rules.length) return rules;
  return Array.from(
    { length: count },
    () => rules[Math.floor(random() * rules.length)] ?? [],
  ).flat();
}

for (const tested of textFunctions(directory)) {
  if (!tested.name.includes(part)) continue;
  say({ function: tested.name });
  for (const rule of [...CHARACTER_RUNS, ...someOf(OTHER_RULES, further)]) {
    await setImmediate();
    try {
      say({ rule: rule.name, ...(await measureGrowth(tested, rule, { length, ms })) });
    } catch (error) {
      say({ fault: error instanceof Error ? error.message : String(error) });
    }
  }
}

function say(finding: Finding): void {
  console.log(JSON.stringify(finding));
}
