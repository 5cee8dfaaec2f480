import { describe, expect, it } from 'vitest';
import { createScrub } from '../../../src/client/secrets.ts';
import { readErrorInfo } from '../../../src/client/error-info.ts';

const KEY = 'the-secret-key';
const scrub = createScrub([KEY]);

function read(prompt: unknown) {
  return readErrorInfo(Buffer.from(JSON.stringify(prompt)), scrub);
}

function message(text: string) {
  const info = read({ error_info: { error_id: 'E', error_msg: text } });
  return { text: info?.errorInfo.error_msg, truncated: info?.errorMsgTruncated };
}

describe('an error_info', () => {
  it('has the error_id and error_msg of the prompt, and no other field', () => {
    expect(
      read({ status: 'RUNNING', error_info: { error_id: 'E1', error_msg: 'no', more: 1 } }),
    ).toEqual({
      errorInfo: { error_id: 'E1', error_msg: 'no' },
      errorMsgTruncated: false,
    });
  });

  it.each([
    [{ error_id: 'E1' }, { error_id: 'E1', error_msg: null }],
    [
      { error_msg: '', error_id: null },
      { error_id: null, error_msg: '' },
    ],
  ])('has null for a text that is missing: %o', (info, expected) => {
    expect(read({ error_info: info })).toEqual({ errorInfo: expected, errorMsgTruncated: false });
  });

  it.each([
    ['failed', { error_id: null, error_msg: 'failed' }],
    [7, { error_id: null, error_msg: '7' }],
    [['a', { b: 1 }], { error_id: null, error_msg: '["a",{"b":1}]' }],
    [
      { code: 7, message: 'no' },
      { error_id: null, error_msg: '{"code":7,"message":"no"}' },
    ],
    [
      { error_id: 'E1', message: KEY },
      { error_id: 'E1', error_msg: '{"error_id":"E1","message":"[redacted]"}' },
    ],
    [
      { error_id: 5, error_msg: 'no' },
      { error_id: '5', error_msg: 'no' },
    ],
    [
      { error_id: ['E', 1], error_msg: { de: 'nein' } },
      { error_id: '["E",1]', error_msg: '{"de":"nein"}' },
    ],
  ])('that is not as documented is kept as JSON: %o', (info, expected) => {
    expect(read({ error_info: info })).toEqual({
      errorInfo: expected,
      errorMsgTruncated: false,
      isUnusual: true,
    });
  });

  it.each([
    {},
    { error_info: null },
    { error_info: {} },
    { error_info: [] },
    { error_info: { error_id: null, error_msg: null } },
  ])('is undefined for %o', (prompt) => {
    expect(read(prompt)).toBeUndefined();
  });

  it('is rejected if it is nested too deep to be kept as JSON', () => {
    const deep = `{"error_info":${'['.repeat(400_000)}${']'.repeat(400_000)}}`;
    expect(() => readErrorInfo(Buffer.from(deep), scrub)).toThrow('nested too deep');
  });

  it.each([[null], ['text'], [7]])('is rejected for %o, which is not an object', (prompt) => {
    expect(() => read(prompt)).toThrow('not an object');
  });
});

describe('an error_msg', () => {
  it.each([
    ['exactly fits', 'é'.repeat(4096), 'é'.repeat(4096), false],
    ['is a byte too long', `${'é'.repeat(4096)}!`, 'é'.repeat(4096), true],
    ['would be cut within a character', `a${'😀'.repeat(3000)}`, `a${'😀'.repeat(2047)}`, true],
    ['is empty', '', '', false],
  ])('that %s is limited to 8,192 bytes of whole characters', (_, text, expected, truncated) => {
    expect(message(text)).toEqual({ text: expected, truncated });
    expect(Buffer.byteLength(expected)).toBeLessThanOrEqual(8192);
  });

  it('is redacted before it is cut', () => {
    expect(message('x'.repeat(8188) + KEY)).toEqual({
      text: `${'x'.repeat(8188)}[red`,
      truncated: true,
    });
  });

  it('has lone surrogates and U+0000 replaced by U+FFFD', () => {
    expect(message('a\ud800\0').text).toBe('a\ufffd\ufffd');
  });
});
