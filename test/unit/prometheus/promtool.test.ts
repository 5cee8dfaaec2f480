import { execFile } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { debianTool } from '../../support/debian-tool.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { splitTests } from './split-tests.ts';
import { CONFIG, RULES_FILE, RUNBOOKS } from './rules-file.ts';

const promtool = debianTool('prometheus', 'promtool') ?? '';
const run = promisify(execFile);
const PROMETHEUS = join(CONFIG, 'prometheus');
const TESTS = readdirSync(PROMETHEUS).filter((file) => file.endsWith('.test.yml'));

describe.skipIf(promtool === '')('promtool', { timeout: 300_000 }, () => {
  it('accepts the rules', async () => {
    expect((await run(promtool, ['check', 'rules', RULES_FILE])).stdout).toContain('SUCCESS');
  });

  it('accepts the configuration of Prometheus', async () => {
    const { stdout } = await run(promtool, [
      'check',
      'config',
      join(CONFIG, 'prometheus/prometheus.yml'),
    ]);
    expect(stdout).toContain('SUCCESS: 1 rule files found');
  });

  it.each(TESTS)('passes the rule tests of %s', async (file) => {
    // Less garbage collection takes a quarter less time; the other cores are busy with other tests.
    const env = { ...process.env, GOGC: '800', GOMAXPROCS: '1' };
    await using directory = await temporaryDirectory();
    const split = splitTests(readFileSync(join(PROMETHEUS, file), 'utf8'));
    const paths = split.map(({ rules, test }, index) => {
      const path = join(directory.path, `${index}.test.yml`);
      writeFileSync(join(directory.path, `${index}.yml`), rules);
      writeFileSync(path, test(`${index}.yml`));
      return path;
    });
    const { stdout } = await run(promtool, ['test', 'rules', ...paths], { env });
    expect(stdout.match(/SUCCESS/g)).toHaveLength(split.length);
  });

  it('accepts every query of the runbooks', async () => {
    const queries = readdirSync(RUNBOOKS).flatMap((file) => {
      const text = readFileSync(join(RUNBOOKS, file), 'utf8');
      return [...text.matchAll(/```promql\n([\s\S]*?)```/g)].map(([, query = '']) => query);
    });
    const rules = queries.map((expr, index) => ({ record: `query:${index}`, expr }));
    await using directory = await temporaryDirectory();
    const file = join(directory.path, 'queries.yml');
    await writeFile(file, stringify({ groups: [{ name: 'runbooks', rules }] }));
    expect((await run(promtool, ['check', 'rules', file])).stdout).toContain('SUCCESS');
  });
});
