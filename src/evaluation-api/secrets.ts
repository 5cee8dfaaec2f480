/** Hides every key that was read from whatever is logged, stored or shown (contract 3). */
export interface Secrets {
  readonly remember: (key: string) => void;
  /** The text with `[redacted]` for each key in it, be it plain, percent-encoded or escaped as in JSON. */
  readonly scrub: (text: string) => string;
  /** Another number whenever a text might be scrubbed otherwise than before. */
  readonly version: () => number;
}

interface Secret {
  readonly key: string;
  /** The key in any of its forms. */
  readonly pattern: RegExp;
}

/** The newest ones, rotated ones among them: a service may echo an old key for a while. */
const KEYS_REMEMBERED = 256;
const REDACTED = '[redacted]';

export function createSecrets(): Secrets {
  /** In the order in which they were last remembered. */
  const known = new Map<string, Secret>();
  /** The longest first, for a key may begin with another one. */
  let byLength: readonly Secret[] = [];
  let version = 0;

  function remember(key: string): void {
    const before = known.get(key);
    known.delete(key);
    known.set(key, before ?? { key, pattern: patternOf(key) });
    if (before !== undefined) return;
    version += 1;
    const [oldest] = known.keys();
    if (known.size > KEYS_REMEMBERED && oldest !== undefined) known.delete(oldest);
    byLength = [...known.values()].toSorted((one, other) => other.key.length - one.key.length);
  }

  function scrub(text: string): string {
    const mayBeEncoded = /[%\\+]/.test(text);
    let scrubbed = text;
    for (const { key, pattern } of byLength) {
      if (mayBeEncoded || scrubbed.includes(key)) scrubbed = scrubbed.replace(pattern, REDACTED);
    }
    return scrubbed;
  }

  return { remember, scrub, version: () => version };
}

function patternOf(key: string): RegExp {
  return new RegExp(
    Array.from(key, (character) => `(?:${formsOf(character).join('|')})`).join(''),
    'g',
  );
}

/** One character of a key, below U+0100, in all the ways in which it may be written; encoded twice, too. */
function formsOf(character: string): readonly string[] {
  const plain = RegExp.escape(character);
  const code = character.charCodeAt(0);
  const forms = [plain, percent([code]), `\\\\+u00${hex(code)}`];
  if (code >= 0x80) forms.push(percent(Buffer.from(character)));
  if ('"\\/'.includes(character)) forms.push(`\\\\+${plain}`);
  if (character === ' ') forms.push('\\+');
  return forms;
}

function percent(bytes: Iterable<number>): string {
  return Array.from(bytes, (byte) => `%(?:25)*${hex(byte)}`).join('');
}

/** Two hexadecimal digits in either case, as a pattern. */
function hex(byte: number): string {
  const digits = byte.toString(16).padStart(2, '0');
  return digits.replaceAll(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
}
