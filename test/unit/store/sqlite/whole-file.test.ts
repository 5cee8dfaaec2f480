import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import {
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
  type FileHandle,
} from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { writeWhole } from '../../../../src/store/sqlite/file/whole-file.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';
import { startChild } from './child.ts';

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let target: string;
beforeEach(async () => {
  directory = await temporaryDirectory();
  target = join(directory.path, 'file');
});
afterEach(async () => {
  vi.restoreAllMocks();
  await directory[Symbol.asyncDispose]();
});

const PATIENCE = { timeout: 100_000, interval: 50 };
const names = async () => (await readdir(directory.path)).toSorted();

describe('writeWhole', () => {
  it('uses a draft with a random name and mode 0600', async () => {
    const drafts = new Set<string>();
    for (let round = 0; round < 3; round += 1) {
      await writeWhole(target, true, async ({ path, file }) => {
        drafts.add(path);
        expect(((await stat(path)).mode & 0o777).toString(8)).toBe('600');
        await file.appendFile(`round ${round}`);
      });
    }
    expect(drafts.size).toBe(3);
    for (const draft of drafts) expect(draft).toMatch(/file\.partial-[0-9a-f]{12}$/);
    expect(await readFile(target, 'utf8')).toBe('round 2');
    expect(await names()).toEqual(['file']);
  });

  it('writes neither to a leftover draft nor through a planted symlink', async () => {
    const draft = `${target}.partial-0123456789ab`;
    const random = vi.spyOn(crypto, 'randomBytes');
    random.mockImplementation(() => Buffer.from('0123456789ab', 'hex'));
    syncBuiltinESMExports();
    const write = () => writeWhole(target, false, ({ file }) => file.appendFile('new'));
    try {
      await writeFile(draft, 'left behind');
      await expect(write()).rejects.toThrow('EEXIST');
      expect(await readFile(draft, 'utf8')).toBe('left behind');
      await rename(draft, join(directory.path, 'victim'));
      await symlink('victim', draft);
      await expect(write()).rejects.toThrow('EEXIST');
      expect(await readFile(draft, 'utf8')).toBe('left behind');
      expect(await names()).toEqual(['file.partial-0123456789ab', 'victim']);
    } finally {
      random.mockRestore();
      syncBuiltinESMExports();
    }
  });

  it('leaves no draft and keeps an existing file if writing fails', async () => {
    const failing = () => Promise.reject(new Error('no'));
    await expect(writeWhole(target, false, failing)).rejects.toThrow('no');
    expect(await names()).toEqual([]);
    await writeFile(target, 'precious');
    await expect(writeWhole(target, true, failing)).rejects.toThrow('no');
    expect(await names()).toEqual(['file']);
    expect(await readFile(target, 'utf8')).toBe('precious');
    await expect(writeWhole(`${target}/below`, true, failing)).rejects.toThrow('ENOTDIR');
  });

  it.each([
    ['without an existing file', 'draft', []],
    ['in the place of a file', 'replace', ['file']],
  ])('leaves no draft when a signal ends the process, %s', async (_, mode, left) => {
    if (mode === 'replace') await writeFile(target, 'precious');
    await using child = startChild('write-forever.ts', target, mode);
    await child.lines.next();
    expect(await names()).toContainEqual(expect.stringMatching(/^file\.partial-/));
    process.kill(Number(child.pid), 'SIGTERM');
    // Waits until stdout is closed.
    await child.lines.next();
    // Another process removes the draft.
    await expect.poll(names, PATIENCE).toEqual(left);
  });

  it('keeps a file that another program writes meanwhile when a signal ends the process', async () => {
    await using child = startChild('write-forever.ts', target, 'draft');
    await child.lines.next();
    await writeFile(target, 'of another program');
    process.kill(Number(child.pid), 'SIGTERM');
    await child.lines.next();
    await expect.poll(names, PATIENCE).toEqual(['file']);
    expect(await readFile(target, 'utf8')).toBe('of another program');
  });

  it('fails if another program creates the target meanwhile', async () => {
    const written = writeWhole(target, false, async ({ file }) => {
      await file.appendFile('ours');
      await writeFile(target, 'of another program');
    });
    await expect(written).rejects.toThrow(`${target} exists`);
    expect(await readFile(target, 'utf8')).toBe('of another program');
    expect(await names()).toEqual(['file']);
  });

  /** Replaces `sync` of all files and directories. */
  async function failToSync(code: string, what: 'isDirectory' | 'isFile') {
    await using some = await open(directory.path, 'r');
    const handles: Pick<FileHandle, 'sync'> = Object.getPrototypeOf(some);
    vi.spyOn(handles, 'sync').mockImplementation(async function (this: FileHandle) {
      if (!(await this.stat())[what]()) return;
      throw Object.assign(new Error(`${code}: made up, fsync`), { code, syscall: 'fsync' });
    });
  }

  it.each(['EINVAL', 'ENOTSUP'])(
    'writes into a directory that cannot be synced (%s)',
    async (code) => {
      await failToSync(code, 'isDirectory');
      await writeWhole(target, false, ({ file }) => file.appendFile('whole'));
      expect(await readFile(target, 'utf8')).toBe('whole');
    },
  );

  it('names the directory or the file whose sync fails', async () => {
    const write = () => writeWhole(target, false, ({ file }) => file.appendFile('whole'));
    await failToSync('EIO', 'isFile');
    await expect(write()).rejects.toThrow(`${target} cannot be synced to the disk: Error: EIO`);
    expect(await names()).toEqual([]);
    vi.restoreAllMocks();
    await failToSync('EIO', 'isDirectory');
    await expect(write()).rejects.toThrow(
      `${target} is complete, but the directory ${directory.path} cannot be synced`,
    );
    expect(await readFile(target, 'utf8')).toBe('whole');
  });

  it.each([
    ['a link', (draft: string) => symlink('victim', draft)],
    ['another file', (draft: string) => writeFile(draft, 'other')],
    ['a directory', (draft: string) => mkdir(draft)],
  ])('fails if its draft is replaced by %s meanwhile', async (_name, replaceDraft) => {
    const written = writeWhole(target, false, async ({ path, file }) => {
      await file.appendFile('ours');
      await rm(path);
      await replaceDraft(path);
    });
    await expect(written).rejects.toThrow('was replaced by another program while it was written');
    expect(await names()).not.toContain('file');
  });

  it('rejects a target that is a pipe', async () => {
    execFileSync('mkfifo', [target]);
    await expect(writeWhole(target, true, () => Promise.resolve())).rejects.toThrow(
      `${target} is not a file: choose another name`,
    );
    expect((await stat(target)).isFIFO()).toBe(true);
  });
});
