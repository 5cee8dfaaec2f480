import { RESET_TIMES } from '../answer.ts';
import { ECHO_PLACES, type Fault } from './fault.ts';
import type { FaultRule } from './fault-plan.ts';
import { GARBAGES, isGarbage } from './garbage.ts';
import { isItemDamage, ITEM_DAMAGES } from './item-damage.ts';

/** Syntax of one kind of fault. */
interface Syntax {
  /** Description of the text after the equals sign; undefined if there is none. */
  readonly argument: string | undefined;
  /** Parses the argument, '' if it is absent; returns undefined for an invalid one. */
  readonly parse: (argument: string) => Fault | undefined;
}

const MIB = 1024 * 1024;
const MAX_TIMER_MS = 2 ** 31 - 1;

const syntaxes: Readonly<Record<string, Syntax>> = {
  status: { argument: 'CODE[/RETRY_AFTER]', parse: parseStatus },
  delay: {
    argument: 'DURATION',
    parse: (text) => whenDefined(parseDuration(text), (ms) => ({ kind: 'delay', ms })),
  },
  hang: { argument: undefined, parse: (text) => (text === '' ? { kind: 'hang' } : undefined) },
  reset: {
    argument: RESET_TIMES.join('|'),
    parse: (text) =>
      whenDefined(
        RESET_TIMES.find((time) => time === (text || 'body')),
        (when) => ({ kind: 'reset', when }),
      ),
  },
  truncate: { argument: 'BYTES', parse: (text) => parseTruncate(text, false) },
  'truncate-chunked': { argument: 'BYTES', parse: (text) => parseTruncate(text, true) },
  garbage: {
    argument: GARBAGES.join('|'),
    parse: (text) => {
      const variant = text || 'text';
      return isGarbage(variant) ? { kind: 'garbage', variant } : undefined;
    },
  },
  redirect: {
    argument: 'URL',
    parse: (text) => {
      const to = text || 'https://sso.example.com/login';
      return /^[!-~]+$/.test(to) ? { kind: 'redirect', to } : undefined;
    },
  },
  drip: { argument: 'BYTES_PER_SECOND', parse: (text) => parseDrip(text, 'body') },
  'drip-headers': { argument: 'BYTES_PER_SECOND', parse: (text) => parseDrip(text, 'headers') },
  oversize: { argument: 'SIZE', parse: (text) => parseOversize(text, false) },
  'oversize-chunked': { argument: 'SIZE', parse: (text) => parseOversize(text, true) },
  bomb: {
    argument: 'SIZE',
    parse: (text) => whenDefined(parseSize(text || '300MiB'), (bytes) => ({ kind: 'bomb', bytes })),
  },
  gzip: {
    argument: undefined,
    parse: (text) => (text === '' ? { kind: 'compression', broken: false } : undefined),
  },
  broken: {
    argument: undefined,
    parse: (text) => (text === '' ? { kind: 'compression', broken: true } : undefined),
  },
  'content-type': {
    argument: 'TYPE',
    parse: (text) => {
      const value = text || 'text/html';
      return /^[!-~]+$/.test(value) ? { kind: 'content-type', value } : undefined;
    },
  },
  items: {
    argument: ITEM_DAMAGES.join('|'),
    parse: (text) => (isItemDamage(text) ? { kind: 'items', variant: text } : undefined),
  },
  echo: {
    argument: ECHO_PLACES.join('|'),
    parse: (text) =>
      whenDefined(
        ECHO_PLACES.find((place) => place === (text || 'header')),
        (where) => ({ kind: 'echo', where }),
      ),
  },
};

/** The faults of `all`: many kinds at low probabilities, so that most requests still succeed. */
const ALL = [
  'status=500:0.02',
  'status=502:0.01',
  'status=503/1:0.01',
  'status=429/1:0.02',
  'status=408:0.005',
  'status=404:0.005',
  'status=204:0.005',
  'status=304:0.005',
  'redirect:0.01',
  'garbage=html:0.01',
  'garbage=utf8:0.005',
  'garbage=nesting:0.002',
  'garbage=empty:0.005',
  'oversize-chunked:0.001',
  'bomb:0.001',
  'items=unknown-status:0.01',
  'items=duplicate:0.01',
  'items=no-id:0.01',
  'items=null-status:0.01',
  'echo=error:0.005',
  'content-type:0.02',
  'gzip:0.5',
  'broken:0.01',
  'delay=2s:0.03',
  'delay=200ms:0.1',
  'reset=before:0.01',
  'reset=headers:0.005',
  'reset=body:0.01',
  'truncate:0.01',
  'truncate-chunked:0.01',
  'drip=2000:0.01',
  'hang:0.002',
].join(',');

