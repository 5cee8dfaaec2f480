import { execFile } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { FILES_ADDRESS } from '../../../scripts/repository.ts';
import { createProgram } from '../../../src/cli/main.ts';
import { RUNBOOKS, alerts } from './rules-file.ts';

const pages = readdirSync(RUNBOOKS).map((file) => ({
  file,
  text: readFileSync(join(RUNBOOKS, file), 'utf8'),
}));

it('every alert links its runbook, and there is no other', () => {
  const named = alerts.map(({ alert }) => `${alert}.md`);
  expect(pages.map(({ file }) => file).toSorted()).toEqual(named.toSorted());
  const linked = alerts.map(({ annotations }) => annotations.runbook_url);
  expect(linked).toEqual(named.map((file) => `${FILES_ADDRESS}/docs/runbooks/${file}`));
});

it.each(pages)('$file has the same sections as every other page', ({ file, text }) => {
  const structure = [...text.matchAll(/^(?:#+ .*|\*\*[^*]*:\*\*)/gm)].map(([heading]) => heading);
  expect(structure).toEqual([
    `# ${file.replace('.md', '')}`,
    '**Summary:**',
    '**Impact:**',
    '## First look',
    '**Page:**',
    ...(file === 'EvalwatchWatchdog.md' ? [] : ['**Commands:**']),
    '## Diagnose',
    '## Fix',
    '## False alarms',
  ]);
});

it('the shell blocks have valid syntax, and can be pasted without comments', async () => {
  const blocks = pages.flatMap(({ text }) =>
    [...text.matchAll(/^```sh\n([\s\S]+?)```$/gm)].map(([, block = '']) => block),
  );
  expect(blocks.length).toBeGreaterThan(pages.length);
  const check = 'for block; do bash -n -c "$block" || exit; done';
  await promisify(execFile)('bash', ['-c', check, 'bash', ...blocks]);
  expect(blocks.filter((block) => /(?:^|\s)#/m.test(block))).toEqual([]);
});

it.each(pages)('$file uses only existing commands and options of evalwatch', async ({ text }) => {
  const commands = [...text.matchAll(/(?:^ *|`)evalwatch ([a-z][^`|>\n]*)/gm)];
  for (const [, command = ''] of commands) {
    const args = command.trim().replaceAll('"$PROJECT"', 'checkout-bot').split(' ');
    const program = await createProgram(() => () => Promise.resolve(), args[0], {
      writeErr: () => {},
    });
    await expect(program.parseAsync(args, { from: 'user' })).resolves.toBe(program);
  }
});
