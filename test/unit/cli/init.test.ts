import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { commandLine } from '../../support/command-line.ts';
import { temporaryDirectory } from './configuration-file.ts';

it('init writes a valid configuration that check calls an example, and replaces no file', async () => {
  const file = join(temporaryDirectory(), 'etc/evalwatch.yaml');
  const { code, stdout } = await commandLine(['init', file]);
  expect(code).toBe(0);
  expect(stdout).toMatch(new RegExp(`^${file} is written.*evalwatch check .*${file}\n$`, 's'));
  expect(readFileSync(file, 'utf8')).toMatch(/^# Configuration of evalwatch with every option/);
  const checked = await commandLine(['check', '--config', file]);
  expect(checked.stderr).toMatch(/^warning: .* this configuration is an example/);

  writeFileSync(file, 'mine');
  expect(await commandLine(['init', file])).toMatchObject({
    code: 2,
    stderr: `error: ${file} already exists: name a file that does not\n`,
  });
  expect(readFileSync(file, 'utf8')).toBe('mine');
});

it('init says why it cannot make the directory of the file', async () => {
  const file = join(temporaryDirectory(), 'file');
  writeFileSync(file, '');
  expect(await commandLine(['init', join(file, 'evalwatch.yaml')])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('mkdir'),
  });
});

it('a command without a configuration says how to write one', async () => {
  const file = join(temporaryDirectory(), 'evalwatch.yaml');
  for (const command of ['run', 'check']) {
    const { code, stderr } = await commandLine([command, '--config', file]);
    expect(code).toBe(2);
    expect(stderr).toContain('or write one with `evalwatch init`');
  }
});
