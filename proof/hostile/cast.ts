import { promptItem } from '../../test/support/service.ts';
import { KEY_FORMS } from '../../test/support/written-keys.ts';
import { type Exchange, FORGED, GOOD } from './exchange.ts';

/** Behaviour of the service. */
export type Mood = 'good' | 'hostile';

/** Projects that never get hostile answers. */
export const HEALTHY = ['healthy 1', 'healthy 2', 'healthy 3', 'lively'] as const;
/** Project of prompts with strange ids, which all fail once the service turns hostile. */
export const ODD = 'odd ids';
/** Project whose prompts all fail then; the details of each get one kind of hostile answer. */
export const DETAILS = 'details';

/** Ids that can be tracked, but that could break a path or a log line. */
export const ODD_IDS: readonly string[] = [
  '.',
  '..',
  '/../',
  '%2e%2e',
  'a/b?c#d',
  '__proto__',
  'constructor',
  ' ',
  '\0',
  `line${FORGED}`,
  '\u2028\u202e\u001b[2J',
  '\u{1f600}'.repeat(512),
];

/** Returns a key in each form in which it must not be revealed. */
export function echoesOf(key: string): readonly string[] {
  return Object.values(KEY_FORMS).map((write) => write(key));
}

/** Returns the content of every hostile text. */
export function nastyText(key: string): string {
  return `${echoesOf(key).join(' ')}${FORGED}\u001b[2J\u2028\ud800`;
}

export function oddListing({ key }: Pick<Exchange, 'key'>, mood: Mood): string {
  const status = mood === 'good' ? 'RUNNING' : 'FAILED';
  const items = ODD_IDS.map((id) => ({ ...promptItem(id, status), name: nastyText(key) }));
  const strange = { ...promptItem('strange', nastyText(key)), timestamp: nastyText(key) };
  return JSON.stringify([...items, strange]);
}

export function detailsListing(kinds: readonly string[], hasFailed: boolean): string {
  return JSON.stringify(kinds.map((kind) => promptItem(kind, hasFailed ? 'FAILED' : 'RUNNING')));
}

const LIVELY = ['RUNNING', 'COMPLETED', 'PENDING', 'FAILED'] as const;

/** Returns a listing with a prompt after this many moves. */
export function livelyListing(moves: number): { readonly status: string; readonly body: string } {
  const status = LIVELY[moves % LIVELY.length] ?? 'RUNNING';
  return { status, body: `${GOOD.slice(0, -1)},${JSON.stringify(promptItem('mover', status))}]` };
}

/** Returns a single prompt with an error_info. */
export function goodDetail(errorMsg: string): string {
  return JSON.stringify({ status: 'FAILED', error_info: { error_id: 'E', error_msg: errorMsg } });
}
