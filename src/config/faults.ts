import type { z } from 'zod';
import { closest, didYouMean } from '../domain/suggest.ts';
import { ConfigError, type ConfigFault, describeFault } from './config.ts';
import { isSafeKey, type Path, type YamlFile } from './yaml.ts';

/** The file whose errors are thrown, perhaps with others that it names. */
export interface Located extends Pick<YamlFile, 'file' | 'faults' | 'locate' | 'locateKey'> {
  /** Returns the path in the file that has it. */
  readonly ownPath?: (path: Path) => Path;
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
 * @param yaml the file, with the errors of YAML
 * @param issues errors that the schema found
 * @param findings errors that the rules found
 * @param variables names of the environment variables that replace options, by option
 * @throws {ConfigError} `invalid`
 */
export function throwFaults(
  yaml: Located,
  options: Options,
  issues: readonly z.core.$ZodIssue[],
  findings: readonly Finding[],
  variables: ReadonlyMap<string, string> = new Map(),
): void {
  const { file, ownPath = (path: Path) => path } = yaml;
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
      return { ...yaml.locateKey(path), message: describeUnknownKey(path, options) };
    }),
    ...first(wrong).map(({ path, message }) => {
      const name = optionName(path);
      const variable = variables.get(name);
      return variable === undefined
        ? { ...yaml.locate(path), message: `${optionName(ownPath(path))} ${message}` }
        : { file: variable, line: 0, column: 0, message };
    }),
  ];
  const sorted = faults.toSorted(
    (one, other) =>
      Number(one.line > 0) - Number(other.line > 0) ||
      one.file.localeCompare(other.file) ||
      one.line - other.line ||
      one.column - other.column,
  );
  const shown = first([...new Map(sorted.map((fault) => [describeFault(fault), fault])).values()]);
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
