import { expect, it } from 'vitest';
import { connectionError } from '../../../src/client/errors.ts';

function withCode(code: string): Error {
  return Object.assign(new Error('as the platform says it'), { code });
}

it.each([
  ['ECONNREFUSED', 'network'],
  ['ENOTFOUND', 'network'],
  ['UND_ERR_SOCKET', 'network'],
  ['UND_ERR_PRX_CONN', 'network'],
  ['HPE_INVALID_EOF_STATE', 'network'],
  ['ETIMEDOUT', 'timeout'],
  ['UND_ERR_CONNECT_TIMEOUT', 'timeout'],
  ['EPROTO', 'tls'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls'],
  ['CERT_HAS_EXPIRED', 'tls'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'tls'],
  ['INVALID_CA', 'tls'],
  ['HOSTNAME_MISMATCH', 'tls'],
  ['UND_ERR_PRX_TLS', 'tls'],
])('a connection error with the code %s has the reason %s', (code, reason) => {
  expect(connectionError(withCode(code), (text) => text).reason).toBe(reason);
});

it('a connection error keeps only the message of its cause, redacted and shortened', () => {
  const cause = Object.assign(new Error(`the-key ${'x'.repeat(1000)}`), { data: 'the-key' });
  const error = connectionError(cause, (text) => text.replace('the-key', '[redacted]'));
  expect(error.message).toMatch(/^the connection failed: \[redacted\] x+$/);
  expect(error.message.length).toBeLessThan(400);
  expect(error.details.cause).toBeUndefined();
});

it('a connection error of several addresses says what happened at each', () => {
  const each = [
    new Error('connect ETIMEDOUT 192.0.2.1:443'),
    new Error('connect ECONNREFUSED 192.0.2.2:443'),
  ];
  const error = Object.assign(
    new Error('Connect Timeout Error (timeout: 10000ms)', { cause: new AggregateError(each) }),
    { code: 'UND_ERR_CONNECT_TIMEOUT' },
  );
  expect(connectionError(error, (text) => text)).toMatchObject({
    reason: 'timeout',
    message:
      'the request timed out: connect ETIMEDOUT 192.0.2.1:443; connect ECONNREFUSED 192.0.2.2:443',
  });
});

it('a connection that each address of a name refuses names all of them', () => {
  const each = ['::1', '127.0.0.1'].map((ip) => new Error(`connect ECONNREFUSED ${ip}:9`));
  const error = Object.assign(new AggregateError(each), { code: 'ECONNREFUSED' });
  expect(connectionError(error, (text) => text).message).toBe(
    'the connection failed: connect ECONNREFUSED ::1:9; connect ECONNREFUSED 127.0.0.1:9',
  );
});
