import { dirname, resolve } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { readCertificates, readPemFile } from './pem-file.ts';
import type { Config } from './config.ts';
import { toConfigError, notAMapping } from './to-config-error.ts';
import { applyOverrides } from './overrides.ts';
import { checkRules, type RuleOptions } from './rules.ts';
import { MAX_CONFIG_BYTES, readDocument } from './document/read-document.ts';
import { fileSchema, KEYS } from './schema.ts';
import { toSource } from './source.ts';
import { toConfig } from './to-config.ts';
import { isMapping, type Tree } from './document/tree.ts';

export interface LoadOptions extends RuleOptions {
  /** Relative paths in the file start from its directory. */
  readonly file: string;
}

/**
 * Reads and checks the configuration: the file, and the variables that override it (docs/specification.md#configuration-file).
 * Sends no request and reads no key file.
 * @throws {ConfigError} with all errors at once; an unreadable file or bad YAML is the only error
 */
export async function loadConfig(options: LoadOptions): Promise<Config> {
  const { file, env } = options;
  const document = await readDocument(file, MAX_CONFIG_BYTES, ADVICE);
  const root = document.value ?? {};
  if (!isMapping(root)) throw notAMapping(document, file);
  const { tree, variables } = applyOverrides(withSections(root), env);
  // With 100,000 projects each step takes up to half a second: polls and beats run between them.
  await setImmediate();
  const parsed = fileSchema.safeParse(tree);
  await setImmediate();
  const ca = await readPemFile(tree, ['service', 'ca_file'], dirname(file), readCertificates);
  const findings = [
    ...checkRules(tree, { ...options, lineOf: (path) => document.locate(path).line }),
    ...ca.findings,
  ];
  const issues = parsed.error?.issues ?? [];
  const error = toConfigError({ file, document, issues, findings, keys: KEYS, variables });
  if (!parsed.success || error !== undefined) throw error ?? parsed.error;
  await setImmediate();
  const sources = [
    toSource(resolve(file), document.text),
    ...(ca.path !== undefined && ca.text !== undefined ? [toSource(ca.path, ca.text)] : []),
  ];
  return toConfig(parsed.data, { file, env, authorities: ca.text, sources });
}

const ADVICE = '; name one with --config or EVALWATCH_CONFIG, or write one with `evalwatch init`';

/** Returns the file with an empty mapping in each section that is absent or empty. */
function withSections(root: Tree): Tree {
  const { service, expect, store, web, log, heartbeat } = root;
  return {
    __proto__: null,
    ...root,
    service: service ?? {},
    expect: expect ?? {},
    store: store ?? {},
    web: web ?? {},
    log: log ?? {},
    heartbeat: heartbeat ?? {},
  };
}
