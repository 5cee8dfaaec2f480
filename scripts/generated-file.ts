import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';

const root = join(import.meta.dirname, '..');

/** Returns the formatted text of a generated file. `path` is relative to the root of the repository. */
export async function formatted(path: string, text: string): Promise<string> {
  const filepath = join(root, path);
  return await format(text, { ...(await resolveConfig(filepath)), filepath });
}

/** Writes a generated file. With `--check` it writes nothing and sets exit code 1 when the file is out of date. */
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
