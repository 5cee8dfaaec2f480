import { createHmac, randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Context, Hono } from 'hono';
import { basicAuth } from 'hono/basic-auth';
import { HTTPException } from 'hono/http-exception';
import type { ClientAuth, Protection } from '../domain/options.ts';
import { tooMany } from './errors.ts';
import type { ConnectionEnv } from './limits.ts';
import { PATHS } from './paths.ts';

/** A protection that changes at run time. */
export interface ChangingProtection {
  /** Returns the protection in force: the same object until it changes. */
  current(): Protection;
  /** Calls the listener after each change of `current`. */
  onChange(listener: () => void): void;
}

/** Names of a server, in lower case. */
export interface ServerNames {
  /** Host of `web.listen`. */
  readonly listen: string;
  /** `web.allowed_hosts`. */
  readonly allowed: readonly string[];
}

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/**
 * Lets only admitted requests reach the routes that are added to the app after this: those with the client certificate and
 * the login that the protection requires, and without both, those that name this server. A page of another site can change
 * nothing. Everything is decided by the URL that also selects the route.
 */
export function guard(
  app: Hono<ConnectionEnv>,
  protection: ChangingProtection | undefined,
  names: () => ServerNames,
): void {
  if (protection !== undefined) {
    app.use(async ({ env }, next) => {
      if (!hasCertificate(env.incoming.socket, protection.current())) {
        const message = 'a client certificate that this server trusts is required';
        throw new HTTPException(403, { message });
      }
      await next();
    });
    const users = () => protection.current().users;
    const login = basicAuth({
      realm: 'evalwatch',
      verifyUser: createLogins(users),
      invalidUserMessage: { error: 'a user and a password are required' },
    });
    app.use((context, next) => (users().size > 0 ? login(context, next) : next()));
  }

  app.use(async (context, next) => {
    const url = URL.parse(context.req.url);
    if (url === null) throw new HTTPException(400, { message: 'Host is not a host name' });
    const name = nameOf(url);
    const now = protection?.current();
    // With TLS, a page cannot use its own name for this server: the certificate does not contain it.
    const isOpen = now === undefined || (now.tls === undefined && now.users.size === 0);
    if (isOpen && !isForThisServer(name, context, names())) {
      const message = `${name} is not a known name of this server: add it to web.allowed_hosts, use the IP address, or set up a login`;
      throw new HTTPException(421, { message });
    }
    if (!SAFE_METHODS.has(context.req.method) && isCrossSite(context, names().allowed)) {
      const message = 'a page of another site must not send this request';
      throw new HTTPException(403, { message });
    }
    await next();
  });
}

function hasCertificate(socket: unknown, { tls }: Protection): boolean {
  if (tls === undefined || !(socket instanceof TLSSocket)) return true;
  const isGiven = socket.getPeerX509Certificate() !== undefined;
  const needed: Record<ClientAuth, boolean> = {
    NoClientCert: true,
    VerifyClientCertIfGiven: !isGiven || socket.authorized,
    RequireAndVerifyClientCert: isGiven && socket.authorized,
  };
  return needed[tls.clientAuth];
}

/** A check takes 70 ms of a core: more at a time are an attack. */
const MAX_CHECKS = 16;
/** Maximum number of remembered logins. */
const MAX_REMEMBERED = 256;

/**
 * Creates the check of passwords against the bcrypt hashes of the users. One password is hashed at a time, on one of libuv's
 * four threads, which files and name look-ups need as well. Correct logins are remembered as a keyed hash that only this
 * process can compute.
 */
function createLogins(users: () => ReadonlyMap<string, string>) {
  const secret = randomBytes(32);
  /** Correct logins, and those that are being checked. */
  const results = new Map<string, Promise<boolean>>();
  let checks = 0;
  let last: Promise<unknown> = Promise.resolve();

  async function check(mark: string, password: string, stored: string): Promise<boolean> {
    if (checks >= MAX_CHECKS) throw tooMany('logins');
    checks += 1;
    const before = last;
    const result = before.then(async () => {
      // Loaded here, because most servers have no users.
      const { default: bcrypt } = await import('bcrypt');
      return await bcrypt.compare(password, stored);
    });
    last = result.catch(() => {});
    results.set(mark, result);
    const isRight = await result.finally(() => {
      checks -= 1;
      results.delete(mark);
    });
    if (!isRight) return false;
    results.set(mark, result);
    const [oldest] = results.keys();
    if (results.size > MAX_REMEMBERED && oldest !== undefined) results.delete(oldest);
    return true;
  }

  return async (user: string, password: string): Promise<boolean> => {
    // The check of an unknown user takes as long as that of a known one.
    const [someHash = ''] = users().values();
    const known = users().get(user);
    const stored = known ?? someHash;
    const login = JSON.stringify([user, password, stored]);
    const mark = createHmac('sha256', secret).update(login).digest('base64');
    const isRight = await (results.get(mark) ?? check(mark, password, stored));
    // The users may have changed during the check.
    return isRight && known !== undefined && users().get(user) === known;
  };
}

/** Names that do not exist in public DNS, so that a foreign page cannot resolve them to this server. */
const PRIVATE_NAME = /^[^.]+$|\.(?:localhost|svc|local|internal|home\.arpa)$/;
/** The same without names that another machine on the network can claim by multicast DNS. */
const LOCAL_NAME = /^[^.]+$|\.localhost$/;
const LOOPBACK = /^(?:127\.|::1$|localhost$)/;

/** Returns the host without the brackets of an IPv6 address and without a final dot. */
function nameOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$|\.$/g, '');
}

/**
 * Whether a request without a login may be answered. Otherwise a page that rebinds its own name to this server's address
 * could read this server through the browser of a visitor.
 */
function isForThisServer(name: string, { req }: Context, { listen, allowed }: ServerNames) {
  if (isIP(name) !== 0 || name === listen || allowed.includes(name)) return true;
  const usual = LOOPBACK.test(listen) ? LOCAL_NAME : PRIVATE_NAME;
  return usual.test(name) || (req.path === PATHS.metrics && !canBeFromPage(req.raw.headers));
}

/**
 * Whether a script in a browser can have sent these headers. Browsers add `Accept-Language` to the requests of scripts, and
 * an `Accept-Encoding` with deflate, which a script can change only by a `Range`. Prometheus sends gzip alone.
 */
function canBeFromPage(headers: Headers): boolean {
  return (
    ['accept-language', 'range', 'sec-fetch-site'].some((name) => headers.has(name)) ||
    !/^(?:gzip|identity)?$/i.test(headers.get('accept-encoding') ?? '')
  );
}

/**
 * Whether the headers of a browser show that a page of another site sends the request. Other clients do not send these
 * headers.
 * @param names names of this server behind a proxy that changes `Host`
 */
function isCrossSite({ req }: Context, names: readonly string[]): boolean {
  const site = req.header('sec-fetch-site') ?? 'none';
  if (site !== 'none' && site !== 'same-origin') return true;
  const origin = req.header('origin');
  if (origin === undefined) return false;
  const from = URL.parse(origin);
  if (from === null || !/^https?:\/\/[^/]+$/i.test(origin)) return true;
  if (names.includes(nameOf(from))) return false;
  // Behind a proxy that ends TLS, only the scheme differs.
  return URL.parse(`${from.protocol}//${req.header('host')}`)?.host !== from.host;
}
