import { KEY } from '../../test/support/soak/configuration.ts';

/** A body of very many items, and how a poll that reads it ends. */
export interface ManyItems {
  readonly name: string;
  readonly body: () => Iterable<Buffer>;
  readonly end: 'ok' | 'too_large' | 'invalid_response';
  /** Memory that the daemon may keep of each item, bytes. */
  readonly keptBytes: number;
}

interface Item extends Pick<ManyItems, 'end' | 'keptBytes'> {
  readonly text: (n: number) => string;
}

const PIECE_LENGTH = 64 * 1024;
/** Memory for an id in a set, bytes. */
const ID_BYTES = 250;
/** Memory for a record in all that a poll makes of it, bytes. */
const RECORD_BYTES = 1000;

const valid = (id: string) => `{"id":"${id}","status":"RUNNING"}`;
const useless = (text: string): Item => ({
  text: () => text,
  end: 'invalid_response',
  keptBytes: 0,
});

const ITEMS: Readonly<Record<string, Item>> = {
  zeros: useless('0'),
  'empty texts': useless('""'),
  nulls: useless('null'),
  'empty objects': useless('{}'),
  'nothing between commas': useless(''),
  'the key for an id': useless(valid(KEY)),
  'one id again and again': { ...useless(valid('a')), end: 'ok' },
  'an id without a status': {
    text: (n) => `{"id":"${n}"}`,
    end: 'invalid_response',
    keptBytes: ID_BYTES,
  },
  'an unknown status': {
    text: (n) => `{"id":"${n}","status":"X${n}"}`,
    end: 'ok',
    keptBytes: RECORD_BYTES,
  },
  'a new prompt': { text: (n) => valid(`p${n}`), end: 'ok', keptBytes: RECORD_BYTES },
};

/** Returns a list of `count` items of each kind, and lists with one more, which is too many. */
export function manyItems(count: number): readonly ManyItems[] {
  return Object.entries(ITEMS).flatMap(([name, { text, end, keptBytes }]): readonly ManyItems[] => [
    { name: `${count} × ${name}`, body: () => list(text, count), end, keptBytes },
    {
      name: `${count + 1} × ${name}`,
      body: () => list(text, count + 1),
      end: 'too_large',
      keptBytes: 0,
    },
  ]);
}

function* list(item: (n: number) => string, count: number): Generator<Buffer> {
  let text = '[';
  for (let n = 0; n < count; n += 1) {
    text += n === 0 ? item(n) : `,${item(n)}`;
    if (text.length > PIECE_LENGTH) {
      yield Buffer.from(text);
      text = '';
    }
  }
  yield Buffer.from(`${text}]`);
}
