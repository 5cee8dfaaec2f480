import bcrypt from 'bcrypt';
import { describe, expect, it } from 'vitest';
import { createLogins } from '../../../src/web/logins.ts';

const PASSWORD = 'open:sesame ü';
const hash = (password: string, cost = 4) => bcrypt.hashSync(password, cost);
const users = new Map([
  ['alice', hash(PASSWORD)],
  ['bob', hash('other')],
]);

function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

describe('a login', () => {
  it.each<[string, string | undefined, string]>([
    ['with the right password', basic('alice', PASSWORD), 'right'],
    ['with a scheme in another case', basic('alice', PASSWORD).replace('Basic', 'bASIC'), 'right'],
    ['with a wrong password', basic('alice', 'other'), 'wrong'],
    ['with an empty password', basic('alice', ''), 'wrong'],
    ["with somebody else's password", basic('bob', PASSWORD), 'wrong'],
    ['of nobody known, with a password of somebody', basic('carol', PASSWORD), 'wrong'],
    ['of nobody known, with a password of somebody else', basic('dave', 'other'), 'wrong'],
    ['of a user as in another mapping', basic('toString', PASSWORD), 'wrong'],
    ['with a NUL behind the password', basic('alice', `${PASSWORD}\0`), 'wrong'],
    ['without a header', undefined, 'wrong'],
    ['of another scheme', 'Bearer abc', 'wrong'],
    ['without a colon', `Basic ${Buffer.from('alice').toString('base64')}`, 'wrong'],
    ['that is no base64', 'Basic !!!', 'wrong'],
    ['with nothing in it', 'Basic ', 'wrong'],
  ])('%s', async (_, header, verdict) => {
    const logins = createLogins();
    expect(await logins.check(header, users)).toBe(verdict);
    expect(await logins.check(header, users)).toBe(verdict);
  });

  it('that was right is wrong once the user is gone or has another password', async () => {
    const logins = createLogins();
    const header = basic('alice', PASSWORD);
    expect(await logins.check(header, users)).toBe('right');
    expect(await logins.check(header, new Map([['bob', hash('other')]]))).toBe('wrong');
    expect(await logins.check(header, new Map([['alice', hash('new')]]))).toBe('wrong');
    expect(await logins.check(header, users)).toBe('right');
  });

  it('that was right is wrong once the user is gone, also if another one has the same hash', async () => {
    const logins = createLogins();
    const [same = ''] = users.values();
    const both = new Map([
      ['alice', same],
      ['bob', same],
    ]);
    expect(await logins.check(basic('bob', PASSWORD), both)).toBe('right');
    expect(await logins.check(basic('bob', PASSWORD), new Map([['alice', same]]))).toBe('wrong');
  });

  it('that is wrong takes bcrypt, of a known user and of an unknown one, each time', async () => {
    const slow = new Map([['alice', hash(PASSWORD, 10)]]);
    const logins = createLogins();
    const took = async (header: string) => {
      const started = performance.now();
      await logins.check(header, slow);
      return performance.now() - started;
    };
    // One comparison takes 40 ms and more; without it there would be none.
    expect(await took(basic('alice', PASSWORD))).toBeGreaterThan(10);
    expect(await took(basic('nobody', PASSWORD))).toBeGreaterThan(10);
    expect(await took(basic('alice', 'wrong'))).toBeGreaterThan(10);
    expect(await took(basic('alice', 'wrong'))).toBeGreaterThan(10);
  });

  it('that is remembered waits for no flood of wrong ones, most of which are turned away', async () => {
    const slow = new Map([['alice', hash(PASSWORD, 7)]]);
    const logins = createLogins();
    expect(await logins.check(basic('alice', PASSWORD), slow)).toBe('right');
    const settled: string[] = [];
    const flood = Array.from({ length: 100 }, async (_, n) => {
      const verdict = await logins.check(basic('alice', `guess ${n}`), slow);
      settled.push(verdict);
    });

    expect(await logins.check(basic('alice', PASSWORD), slow)).toBe('right');
    expect(settled).not.toContain('wrong');
    await Promise.all(flood);

    expect(settled.filter((verdict) => verdict === 'busy')).toHaveLength(84);
    expect(settled.filter((verdict) => verdict === 'wrong')).toHaveLength(16);
    expect(await logins.check(basic('alice', 'after'), slow)).toBe('wrong');
  });
});
