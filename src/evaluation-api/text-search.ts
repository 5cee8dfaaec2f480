/** Maximum length of the window that the search moves over a text, in characters. */
const MAX_WINDOW = 32;
const BLOCK = 3;
const HASHES = 0x1_00_00;
const PLUS = 0x2b;
const SPACE = 0x20;

/** Calls `onFound` with each entry found and its exclusive end, in the order of the ends. */
export type TextSearch<Entry> = (
  text: string,
  onFound: (entry: Entry, end: number) => void,
) => void;

/**
 * Creates a search for many entries at once, of at least 3 characters each; `+` and space are equal. It skips most of a
 * text without matches, however many entries there are (Wu and Manber's method).
 */
export function createTextSearch<Entry extends { readonly text: string }>(
  entries: readonly Entry[],
): TextSearch<Entry> {
  const window = Math.min(MAX_WINDOW, ...entries.map(({ text }) => text.length));
  /** How far the window may move, by the hash of its last three characters. */
  const moves = new Uint8Array(HASHES).fill(window - BLOCK + 1);
  const endingWith = new Map<number, Entry[]>();
  for (const entry of entries) {
    const last = entry.text.length - 1;
    for (let move = 0; move <= window - BLOCK; move += 1) {
      const hash = hashAt(entry.text, last - move);
      moves[hash] = Math.min(moves[hash] ?? 0, move);
    }
    const hash = hashAt(entry.text, last);
    endingWith.set(hash, [...(endingWith.get(hash) ?? []), entry]);
  }

  return (text, onFound) => {
    for (let last = window - 1; last < text.length;) {
      const hash = hashAt(text, last);
      const move = moves[hash] ?? 1;
      if (move === 0) {
        for (const entry of endingWith.get(hash) ?? []) {
          if (endsAt(text, last, entry.text)) onFound(entry, last + 1);
        }
      }
      last += move || 1;
    }
  };
}

/** Returns the hash of the three characters that end at `last`. */
function hashAt(text: string, last: number): number {
  return (
    ((codeAt(text, last - 2) << 10) ^ (codeAt(text, last - 1) << 5) ^ codeAt(text, last)) &
    (HASHES - 1)
  );
}

function endsAt(text: string, last: number, wanted: string): boolean {
  if (last + 1 < wanted.length) return false;
  const start = last + 1 - wanted.length;
  for (let index = wanted.length - 1; index >= 0; index -= 1) {
    if (codeAt(text, start + index) !== codeAt(wanted, index)) return false;
  }
  return true;
}

function codeAt(text: string, index: number): number {
  const code = text.charCodeAt(index);
  return code === PLUS ? SPACE : code;
}
