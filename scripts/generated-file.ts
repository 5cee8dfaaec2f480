import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';

const root = join(import.meta.dirname, '..');

/** Returns the formatted text of a generated file. `path` is relative to the root of the repository. */
export async function formatted(path: string, text: string): Promise<string> {
  const filepath = join(root, path);
  return await format(text, { ...(await resolveConfig(filepath)), filepath });
}
