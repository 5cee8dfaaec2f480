/** What of a JSON value is of use: the fields of an object, the items of an array, or just a text, number or the like. */
export interface Keep {
  readonly fields?: ReadonlyMap<string, Keep>;
  readonly items?: Keep;
}

/** A value that is no container. */
export const SCALAR: Keep = {};

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const HEXADECIMAL = /[0-9a-fA-F]{4}/y;
const LITERALS = ['true', 'false', 'null'] as const;
const ESCAPED = '"\\/bfnrt';

/**
 * The value of a JSON text, of which only what is named is built: an object of a million fields costs no more than its
 * text. A container that is not named comes out empty. Recurses as deep as the text is nested.
 * @throws {SyntaxError}
 */
export function skim(text: string, wanted: Keep): unknown {
  let at = 0;

  function fail(): never {
    throw new SyntaxError('not JSON');
  }

  /** Moves behind what the sticky pattern takes here. */
  function take(pattern: RegExp): string {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0] ?? fail();
    at += found.length;
    return found;
  }

  function skipSpace(): void {
    const code = text.charCodeAt(at);
    if (code <= 0x20) take(SPACE);
  }

  function is(character: string): boolean {
    skipSpace();
    if (text[at] !== character) return false;
    at += 1;
    return true;
  }

  function value(keep: Keep | undefined): unknown {
    skipSpace();
    const first = text[at];
    if (first === '{') return object(keep?.fields);
    if (first === '[') return array(keep?.items);
    const start = at;
    if (first === '"') skipString();
    else at += LITERALS.find((literal) => text.startsWith(literal, at))?.length ?? takeNumber();
    return keep === undefined ? undefined : (JSON.parse(text.slice(start, at)) as unknown);
  }

  function takeNumber(): number {
    const { length } = take(NUMBER);
    at -= length;
    return length;
  }

  function skipString(): void {
    for (at += 1; text[at] !== '"'; at += 1) {
      if (text[at] === '\\') skipEscape();
      // Also behind the end, where there is no number.
      else if (!(text.charCodeAt(at) >= 0x20)) fail();
    }
    at += 1;
  }

  function skipEscape(): void {
    at += 1;
    const character = text[at] ?? fail();
    if (character === 'u') {
      at += 1;
      take(HEXADECIMAL);
      at -= 1;
    } else if (!ESCAPED.includes(character)) fail();
  }

  function object(fields: Keep['fields']): Readonly<Record<string, unknown>> {
    const kept: Record<string, unknown> = {};
    at += 1;
    if (is('}')) return kept;
    do {
      skipSpace();
      if (text[at] !== '"') fail();
      const start = at;
      skipString();
      const name = fields === undefined ? '' : nameOf(text.slice(start, at));
      if (!is(':')) fail();
      const keep = fields?.get(name);
      const member = value(keep);
      if (keep !== undefined) kept[name] = member;
    } while (is(','));
    return is('}') ? kept : fail();
  }

  function array(keep: Keep | undefined): readonly unknown[] {
    const kept: unknown[] = [];
    at += 1;
    if (is(']')) return kept;
    do {
      const item = value(keep);
      if (keep !== undefined) kept.push(item);
    } while (is(','));
    return is(']') ? kept : fail();
  }

  const whole = value(wanted);
  skipSpace();
  return at === text.length ? whole : fail();
}

function nameOf(quoted: string): string {
  return quoted.includes('\\') ? String(JSON.parse(quoted)) : quoted.slice(1, -1);
}
