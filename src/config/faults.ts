import type { z } from 'zod';
import { ConfigError, type ConfigFault } from './config-error.ts';
import type { Finding } from './rules.ts';
import { closest, didYouMean } from './suggest.ts';
import type { YamlDocument } from './yaml-document.ts';

/** The options of each section, `''` being the top level. */
type Keys = Readonly<Record<string, readonly string[]>>;

/** The unknown keys that an issue of the schema tells of, if it does, each where it stands. */
export function unknownKeys(
  issue: z.core.$ZodIssue,
  document: YamlDocument,
  file: string,
  keys: Keys,
): readonly ConfigFault[] {
  if (issue.code !== 'unrecognized_keys') return [];
  const section = String(issue.path[0] ?? '');
  return issue.keys.map((key) => ({
    file,
    ...document.locateKey([...issue.path, key]),
    message: describeUnknownKey(key, section, keys),
  }));
}

function describeUnknownKey(key: string, section: string, keys: Keys): string {
  // Anything else may be a value, a key even, that a missing space made part of a name.
  if (!/^\w[\w-]{0,40}$/.test(key)) return 'unknown key';
  const near = closest(key, keys[section] ?? []);
  const home = Object.keys(keys).find((name) => keys[name]?.includes(key));
  if (near !== undefined || home === undefined) {
    return `unknown key ${JSON.stringify(key)}${didYouMean(near)}`;
  }
  const level = home === '' ? 'at the top level' : `under ${JSON.stringify(home)}`;
  return `unknown key ${JSON.stringify(key)} here, it belongs ${level}`;
}

/** A finding with the position of its option, or the name of the variable that overrides it. */
export function place(
  { path, message }: Finding,
  document: YamlDocument,
  file: string,
  variables: ReadonlyMap<string, string>,
): ConfigFault {
  const name = path.reduce<string>(
    (before, step) =>
      typeof step === 'number' ? `${before}[${step}]` : `${before}${before && '.'}${String(step)}`,
    '',
  );
  const variable = variables.get(name);
  return variable === undefined
    ? { file, ...document.locate(path), message: `${name} ${message}` }
    : { file: variable, line: 0, column: 0, message };
}

/** Everything that is wrong, by position, each thing once. */
export function invalid(faults: readonly ConfigFault[]): ConfigError {
  const sorted = faults.toSorted(
    (one, other) =>
      one.line - other.line || one.column - other.column || one.file.localeCompare(other.file),
  );
  const distinct = new Map(sorted.map((fault) => [JSON.stringify(fault), fault]));
  return new ConfigError('invalid', [...distinct.values()]);
}

/** The file is a list, or a text. */
export function noMapping(document: YamlDocument, file: string): ConfigError {
  const message = 'the file must be a mapping (key: value)';
  return invalid([{ file, ...document.locate([]), message }]);
}