/** Returns the syntax of each kind of fault, one line each. */
export function faultSyntax(): readonly string[] {
  return [...Object.keys(syntaxes).map(syntaxOf), 'all'];
}

/**
 * Parses faults such as `status=500:0.05,delay=2s:0.02,truncate`. An entry has a `kind`, an optional `=argument` and an
 * optional `:probability` (0 to 1, default 1). `all` is a mixture of most kinds.
 * @throws {Error} with the invalid entry and its correct syntax
 */
export function parseFaults(text: string): readonly FaultRule[] {
  if (text.trim() === '') return [];
  return text
    .split(',')
    .map((entry) => entry.trim())
    .flatMap((entry) => (entry === 'all' ? parseFaults(ALL) : [parseEntry(entry)]));
}

function parseEntry(entry: string): FaultRule {
  const match = /^(?<rest>.+?)(?::(?<probability>0?\.\d+|0|1(?:\.0+)?))?$/s.exec(entry);
  const { rest = '', probability } = match?.groups ?? {};
  const equals = rest.indexOf('=');
  const kind = equals < 0 ? rest : rest.slice(0, equals);
  const syntax = Object.hasOwn(syntaxes, kind) ? syntaxes[kind] : undefined;
  if (syntax === undefined) {
    throw new Error(
      `Fault "${entry}": expected kind[=argument][:probability from 0 to 1], kind being one of ${[...Object.keys(syntaxes), 'all'].join(', ')}.`,
    );
  }
  const fault = syntax.parse(equals < 0 ? '' : rest.slice(equals + 1));
  if (fault === undefined) {
    throw new Error(`Fault "${entry}": expected ${syntaxOf(kind)}[:probability].`);
  }
  return { fault, probability: probability === undefined ? 1 : Number(probability) };
}

function syntaxOf(kind: string): string {
  const syntax = syntaxes[kind];
  if (syntax?.argument === undefined) return kind;
  return syntax.parse('') === undefined
    ? `${kind}=${syntax.argument}`
    : `${kind}[=${syntax.argument}]`;
}

function parseStatus(text: string): Fault | undefined {
  const match = /^(?<code>[2-5]\d\d)(?:\/(?<retryAfter>[ -~]+))?$/.exec(text);
  if (match?.groups === undefined) return undefined;
  const { code, retryAfter } = match.groups;
  return { kind: 'status', code: Number(code), retryAfter };
}

function parseTruncate(text: string, chunked: boolean): Fault | undefined {
  if (text === '') return { kind: 'truncate', chunked };
  return whenDefined(parseSize(text), (at) => ({ kind: 'truncate', at, chunked }));
}

function parseDrip(text: string, part: 'headers' | 'body'): Fault | undefined {
  return whenDefined(parseSize(text) || undefined, (bytesPerSecond) => ({
    kind: 'drip',
    part,
    bytesPerSecond,
  }));
}

function parseOversize(text: string, chunked: boolean): Fault | undefined {
  const bytes = text === '' ? 65 * MIB : parseSize(text);
  return whenDefined(bytes, (size) => ({ kind: 'oversize', bytes: size, chunked }));
}

/** Parses `500ms`, `2s`, `1m` or `1h` to ms. */
function parseDuration(text: string): number | undefined {
  const match = /^(?<count>\d+(?:\.\d+)?)(?<unit>ms|s|m|h)$/.exec(text);
  const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
  const ms = Number(match?.groups?.['count']) * (units[match?.groups?.['unit'] ?? ''] ?? NaN);
  return ms <= MAX_TIMER_MS ? ms : undefined;
}

/** Parses `100`, `512KiB` or `64MiB` to bytes. */
function parseSize(text: string): number | undefined {
  const match = /^(?<count>\d+)(?<unit>KiB|MiB|GiB)?$/.exec(text);
  const units: Readonly<Record<string, number>> = { KiB: 1024, MiB: MIB, GiB: 1024 * MIB };
  const count = match?.groups?.['count'];
  return count === undefined
    ? undefined
    : Number(count) * (units[match?.groups?.['unit'] ?? ''] ?? 1);
}

function whenDefined<T>(value: T | undefined, make: (value: T) => Fault): Fault | undefined {
  return value === undefined ? undefined : make(value);
}
