import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { causeOf } from '../../../src/domain/cause.ts';
import { anyText } from '../../support/any-text.ts';

function shapeOf(message: string): string {
  return causeOf({ error_id: null, error_msg: message }).shape;
}

const PYTHON =
  'Traceback (most recent call last):\n  File "/app/a.py", line 3, in run\n    x = f(1)\n        ^^^^\n';

describe('cause id', () => {
  it('is the same for messages that differ only in a masked value', () => {
    const [one, other] = ['took 5 s', 'took 17 s'].map((error_msg) =>
      causeOf({ error_id: 'SLOW', error_msg }),
    );
    expect(one).toEqual({ id: expect.stringMatching(/^[0-9a-f]{16}$/), shape: 'took <*>' });
    expect(other).toEqual(one);
  });

  it('differs by error_id and by shape, and between an absent and an empty error_id', () => {
    const ids = [
      { error_id: 'A', error_msg: 'x' },
      { error_id: 'B', error_msg: 'x' },
      { error_id: null, error_msg: 'x' },
      { error_id: '', error_msg: 'x' },
      { error_id: 'A', error_msg: 'y' },
      { error_id: 'A', error_msg: null },
    ].map((info) => causeOf(info).id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('is stable across releases: a different id needs a new version of the grouping', () => {
    expect(causeOf({ error_id: 'TIMEOUT', error_msg: 'took 5 s' }).id).toBe('2f10c61585db2c12');
  });
});

describe('shape of a message', () => {
  it.each([
    ['numbers and ids', 'request req_1aB of run 5d3f-11 failed', 'request <*> of run <*> failed'],
    ['counted words', '1 error, 2 errors', '<*> error, <*> error'],
    ['lists of any length', 'rows 1, 2, 3 and 4', 'rows <*> and <*>'],
    ['sizes and times with their units', '5 MiB after 3 seconds', '<*> after <*>'],
    ['dates', 'since Mon, 12 Jan 2025 10:00:00 GMT', 'since <*>'],
    ['quoted text', `label "so so" of 'my dog' in \`x y\``, 'label <*> of <*> in <*>'],
    ['quotes within quotes', `said 'it's "fine" by me' twice`, 'said <*> twice'],
    ['a quote that is cut off', 'said "it is', 'said <*>'],
    ['quotes of other languages', 'score « bien » und „gut“ と「良い」', 'score <*> und <*> と<*>'],
    ['apostrophes', "it can't be read", "it can't be read"],
    ['values', 'limit=high top=no, x = y', 'limit=<*> top=<*>, x = <*>'],
    ['a value before a colon', 'cut at limit=5: so be it', 'cut at limit=<*>: so be it'],
    ['values in parentheses', 'no JSON (line 1 column 5) in Call(top=no, x=y)', 'no JSON in Call'],
    ['values of capital words', 'strict: True', 'strict: <*>'],
    ['a value behind a key', 'stopped (finish_reason: length)', 'stopped (finish_reason: <*>)'],
    ['a field that begins with a dot', 'no entry at .label here', 'no entry at <*> here'],
    [
      'the name behind two nouns',
      'prompt template triage.x not found',
      'prompt template <*> not found',
    ],
    ['a remark', 'Reviewer disagreed: The tone is not right here', 'Reviewer disagreed: <*>'],
    [
      'a reason in a sentence',
      'Grading failed. Reason: The tone is not right',
      'Grading failed. Reason: <*>',
    ],
    [
      'a reason of another kind',
      'reset reason: connection timeout',
      'reset reason: connection timeout',
    ],
    [
      'a failure behind a colon',
      'None generated: answer did not match',
      'None generated: answer did not match',
    ],
    ['what follows output:', 'bad judge output: it is fine', 'bad judge output: <*>'],
    ['what follows response:', 'Response: so far so good', 'Response: <*>'],
    [
      'a status that follows response:',
      'response: 503 Service Unavailable',
      'response: 503 Service Unavailable',
    ],
    ['addresses', 'a@b.org, https://x.org/y, /var/log/x, db.internal and C:\\x', '<*> and <*>'],
    [
      'addresses of IPv6 and MAC',
      'from fe80::1 to ee:ab:cd:ef:aa:bb on ::1:80',
      'from <*> to <*> on <*>',
    ],
    ['keys', 'key provided: sk-abcdefghijkl', 'key provided: <*>'],
    ['names', 'model mistral-large, user Alice', 'model <*>, user <*>'],
    ['words that are no names', 'the model is not available', 'the model is not available'],
    ['words that are nobody', 'connection reset by peer', 'connection reset by peer'],
    ['placeholders', 'no value for {name} and {{ other }}', 'no value for <*> and <*>'],
    ['objects', 'cannot use {"score": [1, {"a": "b"}]} here', 'cannot use <*> here'],
    ['status codes', 'HTTP 429 and status code 503', 'HTTP 429 and status code 503'],
    [
      'other numbers of three digits',
      'got 404 items, exit code 503',
      'got <*> item, exit code <*>',
    ],
    ['quoted statuses', "Client error '404 Not Found' for x", 'Client error 404 Not Found for x'],
    ['request lines', '"GET /a/1 HTTP/1.1" failed', 'GET <*> failed'],
    [
      'arguments of exceptions',
      `("Connection aborted.", RemoteDisconnected('Remote end closed on 5'))`,
      '(Connection aborted., RemoteDisconnected(Remote end closed on <*>))',
    ],
    ['days, and numbers in words', 'no place until Tuesday, two left', 'no place until <*> left'],
    ['what was said', 'the judge said that it is fine', 'the judge said <*>'],
    ['an element', 'reply <answer>so so</answer> has no score', 'reply <*> has no score'],
    ['an element that says why', '<error>too slow', '<error>too slow'],
    ['what follows a fence', 'no JSON: ```a``` as it is fine', 'no JSON: <*>'],
    ['text behind a key', 'raw=so so item=5', 'raw=<*> item=<*>'],
    ['lists', 'missing: label, score', 'missing: <*>'],
    ['lists in brackets', 'lost=[label] got [label, score]', 'lost=<*> got <*>'],
    [
      'names in brackets',
      '[judge:opus] item 5: [gemma] timed out',
      '[judge:<*>] item <*> timed out',
    ],
    ['a code in brackets', 'no such key [NoKey]', 'no such key [NoKey]'],
    ['names before a verb', 'project alpha exceeded its quota', 'project <*> exceeded its quota'],
    ['states behind a noun', 'model ready, model is ready', 'model ready, model is ready'],
    ['an address before a colon', 'at s3://a/b: Forbidden', 'at <*>: Forbidden'],
    [
      'another script',
      'could not embed the text 请问，我 again',
      'could not embed the text <*> again',
    ],
    ['another language', 'Refused by filter: die Ware ist nicht da', 'Refused by filter: <*>'],
    ['labels of other languages', 'Ungültige Antwort: es ist gut', 'Ungültige Antwort: <*>'],
    ['Chinese', '模型gpt-4o第3次请求失败', '模型<*>第<*>次请求失败'],
    ['Japanese', 'モデル「x」の出力：こんにちは', 'モデル<*>の出力: <*>'],
    ['Cyrillic', 'модель gpt-4 не найдена', 'модель <*> не найдена'],
  ])('masks or keeps %s', (_, message, shape) => {
    expect(shapeOf(message)).toBe(shape);
  });

  it.each([
    ['the first line that says something', '\n----\nError:\n it broke\nmore', 'Error: it broke'],
    [
      'the last exception of Python',
      `${PYTHON}KeyError: 'a'\n\nDuring handling:\n\n${PYTHON}ValueError: b is bad`,
      'ValueError: b is bad',
    ],
    [
      'a traceback on one line',
      'Traceback (most recent call last):\\n  File \\"a\\", line 1\\nValueError: bad',
      'ValueError: bad',
    ],
    [
      'an exception group',
      '  | Traceback (most recent call last):\n  |   File "a", line 1, in b\n  | x.Y: broke\n',
      'x.Y: broke',
    ],
    [
      'an exception of JavaScript',
      'TypeError: x is no function\n    at f (/a.js:1:2)\n',
      'TypeError: x is no function',
    ],
    [
      'the source that Node shows',
      '/a.js:1\n  throw x;\n  ^\n\nError: broke\n    at f (/a.js:1:2)',
      'Error: broke',
    ],
    [
      'the last cause of Java',
      'a.B: outer\n\tat a.b(C.java:1)\nCaused by: c.D: inner\n\tat a.b(C.java:1)',
      'c.D: inner',
    ],
    ['a panic of Go', 'log\npanic: broke\n\ngoroutine 1 [running]:', 'panic: broke'],
    [
      'a panic of Rust',
      "thread 'a' panicked at b.rs:1:2:\nbroke\nnote: x",
      'thread panicked: broke',
    ],
    [
      'an older one',
      "thread 'a' panicked at 'it broke', b.rs:1:2",
      'thread <*> panicked at it broke, <*>',
    ],
    [
      'the title of HTML',
      '<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head>',
      '502 Bad Gateway',
    ],
    ['HTML within a text', 'judge: <html><h1>Gone</h1></html>', 'judge: Gone'],
    [
      'an error in XML',
      '<?xml version="1.0"?><Error><Code>NoKey</Code><Message>No such key</Message></Error>',
      'No such key [NoKey]',
    ],
    [
      'an error answer in JSON',
      '{"error":{"message":"Too many","type":"limit","code":429}}',
      'Too many limit 429',
    ],
    [
      'one in Python',
      `Error code: 400 - {'error': {'message': "It can't", 'code': None}}`,
      "Error code: 400 - It can't",
    ],
    ['one that is cut off', '{"error": {"code": 500, "message": "It bro', 'It bro 500'],
    ['one with unescaped quotes', `{'error': {'message': 'it can't be'}}`, "it can't be"],
    [
      'one within another',
      '{"error":{"message":"{\\"error\\":{\\"message\\":\\"inner\\"}}","code":"x"}}',
      'inner x',
    ],
    [
      'one of FastAPI',
      '{"detail":[{"loc":["body","x"],"msg":"field required"}]}',
      'field required',
    ],
    [
      'one of gRPC',
      '<E of RPC that ended with:\n\tstatus = StatusCode.X\n\tdetails = "it broke"\n>',
      '<E of RPC that ended with: status = StatusCode.X details = it broke',
    ],
    [
      'a reason of pydantic',
      '2 validation errors for Verdict\nx\n  Field required [type=missing, input_value={}]',
      '<*> validation error for <*>: Field required',
    ],
    [
      'no answer of a model',
      'bad output: {"message": "so so", "error": "none"} twice',
      'bad output: <*> twice',
    ],
    ['no verdict', 'no match {"score": 1, "message": "so so"}', 'no match <*>'],
    [
      'an error answer after response:',
      'response: {"error": {"message": "Gone"}}',
      'response: Gone',
    ],
    ['a message in quotes as a whole', '"it broke\\nbadly"', 'it broke'],
    [
      'the first sentence',
      'You do not have access to it. Ask the owner for access.',
      'You do not have access to it',
    ],
    [
      'a short sentence and the next one',
      'An error occurred. The host is down.',
      'An error occurred. The host is down',
    ],
    [
      'a label behind a sentence',
      'The run stopped after five attempts. Last error: Overloaded',
      'The run stopped after <*> attempts. Last error: Overloaded',
    ],
  ])('reads %s', (_, message, shape) => {
    expect(shapeOf(message)).toBe(shape);
  });

  it('has no control, bidi or invisible characters, and no colour codes', () => {
    expect(shapeOf('\u001b[31mit\u0000 br\u202eo\u200bke\u001b[0m\ud800\ttwice')).toBe(
      'it broke twice',
    );
    expect(shapeOf('café is locked\n[SQL: so]')).toBe('café is locked');
    const escaped = '{"error":{"message":"it\\u200b broke\\u202e\\ud800 twice"}}';
    expect(shapeOf(escaped)).toBe('it broke twice');
  });

  it.each(['»Jane Doe«', '‚Jane Doe‘', '”Jane Doe”', '〈Jane Doe〉', '&quot;Jane Doe&quot;'])(
    'masks text in the quotes %s',
    (quoted) => {
      expect(shapeOf(`Invalid value ${quoted} in field`)).toBe('Invalid value <*> in field');
    },
  );

  it.each([
    ['X-API-Key: abcdefghijkl rejected', 'X-API-Key: <*> rejected'],
    ['client_secret: abcdefgh', 'client_secret: <*>'],
    ['token: abcdefgh', 'token: <*>'],
    ['Authorization: Basic dXNlcjpw', 'Authorization: Basic <*>'],
  ])('masks the key in %j', (message, shape) => {
    expect(shapeOf(message)).toBe(shape);
  });

  it('is empty without a message', () => {
    expect(causeOf({ error_id: 'A', error_msg: null }).shape).toBe('');
    expect(shapeOf(' \n')).toBe('');
  });

  it('is masked first and then cut to 200 characters', () => {
    const long = `${'1'.repeat(300)} ${'ab '.repeat(100)}`;
    expect(shapeOf(long)).toBe(`<*> ${'ab '.repeat(100)}`.slice(0, 200).trimEnd());
    expect(shapeOf(`it failed ${'😀'.repeat(200)}`)).not.toMatch(/\p{Cs}/u);
  });

  it('reads the first and the last 4 KiB and nothing between', () => {
    const frames = '  File "a", line 1, in b\n    c\n'.repeat(10_000);
    expect(shapeOf(`Traceback (most recent call last):\n${frames}ValueError: bad`)).toBe(
      'ValueError: bad',
    );
    expect(shapeOf(`it broke\n${'x'.repeat(5000)}`)).toBe('it broke');
    const start = '\n'.repeat(4096);
    const end = 'the end'.padStart(4096, '\n');
    expect(shapeOf(`${start}the middle${end}`)).toBe('the end');
  });

  it('is one line of at most 200 safe characters, whatever the message', () => {
    const piece = fc.oneof(
      anyText(),
      fc.constantFrom(
        ...`{ } [ ] ( ) < > " ' \` : = \\ , . / 1 a output: {"error": <html> \n é 漢 \ud800`.split(
          ' ',
        ),
      ),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        const message = pieces.join('');
        const shape = shapeOf(message);
        expect(shape.length).toBeLessThanOrEqual(200);
        expect(shape).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
        expect(shapeOf(message)).toBe(shape);
      }),
    );
  });
});
