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

  it('is the same for one and for several of the same', () => {
    const [one, many] = ['1 error in 1 file', '2 errors in 12 files'].map((error_msg) =>
      causeOf({ error_id: null, error_msg }),
    );
    expect(many?.shape).not.toBe(one?.shape);
    expect(many?.id).toBe(one?.id);
  });

  it('is stable across releases: a different id needs a new version of the grouping', () => {
    expect(causeOf({ error_id: 'TIMEOUT', error_msg: 'took 5 s' }).id).toBe('98556844ecb5a5d1');
  });
});

describe('shape of a message', () => {
  it.each([
    ['request req_1aB of run 5d3f-11 failed', 'request <*> of run <*> failed'],
    ['1 error, 2 errors', '<*> error, <*> errors'],
    ['rows 1, 2, 3 and 4', 'rows <*> and <*>'],
    ['5 MiB after 3 seconds', '<*> after <*>'],
    ['since Mon, 12 Jan 2025 10:00:00 GMT', 'since <*>'],
    [`label "so so" of 'my dog' in \`x y\``, 'label <*> of <*> in <*>'],
    [`said 'it's "fine" by me' twice`, 'said <*> twice'],
    ['said "it is', 'said <*>'],
    ['score « bien » und „gut“ と「良い」', 'score <*> und <*> と<*>'],
    ["it can't be read", "it can't be read"],
    ['limit=high top=[a, b], x = y', 'limit=<*> top=<*>, x = y'],
    ['cut at limit=5: so be it', 'cut at limit=<*>: so be it'],
    ['no JSON (line 1 column 5) in Call(top=no)', 'no JSON (line <*> column <*>) in Call(top=<*>)'],
    ['prompt template triage.x not found', 'prompt template <*> not found'],
    ['Grading failed. Rationale: The tone is not right', 'Grading failed. Rationale: <*>'],
    ["Grading failed: I'd rather not", 'Grading failed: <*>'],
    ['reset reason: connection timeout', 'reset reason: connection timeout'],
    ['None generated: answer did not match', 'None generated: answer did not match'],
    ['bad judge output: it is fine', 'bad judge output: <*>'],
    ['Response: so far so good', 'Response: <*>'],
    ['response: 503 Service Unavailable', 'response: 503 Service Unavailable'],
    ['a@b.org, https://x.org/y, /var/log/x, db.internal and C:\\x', '<*> and <*>'],
    ['from fe80::1 to ee:ab:cd:ef:aa:bb on ::1:80', 'from <*> to <*> on <*>'],
    ['key provided: sk-abcdefghijkl', 'key provided: <*>'],
    ['model mistral-large, user Alice', 'model <*>, user <*>'],
    ['the model is not available', 'the model is not available'],
    ['connection reset by peer', 'connection reset by peer'],
    ['no value for {name} and {{ other }}', 'no value for <*> and <*>'],
    ['cannot use {"score": [1, {"a": "b"}]} here', 'cannot use <*> here'],
    ['HTTP 429 and status code 503', 'HTTP 429 and status code 503'],
    ['got 404 items, exit code 503', 'got <*> items, exit code <*>'],
    ["Client error '404 Not Found' for x", 'Client error 404 Not Found for <*>'],
    [
      `("Connection aborted.", RemoteDisconnected('Remote end closed on 5'))`,
      '(Connection aborted., RemoteDisconnected(Remote end closed on <*>))',
    ],
    ['no place until 5 May', 'no place until <*>'],
    ['the judge said that it is fine', 'the judge said <*>'],
    ['reply <answer>so so</answer> has no score', 'reply <*> has no score'],
    ['<error>too slow', '<error>too slow'],
    ['no JSON: ```a``` as it is fine', 'no JSON: <*>'],
    ['raw=so so item=5', 'raw=<*> item=<*>'],
    ['missing: label, score', 'missing: <*>'],
    ['lost=[label] got [label, score]', 'lost=<*> got <*>'],
    ['item 5: [gemma-2] timed out', 'item <*>: [<*>] timed out'],
    ['no such key [NoKey]', 'no such key [NoKey]'],
    ['project alpha exceeded its quota', 'project <*> exceeded its quota'],
    ['the model accepts at most 5 rows', 'the model accepts at most <*> rows'],
    ['refused 5 completions (category: harm)', 'refused <*> completions (category: harm)'],
    ["Server error '503 Too Busy' for 'x'", 'Server error 503 Too Busy for <*>'],
    ["429, message='Too Many', url='x'", '429, message: Too Many, url=<*>'],
    ['(psycopg2.errors.UniqueViolation) in x9', '(psycopg2.errors.UniqueViolation) in <*>'],
    ['in order to run it. Then', 'in order to run it. Then'],
    ['at s3://a/b: Forbidden', 'at <*>: Forbidden'],
    ['could not embed: 请问，我 again', 'could not embed: <*>'],
    ['Ungültige Antwort: es ist gut', 'Ungültige Antwort: <*>'],
    ['模型gpt-4o第3次请求失败', '模型<*>第<*>次请求失败'],
    ['モデル「x」の出力：こんにちは', 'モデル<*>の出力：<*>'],
    ['модель gpt-4 не найдена', 'модель <*> не найдена'],
    ['<function f at 0x7f> failed', '<*> failed'],
    ['loaded meta/some-model badly', 'loaded <*> badly'],
    ['localhost refused it', '<*> refused it'],
    ['lookup judge: no such host', 'lookup <*>: no such host'],
    ['bad sk-abcdef here', 'bad <*> here'],
    ['failed in my_step', 'failed in <*>'],
    ['mail from Alice was lost', 'mail from <*> was lost'],
    ['unknown colour: blue', 'unknown colour: <*>'],
    ['unexpected character x at line 5', 'unexpected character <*> at line <*>'],
    ['tag my-image:5', 'tag <*>'],
    ['no  space', 'no space'],
  ])('masks or keeps: %s', (message, shape) => {
    expect(shapeOf(message)).toBe(shape);
  });

  it.each([
    ['\n----\nError:\n it broke\nmore', 'Error: it broke'],
    [
      `${PYTHON}KeyError: 'a'\n\nDuring handling:\n\n${PYTHON}ValueError: b is bad`,
      'ValueError: b is bad',
    ],
    [
      'Traceback (most recent call last):\\n  File \\"a\\", line 1\\nValueError: bad',
      'ValueError: bad',
    ],
    [
      '  | Traceback (most recent call last):\n  |   File "a", line 1, in b\n  | x.Y: broke\n',
      'x.Y: broke',
    ],
    ['TypeError: x is no function\n    at f (/a.js:1:2)\n', 'TypeError: x is no function'],
    ['/a.js:1\n  throw x;\n  ^\n\nError: broke\n    at f (/a.js:1:2)', 'Error: broke'],
    ['a.B: outer\n\tat a.b(C.java:1)\nCaused by: c.D: inner\n\tat a.b(C.java:1)', 'c.D: inner'],
    ['log\npanic: broke\n\ngoroutine 1 [running]:', 'panic: broke'],
    ["thread 'a' panicked at b.rs:1:2:\nbroke\nnote: x", 'thread panicked: broke'],
    ["thread 'a' panicked at 'it broke', b.rs:1:2", 'thread <*> panicked at: it broke, <*>'],
    ['<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head>', '502 Bad Gateway'],
    ['judge: <html><h1>Gone</h1></html>', 'judge: Gone'],
    [
      '<?xml version="1.0"?><Error><Code>NoKey</Code><Message>No such key</Message></Error>',
      'No such key (NoKey)',
    ],
    ['{"error":{"message":"Too many","type":"limit","code":429}}', 'Too many (limit, HTTP 429)'],
    [
      `Error code: 400 - {'error': {'message': "It can't", 'code': None}}`,
      "Error code: 400 - It can't",
    ],
    ['{"error": {"code": 500, "message": "It bro', 'It bro (HTTP 500)'],
    [`{'error': {'message': 'it can't be'}}`, "it can't be"],
    ['{"error":{"message":"{\\"error\\":{\\"message\\":\\"inner\\"}}","code":"x"}}', 'inner'],
    ['{"detail":[{"loc":["body","x"],"msg":"field required"}]}', 'field required'],
    [
      '<E of RPC that ended with:\n\tstatus = StatusCode.X\n\tdetails = "it broke"\n>',
      'StatusCode.X: it broke',
    ],
    [
      '2 validation errors for Verdict\nx\n  Field required [type=missing, input_value={}]',
      '<*> validation errors for <*>: Field required',
    ],
    ['bad output: {"message": "so so", "error": "none"} twice', 'bad output: <*>'],
    ['no match {"score": 1, "message": "so so"}', 'no match <*>'],
    ['response: {"error": {"message": "Gone"}}', 'Gone'],
    ['"it broke\\nbadly"', 'it broke'],
    ['x: "{\\"error\\": {\\"message\\": \\"Gone\\"}}"', 'x: Gone'],
    ['An error occurred. The host is down.', 'An error occurred. The host is down'],
    [
      'The run stopped after 5 attempts. Last error: Overloaded',
      'The run stopped after <*> attempts. Last error: Overloaded',
    ],
  ])('reads what it is about: %s', (message, shape) => {
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

  it('has nothing behind the first 1,000 characters of what the message says', () => {
    const said = (end: string) => shapeOf(`refused "${'so '.repeat(400)}" ${end}`);
    expect(said('for good')).toBe(said('and again'));
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

  it.each([
    ['validation error for '.repeat(190), ' '.repeat(4000)],
    [`thread '${"panicked at '".repeat(100)}${"', ".repeat(900)}`, 'x'],
  ])('takes little time for a line that begins as a form many times: %.40s…', (line, next) => {
    const costs = Array.from({ length: 3 }, () => {
      const begin = process.threadCpuUsage();
      shapeOf(`${line}\n${next}x`);
      return process.threadCpuUsage(begin).user / 1000;
    });
    expect(Math.min(...costs)).toBeLessThan(60);
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
