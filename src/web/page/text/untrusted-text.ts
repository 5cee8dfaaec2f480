import { html } from 'hono/html';
import type { Html } from '../html.ts';

/** Characters that are invisible or change how their neighbours look; joiners and emoji variants belong to ordinary text. */
const HIDDEN = /[[\p{C}\p{Z}\p{DI}\u2800]--[ \p{Join_Control}\u{fe0e}-\u{fe0f}]]/v;
const ONLY_JOINERS = /^[ \p{Join_Control}\u{fe0e}-\u{fe0f}]*$/v;
/** Cost of a mark in a text's budget, where a character costs 1. */
const MARK_COST = 10;

const NAMES: Readonly<Record<string, string>> = {
  '\u0000': 'null',
  '\u0007': 'bell',
  '\u0008': 'backspace',
  '\t': 'tab',
  '\n': 'line break',
  '\u001B': 'escape',
  '\u00A0': 'no-break space',
  '\u200B': 'zero width space',
  '\u200E': 'left-to-right mark',
  '\u200F': 'right-to-left mark',
  '\u202A': 'left-to-right embedding',
  '\u202B': 'right-to-left embedding',
  '\u202C': 'end of a change of direction',
  '\u202D': 'left-to-right override',
  '\u202E': 'right-to-left override',
  '\u2066': 'left-to-right isolate',
  '\u2067': 'right-to-left isolate',
  '\u2068': 'first strong isolate',
  '\u2069': 'end of an isolate',
  '\uFEFF': 'byte order mark',
};

export interface Cut {
  readonly shown: Html;
  readonly isWhole: boolean;
}

/**
 * Shows the beginning of a text from outside, as long as its budget lasts (a character costs 1). The text is isolated from
 * the writing direction around it. Marks replace characters that are invisible, reorder the text, or are invalid.
 */
export function untrustedText(text: string, budget: number, lines: 'one line' | 'lines'): Cut {
  const pieces: (Html | string)[] = [];
  let plain = '';
  let left = budget;
  let read = 0;
  const isBlank = ONLY_JOINERS.test(text);
  for (const run of runsOf(text, isBlank, lines)) {
    const cost = run.mark === undefined ? 1 : MARK_COST;
    if (cost > left) break;
    left -= cost;
    read += run.length;
    if (run.mark === undefined) plain += run.text;
    else {
      pieces.push(plain, run.mark);
      plain = '';
    }
  }
  const isWhole = read === text.length;
  pieces.push(plain);
  return { shown: html`<bdi class="text">${pieces}${isWhole ? '' : '…'}</bdi>`, isWhole };
}

type Run =
  | { readonly mark: undefined; readonly text: string; readonly length: number }
  | { readonly mark: Html; readonly length: number };

/** Yields ordinary characters one by one, and each run of the same hidden character as one mark. */
function* runsOf(text: string, isBlank: boolean, lines: 'one line' | 'lines'): Generator<Run> {
  let index = 0;
  while (index < text.length) {
    const character = String.fromCodePoint(text.codePointAt(index) ?? 0);
    const { length } = character;
    if (lines === 'lines' && (character === '\n' || character === '\t')) {
      yield { mark: undefined, text: character, length };
    } else if (isHidden(character, index, text) || isBlank) {
      let count = 1;
      while (text.startsWith(character, index + count * length)) count += 1;
      yield { mark: markOf(character, count), length: count * length };
      index += (count - 1) * length;
    } else {
      yield { mark: undefined, text: character, length };
    }
    index += length;
  }
}

function isHidden(character: string, index: number, text: string): boolean {
  const atEdge = index === 0 || index === text.length - 1;
  return character === ' ' ? atEdge : HIDDEN.test(character);
}

function markOf(character: string, count: number): Html {
  const code = `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
  const times = count === 1 ? '' : `×${count}`;
  const known = NAMES[character];
  const title = known === undefined ? code : `${code} ${known}`;
  const shown = character === '\n' ? '⏎' : `⟨${code}⟩`;
  return html`<span class="mark" title="${title}">${shown}${times}</span>`;
}

/** A name or an id on one line; a long one unfolds. */
export function untrustedName(text: string): Html {
  return foldable(text, { short: 80, whole: 1100, lines: 'one line' });
}

/** The beginning of a name, for links. */
export function shortUntrusted(text: string): Cut {
  return untrustedText(text, 80, 'one line');
}

/** A message of several lines, folded to its beginning; `whole` is the budget of the unfolded text. */
export function untrustedMessage(text: string, whole: number): Html {
  return foldable(text.replaceAll('\r\n', '\n'), { short: 300, whole, lines: 'lines' });
}

interface Fold {
  readonly short: number;
  readonly whole: number;
  readonly lines: 'one line' | 'lines';
}

function foldable(text: string, { short, whole, lines }: Fold): Html {
  const start = untrustedText(text, short, 'one line');
  if (start.isWhole && !(lines === 'lines' && text.includes('\n'))) return start.shown;
  const all = untrustedText(text, whole, lines);
  return html`<details class="fold">
    <summary>${start.shown}</summary>
    <div class="whole">${all.shown}</div>
    ${all.isWhole ? '' : html`<p class="quiet">The rest is in the JSON of the API.</p>`}
  </details>`;
}
