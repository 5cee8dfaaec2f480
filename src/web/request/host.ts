import { isIP, isIPv6 } from 'node:net';

/** The requested host, from `Host` or from a request target in absolute form. */
export interface Host {
  /** Name in lower case, without the brackets of an IPv6 address and without a final dot. */
  readonly name: string;
  /** Undefined for the default port of the scheme. */
  readonly port: number | undefined;
  readonly isAddress: boolean;
}

const MAX_NAME_LENGTH = 253;
const HOST = /^(?:\[([\da-f:.]+)\]|([\w.-]+))(?::(\d{0,5}))?$/i;
const MAX_PORT = 65_535;

/** Parses `host` or `host:port`, an IPv6 address in brackets; undefined for anything else, user names included. */
export function parseHost(text: string): Host | undefined {
  const [, address, name, digits] = HOST.exec(text) ?? [];
  const port = digits ? Number(digits) : undefined;
  if (port !== undefined && port > MAX_PORT) return undefined;
  if (address !== undefined) {
    return isIPv6(address) ? { name: address.toLowerCase(), port, isAddress: true } : undefined;
  }
  if (name === undefined || name.length > MAX_NAME_LENGTH + 1) return undefined;
  const canonical = name.toLowerCase().replace(/\.$/, '');
  return canonical === '' ? undefined : { name: canonical, port, isAddress: isIP(canonical) !== 0 };
}
