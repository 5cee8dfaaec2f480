import { promptItem } from '../../test/support/service.ts';
import { KEY } from '../../test/support/soak/configuration.ts';
import { GOOD, type Hostility, listing, whole } from './exchange.ts';

/** Texts that some parsers take for the beginning of something, or have to look at twice. */
const SPECIALS: readonly string[] = [
  ...String.raw`\ " ' % & # ; < > = + - / , : . ? * | ^ $ ~ ( ) [ ] { }`.split(' '),
  ...String.raw`%25 %5c %u \u \x \u005c &amp; &# &#x &#00 =3D 00 AA`.split(' '),
  ' ',
  '\n',
  '\r\n',
  '\t',
  '\0',
  '\u001b[',
  '\u0085',
  '\u00ad',
  '\u2028',
  '\u202e',
  '\u200d',
  'e\u0301',
  '\ufeff',
  '\ud800',
  '\u{1f600}',
  KEY.slice(0, 1),
  KEY.slice(0, -1),
  `${KEY.slice(0, -1)}\\`,
  encodeURIComponent(KEY).slice(0, -1),
];
/** So that an item with two times all runs is smaller than 1 MiB. */
const RUN_LENGTH = 5_000;
/** Length of one header; all headers together may have 16 KiB. */
const HEADER_LENGTH = 12_000;

/** Runs of every special text, one after the other. */
const RUNS = SPECIALS.map((special) => special.repeat(RUN_LENGTH / special.length)).join('');
const HEADER_RUNS = String.raw`\ % & # ; = + / ' <`
  .split(' ')
  .map((special) => special.repeat(HEADER_LENGTH / 10))
  .join('');

/** Returns the good listing with further fields in its first item, and further items. */
function good(fields: object, ...items: readonly object[]): Buffer {
  const [first, ...others] = JSON.parse(GOOD) as readonly object[];
  return Buffer.from(JSON.stringify([{ ...first, ...fields }, ...others, ...items]));
}

const LISTINGS: Readonly<Record<string, Buffer>> = {
  name: good({ name: RUNS }),
  timestamp: good({ timestamp: RUNS }),
  // None of them is an id that can be tracked.
  id: good(
    {},
    ...SPECIALS.map((special) => promptItem(special.repeat(RUN_LENGTH / special.length), 'FAILED')),
  ),
  status: good({}, { id: 7, status: RUNS }),
  'a field that is not read': good({ [RUNS]: RUNS }),
};

/** Runs of each special character in each field that is read, stored, logged or sent back. */
export const RUNS_OF_CHARACTERS: Readonly<Record<string, Hostility>> = {
  ...Object.fromEntries(
    Object.entries(LISTINGS).map(([field, body]): [string, Hostility] => [
      `runs in ${field}`,
      { ends: ['ok'], answer: listing(body) },
    ]),
  ),
  'runs in error_info': {
    ends: ['invalid_response'],
    answer: listing(JSON.stringify({ error_info: { error_id: `E${RUNS}`, error_msg: RUNS } })),
  },
  'runs in a detail': {
    ends: ['validation'],
    answer: whole(422, JSON.stringify({ detail: [{ msg: RUNS.slice(0, 900_000) }] })),
  },
  'runs in an ETag': { ends: ['ok'], answer: listing(GOOD, { etag: `"${HEADER_RUNS}"` }) },
  'runs in a location': {
    ends: ['redirect'],
    answer: whole(302, '', { location: `/${HEADER_RUNS}` }),
  },
  'runs in Retry-After': {
    ends: ['rate_limited'],
    answer: whole(429, '', { 'retry-after': HEADER_RUNS }),
  },
  'runs in a coding': {
    ends: ['invalid_response'],
    answer: listing(GOOD, { 'content-encoding': HEADER_RUNS }),
  },
};
