import { expect, it, vi } from 'vitest';
import { readRegularFile } from '../../../src/files/regular-file.ts';
import { errorOf, loadText, minimal, temporaryDirectory } from '../config/loading.ts';

// Mocks file work whose file system hangs.
vi.mock(import('../../../src/files/thread-work.ts'), async (original) => ({
  ...(await original()),
  queueFileWork: async () => undefined,
}));

const directory = temporaryDirectory();

it('a file on a hanging file system is OVERDUE, and the error of a configuration names that', async () => {
  expect(await readRegularFile(import.meta.filename, 1_000_000)).toEqual({ fault: 'OVERDUE' });
  const { message } = await errorOf(loadText(directory, minimal()));
  expect(message).toMatch(
    /evalwatch\.yaml:1:1: the file could not be read within 5 s: its file system does not answer/,
  );
});
