import * as fc from 'fast-check';

/** One poll of a sequence. */
export interface Step {
  readonly body: Buffer;
  /** Places where the body is cut into pieces, modulo its length plus one. */
  readonly cuts: readonly number[];
  /** Whether the body is that of the datasets, too. */
  readonly datasets: boolean;
  /** API key that is redacted from this poll on. */
  readonly key: string | undefined;
  readonly commitFails: boolean;
  /** Whether the answer has an ETag, which a later request may be answered 304 to. */
  readonly hasEtag: boolean;
}

export type Sequence = readonly Step[];

const KEYS = ['a-secret-key', 'another/key+1'];
const IDS = [
  ...Array.from({ length: 14 }, (_, index) => `prompt-${index}`),
  '__proto__',
  'a"b\\c',
  'é😀',
  '}],[{',
  `x-${KEYS[0]}`,
  KEYS[1] ?? '',
  '\u0000',
  '.',
];
const STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED'];
const NAMES = ['plain', `holds a-secret-key`, 'x'.repeat(1030), '\\"[{', 'é'.repeat(40), '😀', ''];

/** Returns the forms of an item with one id; the first ones are as documented. */
function variants(id: string): readonly string[] {
  const quoted = JSON.stringify(id);
  const usual = STATUSES.flatMap((status) => [
    JSON.stringify({ id, name: NAMES[0], timestamp: 't', status, nested: [{ a: '],[' }] }),
    JSON.stringify({ status, id }),
  ]);
  return [
    ...usual,
    ...NAMES.map((name) => JSON.stringify({ id, status: 'RUNNING', name, experiment: name })),
    ` { "id" :\t${quoted} , "status":"RUNNING"\n}\r`,
    `{"id":${escaped(id)},"status":"\\u0046AILED"}`,
    `{"id":"other","id":${quoted},"status":"FAILED"}`,
    `{"id":${quoted},"status":"RUNNING","n":123456789012345678901234567890,"e":-1.5E+300}`,
    `{"id":${quoted},"status":"RUNNING","d":${'['.repeat(62)}${']'.repeat(62)}}`,
  ];
}

/** Items that make a listing unusual, or no JSON at all. */
const ODDITIES = [
  '1',
  'null',
  '"text"',
  '[]',
  '{}',
  '[{"id":"prompt-1","status":"FAILED"}]',
  'true',
  '{"id":"prompt-1"}',
  '{"id":"prompt-2","status":7}',
  '{"status":"FAILED"}',
  '{"id":1}',
  '{"id":"prompt-3","status":"PAUSED"}',
  '{"id":"prompt-3","status":"PAUSED2"}',
  '{"id":"\\ud800","status":"FAILED"}',
  '{"id":"prompt-4","status":"FAILED","name":"\\udc00"}',
  '',
  ' ',
  ',',
  '{',
  '}',
  ']',
  '[',
  '"',
  '\\',
  '\\"',
  '{"a":"\\',
  "{'a':1}",
  '{"a":01}',
  '1 2',
  '\uFEFF{"id":"prompt-5","status":"FAILED"}',
  '{"id":"prompt-5","status":"FAILED"} x',
  '\u00a0',
  `{"d":${'['.repeat(63)}${']'.repeat(63)}}`,
  // Texts at their limits, and fields of other types.
  ...[512, 513].map((length) => JSON.stringify({ id: '😀'.repeat(length), status: 'FAILED' })),
  ...['failed', '', '\ud800', 'x'.repeat(257), null, {}, ['FAILED']].map((status) =>
    JSON.stringify({ id: 'prompt-6', status }),
  ),
  ...[null, 7, true, ['x'], {}].map((name) =>
    JSON.stringify({
      id: 'prompt-7',
      status: 'FAILED',
      name,
      timestamp: name,
      metric: name,
      constructor: name,
    }),
  ),
];

function escaped(id: string): string {
  const units = Array.from({ length: id.length }, (_, index) => id.charCodeAt(index));
  return `"${units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')}"`;
}

