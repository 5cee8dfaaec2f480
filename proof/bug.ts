import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryDirectory } from '../test/support/temporary.ts';
import type { Bug, RowOptions } from './row.ts';

const CHECKOUT = fileURLToPath(new URL('../', import.meta.url));

/** Copies src/ and config/ and plants the mistake; `await using` removes the copy. */
export async function copyWithBug({
  file,
  replace,
}: Pick<Bug, 'file' | 'replace'>): Promise<AsyncDisposable & { readonly source: string }> {
  const directory = await temporaryDirectory();
  const source = join(directory.path, 'src/');
  await cp(join(CHECKOUT, 'src'), source, { recursive: true });
  if (file.startsWith('../proof/')) {
    for (const folder of ['proof', 'test/support']) {
      await cp(join(CHECKOUT, folder), join(directory.path, folder), { recursive: true });
    }
  }
  await cp(join(CHECKOUT, 'package.json'), join(directory.path, 'package.json'));
  await cp(join(CHECKOUT, 'config'), join(directory.path, 'config'), { recursive: true });
  await symlink(join(CHECKOUT, 'node_modules'), join(directory.path, 'node_modules'));
  const path = join(source, file);
  await writeFile(path, await textWithBug(path, replace));
  // What cannot even be loaded would be noticed by anything.
  if (path.endsWith('.ts')) await import(path);
  return { source, [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose]() };
}

/** Returns the text of a file with the mistake. @throws {Error} if a replaced text is not there exactly once */
export async function textWithBug(path: string, replace: Bug['replace']): Promise<string> {
  let text = await readFile(path, 'utf8');
  for (const [before, after] of replace) {
    if (text.split(before).length !== 2) throw new Error(`${path} has not one "${before}"`);
    text = text.replace(before, () => after);
  }
  return text;
}

/** Runs before a mistake counts as not noticed: on a busy machine, too little may happen in one run. */
const MAX_RUNS = 3;

/** Returns the error that `run` throws for the mistake. @throws if it notices nothing, or something else */
export async function noticeOf(
  bug: Bug,
  run: (options: Pick<RowOptions, 'source' | 'part'>) => Promise<unknown>,
): Promise<string> {
  await using copy = await copyWithBug(bug);
  for (let runs = 0; runs < MAX_RUNS; runs += 1) {
    try {
      await run({ source: copy.source, ...(bug.part !== undefined && { part: bug.part }) });
    } catch (error) {
      const text = messagesOf(error);
      if (bug.notice.test(text)) return text;
      throw error;
    }
  }
  throw new Error(`not noticed: ${bug.what}`);
}

/** Returns the message of an error and those of its causes. */
function messagesOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}\n${messagesOf(error.cause)}`;
}
