import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { SOURCE } from '../../proof/row.ts';
import { SOURCE_ENTRY } from './entry.ts';

/** The same in each run, because the compile cache knows files by their paths. */
const DIRECTORY = fileURLToPath(new URL('../../.vitest/evalwatch', import.meta.url));
/** Packages with native code, and one that pg loads only if it is installed. */
const NOT_BUNDLED = ['better-sqlite3', 'bcrypt', 'pg-native'];

/**
 * Bundles src/ and its libraries into about a hundred files, and returns the path of the entry point. What the sources load
 * by their own address (threads, migrations, assets) stays where it is.
 * @throws if a source has an error, or a file cannot be written
 */
export async function bundle(): Promise<string> {
  await using build = await rolldown({
    input: SOURCE_ENTRY,
    platform: 'node',
    external: NOT_BUNDLED,
    plugins: [{ name: 'addresses of the sources', transform: withOwnAddress }],
  });
  const { output } = await build.generate({ format: 'esm', chunkFileNames: '[name].js' });
  await mkdir(DIRECTORY, { recursive: true });
  // The first one is the entry point, which imports the others.
  for (const file of output.toReversed()) {
    if (file.type === 'chunk') await replace(join(DIRECTORY, file.fileName), file.code);
  }
  return join(DIRECTORY, output[0].fileName);
}

/** Writes a file unless it has this text. Processes of another run may read it meanwhile. */
async function replace(path: string, text: string): Promise<void> {
  if ((await readFile(path, 'utf8').catch(() => undefined)) === text) return;
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, text);
  await rename(draft, path);
}

/** Replaces `import.meta.url` and `import.meta.dirname` in modules of src/ by their values before bundling. */
function withOwnAddress(code: string, path: string): string | undefined {
  if (!path.startsWith(SOURCE)) return undefined;
  const values = new Map([
    ['url', pathToFileURL(path).href],
    ['dirname', dirname(path)],
  ]);
  return code.replaceAll(/\bimport\.meta\.(\w+)/g, (_, name: string) => {
    const value = values.get(name);
    if (value === undefined) {
      throw new Error(`${path} reads import.meta.${name}: add it to test/support/bundle.ts`);
    }
    return JSON.stringify(value);
  });
}
