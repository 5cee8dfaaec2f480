import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { FILES_ADDRESS } from '../../../scripts/repository.ts';
import { selectorsOf } from '../../support/promql.ts';
import { exportedMetrics } from './exported.ts';
import { RUNBOOKS, alerts } from './rules-file.ts';

const COMMANDS = new Set(['check', 'poll', 'status', 'transitions', 'failures', 'causes']);
const COMMANDS_BY_DEPLOYMENT =
  '`evalwatch` stands for the command line of your deployment, `docker logs evalwatch` for reading its log, `PROJECT` for the label `project` of the alert: ' +
  'see [Commands by deployment](../operations.md#commands-by-deployment).\n';

const pages = readdirSync(RUNBOOKS).map((file) => ({
  file,
  text: readFileSync(join(RUNBOOKS, file), 'utf8'),
}));

it('has one page for each alert and no other', () => {
  const named = alerts.map(({ alert }) => `${alert}.md`);
  expect(pages.map(({ file }) => file).toSorted()).toEqual(named.toSorted());
});

it.each(alerts)('$alert points to its page', ({ alert, annotations }) => {
  expect(annotations.runbook_url).toBe(`${FILES_ADDRESS}/docs/runbooks/${alert}.md`);
});

it.each(pages)('$file has the same sections as every other page', ({ file, text }) => {
  const structure = [...text.matchAll(/^(?:#+ .*|\*\*[^*]*:\*\*)/gm)].map(([heading]) => heading);
  expect(structure).toEqual([
    `# ${file.replace('.md', '')}`,
    '**Summary:**',
    '**Impact:**',
    '## Diagnose',
    '## Fix',
    '## False alarms',
  ]);
});

it.each(pages)('$file says how to run its commands before the first of them', ({ text }) => {
  const [, steps = ''] = text.split('## Diagnose\n\n');
  expect(steps.startsWith(COMMANDS_BY_DEPLOYMENT)).toBe(true);
});

it.each(pages)('$file explains every command and query', ({ text }) => {
  const [, diagnose = ''] = /## Diagnose\n([\s\S]*)## Fix/.exec(text) ?? [];
  const steps = diagnose.split(/^(?=\d+\. )/m).slice(1);
  expect(steps.length).toBeGreaterThan(1);
  expect(steps.filter((step) => !/^\d+\. .{20,}\n\n {3}```/.test(step))).toEqual([]);
});

it.each(pages)('$file uses only commands that there are', ({ text }) => {
  const commands = [...text.matchAll(/(?:^ *|`)evalwatch ([a-z]+)/gm)].map(
    ([, command]) => command,
  );
  expect(commands.filter((command) => command === undefined || !COMMANDS.has(command))).toEqual([]);
});

it.each(pages)('$file links to no page that does not exist', ({ text }) => {
  const links = [...text.matchAll(/\]\((?!\.\.\/operations\.md#)([^)]+)\)/g)].map(
    ([, link]) => link,
  );
  const files = new Set(pages.map(({ file }) => file));
  expect(links.filter((link) => link === undefined || !files.has(link))).toEqual([]);
});

it.each(pages)('$file asks Prometheus only for what is exported', async ({ text }) => {
  const exported = await exportedMetrics();
  const queries = queriesOf(text);
  expect(queries.length).toBeGreaterThan(0);
  const asked = queries.flatMap((query) => selectorsOf(query)).map(({ metric }) => metric);
  expect(asked.filter((metric) => !exported.has(metric))).toEqual([]);
});

function queriesOf(text: string): readonly string[] {
  return [...text.matchAll(/```promql\n([\s\S]*?)```/g)].map(([, query = '']) => query);
}
