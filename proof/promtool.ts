import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../test/support/temporary.ts';

const run = promisify(execFile);

/**
 * Runs `promtool test rules` on the last of these files, by name, all in one directory. Tests that expect nothing make
 * promtool print what there is. Returns its output.
 */
export async function promtoolOutput(
  promtool: string,
  files: Readonly<Record<string, string>>,
): Promise<string> {
  await using directory = await temporaryDirectory();
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(directory.path, name), text);
  }
  const file = join(directory.path, Object.keys(files).at(-1) ?? '');
  try {
    return (await run(promtool, ['test', 'rules', file], { maxBuffer: 2 ** 28 })).stdout;
  } catch (error) {
    if (error instanceof Error && 'stdout' in error && 'stderr' in error) {
      return `${String(error.stdout)}${String(error.stderr)}`;
    }
    throw error;
  }
}

/** Returns the samples that promtool got for an expression, by the values of their labels, which it sorts by name. */
export function samplesIn(output: string, expr: string): Map<string, number> {
  const [, after = ''] = output.split(`expr: ${JSON.stringify(expr)}`);
  const [, got = ''] = /\n\s*got:(.*)/.exec(after) ?? [];
  const samples = new Map<string, number>();
  for (const [, labels = '', value] of got.matchAll(/\{([^}]*)\} ([-+.\dE]+)/g)) {
    const names = [...labels.matchAll(/"([^"]*)"/g)].map(([, name]) => name);
    samples.set(names.join(' '), Number(value));
  }
  return samples;
}
