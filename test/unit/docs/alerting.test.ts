import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { alerts } from '../prometheus/rules-file.ts';

const PAGE = join(import.meta.dirname, '../../../docs/alerting.md');
const ROW = /^\| \[(\w+)\]\(runbooks\/\1\.md\) +\| .+ \| (\w+) +\|$/gm;

it('docs/alerting.md lists every alert once, with its severity', () => {
  const rows = readFileSync(PAGE, 'utf8')
    .matchAll(ROW)
    .map(([, alert, severity]) => `${alert} ${severity}`);
  const shipped = alerts.map(({ alert, labels }) => `${alert} ${labels.severity}`);
  expect([...rows].toSorted()).toEqual(shipped.toSorted());
});
