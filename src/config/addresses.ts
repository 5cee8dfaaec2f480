import { isIP, isIPv4 } from 'node:net';
import { PROMPT_URL_PLACEHOLDERS, replacePlaceholders } from '../domain/prompt-url.ts';
import { butNot, type Checked } from './options.ts';

export interface ListenAddress {
  /** Without brackets if it is an IPv6 address. */
  readonly host: string;
  /** 0 is any free port. */
  readonly port: number;
}

/** Default of `web.listen`. */
export const DEFAULT_LISTEN = '127.0.0.1:10570';

const NO_URL = { fault: 'must start with http:// or https:// and a host' };

const LOGIN = 'must not contain a user or a password';

/** Parses the address of the service and removes trailing slashes. A fault never contains the text, which may hold a password. */
export function parseBaseUrl(text: string): Checked<string> {
  return parseAddress(text, `${LOGIN}: name an API key with api_key_file or api_key_env`);
}

/** Parses the address at which people open evalwatch, as `parseBaseUrl` does. */
export function parseExternalUrl(text: string): Checked<string> {
  return parseAddress(text, LOGIN);
}

function parseAddress(text: string, loginFault: string): Checked<string> {
  const url = parseHttpUrl(text);
  if (url === undefined) return NO_URL;
  if (hasLogin(url)) return { fault: loginFault };
  if (/[?#]/.test(text)) return { fault: 'must have no query (?) and no fragment (#)' };
  // The lookbehind lets a match start only at the first slash of a run; otherwise the replacement takes quadratic time.
  return { value: url.href.replace(/(?<!\/)\/+$/, '') };
}

/** Parses the address that heartbeats request. A fault never contains the text, which is a secret. */
export function parseHeartbeatUrl(text: string): Checked<string> {
  const url = parseHttpUrl(text);
  if (url === undefined) return NO_URL;
  if (hasLogin(url)) return { fault: LOGIN };
  if (text.includes('#')) return { fault: 'must have no fragment (#)' };
  return { value: url.href };
}

/**
 * Parses the template of the address of a prompt (docs/specification.md#links). The value is as the URL parser writes it,
 * with the placeholders. A fault contains nothing of the text but an unknown placeholder.
 */
export function parsePromptUrl(text: string): Checked<string> {
  const rest = replacePlaceholders(text, 'x');
  if (/[{}]/.test(rest)) {
    const name = /\{[\w-]{1,40}\}/.exec(rest)?.[0];
    const but = name === undefined ? '' : `, not ${name}`;
    return { fault: `must have no other { } than ${PLACEHOLDERS.join(' and ')}${but}` };
  }
  const url = parseHttpUrl(rest);
  if (url === undefined) return NO_URL;
  if (hasLogin(url)) return { fault: LOGIN };
  if (!/^https?:\/\/[^/?#{]+(?:[/?#]|$)/i.test(text)) {
    return { fault: 'must have its placeholders after the host, such as /prompts/{prompt_id}' };
  }
  if (!text.includes('{prompt_id}')) return { fault: 'must contain {prompt_id}' };
  const { href } = new URL(text);
  return { value: href.replaceAll(/%7B(prompt_id|project)%7D/g, '{$1}') };
}

const PLACEHOLDERS = PROMPT_URL_PLACEHOLDERS.map((name) => `{${name}}`);

/** Parses the address of a proxy, which may hold a login. A fault never contains the text. */
export function parseProxyUrl(text: string): Checked<string> {
  const url = parseHttpUrl(text);
  if (url === undefined) return NO_URL;
  if (!/^https?:\/\/[^/?#]+\/?$/i.test(text)) {
    return { fault: 'must have only scheme, host and port, such as http://proxy.example.com:3128' };
  }
  if (!isDecodable(url.username) || !isDecodable(url.password)) {
    return { fault: 'must have a percent-encoded user and password: write % as %25' };
  }
  return { value: url.href };
}

/** A mail server, and the login at it. */
export interface SmtpAddress {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte, by STARTTLS before anything else is sent, or none. */
  readonly tls: 'implicit' | 'starttls' | 'off';
  readonly login: { readonly user: string; readonly pass: string } | undefined;
}

const SMTP_PORTS = { implicit: 465, starttls: 587, off: 25 } as const;

/** Parses the address of a mail server. A fault never contains the text, which may hold a login. */
export function parseSmtpUrl(text: string): Checked<SmtpAddress> {
  const [, s, rest] = /^smtp(s?):(\/\/[^\s\\#]+)$/i.exec(text) ?? [];
  // The URL parser reads hosts only of few schemes. No mail server has the port that it leaves out for this one.
  const url = URL.parse(`ftp:${rest}`);
  if (s === undefined || url?.pathname !== '/' || !['', '?tls=off'].includes(url.search)) {
    const fault = 'must be like smtps://user:password@host or smtp://…, percent-encoded: / as %2F';
    return { fault };
  }
  const { username, password, hostname, port, search } = url;
  if ((username === '') !== (password === '') || !isDecodable(`${username}:${password}`)) {
    return { fault: 'must have user:password, percent-encoded: % as %25' };
  }
  if (search !== '' && (s !== '' || username !== '')) {
    return { fault: 'must start with smtp:// and have no login to end in ?tls=off' };
  }
  const plain = search === '' ? 'starttls' : 'off';
  const tls = s === '' ? plain : 'implicit';
  return {
    value: {
      host: hostname.replace(/^\[(.*)\]$/, '$1'),
      port: port === '' ? SMTP_PORTS[tls] : Number(port),
      tls,
      login:
        username === ''
          ? undefined
          : { user: decodeURIComponent(username), pass: decodeURIComponent(password) },
    },
  };
}

/** Returns whether an address is plain HTTP, and to which kind of host; false for other addresses. */
export function isPlainHttp(text: string): 'loopback' | 'remote' | false {
  const url = parseHttpUrl(text);
  if (url?.protocol !== 'http:') return false;
  const host = url.hostname;
  const loopback =
    host === 'localhost' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'));
  return loopback ? 'loopback' : 'remote';
}

/** Parses `host:port`, with an IPv6 host in brackets. */
export function parseListen(text: string): Checked<ListenAddress> {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]*)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || !isHost(host, bracketed !== undefined)) {
    return { fault: `must be host:port, such as ${DEFAULT_LISTEN}${butNot(text)}` };
  }
  return port > 65_535
    ? { fault: `must have a port from 0 to 65535, not ${port}` }
    : { value: { host, port } };
}

/** Parses a host name as it stands in a `Host` header, and lower-cases it. */
export function parseHostName(text: string): Checked<string> {
  if (text.length > 253 || !/^[\w-]+(?:\.[\w-]+)*$/.test(text)) {
    return {
      fault: `must be a host name such as evalwatch.example.com, without scheme, port or wildcard${butNot(text)}`,
    };
  }
  return { value: text.toLowerCase() };
}

function isHost(text: string, bracketed: boolean): boolean {
  if (bracketed) return isIP(text) === 6;
  // A host of digits and dots must be a valid IPv4 address.
  if (/^[\d.]+$/.test(text)) return isIPv4(text);
  return /^(?!-)[a-z\d_-]+(\.[a-z\d_-]+)*\.?$/i.test(text);
}

function parseHttpUrl(text: string): URL | undefined {
  // The URL parser accepts white space and missing slashes; here they are errors.
  if (!/^https?:\/\/[^\s\\]+$/i.test(text)) return undefined;
  return URL.parse(text) ?? undefined;
}

function hasLogin(url: URL): boolean {
  return url.username !== '' || url.password !== '';
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
