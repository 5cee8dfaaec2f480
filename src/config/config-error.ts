import type { z } from 'zod';
import { closest, didYouMean } from '../domain/suggest.ts';

/** One error of a configuration, and its position. */
export interface ConfigFault {
  /** The configuration file, or the environment variable or option that the error is about. */
  readonly file: string;
  /** Counts from 1. 0, like `column`, for an error without a position. */
  readonly line: number;
  readonly column: number;
  /** A sentence for the user, without any value that could be a secret. */
  readonly message: string;
}

/** An invalid configuration (docs/specification.md#configuration-file). The message has one line for each fault, by position. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  /** `unreadable`: the file cannot be read; `invalid`: every other error. */
  readonly reason: 'unreadable' | 'invalid';
  readonly faults: readonly ConfigFault[];

  constructor(reason: ConfigError['reason'], faults: readonly ConfigFault[]) {
    super(faults.map(formatFault).join('\n'));
    this.reason = reason;
    this.faults = faults;
  }
}

function formatFault({ file, line, column, message }: ConfigFault): string {
  return line === 0 ? `${file}: ${message}` : `${file}:${line}:${column}: ${message}`;
}

export type Path = readonly PropertyKey[];

/** A mapping of a file before it is checked. Has no prototype, so that names such as `__proto__` are ordinary keys. */
export type Tree = Readonly<Record<string, unknown>>;

/** Where something is in a file. Line and column count from 1. */
export type Position = Pick<ConfigFault, 'line' | 'column'>;

/** A YAML file that was read. */
export interface YamlFile {
  readonly file: string;
  readonly text: string;
  /** The mapping of the top level; empty for an empty file. */
  readonly tree: Tree;
  /** Errors that do not prevent reading the rest: duplicate keys, unknown tags. */
  readonly faults: readonly ConfigFault[];
  /** Returns the position of the value at this path; without one, the position of the nearest value around it. */
  locate(path: Path): Position;
  /** Returns the position of the key that is the last step of this path. */
  locateKey(path: Path): Position;
}

/** An error of an option, before its position in the file is known. */
export interface Finding {
  readonly path: Path;
  /** The end of a sentence about the option: "must be …". */
  readonly message: string;
}

/** The options of a file. */
export interface Options {
  /** Names of the options in each section, such as `store` or `projects.expect`. `''` is the top level. */
  readonly keys: Readonly<Record<string, readonly string[]>>;
  /** What to do instead of options that are not supported, by their full name. */
  readonly unsupported: Readonly<Record<string, string>>;
}

/** Maximum number of errors that are shown. A file may have a million. */
const MAX_FAULTS = 100;

/**
 * Throws the errors of a file: the first hundred, and the number of the rest. Does nothing if there is none.
 * @param yaml the file, with its errors of YAML
 * @param issues errors that the schema found
 * @param findings errors that the rules found
 * @param variables names of the environment variables that replace options, by option
 * @throws {ConfigError} `invalid`
 */
export function throwFaults(
  yaml: YamlFile,
  options: Options,
  issues: readonly z.core.$ZodIssue[],
  findings: readonly Finding[],
  variables: ReadonlyMap<string, string> = new Map(),
): void {
  const { file } = yaml;
  const unknown = issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [],
  );
  const wrong = [...issues.filter(({ code }) => code !== 'unrecognized_keys'), ...findings];
  const total = yaml.faults.length + unknown.length + wrong.length;
  if (total === 0) return;

  const first = <Item>(items: readonly Item[]) => items.slice(0, MAX_FAULTS);
  const faults: readonly ConfigFault[] = [
    ...first(yaml.faults),
    ...first(unknown).map((path) => {
      return { file, ...yaml.locateKey(path), message: describeUnknownKey(path, options) };
    }),
    ...first(wrong).map(({ path, message }) => {
      const name = optionName(path);
      const variable = variables.get(name);
      return variable === undefined
        ? { file, ...yaml.locate(path), message: `${name} ${message}` }
        : { file: variable, line: 0, column: 0, message };
    }),
  ];
  const sorted = faults.toSorted(
    (one, other) =>
      one.line - other.line || one.column - other.column || one.file.localeCompare(other.file),
  );
  const shown = first([...new Map(sorted.map((fault) => [formatFault(fault), fault])).values()]);
  if (total > MAX_FAULTS) {
    const message = `and ${total - shown.length} more errors`;
    shown.push({ file: shown[0]?.file ?? file, line: 0, column: 0, message });
  }
  throw new ConfigError('invalid', shown);
}

function describeUnknownKey(path: Path, { keys, unsupported }: Options): string {
  const instead = new Map(Object.entries(unsupported)).get(path.join('.'));
  if (instead !== undefined) return `${path.join('.')} is not supported: ${instead}`;
  const key = String(path.at(-1));
  if (key === '<<') return 'unknown key "<<": merge keys are not supported';
  if (!isSafeKey(key)) {
    return 'unknown key, not shown because it could contain a secret: is there a space after the colon?';
  }
  const section = path.slice(0, -1).filter((step) => typeof step === 'string');
  const near = closest(key, keys[section.join('.')] ?? []);
  const home = Object.keys(keys).find((name) => keys[name]?.includes(key));
  if (near !== undefined || home === undefined) {
    return `unknown key ${JSON.stringify(key)}${didYouMean(near)}`;
  }
  const level = home === '' ? 'at the top level' : `under ${JSON.stringify(home)}`;
  return `unknown key ${JSON.stringify(key)}: it belongs ${level}`;
}

/** Whether a YAML key can be shown: without a space after its colon, the value (even an API key) becomes part of the key. */
export function isSafeKey(key: string): boolean {
  return /^\w[\w-]{0,40}$/.test(key);
}

const MAX_STEP_LENGTH = 64;
const PLAIN_STEP = /^[\w@+-][\w@.+-]{0,63}$/;

/** Returns the name of an option, such as `projects[2].id`. Quotes a step with unusual characters, and cuts it after a colon. */
function optionName(path: Path): string {
  return path.reduce<string>((before, step) => {
    if (typeof step === 'number') return `${before}[${step}]`;
    const text = String(step);
    const short = text.slice(0, MAX_STEP_LENGTH).replace(/:[^]*/, ':…');
    return `${before}${before && '.'}${PLAIN_STEP.test(text) ? text : JSON.stringify(short)}`;
  }, '');
}
