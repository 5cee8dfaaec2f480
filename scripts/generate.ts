/** Writes all generated files. With --check it writes nothing and exits 1 when one of them is out of date. */
import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { format, resolveConfig } from 'prettier';
import { configJsonSchema } from './configuration-schema.ts';
import { messageJsonSchema } from '../src/notify/message.ts';
import { openApiDocument } from '../src/web/api/openapi.ts';
import { temporaryDirectory } from '../test/support/temporary.ts';
import { commandsDocument } from './commands-doc.ts';
import { configurationDocument } from './configuration-doc.ts';
import { evalwatchDashboard } from './dashboard/dashboard.ts';
import { metricsDocument } from './metrics-doc/document.ts';
import { REPOSITORY, withAddress } from './repository.ts';

const RULES = 'config/prometheus/evalwatch.rules.yml';
const SCANNER = 'src/client/listing/item-scanner.wasm';
/** Files that name the address of the repository, which is in package.json, and are not generated otherwise. */
const NAMING = ['package.json', 'README.md', 'SECURITY.md', 'config/prometheus/*.yml'];

const root = join(import.meta.dirname, '..');
const isCheck = process.argv.includes('--check');

// First, because generators copy these files. They keep their format: the rule tests have tables.
for (const file of filesOf(NAMING)) {
  await put(file, Buffer.from(withAddress(read(file), REPOSITORY)));
}
await generate('config/evalwatch.schema.json', JSON.stringify(configJsonSchema(), null, 2));
await generate('docs/openapi.json', JSON.stringify(openApiDocument()));
await generate('docs/webhook.schema.json', JSON.stringify(messageJsonSchema()));
await generate('docs/commands.md', commandsDocument());
await generate('docs/configuration.md', configurationDocument());
await generate('docs/metrics.md', await metricsDocument());
const dashboard = JSON.stringify(evalwatchDashboard());
await generate('config/grafana/dashboards/evalwatch.json', dashboard);
const operator = 'config/kubernetes/overlays/prometheus-operator/prometheus-rule.yaml';
await generate(operator, prometheusRule());
await put(SCANNER, await compileScanner());

function filesOf(patterns: readonly string[]): readonly string[] {
  return globSync(patterns, { cwd: root }).toSorted();
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

async function generate(path: string, text: string): Promise<void> {
  const filepath = join(root, path);
  const formatted = await format(text, { ...(await resolveConfig(filepath)), filepath });
  await put(path, Buffer.from(formatted));
}

async function put(path: string, wanted: Buffer): Promise<void> {
  const file = join(root, path);
  if (!isCheck) {
    await writeFile(file, wanted);
  } else if (!(await readFile(file).catch(() => Buffer.of())).equals(wanted)) {
    console.error(`${path} is out of date: npm run generate`);
    process.exitCode = 1;
  }
}

/** Returns the alert rules in the format of the Prometheus Operator. They are copied as text to keep the comments. */
function prometheusRule(): string {
  const rules = read(RULES);
  const groups = rules.slice(rules.search(/^groups:/m)).replaceAll(/^(?=.)/gm, '  ');
  return `# Generated from ${RULES} by scripts/generate.ts.

apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: evalwatch
  # Add the labels that your Prometheus selects rules by (ruleSelector), often release.
  labels: { app.kubernetes.io/name: evalwatch }
spec:
${groups}`;
}

/** Compiles assembly/item-scanner.ts in a separate process, because its types change those of all arrays in this one. */
async function compileScanner(): Promise<Buffer> {
  const compiler = fileURLToPath(import.meta.resolve('assemblyscript/bin/asc.js'));
  await using directory = await temporaryDirectory();
  const compiled = join(directory.path, 'item-scanner.wasm');
  const options = [
    'assembly/item-scanner.ts',
    `--outFile=${compiled}`,
    `--baseDir=${root}`,
    '--runtime=stub',
    '--enable=simd',
    // The memory has a fixed size; a body of any size is scanned in blocks.
    '--initialMemory=14',
    '--maximumMemory=14',
    '-O3',
    '--noAssert',
  ];
  await promisify(execFile)(process.execPath, [compiler, ...options], { cwd: root });
  return await readFile(compiled);
}
