/**
 * Writes config/kubernetes/overlays/prometheus-operator/prometheus-rule.yaml, the alert rules in the format of the
 * Prometheus Operator. With --check it writes nothing and exits 1 when the file is out of date.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeOrCheck } from './generated-file.ts';

const SOURCE = 'config/prometheus/evalwatch.rules.yml';
const HEAD = `# Generated from ${SOURCE} by scripts/generate-prometheus-rule.ts.

apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: evalwatch
  # Add the labels that your Prometheus selects rules by (ruleSelector), often release.
  labels: { app.kubernetes.io/name: evalwatch }
spec:
`;

const rules = await readFile(join(import.meta.dirname, '..', SOURCE), 'utf8');
// Copied as text to keep the comments.
const groups = rules.slice(rules.search(/^groups:/m)).replaceAll(/^(?=.)/gm, '  ');
await writeOrCheck(
  'config/kubernetes/overlays/prometheus-operator/prometheus-rule.yaml',
  HEAD + groups,
);
