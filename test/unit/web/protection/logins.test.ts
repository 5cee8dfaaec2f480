import bcrypt from 'bcrypt';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createLogins } from '../../../../src/web/protection/logins.ts';

const CLIENT = '192.0.2.1';
const PASSWORD = 'open:sesame ü';
const hash = (password: string, cost = 4) => bcrypt.hashSync(password, cost);
const users = new Map([
  ['alice', hash(PASSWORD)],
  ['bob', hash('other')],
]);

function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

function spyOnHashing() {
  const hashing = vi.spyOn(bcrypt, 'hash');
  onTestFinished(() => hashing.mockRestore());
  return hashing;
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
    ['of a user named toString', basic('toString', PASSWORD), 'wrong'],
    ['with a NUL behind the password', basic('alice', `${PASSWORD}\0`), 'wrong'],
    ['without a header', undefined, 'wrong'],
    ['of another scheme', 'Bearer abc', 'wrong'],
    ['without a colon', `Basic ${Buffer.from('alice').toString('base64')}`, 'wrong'],
    ['that is no base64', 'Basic !!!', 'wrong'],
    ['with nothing in it', 'Basic ', 'wrong'],
  ])('%s gets the expected verdict', async (_, header, verdict) => {
    const logins = createLogins();
    expect(await logins.check(header, users, CLIENT)).toBe(verdict);
    expect(await logins.check(header, users, CLIENT)).toBe(verdict);
  });

  it('is rejected after its user was removed or the password changed', async () => {
    const logins = createLogins();
    const header = basic('alice', PASSWORD);
    expect(await logins.check(header, users, CLIENT)).toBe('right');
    expect(await logins.check(header, new Map([['bob', hash('other')]]), CLIENT)).toBe('wrong');
    expect(await logins.check(header, new Map([['alice', hash('new')]]), CLIENT)).toBe('wrong');
    expect(await logins.check(header, users, CLIENT)).toBe('right');
  });

  it('is rejected after its user was removed, even if another user has the same hash', async () => {
    const logins = createLogins();
    const [same = ''] = users.values();
    const both = new Map([
      ['alice', same],
      ['bob', same],
    ]);
    expect(await logins.check(basic('bob', PASSWORD), both, CLIENT)).toBe('right');
    expect(await logins.check(basic('bob', PASSWORD), new Map([['alice', same]]), CLIENT)).toBe(
      'wrong',
    );
  });

  it('is hashed every time it is wrong, and also for an unknown user', async () => {
    const hashing = spyOnHashing();
    const logins = createLogins();
    const check = async (user: string, password: string) => {
      hashing.mockClear();
      await logins.check(basic(user, password), users, CLIENT);
      return hashing.mock.calls.map(([hashed]) => hashed);
    };
    expect(await check('alice', PASSWORD)).toEqual([PASSWORD]);
    expect(await check('nobody', PASSWORD)).toEqual([PASSWORD]);
    expect(await check('alice', 'wrong')).toEqual(['wrong']);
    expect(await check('alice', 'wrong')).toEqual(['wrong']);
    expect(await check('alice', PASSWORD)).toEqual([]);
  });

  it('that was right before is accepted at once during a flood of wrong ones', async () => {
    const slow = new Map([['alice', hash(PASSWORD, 7)]]);
    const logins = createLogins();
    expect(await logins.check(basic('alice', PASSWORD), slow, CLIENT)).toBe('right');
    const settled: string[] = [];
    const flood = Array.from({ length: 100 }, async (_, n) => {
      const verdict = await logins.check(basic('alice', `guess ${n}`), slow, CLIENT);
      settled.push(verdict);
    });

    expect(await logins.check(basic('alice', PASSWORD), slow, CLIENT)).toBe('right');
    expect(settled).not.toContain('wrong');
    await Promise.all(flood);

    expect(settled.filter((verdict) => verdict === 'busy')).toHaveLength(83);
    expect(settled.filter((verdict) => verdict === 'wrong')).toHaveLength(17);
    expect(await logins.check(basic('alice', 'after'), slow, CLIENT)).toBe('wrong');
  });

  it('is checked in turn during a flood of wrong ones from other addresses', async () => {
    const slow = new Map([
      ['alice', hash(PASSWORD, 7)],
      ['bob', hash('other', 7)],
    ]);
    const logins = createLogins();
    const settled: string[] = [];
    const flood = Array.from({ length: 300 }, async (_, n) => {
      settled.push(await logins.check(basic('alice', `guess ${n}`), slow, `192.0.2.${n % 3}`));
    });

    expect(await logins.check(basic('bob', 'other'), slow, '192.0.2.9')).toBe('right');
    // One guess was under way, and addresses take turns.
    expect(settled.filter((verdict) => verdict === 'wrong')).toHaveLength(4);
    await Promise.all(flood);

    expect(settled.filter((verdict) => verdict === 'wrong')).toHaveLength(3 * 16 + 1);
  });

  it.each([
    [64, 'right'],
    [65, 'busy'],
  ])('behind one attempt from each of %i other addresses is %s', async (others, verdict) => {
    const logins = createLogins();
    const guesses = Array.from({ length: others }, (_, n) =>
      logins.check(basic('alice', `guess ${n}`), users, `192.0.2.${n}`),
    );
    const bob = logins.check(basic('bob', 'other'), users, '198.51.100.1');
    expect(await bob).toBe(verdict);
    expect(new Set(await Promise.all(guesses))).toEqual(new Set(['wrong']));
  });

  it('is hashed once if it arrives several times at once', async () => {
    const hashing = spyOnHashing();
    const logins = createLogins();
    const check = () => logins.check(basic('alice', PASSWORD), users, CLIENT);

    expect(await Promise.all([check(), check(), check()])).toEqual(['right', 'right', 'right']);
    expect(hashing).toHaveBeenCalledOnce();
  });
});
