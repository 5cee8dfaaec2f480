import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { selectorsOf } from '../../support/promql.ts';
import { exportedMetrics } from './exported.ts';
import { RUNBOOKS, alerts } from './rules-file.ts';

const COMMANDS = new Set(['check', 'poll', 'status', 'transitions', 'failures']);

const pages = readdirSync(RUNBOOKS).map((file) => ({
  file,
  text: readFileSync(join(RUNBOOKS, file), 'utf8'),
}));

it('has one page for each alert and no other', () => {
  const named = alerts.map(({ alert }) => `${alert}.md`);
  expect(pages.map(({ file }) => file).toSorted()).toEqual(named.toSorted());
});

it.each(alerts)('$alert points to its page', ({ alert, annotations }) => {
  expect(annotations.runbook_url).toBe(
    `https://github.com/evalwatch/evalwatch/blob/main/docs/runbooks/${alert}.md`,
  );
});

it.each(pages)(
  '$file says what it means, who feels it, where to look and what to do',
  ({ file, text }) => {
    expect(text.startsWith(`# ${file.replace('.md', '')}\n`)).toBe(true);
    const parts = ['**Means:**', '**Users feel:**', '## Look', '## Do', '## False alarm'];
    expect(parts.filter((part) => !text.includes(part))).toEqual([]);
    expect(parts.map((part) => text.indexOf(part))).toEqual(
      parts.map((part) => text.indexOf(part)).toSorted((a, b) => a - b),
    );
  },
);

it.each(pages)('$file uses only commands that there are', ({ text }) => {
  const commands = [...text.matchAll(/(?:^|`)evalwatch ([a-z]+)/gm)].map(([, command]) => command);
  expect(commands.filter((command) => command === undefined || !COMMANDS.has(command))).toEqual([]);
});

it.each(pages)('$file links only to pages that there are', ({ text }) => {
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => link);
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
