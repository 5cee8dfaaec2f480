import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { ConfigError, type ConfigFault, type Config } from '../../../src/config/config.ts';
import type { Env } from '../../../src/config/environment.ts';
import { loadConfig } from '../../../src/config/load.ts';

/** Creates a directory for the tests of one file. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'evalwatch-config-'));
  afterAll(() => {
    rmSync(directory, { recursive: true });
  });
  return directory;
}

export async function load(
  file: string,
  {
    env = {},
    requireSecrets = true,
  }: { readonly env?: Env; readonly requireSecrets?: boolean } = {},
): Promise<Config> {
  return loadConfig({ file, env, requireSecrets });
}

export async function loadText(
  directory: string,
  text: string | Uint8Array,
  options?: Parameters<typeof load>[1],
): Promise<Config> {
  const file = join(directory, 'evalwatch.yaml');
  writeFileSync(file, text);
  return load(file, options);
}

export async function errorOf(loading: Promise<Config>): Promise<ConfigError> {
  const error = await loading.then(
    () => new Error('it was loaded without complaint'),
    (reason: unknown) => reason,
  );
  if (error instanceof ConfigError) return error;
  throw error;
}

/** Reads cases: lines of each kind, with the kind before the line. Those of the last kind end a case. */
export function readCases<Kind extends string>(
  file: string,
  kinds: readonly Kind[],
): readonly Readonly<Record<Kind, readonly string[]>>[] {
  const cases: Record<Kind, string[]>[] = [];
  let before: Kind | undefined = kinds.at(-1);
  for (const line of readFileSync(join(import.meta.dirname, file), 'utf8')
    .trimEnd()
    .split('\n')) {
    const kind = kinds.find((each) => line.startsWith(`${each} `));
    if (kind === undefined) throw new Error(`${file} has a line of no kind: ${line}`);
    if (before === kinds.at(-1) && kind !== before) {
      cases.push(Object.fromEntries(kinds.map((each) => [each, []])) as never);
    }
    cases.at(-1)?.[kind].push(line.slice(kind.length + 1));
    before = kind;
  }
  return cases;
}

/** Formats faults as `line:column message`. */
export function places(faults: readonly ConfigFault[]): readonly string[] {
  return faults.map(({ line, column, message }) => `${line}:${column} ${message}`);
}

/** Returns a minimal file, with more options under `service`, in the project and at the top level. */
export function minimal({ service = '', top = '', project = '' } = {}): string {
  return `service:
  base_url: https://evaluation.example.com
  api_key_file: key
${indent(service, 2)}projects:
  - id: checkout-bot
${indent(project, 4)}${indent(top, 0)}`;
}

function indent(lines: string, depth: number): string {
  return lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => `${' '.repeat(depth)}${line}\n`)
    .join('');
}
