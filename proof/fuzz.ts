import { fileURLToPath } from 'node:url';
import { temporaryDirectory } from '../test/support/temporary.ts';
import { programLines } from './program-lines.ts';
import { type Row, SOURCE } from './row.ts';

const CHILD = fileURLToPath(new URL('fuzz/child.ts', import.meta.url));
/** Time after which a portion of 1,000 inputs counts as hanging. */
const HANGING_MS = 60_000;

const INPUTS: Readonly<Record<string, readonly [short: number, long: number]>> = {
  'wire items': [3000, 550_000],
  'damaged bytes': [2000, 150_000],
  'single prompts': [1000, 50_000],
  'cron expressions': [3000, 200_000],
  'configuration texts': [1000, 25_000],
  'command lines': [1000, 25_000],
};

interface Portion {
  readonly surface: string;
  readonly inputs: number;
  /** Slowest input, ms. */
  readonly slowest: number;
}

/** Gives random input to every reader of untrusted input, and compares some with a naive reader. */
export const fuzz: Row = {
  name: 'fuzz',
  run: async ({ short, seed, print, source = SOURCE }) => {
    await using directory = await temporaryDirectory();
    const counts = Object.entries(INPUTS).map(
      ([name, [few, many]]) => `${name}=${short ? few : many}`,
    );
    const totals = new Map<string, Portion>();
    let last = 'nothing';
    const lines = programLines({
      args: [CHILD, source, directory.path, String(seed), ...counts],
      cwd: directory.path,
      hangingMs: HANGING_MS,
      place: () => last,
    });
    for await (const line of lines) {
      last = line;
      if (line.includes('"error":')) throw new Error(line);
      const { surface, inputs, slowest } = JSON.parse(line) as Portion;
      const before = totals.get(surface);
      if (before === undefined) print(surface);
      totals.set(surface, {
        surface,
        inputs: (before?.inputs ?? 0) + inputs,
        slowest: Math.max(before?.slowest ?? 0, slowest),
      });
    }
    const all = totals.values().reduce((sum, { inputs }) => sum + inputs, 0);
    const asked = Object.values(INPUTS).reduce((sum, [few, many]) => sum + (short ? few : many), 0);
    if (all !== asked) throw new Error(`ended after ${all} inputs of ${asked}`);
    return [
      ['inputs', String(all)],
      ...totals
        .values()
        .map(
          ({ surface, inputs, slowest }) =>
            [surface, `${inputs}, the slowest in ${Math.ceil(slowest)} ms`] as const,
        ),
      ['crashes, hangs, stack traces', '0'],
      ['read otherwise than naively', '0'],
    ];
  },
};
