import { fileURLToPath } from 'node:url';
import { temporaryDirectory } from '../test/support/temporary.ts';
import type { Finding } from './growth/child.ts';
import { programLines } from './program-lines.ts';
import { type Row, SOURCE } from './row.ts';

const CHILD = fileURLToPath(new URL('growth/child.ts', import.meta.url));
/** Time without a line after which a function counts as hanging. */
const HANGING_MS = 300_000;

interface Extent {
  /** Characters of the longest texts. */
  readonly length: number;
  /** Time of a text after which no longer one is tried. */
  readonly ms: number;
  /** Kinds of texts besides runs of characters, for each function. */
  readonly further: number;
}

const TESTS: Extent = { length: 16 * 1024, ms: 60, further: 4 };
/** Enough to notice a deliberate mistake. */
const SHORT: Extent = { length: 32 * 1024, ms: 60, further: 20 };
const LONG: Extent = { length: 4 * 1024 * 1024, ms: 300, further: 100 };

/** Gives ever longer texts to every function that reads untrusted text, and finds more than linear time. */
export const growth: Row = {
  name: 'growth',
  bug: [
    {
      what: 'a port is looked for behind each colon',
      part: 'parseListen',
      file: 'config/values/address.ts',
      replace: [
        [
          "const end = text.lastIndexOf(':');",
          "const end = /^(.*:.*):(\\d{1,5})$/.exec(text)?.[1]?.length ?? text.lastIndexOf(':');",
        ],
      ],
      notice: /parseListen/,
    },
  ],
  run: async ({ short, seed, print, source = SOURCE, part = '' }) => {
    await using directory = await temporaryDirectory();
    const extent = source === SOURCE ? TESTS : SHORT;
    const { length, ms, further } = short ? extent : LONG;
    let last = 'nothing';
    const faults: string[] = [];
    let functions = 0;
    let texts = 0;
    let steepest = { ratio: 0, of: '' };
    const lines = programLines({
      args: [CHILD, source, directory.path, part, ...[length, ms, further, seed].map(String)],
      cwd: directory.path,
      hangingMs: HANGING_MS,
      place: () => last,
    });
    for await (const line of lines) {
      const finding = JSON.parse(line) as Finding;
      if ('function' in finding) {
        functions += 1;
        print(finding.function);
        last = finding.function;
      } else if ('fault' in finding) {
        faults.push(finding.fault);
        if (short) break;
      } else {
        texts += 1;
        const of = `${last}, ${finding.rule}`;
        if (finding.ratio > steepest.ratio) steepest = { ratio: finding.ratio, of };
      }
    }
    if (faults.length > 0) throw new Error(faults.join('\n'));
    return [
      ['functions', String(functions)],
      ['kinds of text, of each function', String(Math.round(texts / functions))],
      ['characters, at most', String(length)],
      [
        'the steepest growth where the text is doubled',
        `${steepest.ratio.toFixed(2)}: ${steepest.of}`,
      ],
      ['more than 2.5', '0'],
    ];
  },
};
