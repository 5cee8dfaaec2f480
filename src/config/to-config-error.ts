import type { z } from 'zod';
import { ConfigError, type ConfigFault } from './config-error.ts';
import { type Finding, optionName } from './finding.ts';
import { isSafeKey } from './redaction.ts';
import { closest, didYouMean } from './suggest.ts';
import type { Path, YamlDocument } from './document/yaml-document.ts';

/** Names of the options in each section, such as `store` or `projects.expect`. `''` is the top level. */
type Keys = Readonly<Record<string, readonly string[]>>;

/** Maximum number of errors that are shown. A file may have a million. */
const MAX_FAULTS = 100;

export interface CheckedFile {
  readonly file: string;
  readonly document: YamlDocument;
  /** Errors that the schema found. */
  readonly issues: readonly z.core.$ZodIssue[];
  /** Errors that the rules found. */
  readonly findings: readonly Finding[];
  readonly keys: Keys;
  /** Names of the environment variables that replace options, by option. */
  readonly variables?: ReadonlyMap<string, string>;
}

/** Returns the errors of a file: the first hundred, and the number of the rest. Undefined if the file is valid. */
export function toConfigError(checked: CheckedFile): ConfigError | undefined {
  const { file, document, issues, findings } = checked;
  const unknown = issues.flatMap(unknownKeys);
  const wrong = [...issues.flatMap(toFinding), ...findings];
  const total = document.faults.length + unknown.length + wrong.length;
  if (total === 0) return undefined;
  return invalid(
    [
      ...firstOf(document.faults).map((fault) => ({ file, ...fault })),
      ...firstOf(unknown).map((key) => placeUnknownKey(key, checked)),
      ...firstOf(wrong).map((finding) => place(finding, checked)),
    ],
    total,
  );
}

function firstOf<Item>(items: readonly Item[]): readonly Item[] {
  return items.slice(0, MAX_FAULTS);
}

interface UnknownKey {
  /** Path of the mapping that has this key. */
  readonly path: Path;
  readonly key: string;
}

function unknownKeys(issue: z.core.$ZodIssue): readonly UnknownKey[] {
  if (issue.code !== 'unrecognized_keys') return [];
  return issue.keys.map((key) => ({ path: issue.path, key }));
}

function toFinding(issue: z.core.$ZodIssue): readonly Finding[] {
  if (issue.code === 'unrecognized_keys') return [];
  const { path, message } = issue;
  const hint: unknown = issue.code === 'custom' ? issue.params?.['hint'] : undefined;
  return [{ path, message, hint: isHint(hint) ? hint : undefined }];
}

function isHint(value: unknown): value is () => string | undefined {
  return typeof value === 'function';
}

function placeUnknownKey(
  { path, key }: UnknownKey,
  { file, document, keys }: CheckedFile,
): ConfigFault {
  return {
    file,
    ...document.locateKey([...path, key]),
    message: describeUnknownKey(key, sectionOf(path), keys),
  };
}

/** Returns the name of a section as in {@link Keys}: its path without the positions in lists. */
function sectionOf(path: Path): string {
  return path.filter((step) => typeof step === 'string').join('.');
}

function describeUnknownKey(key: string, section: string, keys: Keys): string {
  if (key === '<<') return 'unknown key "<<": merge keys are not supported';
  if (!isSafeKey(key)) return `unknown key, ${HIDDEN_KEY}`;
  const near = closest(key, keys[section] ?? []);
  const home = Object.keys(keys).find((name) => keys[name]?.includes(key));
  if (near !== undefined || home === undefined) {
    return `unknown key ${JSON.stringify(key)}${didYouMean(near)}`;
  }
  const level = home === '' ? 'at the top level' : `under ${JSON.stringify(home)}`;
  return `unknown key ${JSON.stringify(key)}: it belongs ${level}`;
}

/** Without a space after its colon, the value (even an API key) becomes part of the name. */
const HIDDEN_KEY = 'not shown because it could contain a secret: is there a space after the colon?';

/** Adds the position of its option to a finding, or the name of the variable that replaces the option. */
function place(
  { path, message, isSentence, hint }: Finding,
  { file, document, variables }: CheckedFile,
): ConfigFault {
  const name = optionName(path);
  const variable = variables?.get(name);
  const whole = `${message}${didYouMean(hint?.())}`;
  return variable === undefined
    ? { file, ...document.locate(path), message: isSentence ? whole : `${name} ${whole}` }
    : { file: variable, line: 0, column: 0, message: whole };
}

/** Sorts faults by position and removes duplicates; `total` includes those that are left out. */
function invalid(faults: readonly ConfigFault[], total: number): ConfigError {
  const sorted = faults.toSorted(
    (one, other) =>
      one.line - other.line || one.column - other.column || one.file.localeCompare(other.file),
  );
  const distinct = new Map(sorted.map((fault) => [JSON.stringify(fault), fault]));
  const shown = firstOf([...distinct.values()]);
  const [first] = shown;
  if (first === undefined || total <= MAX_FAULTS) return new ConfigError('invalid', shown);
  const message = `and ${total - shown.length} more errors`;
  return new ConfigError('invalid', [...shown, { file: first.file, line: 0, column: 0, message }]);
}

/** Returns the error for a file that is a list or a text. */
export function notAMapping(document: YamlDocument, file: string): ConfigError {
  const message = 'the file must be a mapping (key: value)';
  return new ConfigError('invalid', [{ file, ...document.locate([]), message }]);
}
