import { execFile } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { formatted } from '../../../scripts/generated-file.ts';
import { FILES_ADDRESS } from '../../../scripts/repository.ts';
import { withFirstLook } from '../../../scripts/runbooks/first-look.ts';
import { createProgram } from '../../../src/cli/program.ts';
import { selectorsOf } from '../../support/promql.ts';
import { exportedMetrics } from './exported.ts';
import { RUNBOOKS, alerts } from './rules-file.ts';

/** Checks the syntax of its arguments: starting a shell from here takes far longer than from a shell. */
const CHECK = 'for block; do bash -n -c "$block" || exit; done';
const pages = readdirSync(RUNBOOKS).map((file) => ({
  file,
  text: readFileSync(join(RUNBOOKS, file), 'utf8'),
}));

it('docs/runbooks has exactly one page for each alert', () => {
  const named = alerts.map(({ alert }) => `${alert}.md`);
  expect(pages.map(({ file }) => file).toSorted()).toEqual(named.toSorted());
});

it.each(alerts)('$alert links its runbook page', ({ alert, annotations }) => {
  expect(annotations.runbook_url).toBe(`${FILES_ADDRESS}/docs/runbooks/${alert}.md`);
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

it.each(pages)(
  '$file has an up-to-date First look, with a shell block for each deployment',
  async ({ file, text }) => {
    expect(text).toBe(await formatted(`docs/runbooks/${file}`, withFirstLook(text)));
    const [, first = ''] = /## First look\n([\s\S]*)## Diagnose/.exec(text) ?? [];
    const blocks = [...first.matchAll(/^(\w+):\n\n```sh\n([\s\S]+?)```$/gm)];
    const titles = file === 'EvalwatchWatchdog.md' ? [] : ['Docker', 'Kubernetes', 'systemd'];
    expect(blocks.map(([, title]) => title)).toEqual(titles);
  },
);

it('a First look block runs each evalwatch command of the steps, and no other command', () => {
  const runbook = [
    '# X',
    '## Diagnose',
    '1. Which? One.\n\n   ```sh\n   evalwatch failures --project "$PROJECT"\n   ```',
    '2. How many? Two.\n\n   ```promql\n   up\n   ```',
    '3. Where is it? There.\n\n   ```sh\n   evalwatch_log 1h | tail -n 1\n   ```',
    '4. On another machine? Run it there.\n\n   ```sh\n   promtool check config\n   ```',
    '## Fix',
  ].join('\n\n');
  expect(withFirstLook(runbook)).toContain(`\`\`\`sh
PROJECT=checkout-bot
CONTAINER=evalwatch
evalwatch() { docker exec "$CONTAINER" evalwatch "$@"; }
evalwatch_log() { docker logs --since "$1" "$CONTAINER" 2>&1; }
echo "1. Which?"
evalwatch failures --project "$PROJECT"
echo "3. Where is it?"
evalwatch_log 1h | tail -n 1
\`\`\``);
  expect(() => withFirstLook(runbook.replace('Which?', 'Which "$(prompt)"?'))).toThrow('step 1');
});

it.each(pages)(
  '$file has shell blocks with valid syntax and without comments',
  async ({ text }) => {
    const blocks = [...text.matchAll(/^```sh\n([\s\S]+?)```$/gm)].map(([, block = '']) => block);
    await promisify(execFile)('bash', ['-c', CHECK, 'bash', ...blocks]);
    for (const block of blocks) expect(block).not.toMatch(/(?:^|\s)#/m);
  },
);

it.each(pages)('$file explains the command or query of every step', ({ text }) => {
  const [, diagnose = ''] = /## Diagnose\n([\s\S]*)## Fix/.exec(text) ?? [];
  const steps = diagnose.split(/^(?=\d+\. )/m).slice(1);
  expect(steps.length).toBeGreaterThan(1);
  expect(steps.filter((step) => !/^\d+\. .{20,}\n\n {3}```/.test(step))).toEqual([]);
});

it.each(pages)('$file uses only existing commands and options of evalwatch', async ({ text }) => {
  const commands = [...text.matchAll(/(?:^ *|`)evalwatch ([a-z][^`|>\n]*)/gm)];
  for (const [, command = ''] of commands) {
    const program = createProgram(() => () => Promise.resolve(), { writeErr: () => {} });
    const args = command.trim().replaceAll('"$PROJECT"', 'checkout-bot').split(' ');
    await expect(program.parseAsync(args, { from: 'user' })).resolves.toBe(program);
  }
});

it.each(pages)('$file links only runbooks that exist', ({ text }) => {
  const links = [...text.matchAll(/\]\((?!\.\.\/(?:operations|alerting)\.md#)([^)]+)\)/g)].map(
    ([, link]) => link,
  );
  const files = new Set(pages.map(({ file }) => file));
  expect(links.filter((link) => link === undefined || !files.has(link))).toEqual([]);
});

it.each(pages)('$file queries only exported metrics', async ({ text }) => {
  const exported = await exportedMetrics();
  const queries = queriesOf(text);
  expect(queries.length).toBeGreaterThan(0);
  const asked = queries.flatMap((query) => selectorsOf(query)).map(({ metric }) => metric);
  expect(asked.filter((metric) => !exported.has(metric))).toEqual([]);
});

function queriesOf(text: string): readonly string[] {
  return [...text.matchAll(/```promql\n([\s\S]*?)```/g)].map(([, query = '']) => query);
}
