import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import bcrypt from 'bcrypt';

export interface Logins {
  /**
   * Checks an `Authorization` header against the bcrypt hashes of the users. `busy`: so many others wait that it was
   * not even looked at.
   */
  check(header: string | undefined, users: ReadonlyMap<string, string>): Promise<Verdict>;
}

type Verdict = 'right' | 'wrong' | 'busy';

/** A guess costs 70 ms of a core: more than so many at a time are an attack. */
const MAX_WAITING = 16;
/** A user has one password, so only right ones need remembering. */
const MAX_REMEMBERED = 256;
const BCRYPT_SALT_CHARACTERS = 29;

/**
 * HTTP basic authentication. Passwords are hashed one at a time, on one of libuv's four threads, which files and name
 * look-ups need as well. What was right is remembered, by a keyed hash that only this process can compute.
 */
export function createLogins(): Logins {
  const secret = randomBytes(32);
  const remembered = new Set<string>();
  let waiting = 0;
  let last: Promise<unknown> = Promise.resolve();

  const digest = (...texts: readonly string[]) =>
    createHmac('sha256', secret).update(JSON.stringify(texts)).digest('base64');

  function remember(login: string): void {
    remembered.add(login);
    const [oldest] = remembered;
    if (remembered.size > MAX_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
  }

  async function inTurn<T>(work: () => Promise<T>): Promise<T> {
    waiting += 1;
    const turn = last.then(work).finally(() => (waiting -= 1));
    last = turn.catch(() => {});
    return await turn;
  }

  return {
    check: async (header, users) => {
      const login = parseBasic(header);
      if (login === undefined) return 'wrong';
      const { user, password } = login;
      // Whoever is unknown takes as long as somebody known, always the same one.
      const stored = users.get(user) ?? standInFor(digest(user), users);
      const mark = digest(user, password, stored);
      if (users.has(user) && remembered.has(mark)) return 'right';
      if (waiting >= MAX_WAITING) return 'busy';
      const isRight = await inTurn(() => matches(password, stored));
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