/** Difference between a body and the one before. */
interface Edit {
  readonly changes: readonly (readonly [id: number, variant: number])[];
  readonly removed: readonly number[];
  readonly oddities: readonly (readonly [place: number, oddity: number])[];
  /** Items that are repeated, as they were or `otherwise`. */
  readonly repeated: readonly (readonly [index: number, otherwise: boolean])[];
  readonly turn: number;
  readonly wrapping: readonly [before: string, after: string];
  readonly damage: readonly [place: number, bytes: Uint8Array] | undefined;
}

const few = <Value>(value: fc.Arbitrary<Value>, weight: number) =>
  fc.oneof(
    { weight: 10 - weight, arbitrary: fc.constant([]) },
    { weight, arbitrary: fc.array(value, { maxLength: 3 }) },
  );
const seldom = <Value>(value: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 14, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value });
const spaces = fc.constantFrom('', '', '', ' ', '\n\t', '\r');

const edits: fc.Arbitrary<Edit> = fc.record({
  changes: few(fc.tuple(fc.nat(), fc.nat()), 6),
  removed: few(fc.nat(), 3),
  oddities: few(fc.tuple(fc.nat(), fc.nat()), 1),
  repeated: few(fc.tuple(fc.nat(), fc.boolean()), 1),
  turn: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(5) }),
  wrapping: fc.tuple(
    fc.oneof(
      { weight: 29, arbitrary: spaces },
      fc.constantFrom('\uFEFF', '\uFEFF\uFEFF', ' \uFEFF', 'x'),
    ),
    fc.oneof({ weight: 29, arbitrary: spaces }, fc.constantFrom('x', ']', '\uFEFF', ',')),
  ),
  damage: seldom(fc.tuple(fc.nat(), fc.uint8Array({ minLength: 1, maxLength: 3 }))),
});

const circumstances = fc.record({
  cuts: fc.array(fc.nat(), { maxLength: 6 }),
  key: seldom(fc.constantFrom(...KEYS)),
  commitFails: seldom(fc.constant(true)).map((fails) => fails ?? false),
  hasEtag: fc.boolean(),
});

/** Sequences of listings as a service returns them, and sometimes as a broken service does. */
export const sequences: fc.Arbitrary<Sequence> = fc
  .tuple(
    fc.array(fc.tuple(fc.nat(IDS.length - 1), fc.nat(7)), { minLength: 0, maxLength: 24 }),
    fc.array(fc.tuple(edits, circumstances), { minLength: 3, maxLength: 8 }),
    seldom(fc.constant(true)),
  )
  .map(([first, steps, datasets = false]) => {
    let items = new Map(first.map(([id, variant]) => [id, variant]));
    return steps.map(([edit, about]) => {
      items = new Map(items);
      const ids = [...items.keys()];
      for (const [id, variant] of edit.changes) {
        items.set(ids[id % (ids.length + 3)] ?? id % IDS.length, variant);
      }
      for (const index of edit.removed) items.delete(ids[index % ids.length] ?? -1);
      return { ...about, datasets, body: write(items, edit) };
    });
  });

function write(items: ReadonlyMap<number, number>, edit: Edit): Buffer {
  const entries = [...items];
  const repeated = edit.repeated.flatMap(([index, otherwise]) => {
    const entry = entries[index % entries.length];
    return entry === undefined ? [] : [[entry[0], entry[1] + Number(otherwise)] as const];
  });
  const texts = [...entries, ...repeated].map(([id, variant]) => {
    const all = variants(IDS[id] ?? '');
    return all[variant % all.length] ?? '';
  });
  const turned = [...texts.slice(edit.turn), ...texts.slice(0, edit.turn)];
  for (const [place, oddity] of edit.oddities) {
    turned.splice(place % (turned.length + 1), 0, ODDITIES[oddity % ODDITIES.length] ?? '');
  }
  const [before, after] = edit.wrapping;
  const body = Buffer.from(`${before}[${turned.join(',')}]${after}`);
  if (edit.damage === undefined) return body;
  const [place, bytes] = edit.damage;
  const at = place % (body.length + 1);
  // One byte ends the body; more bytes replace others.
  const rest = bytes.length === 1 ? Buffer.alloc(0) : body.subarray(at + bytes.length - 1);
  return Buffer.concat([body.subarray(0, at), bytes, rest]);
}
