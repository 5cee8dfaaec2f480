/**
 * Gives random input to every reader of untrusted input. Arguments: a copy of src/, a directory, a seed, and the number of
 * inputs of each surface, `name=count`. Prints a line after each portion: surface, inputs, the slowest one in ms.
 */
import * as fc from 'fast-check';
import { commandLines } from './command-lines.ts';
import { configurations } from './configurations.ts';
import { cron } from './cron.ts';
import { listings } from './listings.ts';

const PORTION = 1000;

const [source = '', directory = '', seed = '', ...counts] = process.argv.slice(2);
const inputs = new Map(
  counts.map((count) => {
    const [name = '', number = ''] = count.split('=');
    return [name, Number(number)] as const;
  }),
);
const surfaces = [
  ...(await listings(source)),
  ...(await cron(source)),
  ...(await configurations(source, directory)),
  ...(await commandLines(source, directory)),
];
for (const { name, property } of surfaces) {
  for (let done = 0; done < (inputs.get(name) ?? 0); done += PORTION) {
    const numRuns = Math.min(PORTION, (inputs.get(name) ?? 0) - done);
    let slowest = 0;
    let begun = performance.now();
    const reporter = (result: fc.RunDetails<unknown>) => {
      if (!result.failed) return;
      const found = {
        surface: name,
        input: fc.stringify(result.counterexample),
        error: told(result),
      };
      console.log(JSON.stringify(found));
      process.exit(1);
    };
    property.runBeforeEach = () => {
      begun = performance.now();
    };
    property.runAfterEach = () => {
      slowest = Math.max(slowest, performance.now() - begun);
    };
    await fc.assert(property as fc.IAsyncProperty<unknown>, {
      seed: Number(seed) + done,
      numRuns,
      reporter,
    });
    console.log(JSON.stringify({ surface: name, inputs: numRuns, slowest }));
  }
}

function told({ errorInstance }: fc.RunDetails<unknown>): string {
  return errorInstance instanceof Error ? (errorInstance.stack ?? '') : String(errorInstance);
}
