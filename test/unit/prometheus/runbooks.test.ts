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

const operations = readFileSync(join(RUNBOOKS, '../operations.md'), 'utf8');
/** Blocks that define the commands of the runbooks, one for each deployment. */
const definitions = shellBlocks(
  operations.split('### Shell functions')[1]?.split('\n## ')[0] ?? '',
);

function shellBlocks(text: string): readonly string[] {
  return [...text.matchAll(/^ *```sh\n([\s\S]+?)^ *```$/gm)].map(([, block = '']) => block);
}

it('every alert links its runbook, and there is no other', () => {
  const named = alerts.map(({ alert }) => `${alert}.md`);
  expect(pages.map(({ file }) => file).toSorted()).toEqual(named.toSorted());
  const linked = alerts.map(({ annotations }) => annotations.runbook_url);
  expect(linked).toEqual(named.map((file) => `${FILES_ADDRESS}/docs/runbooks/${file}`));
});

it.each(pages)(
  '$file has the same sections as every other page, on one screen',
  ({ file, text }) => {
    const structure = [...text.matchAll(/^(?:#+ .*|\*\*[^*]*:\*\*)/gm)].map(([heading]) => heading);
    expect(structure).toEqual([
      `# ${file.replace('.md', '')}`,
      '**Summary:**',
      '**Impact:**',
      '## Diagnose',
      '## Fix',
      '## False alarms',
    ]);
    expect(text.split('\n').length, 'lines').toBeLessThan(60);
  },
);

it('the shell blocks have valid syntax, and can be pasted without comments', async () => {
  const blocks = [...pages.flatMap(({ text }) => shellBlocks(text)), ...definitions];
  expect(blocks.length).toBeGreaterThan(pages.length);
  const check = 'for block; do bash -n -c "$block" || exit; done';
  await promisify(execFile)('bash', ['-c', check, 'bash', ...blocks]);
  expect(blocks.filter((block) => /(?:^|\s)#/m.test(block))).toEqual([]);
});

it('each deployment defines the shell functions that the runbooks use', () => {
  const blocks = pages.flatMap(({ text }) => shellBlocks(text)).join('');
  const used = new Set([...blocks.matchAll(/^ *(evalwatch\w*)/gm)].map(([, name]) => name));
  const defined = definitions.map(
    (block) => new Set([...block.matchAll(/^(\w+)\(\)/gm)].map(([, name]) => name)),
  );
  expect(defined).toEqual(['Docker', 'Kubernetes', 'systemd', 'checkout'].map(() => used));
});

it('the log lines that the runbooks look for are listed in docs/operations.md', () => {
  const searches = pages.flatMap(({ text }) => text.match(/ grep .*/g) ?? []);
  const events = searches.flatMap((search) => search.match(/\b[a-z_]+\.[a-z_]+\b/g) ?? []);
  expect(events.length).toBeGreaterThan(10);
  expect(events.filter((event) => !operations.includes(`| \`${event}\` `))).toEqual([]);
});

it.each(pages)('$file uses only existing commands and options of evalwatch', async ({ text }) => {
  const commands = [
    ...shellBlocks(text)
      .join('')
      .matchAll(/^ *evalwatch (.+?)(?= *(?:\d?>|\||&&|$))/gm),
    ...text.matchAll(/`evalwatch ([a-z][^`]*)`/g),
  ];
  for (const [, command = ''] of commands) {
    const parsing = parse(command.replaceAll(/"\$[A-Z]+"/g, 'checkout-bot'));
    await expect(parsing).resolves.toBeDefined();
  }
});

it.each(alerts)('$alert says what to do first', async ({ annotations }) => {
  const functions = new Set(definitions.join('').match(/^evalwatch\w*(?=\(\))/gm) ?? []);
  const text = annotations.description
    .replaceAll(/\{\{ \$labels\.status \}\}/g, 'RUNNING')
    .replaceAll(/\{\{ \$labels\.\w+ \}\}/g, 'checkout-bot');
  expect(text).toMatch(/\bFirst (?:run|route|check|ask) /);
  for (const [, name = ''] of text.matchAll(/First run (evalwatch\w*)/g)) {
    expect(functions).toContain(name);
  }
  for (const [, command = ''] of text.matchAll(/First run evalwatch ([^,.(|]*)/g)) {
    await expect(parse(command)).resolves.toBeDefined();
  }
});

/** Parses the arguments of a command. Rejects if evalwatch has no such command or option. */
async function parse(command: string) {
  const args = command.trim().split(' ');
  const program = await createProgram(() => () => Promise.resolve(), args[0], {
    writeErr: () => {},
  });
  return await program.parseAsync(args, { from: 'user' });
}
