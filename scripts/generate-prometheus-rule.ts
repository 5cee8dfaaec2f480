/**
 * Writes config/kubernetes/prometheus-operator/prometheus-rule.yaml, the alert rules as the Prometheus Operator takes
 * them; with --check only tells, by its exit code, whether it is current.
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
  # Add those that your Prometheus selects rules by (ruleSelector), often release.
  labels: { app.kubernetes.io/name: evalwatch }
spec:
`;

const rules = await readFile(join(import.meta.dirname, '..', SOURCE), 'utf8');
// As text, since its comments are worth keeping.
const groups = rules.slice(rules.search(/^groups:/m)).replaceAll(/^(?=.)/gm, '  ');
await writeOrCheck('config/kubernetes/prometheus-operator/prometheus-rule.yaml', HEAD + groups);
