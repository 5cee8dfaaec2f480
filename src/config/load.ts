import { dirname, resolve } from 'node:path';
import { readCertificates } from './ca-file.ts';
import type { Config } from './config.ts';
import type { Env } from './environment.ts';
import { judge, noMapping } from './faults.ts';
import { applyOverrides } from './overrides.ts';
import type { Finding } from './finding.ts';
import { checkRules } from './rules.ts';
import { MAX_CONFIG_BYTES, readDocument } from './document/read-document.ts';
import { fileSchema, KEYS } from './schema.ts';
import { toConfig } from './to-config.ts';
import { isMapping, mappingAt, type Tree } from './document/tree.ts';
import { isPath } from './values/option-types.ts';

export interface LoadOptions {
  /** Its directory is where the paths in it start. */
  readonly file: string;
  readonly env: Env;
  /** What is wrong with a cron expression, as the end of a sentence about it: `must …`; undefined if nothing is. */
  readonly validateSchedule: (expression: string) => string | undefined;
  /** Whether an `api_key_env` that is unset or empty is a mistake (`run` and `poll`), or just no key yet. */
  readonly requireKeys: boolean;
}

/**
 * Reads and checks the configuration: the file, and the variables that override it (docs/specification.md#configuration-file).
 * Sends no request and reads no key file.
 * @throws {ConfigError} with every mistake at once, or the only one after which nothing else can be checked
 */
export async function loadConfig(options: LoadOptions): Promise<Config> {
  const { file, env } = options;
  const document = await readDocument(file, MAX_CONFIG_BYTES, ADVICE);
  const root = document.value ?? {};
  if (!isMapping(root)) throw noMapping(document, file);
  const { tree, variables } = applyOverrides(withSections(root), env);
  const parsed = fileSchema.safeParse(tree);
  const authorities = await readAuthorities(tree, dirname(file));
  const findings = [
    ...checkRules(tree, { ...options, lineOf: (path) => document.locate(path).line }),
    ...authorities.findings,
  ];
  const issues = parsed.error?.issues ?? [];
  const error = judge({ file, document, issues, findings, keys: KEYS, variables });
  if (!parsed.success || error !== undefined) throw error ?? parsed.error;
  return toConfig(parsed.data, { file, env, authorities: authorities.text });
}

const ADVICE = '; name one with --config, or start from a copy of config/evalwatch.yaml';

/** With an empty mapping for each section that is absent or left empty. */
function withSections(root: Tree): Tree {
  const { service, store, web, log } = root;
  return {
    __proto__: null,
    ...root,
    service: service ?? {},
    store: store ?? {},
    web: web ?? {},
    log: log ?? {},
  };
}

async function readAuthorities(
  tree: Tree,
  directory: string,
): Promise<{ readonly text?: string | undefined; readonly findings: readonly Finding[] }> {
  const caFile = mappingAt(tree, 'service')['ca_file'];
  if (!isPath(caFile)) return { findings: [] };
  const { value, fault } = await readCertificates(resolve(directory, caFile));
  const path = ['service', 'ca_file'];
  return { text: value, findings: fault === undefined ? [] : [{ path, message: fault }] };
}
