import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import bcrypt from 'bcrypt';
import { createFairQueue } from '../limits/fair-queue.ts';

export interface Logins {
  /**
   * Checks an `Authorization` header of a client against the bcrypt hashes of the users. `busy`: so many attempts wait
   * that it was not looked at.
   */
  check(
    header: string | undefined,
    users: ReadonlyMap<string, string>,
    client: string,
  ): Promise<Verdict>;
}

type Verdict = 'right' | 'wrong' | 'busy';

/** A guess costs 70 ms of a core: more attempts of one client at a time are an attack. */
const LIMITS = { maxWaiting: 64, maxWaitingPerKey: 16 };
/** A user has one password, so only right ones need remembering. */
const MAX_REMEMBERED = 256;
const BCRYPT_SALT_CHARACTERS = 29;

/**
 * HTTP basic authentication. Passwords are hashed one at a time, on one of libuv's four threads, which files and name
 * look-ups need as well; clients take turns, so that a flood of guesses keeps nobody else out. What was right is
 * remembered, by a keyed hash that only this process can compute.
 */
export function createLogins(): Logins {
  const secret = randomBytes(32);
  const remembered = new Set<string>();
  const queue = createFairQueue(LIMITS);

  const digest = (...texts: readonly string[]) =>
    createHmac('sha256', secret).update(JSON.stringify(texts)).digest('base64');

  function remember(login: string): void {
    remembered.add(login);
    const [oldest] = remembered;
    if (remembered.size > MAX_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
  }

  return {
    check: async (header, users, client) => {
      const login = parseBasic(header);
      if (login === undefined) return 'wrong';
      const { user, password } = login;
      // Whoever is unknown takes as long as somebody known, always the same one.
      const stored = users.get(user) ?? standInFor(digest(user), users);
      const mark = digest(user, password, stored);
      const isRemembered = () => users.has(user) && remembered.has(mark);
      if (isRemembered()) return 'right';
      using turn = await queue.waitForTurn({ client });
      if (turn === undefined) return 'busy';
      // The same login may have waited before this one.
      if (isRemembered()) return 'right';
      const isRight = await matches(password, stored);
      if (!isRight || !users.has(user)) return 'wrong';
      remember(mark);
      return 'right';
    },
  };
}

function standInFor(digest: string, users: ReadonlyMap<string, string>): string {
  const hashes = [...users.values()];
  return hashes[digest.charCodeAt(0) % hashes.length] ?? '';
}

async function matches(password: string, stored: string): Promise<boolean> {
  const hash = await bcrypt.hash(password, stored.slice(0, BCRYPT_SALT_CHARACTERS));
  return hash.length === stored.length && timingSafeEqual(Buffer.from(hash), Buffer.from(stored));
}

function parseBasic(header: string | undefined) {
  const [, encoded] = /^Basic +([\w+/-]+=*) *$/i.exec(header ?? '') ?? [];
  if (encoded === undefined) return undefined;
  const [, user, password] =
    /^([^:]*):([^]*)$/.exec(Buffer.from(encoded, 'base64').toString()) ?? [];
  return user === undefined || password === undefined ? undefined : { user, password };
}
