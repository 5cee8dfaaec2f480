import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Creates a directory for one test. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'evalwatch-cli-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Writes a configuration beside a key of 20 characters, as JSON, which is YAML too. */
export function writeConfiguration(
  directory: string,
  projects: readonly object[],
  more: { readonly service?: object; readonly store?: object } & object = {},
): string {
  const file = join(directory, 'evalwatch.yaml');
  const { service, ...others } = more;
  const content = {
    service: { base_url: 'https://evaluation.example.org', api_key_file: 'key', ...service },
    projects,
    store: { path: 'evalwatch.db' },
    ...others,
  };
  writeFileSync(file, JSON.stringify(content));
  writeFileSync(join(directory, 'key'), 'k'.repeat(20));
  return file;
}
