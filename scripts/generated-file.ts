import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';

const root = join(import.meta.dirname, '..');

/** A file of the repository as its generator wants it, formatted like every other. `path` starts from the root. */
export async function formatted(path: string, text: string): Promise<string> {
  const filepath = join(root, path);
  return await format(text, { ...(await resolveConfig(filepath)), filepath });
}

/** Writes a generated file; with `--check` only tells, by the exit code, whether the one that is there is current. */
export async function writeOrCheck(path: string, text: string): Promise<void> {
  const file = join(root, path);
  const wanted = await formatted(path, text);
  if (!process.argv.includes('--check')) {
    await writeFile(file, wanted);
  } else if ((await readFile(file, 'utf8').catch(() => '')) !== wanted) {
    console.error(`${path} is out of date: npm run generate`);
    process.exitCode = 1;
  }
}
