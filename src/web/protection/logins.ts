import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import bcrypt from 'bcrypt';
import { createFairQueue } from '../limits/fair-queue.ts';

export interface Logins {
  /**
   * Checks the `Authorization` header of a client against the bcrypt hashes of the users. Resolves to `busy` without a
   * check if too many attempts wait.
   */
  check(
    header: string | undefined,
    users: ReadonlyMap<string, string>,
    client: string,
  ): Promise<Verdict>;
}

type Verdict = 'right' | 'wrong' | 'busy';

/** A check takes 70 ms of a core: more attempts of one client at a time are an attack. */
const LIMITS = { maxWaiting: 64, maxWaitingPerKey: 16 };
/** Maximum number of remembered logins; wrong ones are not remembered. */
const MAX_REMEMBERED = 256;
const BCRYPT_SALT_CHARACTERS = 29;

/**
 * Creates HTTP basic authentication. Passwords are hashed one at a time, on one of libuv's four threads, which files and
 * name look-ups need as well. Clients take turns, so that a flood of guesses does not lock others out. Correct logins are
 * remembered as a keyed hash that only this process can compute.
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
      // The check of an unknown user takes as long as that of a known one, always the same, so that time does not show who exists.
      const stored = users.get(user) ?? standInFor(digest(user), users);
      const mark = digest(user, password, stored);
      const isRemembered = () => users.has(user) && remembered.has(mark);
      if (isRemembered()) return 'right';
      using turn = await queue.waitForTurn({ client });
      if (turn === undefined) return 'busy';
      // The same login may have been checked during the wait.
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
