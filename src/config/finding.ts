import type { Path } from './document/yaml-document.ts';

/** An error of an option, before its position in the file is known. */
export interface Finding {
  readonly path: Path;
  /** The end of a sentence about the option: "must be …". */
  readonly message: string;
  /** The message is a whole sentence: the name of the option is not put before it. */
  readonly isSentence?: boolean;
  /** Finds what may have been meant instead. Called only for findings that are shown, because it can be slow. */
  readonly hint?: (() => string | undefined) | undefined;
}

const MAX_STEP_LENGTH = 64;
const PLAIN_STEP = /^[\w@+-][\w@.+-]{0,63}$/;

/**
 * Returns the name of an option, such as `projects[2].id`. Quotes a step with unusual characters, such as a line break, and
 * cuts it after a colon: without the space behind it, a value is part of the key, and can be a secret.
 */
export function optionName(path: Path): string {
  return path.reduce<string>((before, step) => {
    if (typeof step === 'number') return `${before}[${step}]`;
    const text = String(step);
    const shown = PLAIN_STEP.test(text) ? text : JSON.stringify(shortStep(text));
    return `${before}${before && '.'}${shown}`;
  }, '');
}

function shortStep(text: string): string {
  const short = text.slice(0, MAX_STEP_LENGTH);
  const colon = short.indexOf(':');
  return colon === -1 ? short : `${short.slice(0, colon + 1)}…`;
}
